//! The turn of `turn.rs` as a cursor: [`next`](Core::next) stops it at each call, which its caller
//! then makes. So nothing of the loop is borrowed while a handler runs, and the loop can go to
//! another thread meanwhile.
//!
//! The position in a turn is a value, [`Progress`], that moves with the core, so that any thread
//! can continue the turn.

use std::io;
use std::ops::ControlFlow;
use std::ops::ControlFlow::{Break, Continue};

use super::Core;
use super::turn::{Step, Steps};
use crate::backend::Backend;
use crate::event_loop::closures::Repeated;
use crate::event_loop::dispatch::{Callee, Caller, Dispatch, Refs, Terms, What};
use crate::event_loop::handle::{Control, Exit};
use crate::event_loop::run_queue::{Pending, Wait};
use crate::event_loop::slots::LiftedMachine;
use crate::guard::Panicked;
use crate::machine::Machine;
use crate::response::{Answer, Deadline, Response};
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

/// The position in a turn.
#[derive(Default)]
pub(in crate::event_loop) struct Progress {
    step: Step,
    /// When this turn began. Between two turns: when a handler that was away got the loop back.
    begun: Option<Time>,
    /// The machine of the run queue whose pending calls are being made, and the rest of them.
    resumed: Option<(Token, Pending)>,
    wait: Option<Wait>,
}

impl Progress {
    /// Sets how the turns wait. The default is that of `run`.
    pub(in crate::event_loop) fn set_wait(&mut self, wait: Wait) {
        self.wait = Some(wait);
    }

    fn wait(&self) -> Wait {
        self.wait.unwrap_or(Wait::AtPace)
    }
}

/// A caller that gives calls out: the turn stops at each of them, and its position is kept.
struct GivesOut<'a, M: Machine> {
    terms: &'a mut Terms<M>,
    progress: &'a mut Progress,
}

impl<M: Machine> Caller<M> for GivesOut<'_, M> {
    #[inline(always)]
    fn call<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        _: &mut Refs<'_, M, B>,
        token: Token,
        what: What,
    ) -> ControlFlow<()> {
        self.terms.note(dispatch, token, what);
        Break(())
    }

    fn spawn<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        spawn: (M, M::Seed),
    ) -> ControlFlow<()> {
        let is_told = self.terms.note_spawn(dispatch, refs, token, spawn);
        if is_told { Break(()) } else { Continue(()) }
    }

    #[inline(always)]
    fn keep(&mut self, token: Token, left: Pending) {
        if !left.is_empty() {
            self.progress.resumed = Some((token, left));
        }
    }
}

impl<M: Machine> Steps<M> for GivesOut<'_, M> {
    #[inline(always)]
    fn comes_to(&mut self, step: Step) -> bool {
        let is_next = self.progress.step <= step;
        if is_next {
            self.progress.step = step;
        }
        is_next
    }

    #[inline(always)]
    fn is_at(&self, step: Step) -> bool {
        self.progress.step == step
    }

    #[inline(always)]
    fn take_kept(&mut self) -> Option<(Token, Pending)> {
        self.progress.resumed.take()
    }
}

/// What comes next.
pub(in crate::event_loop) enum Next {
    /// A call. Its terms are written, and its machine must be [lifted](Core::lift).
    Call,
    /// A turn is over.
    Turn,
    Ended(Exit),
}

impl<M: Machine, B: Backend> Core<M, B> {
    /// Continues a turn, or begins one, until a machine must be called.
    ///
    /// # Errors
    ///
    /// Fails as [`turn`](Core::turn) does.
    #[inline(always)]
    pub(in crate::event_loop) fn next(
        &mut self,
        terms: &mut Terms<M>,
        progress: &mut Progress,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut Repeated<M>,
        control: &Control,
    ) -> io::Result<Next> {
        if progress.step == Step::Between {
            if let Some(gone_on) = progress.begun.take() {
                self.dispatch.counters().times().turn_ends(gone_on, environment.handle.now());
            }
            match self.begin_turn(environment, repeated, control, progress.wait())? {
                Continue(begun) => progress.begun = Some(begun),
                Break(exit) => return Ok(Next::Ended(exit)),
            }
            progress.step = Step::Events;
        }
        if progress.step != Step::End {
            let caller = &mut GivesOut { terms, progress };
            if self.do_due_work(caller, context, environment, repeated)?.is_break() {
                return Ok(Next::Call);
            }
        }
        progress.step = Step::Between;
        let begun = progress.begun.take().unwrap_or_else(|| environment.now());
        let ended = self.end_turn(context, environment, control, begun)?;
        Ok(ended.map_or(Next::Turn, Next::Ended))
    }

