//! A turn of a loop that could be handed over, on one thread and for any machines: with
//! `--cfg rotor_pulled` all loops take such turns, so that all tests are of them as well.

use std::io;

use super::drive::hand_event;
use super::{Baton, Rest};
use crate::backend::Backend;
use crate::event_loop::core::Next;
use crate::event_loop::dispatch::Call;
use crate::event_loop::handle::{Control, Exit};
use crate::event_loop::run_queue::Wait;
use crate::event_loop::slots::Lifted;
use crate::guard::guard;
use crate::machine::Machine;
use crate::scope::{AnyEnvironment, Scope};

/// Takes one turn, as [`Core::turn`](crate::event_loop::core::Core::turn) does.
pub(in crate::event_loop) fn pulled_turn<M: Machine, B: Backend>(
    baton: &mut Baton<M, B>,
    environment: &AnyEnvironment,
    control: &Control,
    wait: Wait,
) -> io::Result<Option<Exit>> {
    loop {
        match guard(|| calls(baton, environment, control, wait)) {
            Ok(ended) => return ended,
            Err(panicked) => {
                let Rest { core, progress, .. } = &mut *baton.rest;
                core.handler_panicked(environment, progress, &panicked);
            }
        }
    }
}

fn calls<M: Machine, B: Backend>(
    Baton { rest, context }: &mut Baton<M, B>,
    environment: &AnyEnvironment,
    control: &Control,
    wait: Wait,
) -> io::Result<Option<Exit>> {
    let Rest { core, repeated, progress, .. } = &mut **rest;
    progress.set_wait(wait);
    let lifted = &mut Lifted::nothing();
    loop {
        let next = core.next(lifted, progress, context, environment, repeated, control)?;
        let mut next = match next {
            Next::Call(call) => Some(call),
            Next::Turn => return Ok(None),
            Next::Ended(exit) => return Ok(Some(exit)),
        };
        while let Some(Call { terms, event }) = next {
            let token = terms.callee.token;
            let scope = &mut Scope::new(&mut **context, environment, token, terms.woken());
            let Some(answered) = hand_event(lifted, event, scope) else { break };
            next = core.answered(lifted, context, environment, terms, answered);
        }
    }
}
