//! With `--cfg rotor_handed`, every loop changes its thread all the time, so that all tests cover
//! that as well:
//!
//! * each turn runs on another thread than the one before, also with `turn`;
//! * each handler, before it does anything, gives the loop to another thread and gets it back,
//!   because it is first in line before the other thread looks. So its machine was away, but no
//!   handler has run in between, and all calls and their order are the same as on one thread.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::berth::Berth;
use super::drive::Held;
use super::hand::Hand;
use super::{Baton, Relay};
use crate::backend::Backend;
use crate::machine::Machine;

/// The error by which a loop ends that was to take one turn.
#[derive(Debug)]
pub(in crate::event_loop) struct OneTurn;

impl fmt::Display for OneTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it was to take one turn")
    }
}

impl Error for OneTurn {}

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Lets another thread take the next turn. Returns `None` if the loop is no longer here.
    pub(super) fn turn_goes_round<'a, P: Berth<M, B>>(
        self: &Arc<Self>,
        held: &mut Held<M>,
        mut rest: P::Guard<'a>,
    ) -> Option<P::Guard<'a>>
    where
        B: 'a,
    {
        let there = rest.take()?;
        if there.is_one_turn {
            self.end_with(held, Some(there), Err(io::Error::other(OneTurn)));
            return None;
        }
        match self.pass(Baton { rest: there, context: held.context.take()? }) {
            Ok(()) => None,
            Err(Baton { rest: there, context }) => {
                *rest = Some(there);
                held.context = Some(context);
                Some(rest)
            }
        }
    }
}

impl<M, B, P: Berth<M, B>> Hand<'_, M, B, P>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Gives the loop to another thread, and gets it back.
    pub(super) fn goes_round(&self, own: &mut Option<Box<M::Context>>) {
        let Some(context) = own.take() else { return };
        let Some(mut rest) = self.worker.berth.lock().take() else { return *own = Some(context) };
        let (environment, callee) = (&*self.relay.environment, self.terms.callee);
        rest.core.dispatch_mut().leave(callee);
        let woke_itself = environment.take_woke_itself();
        self.relay.line.push_front(&self.worker.seat);
        let given = match self.relay.line.give_to_parked(Baton { rest, context }) {
            Ok(()) => Ok(()),
            Err(baton) => self.relay.start(baton),
        };
        let Baton { mut rest, context } = match given {
            Ok(()) => self.worker.seat.wait().expect("a loop that runs is not closed"),
            Err(baton) => {
                self.relay.line.remove(&self.worker.seat);
                baton
            }
        };
        self.relay.runs_here(self.worker);
        rest.core.come_back(environment, &mut rest.progress, callee);
        if woke_itself {
            environment.note_woke_itself();
        }
        if self.terms.is_wakeup() {
            environment.waiters.begin_wakeup(callee.token);
        }
        *own = Some(context);
        *self.worker.berth.lock() = Some(rest);
    }
}
