//! With `--cfg rotor_handed`, every loop changes its thread all the time, so that all tests cover
//! that as well:
//!
//! * each turn runs on another thread than the one before, also with `turn`;
//! * each handler, before it does anything, gives the loop to another thread and gets it back,
//!   because it is first in line before the other thread looks. So its machine was detached, but no
//!   handler has run in between, and all calls and their order are the same as on one thread.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::drive::DriveState;
use super::loop_hand_over::LoopHandOver;
use super::state_cell::StateCell;
use super::{Baton, Relay};
use crate::backend::Backend;
use crate::machine::Machine;

/// The error by which a loop ends that was to take one turn.
#[derive(Debug)]
pub(in crate::event_loop) struct OneTurnError;

impl fmt::Display for OneTurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it was to take one turn")
    }
}

impl Error for OneTurnError {}

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Lets another thread take the next turn. Returns `None` if the loop is no longer here.
    pub(super) fn pass_next_turn<'a, P: StateCell<M, B>>(
        self: &Arc<Self>,
        drive_state: &mut DriveState<M>,
        mut loop_state: P::Guard<'a>,
    ) -> Option<P::Guard<'a>>
    where
        B: 'a,
    {
        if loop_state.as_ref()?.is_one_turn {
            let ended = Err(io::Error::other(OneTurnError));
            self.end_loop(drive_state, loop_state.take(), ended);
            return None;
        }
        self.leave_thread::<P>(drive_state, loop_state)
    }
}

impl<M, B, P: StateCell<M, B>> LoopHandOver<'_, M, B, P>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Gives the loop to another thread, and gets it back.
    pub(super) fn round_trip(&self, own: &mut Option<Box<M::Context>>) {
        let Some(context) = own.take() else { return };
        let Some(mut loop_state) = self.worker.state_cell.lock().take() else {
            return *own = Some(context);
        };
        let (environment, callee) = (&*self.relay.environment, self.issued.callee);
        loop_state.core.dispatch_mut().detach(callee);
        let woke_itself = environment.take_self_wakeup();
        self.relay.thread_queue.push_front(&self.worker.loop_parker);
        let given = match self.relay.thread_queue.give_to_parked(Baton { loop_state, context }) {
            Ok(()) => Ok(()),
            Err(baton) => self.relay.start_thread(baton),
        };
        let Baton { mut loop_state, context } = match given {
            Ok(()) => self.worker.loop_parker.wait().expect("a loop that runs is not closed"),
            Err(baton) => {
                self.relay.thread_queue.remove(&self.worker.loop_parker);
                baton
            }
        };
        self.relay.set_running_thread(self.worker);
        loop_state.core.reattach(environment, &mut loop_state.progress, callee);
        if woke_itself {
            environment.record_self_wakeup();
        }
        if self.issued.is_wakeup() {
            environment.waiters.begin_wakeup(callee.token);
        }
        *own = Some(context);
        *self.worker.state_cell.lock() = Some(loop_state);
    }
}
