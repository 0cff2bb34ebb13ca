//! A turn of a loop that could be handed over, but on one thread and for any machines. With `--cfg
//! rotor_pulled`, all loops take such turns, and with `--cfg rotor_taking` those of a loop that
//! could be taken from its handlers, so that all tests cover them as well.

use std::cell::Cell;
use std::io;

use super::baton::{Baton, LoopState};
use super::call::{
    ApplyOutcome, CallOutcome, ResponseApplier, call_by_value, call_in_place, call_lifted,
};
use super::state_cell::StateCell;
use crate::backend::Backend;
use crate::event_loop::core::NextAction;
use crate::event_loop::dispatch::IssuedCall;
use crate::event_loop::handle::{Control, Exit};
use crate::event_loop::run_queue::WaitMode;
use crate::guard::guard;
use crate::machine::Machine;
use crate::scope::{AnyEnvironment, Scope};

/// Takes one turn, as [`Core::turn`](crate::event_loop::core::Core::turn) does, and returns the
/// baton.
pub(in crate::event_loop) fn take_pulled_turn<M: Machine, B: Backend, P: StateCell<M, B>>(
    Baton { loop_state, context }: Baton<M, B>,
    environment: &AnyEnvironment,
    control: &Control,
    wait: WaitMode,
) -> (Option<Baton<M, B>>, io::Result<Option<Exit>>) {
    let state_cell = P::empty();
    *state_cell.lock() = Some(loop_state);
    let mut context = Some(context);
    let ended = loop {
        match guard(|| make_calls(&state_cell, &mut context, environment, control, wait)) {
            Ok(ended) => break ended,
            Err(panicked) => {
                if let Some(loop_state) = state_cell.lock().as_mut() {
                    let LoopState { core, progress, .. } = &mut **loop_state;
                    if let Err(error) = core.handler_panicked(environment, progress, &panicked) {
                        break Err(error);
                    }
                }
            }
        }
    };
    let loop_state = state_cell.lock().take();
    (loop_state.zip(context).map(|(loop_state, context)| Baton { loop_state, context }), ended)
}

fn make_calls<M: Machine, B: Backend, P: StateCell<M, B>>(
    state_cell: &P,
    context: &mut Option<Box<M::Context>>,
    environment: &AnyEnvironment,
    control: &Control,
    wait: WaitMode,
) -> io::Result<Option<Exit>> {
    let issued = &mut IssuedCall::empty();
    let woke_itself = &Cell::new(false);
    let mut loop_state = state_cell.lock();
    loop {
        let (Some(state), Some(own)) = (loop_state.as_mut(), context.as_deref_mut()) else {
            return Ok(None);
        };
        let LoopState { core, repeated, progress, .. } = &mut **state;
        progress.set_wait(wait);
        match core.advance(issued, progress, own, environment, repeated, control)? {
            NextAction::Call => {}
            NextAction::TurnOver => return Ok(None),
            NextAction::Ended(exit) => return Ok(Some(exit)),
        }
        let mut lifted = core.lift(environment, issued);
        let called = call_lifted!(
            lifted, loop_state, state_cell, issued, context, environment, woke_itself,
            {
                let Some(own) = context.as_deref_mut() else { return Ok(None) };
                let (token, wake_target) = (issued.callee.token, issued.wake_target());
            }
            Scope::new(own, environment, token, wake_target)
        );
        match called {
            CallOutcome::Done(state) => loop_state = state,
            CallOutcome::Late(_) => return Ok(None),
        }
    }
}
