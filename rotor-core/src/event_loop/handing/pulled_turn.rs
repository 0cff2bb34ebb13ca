//! A turn of a loop that could be handed over, but on one thread and for any machines. With `--cfg
//! rotor_pulled`, all loops take such turns, and with `--cfg rotor_taking` those of a loop that
//! could be taken from its handlers, so that all tests cover them as well.

use std::cell::Cell;
use std::io;

use super::baton::{Baton, Rest};
use super::berth::Berth;
use super::call::{Applied, Applies, Called, call_by_value, call_in_place, call_lifted};
use crate::backend::Backend;
use crate::event_loop::core::Next;
use crate::event_loop::dispatch::Terms;
use crate::event_loop::handle::{Control, Exit};
use crate::event_loop::run_queue::Wait;
use crate::guard::guard;
use crate::machine::Machine;
use crate::scope::{AnyEnvironment, Scope};

/// Takes one turn, as [`Core::turn`](crate::event_loop::core::Core::turn) does, and returns the
/// baton.
pub(in crate::event_loop) fn pulled_turn<M: Machine, B: Backend, P: Berth<M, B>>(
    Baton { rest, context }: Baton<M, B>,
    environment: &AnyEnvironment,
    control: &Control,
    wait: Wait,
) -> (Option<Baton<M, B>>, io::Result<Option<Exit>>) {
    let berth = P::empty();
    *berth.lock() = Some(rest);
    let mut context = Some(context);
    let ended = loop {
        match guard(|| calls(&berth, &mut context, environment, control, wait)) {
            Ok(ended) => break ended,
            Err(panicked) => {
                if let Some(rest) = berth.lock().as_mut() {
                    let Rest { core, progress, .. } = &mut **rest;
                    if let Err(error) = core.handler_panicked(environment, progress, &panicked) {
                        break Err(error);
                    }
                }
            }
        }
    };
    let rest = berth.lock().take();
    (rest.zip(context).map(|(rest, context)| Baton { rest, context }), ended)
}

fn calls<M: Machine, B: Backend, P: Berth<M, B>>(
    berth: &P,
    context: &mut Option<Box<M::Context>>,
    environment: &AnyEnvironment,
    control: &Control,
    wait: Wait,
) -> io::Result<Option<Exit>> {
    let terms = &mut Terms::nothing();
    let woke_itself = &Cell::new(false);
    let mut rest = berth.lock();
    loop {
        let (Some(there), Some(own)) = (rest.as_mut(), context.as_deref_mut()) else {
            return Ok(None);
        };
        let Rest { core, repeated, progress, .. } = &mut **there;
        progress.set_wait(wait);
        match core.next(terms, progress, own, environment, repeated, control)? {
            Next::Call => {}
            Next::Turn => return Ok(None),
            Next::Ended(exit) => return Ok(Some(exit)),
        }
        let mut lifted = core.lift(environment, terms);
        let called = call_lifted!(
            lifted, rest, berth, terms, context, environment, woke_itself,
            {
                let Some(own) = context.as_deref_mut() else { return Ok(None) };
                let (token, woken) = (terms.callee.token, terms.woken());
            }
            Scope::new(own, environment, token, woken)
        );
        match called {
            Called::Done(there) => rest = there,
            Called::Late(_) => return Ok(None),
        }
    }
}
