//! Detached calls: another thread makes them, so that the loop does not wait for them. They are for
//! machines of a type whose handlers were stuck shortly before.
//!
//! ```text
//!   thread 1: has the loop ── calls others ────────┬── calls others ──▶
//!                   │                              │
//!                   │ machine, terms, a context    │ the answer waits
//!                   ▼                              │
//!   thread 2: (parked) ───────── handler ──────────┴── parks
//! ```
//!
//! For the machine, the events for it and its response, it makes no difference from a loop that was
//! [taken](super::taking) from its handler right at the beginning.

use std::mem;
use std::sync::Arc;

use super::berth::Berth;
use super::drive::Held;
use super::given::Detached;
use super::worker::Worker;
use super::{Relay, Rest};
use crate::backend::{Backend, BackendHandle};
use crate::blocking::BlockCounts;
use crate::event_loop::dispatch::Terms;
use crate::event_loop::slots::LiftedMachine;
use crate::guard::{drop_guarded, guard};
use crate::machine::Machine;

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Lets another thread make the call of this machine, if its type is suspected to block.
    /// Returns whether another thread does.
    #[cold]
    #[inline(never)]
    pub(super) fn detach(
        self: &Arc<Self>,
        held: &mut Held<M>,
        lifted: &mut LiftedMachine<M>,
        rest: &mut Rest<M, B>,
    ) -> bool {
        let callee = held.terms.callee;
        if !rest.suspects.may_detach(callee.type_name) {
            return false;
        }
        let Some(context) = rest.next_context.take() else { return false };
        rest.core.dispatch_mut().leave(callee);
        self.environment.waiters.leave_called(callee.token);
        self.sections.begin(callee.token, callee.type_name, false);
        let call = Box::new(Detached {
            lifted: lifted.take(),
            terms: mem::replace(&mut held.terms, Terms::nothing()),
            context,
            since: self.environment.handle.now(),
        });
        let given = self.line.give_to_parked(call).or_else(|call| self.start(call));
        if let Err(call) = given {
            let Detached { lifted: unused, terms, context, .. } = *call;
            (*lifted, held.terms) = (unused, terms);
            rest.next_context = Some(context);
            self.sections.end(callee.token);
            rest.core.dispatch_mut().stay(callee);
            return false;
        }
        BlockCounts::add(&self.environment.blocks.taken_over);
        rest.suspects.record_detached(callee.type_name);
        if let Some(context) = &held.context {
            self.prepare_next_context(rest, context);
        }
        true
    }

    /// Makes a call for a loop that another thread runs.
    pub(super) fn make_detached<P: Berth<M, B>>(
        self: &Arc<Self>,
        call: Detached<M>,
        worker: &Worker<M, B, P>,
    ) {
        let Detached { lifted, terms, context, since } = call;
        let begun = self.environment.handle.now();
        terms.was_away_since(since, || begun);
        let mut held = Held {
            context: Some(context),
            terms,
            woke_itself: Default::default(),
            detached: Some(begun),
        };
        // There is no loop in this thread's berth, so the response is late.
        let made = guard(|| drop(self.call(&mut held, lifted, worker, worker.berth.lock())));
        if let Err(panicked) = made {
            self.panicked_late(&mut held, panicked);
        }
        drop_guarded(held, "a context");
    }
}
