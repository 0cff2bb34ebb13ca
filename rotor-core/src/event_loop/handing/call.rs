//! A call: the machine's handler, with nothing of the loop borrowed meanwhile, and its answer.

use std::cell::Cell;

use super::berth::Berth;
use crate::backend::Backend;
use crate::event::{Event, InPlace};
use crate::event_loop::core::CallPlace;
use crate::event_loop::dispatch::Answered;
use crate::event_loop::slots::Lifted;
use crate::machine::Machine;
use crate::response::{Answer, Response};
use crate::scope::{AnyEnvironment, Scope};

/// What became of an answer; with the rest of the loop, if that is here.
pub(super) enum Applied<G, M: Machine> {
    Done(G),
    /// The machine is to hear of what it spawned: that is the next call.
    Again(G),
    /// The loop is no longer here: it is applied by whoever has that.
    Late(Option<Answered<M>>),
}

/// Takes the rest of the loop from its place again, and applies the answer to a call.
#[inline(always)]
pub(super) fn apply_answer<'a, M: Machine, B: Backend, P: Berth<M, B>>(
    berth: &'a P,
    place: &mut CallPlace<'_, M>,
    context: &mut Option<Box<M::Context>>,
    (environment, woke_itself): (&AnyEnvironment, &Cell<bool>),
    answered: Option<Answered<M>>,
) -> Applied<P::Guard<'a>, M> {
    let mut rest = berth.lock();
    let (Some(there), Some(context)) = (rest.as_mut(), context.as_deref_mut()) else {
        return Applied::Late(answered);
    };
    if P::IS_OPEN && woke_itself.take() {
        environment.note_woke_itself();
    }
    let Some(answered) = answered else { return Applied::Done(rest) };
    if there.core.answered(place, context, environment, answered) {
        Applied::Again(rest)
    } else {
        Applied::Done(rest)
    }
}

/// Calls the handler. `None` only for what is no machine.
#[inline(always)]
pub(super) fn hand_event<M: Machine>(
    lifted: &mut Lifted<M>,
    event: Event<M::Seed>,
    scope: &mut Scope<'_, M::Context>,
) -> Option<Answered<M>> {
    let mut in_hand = lifted.in_hand();
    let response = in_hand.machine().map(|machine| machine.handle_in_place(event, scope));
    in_hand.let_go();
    let response = match response? {
        InPlace::Handled(Response { answer: Answer::Continue(()), deadline }) => {
            return Some(Answered::InPlace(deadline));
        }
        response => response,
    };
    let machine = lifted.take().into_machine()?;
    Some(Answered::Whole(match response {
        InPlace::Handled(response) => response.map(|()| machine, |seed| seed),
        InPlace::Declined(event) => machine.handle(event, scope),
    }))
}
