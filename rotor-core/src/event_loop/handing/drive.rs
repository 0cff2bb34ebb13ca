//! Running a loop on the thread that has it.

use std::cell::Cell;
use std::sync::Arc;

use super::berth::Berth;
use super::call::{Applied, Applies, Called, call_by_value, call_in_place, call_lifted};
use super::hand::Hand;
use super::worker::Worker;
use super::{Baton, Relay, Rest};
use crate::backend::Backend;
use crate::event_loop::core::Next;
use crate::event_loop::dispatch::Terms;
use crate::event_loop::slots::LiftedMachine;
use crate::guard::{drop_guarded, guard};
use crate::machine::Machine;
use crate::scope::Scope;
use crate::time::Time;

/// The state of a thread that runs a loop. The rest of the loop is in the worker's berth.
pub(super) struct Held<M: Machine> {
    pub(super) context: Option<Box<M::Context>>,
    /// The call that the thread makes.
    pub(super) terms: Terms<M>,
    /// Whether the machine has woken itself in this call; used if other threads may have the loop
    /// meanwhile.
    pub(super) woke_itself: Cell<bool>,
    /// When the call began, if it is made for a loop that another thread runs.
    pub(super) detached: Option<Time>,
}

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Runs the loop until it has ended, is given to another thread, was taken, or is dropped.
    pub(super) fn drive<P: Berth<M, B>>(
        self: &Arc<Self>,
        baton: Baton<M, B>,
        worker: &Worker<M, B, P>,
    ) {
        self.runs_here(worker);
        let Baton { mut rest, context } = baton;
        self.prepare_next_context(&mut rest, &context);
        *worker.berth.lock() = Some(rest);
        let mut held = Held {
            context: Some(context),
            terms: Terms::nothing(),
            woke_itself: Cell::new(false),
            detached: None,
        };
        self.drive_held(&mut held, worker);
        // If the loop was taken, this is the context of this thread: another handle than that of
        // the thread that goes on.
        drop_guarded(held, "a context");
    }

    fn drive_held<P: Berth<M, B>>(self: &Arc<Self>, held: &mut Held<M>, worker: &Worker<M, B, P>) {
        // One guard for all handlers, as in a turn that calls them itself. After a panic the loop
        // is in its place again, unless it was taken or dropped.
        loop {
            match guard(|| self.make_calls(held, worker)) {
                Ok(()) => return,
                Err(panicked) => {
                    let mut place = worker.berth.lock();
                    let Some(rest) = place.as_mut() else {
                        drop(place);
                        return self.panicked_late(held, panicked);
                    };
                    held.woke_itself.set(false);
                    let Rest { core, progress, .. } = &mut **rest;
                    match core.handler_panicked(&*self.environment, progress, &panicked) {
                        Ok(()) => {}
                        Err(error) => return self.end_with(held, place.take(), Err(error)),
                    }
                }
            }
        }
    }

    fn make_calls<P: Berth<M, B>>(self: &Arc<Self>, held: &mut Held<M>, worker: &Worker<M, B, P>) {
        let mut rest = worker.berth.lock();
        loop {
            if self.control.is_called() {
                rest = match self.heed_others(held, worker, rest) {
                    Some(rest) => rest,
                    None => return,
                };
            }
            let Held { context, terms, .. } = &mut *held;
            let (Some(there), Some(own)) = (rest.as_mut(), context.as_deref_mut()) else { return };
            let Rest { core, repeated, progress, .. } = &mut **there;
            match core.next(terms, progress, own, &*self.environment, repeated, &self.control) {
                Ok(Next::Call) => {
                    let mut lifted = core.lift(&*self.environment, terms);
                    if P::IS_OPEN
                        && !there.suspects.is_empty()
                        && self.detach(held, &mut lifted, there)
                    {
                        continue;
                    }
                    match self.call(held, lifted, worker, rest) {
                        Some(there) => rest = there,
                        None => return,
                    }
                }
                #[cfg(not(rotor_handed))]
                Ok(Next::Turn) => {}
                #[cfg(rotor_handed)]
                Ok(Next::Turn) => match self.turn_goes_round::<P>(held, rest) {
                    Some(there) => rest = there,
                    None => return,
                },
                Ok(Next::Ended(exit)) => return self.end_with(held, rest.take(), Ok(exit)),
                Err(error) => return self.end_with(held, rest.take(), Err(error)),
            }
        }
    }

    /// Makes a call, and the further ones that report the results of spawns. Returns `None` if the
    /// loop is no longer here.
    #[inline(always)]
    pub(super) fn call<'a, P: Berth<M, B>>(
        self: &Arc<Self>,
        held: &mut Held<M>,
        mut lifted: LiftedMachine<M>,
        worker: &'a Worker<M, B, P>,
        mut rest: P::Guard<'a>,
    ) -> Option<P::Guard<'a>> {
        let Held { context, terms, woke_itself, .. } = &mut *held;
        let environment = &*self.environment;
        let berth = &worker.berth;
        let called = call_lifted!(
            lifted, rest, berth, terms, context, environment, woke_itself,
            {
                let hand = Hand::new(self, worker, terms, woke_itself);
                #[cfg(rotor_handed)]
                hand.goes_round(context);
                let (lent, token) = (P::lent(context, &hand), terms.callee.token);
            }
            Scope::lent(lent, environment, token, terms.woken())
        );
        match called {
            Called::Done(there) => Some(there),
            Called::Late(response) => {
                self.answered_late(held, response);
                None
            }
        }
    }
}
