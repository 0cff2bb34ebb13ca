//! Running a loop on whichever thread has it.

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
use crate::event_loop::slots::Lifted;
use crate::guard::{drop_guarded, guard};
use crate::machine::Machine;
use crate::scope::Scope;
use crate::time::Time;

/// What a thread has while it runs a loop: the rest of that lies in the worker's berth.
pub(super) struct Held<M: Machine> {
    pub(super) context: Option<Box<M::Context>>,
    /// The call that it makes.
    pub(super) terms: Terms<M>,
    /// The machine has woken itself in that, where others may have the loop meanwhile.
    pub(super) woke_itself: Cell<bool>,
    /// Since when it makes that for a loop that another thread has, if it does.
    pub(super) detached: Option<Time>,
}

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Runs the loop until it has ended, is given to somebody else, was taken, or is gone.
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
        // The context of a loop that was taken: another handle than that which goes on.
        drop_guarded(held, "a context");
    }

    fn drive_held<P: Berth<M, B>>(self: &Arc<Self>, held: &mut Held<M>, worker: &Worker<M, B, P>) {
        // One guard for all handlers, as in a turn that calls them itself. After a panic the loop
        // is in its place again, unless it is gone.
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

    /// Makes a call, and those by which the machine hears of what it spawned. `None`: the loop is no
    /// longer here.
    #[inline(always)]
    pub(super) fn call<'a, P: Berth<M, B>>(
        self: &Arc<Self>,
        held: &mut Held<M>,
        mut lifted: Lifted<M>,
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