    /// Takes the machine that is to be called out of its slot.
    #[inline(always)]
    pub(in crate::event_loop) fn lift(
        &mut self,
        environment: &AnyEnvironment,
        terms: &mut Terms<M>,
    ) -> LiftedMachine<M> {
        self.dispatch.lift(environment, &self.config, terms)
    }

    /// Applies the response to a call. Returns the machine if another call follows, which reports
    /// the result of its spawn.
    #[inline(always)]
    pub(in crate::event_loop) fn answered(
        &mut self,
        terms: &mut Terms<M>,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        response: Response<M, M::Seed>,
    ) -> LiftedMachine<M> {
        let Core { backend, config, dispatch, .. } = self;
        let refs = &mut Refs { context, environment, backend, config };
        if let Response { answer: Answer::Continue(machine), deadline } = response {
            dispatch.goes_on(refs, terms, machine, deadline)
        } else {
            dispatch.answered(refs, terms, response)
        }
    }

    /// Does the same for a machine that continues.
    #[inline(always)]
    pub(in crate::event_loop) fn goes_on(
        &mut self,
        terms: &mut Terms<M>,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        (machine, deadline): (M, Deadline),
    ) -> LiftedMachine<M> {
        let Core { backend, config, dispatch, .. } = self;
        let refs = &mut Refs { context, environment, backend, config };
        dispatch.goes_on(refs, terms, machine, deadline)
    }

    /// Notes that a handler that was away goes on, or that its response is about to be applied.
    /// Between two turns this is time of the loop as well, which ends when the next turn begins.
    pub(in crate::event_loop) fn come_back(
        &mut self,
        environment: &AnyEnvironment,
        progress: &mut Progress,
        callee: Callee,
    ) {
        self.dispatch.come_back(callee);
        if progress.begun.is_none() {
            let now = environment.handle.now();
            self.dispatch.counters().times().turn_begins(now);
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
        progress: &mut Progress,
        panicked: &Panicked,
    ) -> io::Result<()> {
        let token = self.dispatch.handler_panicked(environment, &self.config, panicked)?;
        progress.resumed.take_if(|(resumed, _)| *resumed == token);
        if self.dispatch.stop_reason().is_some() && progress.step != Step::Between {
            // The rest of the turn waits in its queues for the next one.
            progress.step = Step::End;
            if let Some((token, pending)) = progress.resumed.take() {
                self.dispatch.scheduler().restore_pending(token, pending);
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
    use crate::event_loop::run_queue::Calls;
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
    fn calls_that_were_to_come_next_wait_in_their_queue_if_a_panic_stops_the_loop() {
        let config = Config::new().machines_max(2).on_panic(OnPanic::StopLoop);
        let backend = Mio::new(1).expect("a descriptor is left");
        let (wakes, parts) = WakeQueue::new(2, Arc::new(NoWaker)).expect("memory");
        let wakes = Arc::new(wakes);
        let handle = backend.handle().expect("a handle");
        let environment = Environment::new(handle, wakes.clone(), &config).expect("random bytes");
        let (kept, counters) = (Arc::default(), Counters::new(Arc::default(), Arc::default()));
        let core = Core::new(backend, config, wakes, kept, parts, counters, Time::ZERO);
        let mut core = core.expect("memory");
        let mut add = || core.make(&environment, |_| Response::ok(Plain)).expect("there is room");
        let (panics, other) = (add(), add());
        let mut pending = Pending::default();
        pending.add(Calls::WAKEUP_WHOLE);
        let mut progress = Progress {
            step: Step::Runnable,
            resumed: Some((other, pending)),
            ..Progress::default()
        };
        // As one that was away, and has the loop again between two calls of another machine.
        core.dispatch.come_back(Callee { token: panics, type_name: "Plain" });
        let panicked = Panicked::from_payload(Box::new("as told"));
        core.handler_panicked(&environment, &mut progress, &panicked).expect("a handler's");
        assert_eq!((progress.step, progress.resumed.is_none()), (Step::End, true));
        core.dispatch.queue().begin_turn(&core.config);
        assert_eq!(core.dispatch.queue().next_runnable(), Some(other));
        let taken = core.dispatch.scheduler().take_pending(other);
        assert!(taken.is_some_and(|calls| calls.has(Calls::WAKEUP_WHOLE)));
    }
}
