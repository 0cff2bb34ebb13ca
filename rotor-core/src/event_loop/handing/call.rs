//! Making a call: the machine's handler, with nothing of the loop borrowed meanwhile.

use std::cell::Cell;

use super::berth::Berth;
use crate::backend::Backend;
use crate::event::{Event, InPlace};
use crate::event_loop::core::CallPlace;
use crate::event_loop::dispatch::{Answered, Terms};
use crate::event_loop::slots::Lifted;
use crate::machine::Machine;
use crate::response::{Answer, Response};
use crate::scope::{AnyEnvironment, Scope};

/// Makes a call, and those by which the machine hears of what it spawned; `handle` calls the
/// handler.
///
/// `None`: the loop is no longer here, and what was answered is in `answer`.
#[inline(always)]
pub(super) fn make_call<'a, M: Machine, B: Backend, P: Berth<M, B>>(
    berth: &'a P,
    mut rest: P::Guard<'a>,
    place: &mut CallPlace<'_, M>,
    context: &mut Option<Box<M::Context>>,
    (environment, woke_itself): (&AnyEnvironment, &Cell<bool>),
    answer: &mut Option<Answered<M>>,
    mut handle: impl FnMut(
        &mut Lifted<M>,
        &Terms<M>,
        &mut Option<Box<M::Context>>,
        Event<M::Seed>,
    ) -> Option<Answered<M>>,
) -> Option<P::Guard<'a>> {
    loop {
        let event = place.terms.take_event();
        drop(rest);
        let answered = handle(place.lifted, place.terms, context, event);
        rest = berth.lock();
        let (Some(there), Some(context)) = (rest.as_mut(), context.as_deref_mut()) else {
            *answer = answered;
            return None;
        };
        if P::IS_OPEN && woke_itself.take() {
            environment.note_woke_itself();
        }
        let Some(answered) = answered else { return Some(rest) };
        if !there.core.answered(place, context, environment, answered) {
            return Some(rest);
        }
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
