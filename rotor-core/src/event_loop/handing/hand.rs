//! `Hand`: the access of a handler's scope to the thread that runs the loop.

use std::cell::Cell;
use std::sync::Arc;

use super::berth::Berth;
use super::worker::Worker;
use super::{Baton, Relay, Rest};
use crate::backend::{Backend, BackendHandle};
use crate::blocking::{BlockCounts, ReclaimedValue};
use crate::event_loop::dispatch::Terms;
use crate::guard::drop_guarded;
use crate::machine::Machine;
use crate::scope::{GaveUp, HandOver, TookBack};
use crate::time::Time;

/// Gives the loop up for a section that blocks, and takes it back.
pub(super) struct Hand<'a, M: Machine, B: Backend, P> {
    pub(super) relay: &'a Arc<Relay<M, B>>,
    pub(super) worker: &'a Worker<M, B, P>,
    pub(super) terms: &'a Terms<M>,
    /// When the section began.
    begun: Cell<Time>,
    /// Whether the machine had woken itself before the section.
    woke_itself: Cell<bool>,
    /// Whether the machine has woken itself; used if other threads may have the loop meanwhile.
    noted: &'a Cell<bool>,
}

impl<'a, M: Machine, B: Backend, P> Hand<'a, M, B, P> {
    #[inline(always)]
    pub(super) fn new(
        relay: &'a Arc<Relay<M, B>>,
        worker: &'a Worker<M, B, P>,
        terms: &'a Terms<M>,
        noted: &'a Cell<bool>,
    ) -> Hand<'a, M, B, P> {
        let (begun, woke_itself) = (Cell::new(Time::ZERO), Cell::new(false));
        Hand { relay, worker, terms, begun, woke_itself, noted }
    }
}

impl<M, B, P: Berth<M, B>> HandOver<M::Context> for Hand<'_, M, B, P>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    fn give_up(&self, context: Option<Box<M::Context>>) -> GaveUp<M::Context> {
        let mut place = self.worker.berth.lock();
        let Some(mut rest) = place.take() else {
            return if P::IS_OPEN { GaveUp::Taken } else { GaveUp::Here(context) };
        };
        #[cfg(rotor_handed)]
        if rest.is_one_turn {
            // In `turn`, which hands no section over.
            *place = Some(rest);
            return GaveUp::Here(context);
        }
        let is_own = context.is_some();
        let Some(context) = context.or_else(|| rest.next_context.take()) else {
            *place = Some(rest);
            return GaveUp::Here(None);
        };
        drop(place);
        let environment = &*self.relay.environment;
        let callee = self.terms.callee;
        rest.core.dispatch_mut().leave(callee);
        // The flag belongs to this call, and the next calls are those of other machines.
        self.woke_itself.set(environment.take_woke_itself());
        self.begun.set(environment.handle.now());
        let patience = self.relay.blocking.declared_patience();
        // Only the watchdog takes a lent baton, if the section turns out not to be short.
        let is_short = rest.is_watched && rest.sections.are_short(callee.type_name, patience);
        let baton = Baton { rest, context };
        self.relay.sections.begin(callee.token, callee.type_name, true);
        if is_short {
            self.relay.line.lend(baton);
            return GaveUp::Away;
        }
        let Err(Baton { mut rest, context }) = self.relay.pass(baton) else { return GaveUp::Away };
        self.relay.sections.end(callee.token);
        BlockCounts::add(&environment.blocks.no_thread);
        rest.core.dispatch_mut().stay(callee);
        if self.woke_itself.take() {
            environment.note_woke_itself();
        }
        let context = if is_own {
            Some(context)
        } else {
            rest.next_context = Some(context);
            None
        };
        *self.worker.berth.lock() = Some(rest);
        GaveUp::Here(context)
    }

    fn take_back(&self) -> TookBack<M::Context> {
        let environment = &*self.relay.environment;
        let callee = self.terms.callee;
        let took = environment.handle.now() - self.begun.get();
        // The thread that has the loop may be asleep in its backend.
        let back = self.relay.line.reclaim(&self.worker.seat, || environment.wakes.wake_loop());
        self.relay.sections.end(callee.token);
        let (Baton { mut rest, context }, count) = match back {
            None => return if P::IS_OPEN { TookBack::Here(None) } else { TookBack::Gone },
            Some(ReclaimedValue::Unused(baton)) => (baton, &environment.blocks.handed_quick),
            Some(ReclaimedValue::Used(baton)) => {
                self.relay.runs_here(self.worker);
                self.terms.was_away_since(self.begun.get(), || environment.handle.now());
                (baton, &environment.blocks.handed_over)
            }
        };
        BlockCounts::add(count);
        let Rest { core, progress, sections, .. } = &mut *rest;
        sections.record(callee.type_name, took);
        core.come_back(environment, progress, callee);
        if self.woke_itself.take() {
            environment.note_woke_itself();
        }
        if self.terms.is_wakeup() {
            environment.waiters.begin_wakeup(callee.token);
        }
        environment.refresh_now();
        let context = if P::IS_OPEN {
            // This handler has its own context. The thread that ran the loop meanwhile may have
            // left one for the next thread.
            if rest.next_context.is_none() {
                rest.next_context = Some(context);
            } else {
                drop_guarded(context, "a context");
            }
            None
        } else {
            Some(context)
        };
        *self.worker.berth.lock() = Some(rest);
        TookBack::Here(context)
    }

    fn note_woke_itself(&self) -> bool {
        self.noted.set(true);
        true
    }

    fn refresh_now(&self) -> Option<Time> {
        let place = self.worker.berth.lock();
        place.is_some().then(|| self.relay.environment.refresh_now())
    }

    fn hands_over(&self) -> bool {
        true
    }
}
