//! A call: the machine's handler, during which nothing of the loop is borrowed, and its response.

use std::cell::Cell;

use super::berth::Berth;
use crate::backend::Backend;
use crate::event::{Event, InPlace};
use crate::event_loop::dispatch::Terms;
use crate::event_loop::slots::{LiftedCallGuard, LiftedMachine};
use crate::machine::Machine;
use crate::response::{Answer, Deadline, Response};
use crate::scope::{AnyEnvironment, Scope};

/// The result of applying a response, with the guard of the rest of the loop if that is here.
pub(super) enum Applied<G, M: Machine> {
    Done(G),
    /// The machine must be told the result of its spawn: that is the next call.
    Again(G, M),
    /// The loop is no longer here: the thread that has it applies the response.
    Late(Response<M, M::Seed>),
}

/// What is needed to apply the response to a call, once the handler has let go of it.
pub(super) struct Applies<'a, 'c, M: Machine, P> {
    pub(super) berth: &'a P,
    pub(super) terms: &'c mut Terms<M>,
    pub(super) context: &'c mut Option<Box<M::Context>>,
    pub(super) environment: &'c AnyEnvironment,
    pub(super) woke_itself: &'c Cell<bool>,
}

/// The result of a call, with the guard of the rest of the loop if that is here.
pub(super) enum Called<G, M: Machine> {
    Done(G),
    /// The response is applied by the thread that has the loop.
    Late(Response<M, M::Seed>),
}

/// Calls the machine in `$lifted`, and calls it again with the result of each spawn. Evaluates to a
/// [`Called`] with the next guard of the berth; the guard in `$rest` is dropped.
///
/// Calls differ only in how the scope is made. As a function with a closure for that, this cost 118
/// instructions for each event (of a machine of 48 bytes, by value), because machine and response
/// are copied once more. So it is a macro.
macro_rules! call_lifted {
    (
        $lifted:ident, $rest:ident, $berth:ident, $terms:ident, $context:ident, $environment:ident,
        $woke_itself:ident, { $($before:tt)* } $scope:expr
    ) => {
        loop {
            let event = $terms.take_event();
            drop($rest);
            $($before)*
            let scope = &mut $scope;
            let in_place = call_in_place(&mut $lifted, event, scope);
            // Never `None`: it was lifted for this.
            let Some(machine) = $lifted else { break Called::Done($berth.lock()) };
            let applied = match in_place {
                Ok(deadline) => {
                    let (berth, terms, context) = ($berth, &mut *$terms, &mut *$context);
                    let (environment, woke_itself) = ($environment, &*$woke_itself);
                    let applies = Applies { berth, terms, context, environment, woke_itself };
                    applies.goes_on(machine, deadline)
                }
                Err(response) => {
                    let response = call_by_value(machine, response, scope);
                    let (berth, terms, context) = ($berth, &mut *$terms, &mut *$context);
                    let (environment, woke_itself) = ($environment, &*$woke_itself);
                    let applies = Applies { berth, terms, context, environment, woke_itself };
                    applies.answered(response)
                }
            };
            match applied {
                Applied::Done(there) => break Called::Done(there),
                Applied::Again(there, machine) => ($rest, $lifted) = (there, Some(machine)),
                Applied::Late(response) => break Called::Late(response),
            }
        }
    };
}
pub(super) use call_lifted;

/// Each method locks the berth again, and applies a response.
impl<'a, M: Machine, P> Applies<'a, '_, M, P> {
    /// Applies the usual response, to continue.
    #[inline(always)]
    pub(super) fn goes_on<B: Backend>(
        self,
        machine: M,
        deadline: Deadline,
    ) -> Applied<P::Guard<'a>, M>
    where
        P: Berth<M, B>,
    {
        let mut rest = self.berth.lock();
        let (Some(there), Some(context)) = (rest.as_mut(), self.context.as_deref_mut()) else {
            return Applied::Late(Response { answer: Answer::Continue(machine), deadline });
        };
        if P::IS_OPEN && self.woke_itself.take() {
            self.environment.note_woke_itself();
        }
        let answer = (machine, deadline);
        match there.core.goes_on(self.terms, context, self.environment, answer) {
            Some(machine) => Applied::Again(rest, machine),
            None => Applied::Done(rest),
        }
    }

    #[inline(always)]
    pub(super) fn answered<B: Backend>(
        self,
        response: Response<M, M::Seed>,
    ) -> Applied<P::Guard<'a>, M>
    where
        P: Berth<M, B>,
    {
        let mut rest = self.berth.lock();
        let (Some(there), Some(context)) = (rest.as_mut(), self.context.as_deref_mut()) else {
            return Applied::Late(response);
        };
        if P::IS_OPEN && self.woke_itself.take() {
            self.environment.note_woke_itself();
        }
        match there.core.answered(self.terms, context, self.environment, response) {
            Some(machine) => Applied::Again(rest, machine),
            None => Applied::Done(rest),
        }
    }
}

/// Calls the handler in place. Returns the deadline of a machine that continues.
#[inline(always)]
pub(super) fn call_in_place<M: Machine>(
    lifted: &mut LiftedMachine<M>,
    event: Event<M::Seed>,
    scope: &mut Scope<'_, M::Context>,
) -> Result<Deadline, InPlace<M::Seed>> {
    let mut in_call = LiftedCallGuard::of(lifted);
    // Never `None`: it was lifted for this.
    let Some(machine) = in_call.machine() else { return Err(InPlace::Declined(event)) };
    let response = machine.handle_in_place(event, scope);
    in_call.finish();
    match response {
        InPlace::Handled(Response { answer: Answer::Continue(()), deadline }) => Ok(deadline),
        response => Err(response),
    }
}

/// Handles the responses other than to continue, and calls a machine by value that has declined.
#[inline(always)]
pub(super) fn call_by_value<M: Machine>(
    machine: M,
    response: InPlace<M::Seed>,
    scope: &mut Scope<'_, M::Context>,
) -> Response<M, M::Seed> {
    match response {
        InPlace::Handled(response) => response.map(|()| machine, |seed| seed),
        InPlace::Declined(event) => machine.handle(event, scope),
    }
}
