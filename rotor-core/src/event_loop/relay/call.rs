//! A call: the machine's handler, during which nothing of the loop is borrowed, and its response.

use std::cell::Cell;

use super::state_cell::StateCell;
use crate::backend::Backend;
use crate::event::{Event, InPlace};
use crate::event_loop::dispatch::IssuedCall;
use crate::event_loop::slots::LiftedCallGuard;
use crate::machine::Machine;
use crate::response::{Answer, Deadline, Response};
use crate::scope::{AnyEnvironment, Scope};

/// The result of applying a response, with the guard of the loop's state if that is here.
pub(super) enum ApplyOutcome<G, M: Machine> {
    Done(G),
    /// The machine must be told the result of its spawn: that is the next call.
    CallAgain(G, M),
    /// The loop is no longer here: the thread that has it applies the response.
    Late(Response<M, M::Seed>),
}

/// What is needed to apply the response to a call, once the handler has let go of it.
pub(super) struct ResponseApplier<'a, 'c, M: Machine, P> {
    pub(super) state_cell: &'a P,
    pub(super) issued: &'c mut IssuedCall<M>,
    pub(super) context: &'c mut Option<Box<M::Context>>,
    pub(super) environment: &'c AnyEnvironment,
    pub(super) woke_itself: &'c Cell<bool>,
}

/// The result of a call, with the guard of the loop's state if that is here.
pub(super) enum CallOutcome<G, M: Machine> {
    Done(G),
    /// The response is applied by the thread that has the loop.
    Late(Response<M, M::Seed>),
}

/// Calls the machine in `$lifted`, and calls it again with the result of each spawn. Evaluates to a
/// [`CallOutcome`] with the next guard of the state cell; the guard in `$loop_state` is dropped.
///
/// Calls differ only in how the scope is made. As a function with a closure for that, this cost 118
/// instructions for each event (of a machine of 48 bytes, by value), because machine and response
/// are copied once more. So it is a macro.
macro_rules! call_lifted {
    (
        $lifted:ident, $loop_state:ident, $state_cell:ident, $issued:ident, $context:ident, $environment:ident,
        $woke_itself:ident, { $($before:tt)* } $scope:expr
    ) => {
        loop {
            let event = $issued.take_event();
            drop($loop_state);
            $($before)*
            let scope = &mut $scope;
            let in_place = call_in_place(&mut $lifted, event, scope);
            // Never `None`: it was lifted for this.
            let Some(machine) = $lifted else { break CallOutcome::Done($state_cell.lock()) };
            let applied = match in_place {
                Ok(deadline) => {
                    let (state_cell, issued, context) = ($state_cell, &mut *$issued, &mut *$context);
                    let (environment, woke_itself) = ($environment, &*$woke_itself);
                    let applier = ResponseApplier { state_cell, issued, context, environment, woke_itself };
                    applier.apply_continue(machine, deadline)
                }
                Err(response) => {
                    let response = call_by_value(machine, response, scope);
                    let (state_cell, issued, context) = ($state_cell, &mut *$issued, &mut *$context);
                    let (environment, woke_itself) = ($environment, &*$woke_itself);
                    let applier = ResponseApplier { state_cell, issued, context, environment, woke_itself };
                    applier.apply_response(response)
                }
            };
            match applied {
                ApplyOutcome::Done(state) => break CallOutcome::Done(state),
                ApplyOutcome::CallAgain(state, machine) => ($loop_state, $lifted) = (state, Some(machine)),
                ApplyOutcome::Late(response) => break CallOutcome::Late(response),
            }
        }
    };
}
pub(super) use call_lifted;

/// Each method locks the state cell again, and applies a response.
impl<'a, M: Machine, P> ResponseApplier<'a, '_, M, P> {
    /// Applies the usual response, to continue.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn apply_continue<B: Backend>(
        self,
        machine: M,
        deadline: Deadline,
    ) -> ApplyOutcome<P::Guard<'a>, M>
    where
        P: StateCell<M, B>,
    {
        let mut loop_state = self.state_cell.lock();
        let (Some(state), Some(context)) = (loop_state.as_mut(), self.context.as_deref_mut())
        else {
            return ApplyOutcome::Late(Response { answer: Answer::Continue(machine), deadline });
        };
        if P::IS_SHARED && self.woke_itself.take() {
            self.environment.record_self_wakeup();
        }
        let answer = (machine, deadline);
        match state.core.apply_continue(self.issued, context, self.environment, answer) {
            Some(machine) => ApplyOutcome::CallAgain(loop_state, machine),
            None => ApplyOutcome::Done(loop_state),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn apply_response<B: Backend>(
        self,
        response: Response<M, M::Seed>,
    ) -> ApplyOutcome<P::Guard<'a>, M>
    where
        P: StateCell<M, B>,
    {
        let mut loop_state = self.state_cell.lock();
        let (Some(state), Some(context)) = (loop_state.as_mut(), self.context.as_deref_mut())
        else {
            return ApplyOutcome::Late(response);
        };
        if P::IS_SHARED && self.woke_itself.take() {
            self.environment.record_self_wakeup();
        }
        match state.core.apply_response(self.issued, context, self.environment, response) {
            Some(machine) => ApplyOutcome::CallAgain(loop_state, machine),
            None => ApplyOutcome::Done(loop_state),
        }
    }
}

/// Calls the handler in place. Returns the deadline of a machine that continues.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn call_in_place<M: Machine>(
    lifted: &mut Option<M>,
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
#[cfg_attr(not(debug_assertions), inline(always))]
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
