//! `Hand`: what the scope of a handler has of the thread that runs the loop.

use std::cell::Cell;
use std::sync::Arc;

use super::worker::Worker;
use super::{Baton, Relay, Rest};
use crate::backend::{Backend, BackendHandle};
use crate::blocking::{Back, BlockCounts};
use crate::event_loop::dispatch::Terms;
use crate::machine::Machine;
use crate::scope::HandOver;
use crate::time::Time;

/// Gives the loop up for a section that blocks, and takes it back.
pub(super) struct Hand<'a, M: Machine, B: Backend> {
    relay: &'a Arc<Relay<M, B>>,
    worker: &'a Worker<Baton<M, B>>,
    rest: &'a Cell<Option<Box<Rest<M, B>>>>,
    terms: &'a Terms,
    /// When the section began.
    begun: Cell<Time>,
    /// The machine had woken itself before.
    woke_itself: Cell<bool>,
}

impl<'a, M: Machine, B: Backend> Hand<'a, M, B> {
    pub(super) fn new(
        relay: &'a Arc<Relay<M, B>>,
        worker: &'a Worker<Baton<M, B>>,
        rest: &'a Cell<Option<Box<Rest<M, B>>>>,
        terms: &'a Terms,
    ) -> Hand<'a, M, B> {
        let (begun, woke_itself) = (Cell::new(Time::ZERO), Cell::new(false));
        Hand { relay, worker, rest, terms, begun, woke_itself }
    }
}

impl<M, B> HandOver<M::Context> for Hand<'_, M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    fn give_up(&self, context: Box<M::Context>) -> Result<(), Box<M::Context>> {
        let Some(mut rest) = self.rest.take() else { return Err(context) };
        let environment = &*self.relay.environment;
        let callee = self.terms.callee;
        rest.core.dispatch_mut().leave(callee);
        // It is of this call, and the next ones are others'.
        self.woke_itself.set(environment.take_woke_itself());
        self.begun.set(environment.handle.now());
        let patience = self.relay.blocking.declared();
        // What is lent is taken by the watchdog alone, where it turns out not to be short.
        let is_short = rest.is_watched && rest.sections.are_short(callee.type_name, patience);
        let baton = Baton { rest, context };
        self.relay.sections.begin(callee.token, callee.type_name);
        if is_short {
            self.relay.line.lend(baton);
            return Ok(());
        }
        let Err(Baton { mut rest, context }) = self.relay.pass(baton) else { return Ok(()) };
        self.relay.sections.end(callee.token);
        BlockCounts::add(&environment.blocks.no_thread);
        rest.core.dispatch_mut().come_back(callee);
        if self.woke_itself.take() {
            environment.note_woke_itself();
        }
        self.rest.set(Some(rest));
        Err(context)
    }

    fn take_back(&self) -> Option<Box<M::Context>> {
        let environment = &*self.relay.environment;
        let callee = self.terms.callee;
        let took = environment.handle.now() - self.begun.get();
        // Whoever has the loop may be asleep with it.
        let back = self.relay.line.take_back(&self.worker.seat, || environment.wakes.wake_loop());
        self.relay.sections.end(callee.token);
        let (Baton { mut rest, context }, count) = match back? {
            Back::Unused(baton) => (baton, &environment.blocks.handed_quick),
            Back::Used(baton) => {
                self.relay.runs_here(self.worker);
                self.terms.was_away_since(self.begun.get(), || environment.handle.now());
                (baton, &environment.blocks.handed_over)
            }
        };
        BlockCounts::add(count);
        rest.sections.note(callee.type_name, took);
        rest.core.dispatch_mut().come_back(callee);
        if self.woke_itself.take() {
            environment.note_woke_itself();
        }
        if self.terms.is_wakeup() {
            environment.waiters.begin_wakeup(callee.token);
        }
        environment.refresh_now();
        self.rest.set(Some(rest));
        Some(context)
    }
}
