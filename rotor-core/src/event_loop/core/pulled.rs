//! The turn of `turn.rs` as a cursor: [`advance`](Core::advance) stops it at each call, which its
//! caller then makes. So nothing of the loop is borrowed while a handler runs, and the loop can go
//! to another thread meanwhile.
//!
//! The position in a turn is a value, [`TurnProgress`], that moves with the core, so that any
//! thread can continue the turn.

use std::io;
use std::ops::ControlFlow;
use std::ops::ControlFlow::{Break, Continue};

use super::Core;
use super::turn::{Step, StepCaller};
use crate::backend::Backend;
use crate::event_loop::closures::RepeatedClosures;
use crate::event_loop::dispatch::{CallKind, Callee, Caller, Dispatch, IssuedCall, Refs};
use crate::event_loop::handle::{Control, Exit};
use crate::event_loop::run_queue::{Pending, WaitMode};
use crate::guard::Panicked;
use crate::machine::Machine;
use crate::response::{Answer, Deadline, Response};
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

/// The position in a turn.
#[derive(Default)]
pub(in crate::event_loop) struct TurnProgress {
    step: Step,
    /// When this turn began. Between two turns: when a detached handler got the loop back.
    begun: Option<Time>,
    /// The machine of the run queue whose pending calls are being made, and the rest of them.
    resumed: Option<(Token, Pending)>,
    wait: Option<WaitMode>,
}

impl TurnProgress {
    /// Sets how the turns wait. The default is that of `run`.
    pub(in crate::event_loop) fn set_wait(&mut self, wait: WaitMode) {
        self.wait = Some(wait);
    }

    fn wait(&self) -> WaitMode {
        self.wait.unwrap_or(WaitMode::AtPace)
    }
}

/// A caller that issues calls: the turn stops at each of them, and its position is kept.
struct IssuingCaller<'a, M: Machine> {
    issued: &'a mut IssuedCall<M>,
    progress: &'a mut TurnProgress,
}

impl<M: Machine> Caller<M> for IssuingCaller<'_, M> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn call<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        kind: CallKind,
    ) -> ControlFlow<()> {
        self.issued.record(dispatch, refs.environment, token, kind);
        Break(())
    }

    fn spawn<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        spawn: (M, M::Seed),
    ) -> ControlFlow<()> {
        let must_report = self.issued.record_spawn(dispatch, refs, token, spawn);
        if must_report { Break(()) } else { Continue(()) }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn keep_remaining_calls(&mut self, token: Token, left: Pending) {
        if !left.is_empty() {
            self.progress.resumed = Some((token, left));
        }
    }
}

impl<M: Machine> StepCaller<M> for IssuingCaller<'_, M> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enter_step(&mut self, step: Step) -> bool {
        let is_next = self.progress.step <= step;
        if is_next {
            self.progress.step = step;
        }
        is_next
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_stopped_at(&self, step: Step) -> bool {
        self.progress.step == step
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take_remaining_calls(&mut self) -> Option<(Token, Pending)> {
        self.progress.resumed.take()
    }
}

/// What comes next.
pub(in crate::event_loop) enum NextAction {
    /// A call. It is written, and its machine must be [lifted](Core::lift).
    Call,
    /// A turn is over.
    TurnOver,
    Ended(Exit),
}

