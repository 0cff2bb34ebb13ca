//! `InlineCaller`: the caller of a loop that calls its machines itself.

use std::ops::ControlFlow;
use std::ops::ControlFlow::Continue;

use super::issued_call::CallKind;
use super::{Caller, Dispatch, Refs};
use crate::backend::Backend;
use crate::event_set::EventSet;
use crate::machine::Machine;
use crate::response::Response;
use crate::scope::WakeTarget;
use crate::token::Token;

/// A caller that makes all calls itself, with each machine in its slot, and never stops the turn.
pub(in crate::event_loop) struct InlineCaller;

impl<M: Machine> Caller<M> for InlineCaller {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn call<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        kind: CallKind,
    ) -> ControlFlow<()> {
        let CallKind::Wakeup { whole } = kind else {
            dispatch.call(refs, token, kind, WakeTarget::default());
            return Continue(());
        };
        let waiters = &refs.environment.waiters;
        let last_grant = waiters.begin_wakeup(token);
        let parts = dispatch.scheduler.queue().parts().take(token);
        dispatch.call(refs, token, kind, WakeTarget { whole, parts: &parts });
        // A slot that was granted with this wake-up and not used goes to the next machine in line.
        // Only after the call, because the handler may have used it, by spawning.
        waiters.end_wakeup(token, whole, &parts, last_grant);
        Continue(())
    }

    fn spawn<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        (machine, seed): (M, M::Seed),
    ) -> ControlFlow<()> {
        let (callee, started) = dispatch.monitor.begin_call(refs.environment, token, &machine);
        let response = Response::spawn(machine, seed);
        dispatch.end_call(refs, callee, started, EventSet::EMPTY, response);
        Continue(())
    }
}