impl<M: Machine, B: Backend> Core<M, B> {
    /// Continues a turn, or begins one, until a machine must be called.
    ///
    /// # Errors
    ///
    /// Fails as [`turn`](Core::turn) does.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn advance(
        &mut self,
        issued: &mut IssuedCall<M>,
        progress: &mut TurnProgress,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut RepeatedClosures<M>,
        control: &Control,
    ) -> io::Result<NextAction> {
        if progress.step == Step::Between {
            if let Some(resumed_at) = progress.begun.take() {
                let times = self.dispatch.monitor().counters().times();
                times.record_turn_end(resumed_at, environment.handle.now());
            }
            match self.begin_turn(environment, repeated, control, progress.wait())? {
                Continue(begun) => progress.begun = Some(begun),
                Break(exit) => return Ok(NextAction::Ended(exit)),
            }
            progress.step = Step::Events;
        }
        if progress.step != Step::End {
            let caller = IssuingCaller { issued, progress };
            if self.do_due_work(caller, context, environment, repeated)?.is_break() {
                return Ok(NextAction::Call);
            }
        }
        progress.step = Step::Between;
        let begun = progress.begun.take().unwrap_or_else(|| environment.now());
        let ended = self.end_turn(context, environment, control, begun)?;
        Ok(ended.map_or(NextAction::TurnOver, NextAction::Ended))
    }

    /// Takes the machine that is to be called out of its slot.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn lift(
        &mut self,
        environment: &AnyEnvironment,
        issued: &mut IssuedCall<M>,
    ) -> Option<M> {
        self.dispatch.lift(environment, issued)
    }

    /// Applies the response to a call. Returns the machine if another call follows, which reports
    /// the result of its spawn.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn apply_response(
        &mut self,
        issued: &mut IssuedCall<M>,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        response: Response<M, M::Seed>,
    ) -> Option<M> {
        let Core { backend, config, dispatch, .. } = self;
        let refs = &mut Refs { context, environment, backend, config };
        if let Response { answer: Answer::Continue(machine), deadline } = response {
            dispatch.apply_continue(refs, issued, machine, deadline)
        } else {
            dispatch.apply_response(refs, issued, response)
        }
    }

    /// Does the same for a machine that continues.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn apply_continue(
        &mut self,
        issued: &mut IssuedCall<M>,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        (machine, deadline): (M, Deadline),
    ) -> Option<M> {
        let Core { backend, config, dispatch, .. } = self;
        let refs = &mut Refs { context, environment, backend, config };
        dispatch.apply_continue(refs, issued, machine, deadline)
    }

    /// Notes that a detached handler goes on, or that its response is about to be applied.
    /// Between two turns this is time of the loop as well, which ends when the next turn begins.
    pub(in crate::event_loop) fn reattach(
        &mut self,
        environment: &AnyEnvironment,
        progress: &mut TurnProgress,
        callee: Callee,
    ) {
        self.dispatch.reattach(callee);
        if progress.begun.is_none() {
            let now = environment.handle.now();
            self.dispatch.monitor().counters().times().record_turn_start(now);
            progress.begun = Some(now);
        }
    }

    /// Ends the machine of a handler that has panicked, on whatever thread.
    ///
    /// # Errors
    ///
    /// Fails if no handler ran; then the panic is the backend's.
    pub(in crate::event_loop) fn handler_panicked(
        &mut self,
        environment: &AnyEnvironment,
        progress: &mut TurnProgress,
        panicked: &Panicked,
    ) -> io::Result<()> {
        let token = self.dispatch.handler_panicked(environment, &self.config, panicked)?;
        progress.resumed.take_if(|(resumed, _)| *resumed == token);
        if self.dispatch.stop_reason().is_some() && progress.step != Step::Between {
            // The rest of the turn waits in its queues for the next one.
            progress.step = Step::End;
            if let Some((token, pending)) = progress.resumed.take() {
                self.dispatch.scheduler().mark_pending(token, pending);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::NoWaker;
    use crate::environment::Environment;
    use crate::event_loop::run_queue::Pending;
    use crate::mio_backend::Mio;
    use crate::stats::Counters;
    use crate::wake_queue::WakeQueue;
    use crate::{Config, Infallible, OnPanic};

    struct Plain;

    impl Machine for Plain {
        type Context = ();
        type Seed = Infallible;
    }

    #[test]
    fn remaining_calls_are_queued_again_if_a_panic_stops_the_loop() {
        let config = Config::new().machines_max(2).on_panic(OnPanic::StopLoop);
        let backend = Mio::new(1).expect("a descriptor is left");
        let (wakes, parts) = WakeQueue::new(2, Arc::new(NoWaker)).expect("memory");
        let wakes = Arc::new(wakes);
        let handle = backend.handle().expect("a handle");
        let environment = Environment::new(handle, wakes.clone(), &config).expect("random bytes");
        let (drop_on_drain, counters) =
            (Arc::default(), Counters::new(Arc::default(), Arc::default()));
        let core = Core::new(backend, config, wakes, drop_on_drain, parts, counters, Time::ZERO);
        let mut core = core.expect("memory");
        let mut add =
            || core.create_with(&environment, |_| Response::ok(Plain)).expect("there is room");
        let (panics, other) = (add(), add());
        let mut pending = Pending::default();
        pending.add(Pending::WAKEUP_WHOLE);
        let mut progress = TurnProgress {
            step: Step::Runnable,
            resumed: Some((other, pending)),
            ..TurnProgress::default()
        };
        // As if this handler was detached, and reacquired the loop between two calls of another
        // machine.
        core.dispatch.reattach(Callee { token: panics, type_name: "Plain" });
        let panicked = Panicked::from_payload(Box::new("as told"));
        core.handler_panicked(&environment, &mut progress, &panicked).expect("a handler's");
        assert_eq!((progress.step, progress.resumed.is_none()), (Step::End, true));
        core.dispatch.queue().begin_turn(&core.config);
        assert_eq!(core.dispatch.queue().next_runnable(), Some(other));
        let taken = core.dispatch.scheduler().take_pending(other);
        assert!(taken.is_some_and(|calls| calls.has(Pending::WAKEUP_WHOLE)));
    }
}
