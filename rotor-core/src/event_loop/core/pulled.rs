//! The same turn as in `turn.rs`, as a cursor: [`next`](Core::next) returns the next call, and the
//! caller makes it. So nothing of the loop is borrowed while a handler runs, and it may go to
//! another thread meanwhile.
//!
//! The steps have the same order and the same bounds. Where a turn stands is a value, [`Progress`],
//! that goes with the core: any thread goes on with it.

use std::io;

use super::Core;
use super::turn::{Expiring, begin_expiring, collect_expired};
use crate::backend::Backend;
use crate::event_loop::closures::Repeated;
use crate::event_loop::dispatch::{Callee, Refs, Terms};
use crate::event_loop::handle::{Control, Exit};
use crate::event_loop::run_queue::{NextWoken, Pending, Wait};
use crate::event_loop::slots::Lifted;
use crate::guard::Panicked;
use crate::machine::Machine;
use crate::response::{Answer, Deadline, Response};
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

/// Where a turn stands.
#[derive(Default)]
pub(in crate::event_loop) struct Progress {
    step: Step,
    /// When this turn began; between two turns, when a handler that was away had the loop again.
    begun: Option<Time>,
    /// The machine of the run queue whose pending calls are made, and what is left of them.
    resumed: Option<(Token, Pending)>,
    /// How many slots a drain may still look at.
    drain_left: usize,
    wait: Option<Wait>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Step {
    /// No turn is under way.
    #[default]
    Between,
    Events,
    Runnable,
    Spawns,
    Woken,
    Expire,
    /// Events of the poll before the deadlines until then.
    EventsBefore(Time),
    Expired,
    Overdue,
    Closures,
    Drain,
    End,
}

impl Progress {
    /// Sets how the turns wait: by themselves as those of `run`.
    pub(in crate::event_loop) fn set_wait(&mut self, wait: Wait) {
        self.wait = Some(wait);
    }

    /// This step is over. No call comes of that.
    #[inline(always)]
    fn goes_to(&mut self, step: Step) -> bool {
        self.step = step;
        false
    }

    /// A machine's pending calls are next.
    #[inline(always)]
    fn resumes(&mut self, token: Token, pending: Option<Pending>) -> bool {
        self.resumed = pending.map(|pending| (token, pending));
        false
    }

    fn wait(&self) -> Wait {
        self.wait.unwrap_or(Wait::AtPace)
    }
}

/// What comes next.
pub(in crate::event_loop) enum Next {
    /// A call, whose terms are written, and whose machine is to be [lifted](Core::lift).
    Call,
    /// A turn is over.
    Turn,
    Ended(Exit),
}

impl<M: Machine, B: Backend> Core<M, B> {
    /// Goes on with a turn, or begins one, until a machine is to be called.
    ///
    /// # Errors
    ///
    /// As for [`turn`](Core::turn).
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
        if progress.step == Step::Between
            && let Some(exit) = self.begin_turn(progress, environment, repeated, control)?
        {
            return Ok(Next::Ended(exit));
        }
        if progress.step != Step::End
            && self.next_call(terms, progress, context, environment, repeated)?
        {
            return Ok(Next::Call);
        }
        let ended = self.end_turn(progress, context, environment, control)?;
        Ok(ended.map_or(Next::Turn, Next::Ended))
    }

    #[inline(never)]
    fn begin_turn(
        &mut self,
        progress: &mut Progress,
        environment: &AnyEnvironment,
        repeated: &Repeated<M>,
        control: &Control,
    ) -> io::Result<Option<Exit>> {
        if let Some(gone_on) = progress.begun.take() {
            self.dispatch.counters().times().turn_ends(gone_on, environment.handle.now());
        }
        self.take_drain(environment, control);
        if let Some(exit) = self.reason_to_end(environment, control) {
            self.dispatch.publish();
            return Ok(Some(exit));
        }
        let polled = self.wait_or_poll(environment, repeated, control, progress.wait())?;
        let begun = environment.refresh_now();
        self.begin(begun, polled);
        progress.begun = Some(begun);
        progress.step = Step::Events;
        Ok(None)
    }

    #[inline(never)]
    fn end_turn(
        &mut self,
        progress: &mut Progress,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        control: &Control,
    ) -> io::Result<Option<Exit>> {
        progress.step = Step::Between;
        let begun = progress.begun.take().unwrap_or_else(|| environment.now());
        if environment.waiters.are_any() {
            self.serve_waiters(context, environment)?;
        }
        self.take_stop_request(environment, control);
        self.finish(environment, begun);
        let ended = self.reason_to_end(environment, control);
        self.dispatch.publish();
        Ok(ended)
    }

    /// Finds the next call of this turn. Returns whether there is one.
    #[inline(always)]
    fn next_call(
        &mut self,
        terms: &mut Terms<M>,
        progress: &mut Progress,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut Repeated<M>,
    ) -> io::Result<bool> {
        let Core { backend, config, dispatch, .. } = self;
        // Made where all of it is wanted: what is lent is written to memory first.
        macro_rules! refs {
            () => {
                Refs { context: &mut *context, environment, backend: &mut *backend, config }
            };
        }
        loop {
            let is_call = match progress.step {
                // What is left of a machine's pending calls comes first, whatever the step.
                _ if progress.resumed.is_some() => false,
                Step::Between | Step::Events => match dispatch.queue().next_event() {
                    Some((token, events)) => {
                        dispatch.ready_call((environment, backend), terms, token, events)
                    }
                    None => progress.goes_to(Step::Runnable),
                },
                Step::Runnable => match dispatch.queue().next_runnable() {
                    Some(token) => progress.resumes(token, dispatch.next_pending(&refs!(), token)),
                    None => progress.goes_to(Step::Spawns),
                },
                Step::Spawns => match dispatch.queue().next_deferred_spawn() {
                    Some((token, seed)) => dispatch.spawn_call(&mut refs!(), terms, token, seed),
                    None => progress.goes_to(Step::Woken),
                },
                Step::Woken => match dispatch.queue().next_woken() {
                    Some(NextWoken::Slot(index)) => {
                        dispatch.wake_call((environment, backend), terms, index)
                    }
                    Some(NextWoken::Fresh(token)) => {
                        progress.resumes(token, dispatch.next_pending(&refs!(), token))
                    }
                    None => progress.goes_to(Step::Expire),
                },
                Step::Expire => progress.goes_to(match begin_expiring(&mut refs!(), dispatch)? {
                    Expiring::Hold => Step::Overdue,
                    Expiring::Expired => Step::Expired,
                    Expiring::EventsBefore(now) => Step::EventsBefore(now),
                }),
                Step::EventsBefore(now) => match dispatch.queue().next_event() {
                    Some((token, events)) => {
                        dispatch.ready_call((environment, backend), terms, token, events)
                    }
                    None if dispatch.queue().pace().may_have_missed() => {
                        progress.goes_to(Step::Overdue)
                    }
                    None => {
                        collect_expired(&mut refs!(), dispatch, now);
                        progress.goes_to(Step::Expired)
                    }
                },
                Step::Expired => match dispatch.queue().next_expired() {
                    Some(index) => match dispatch.next_to_fire(environment.now(), index) {
                        Some(token) => dispatch.timeout_call((environment, backend), terms, token),
                        None => false,
                    },
                    None => {
                        dispatch.queue().poll_before_expired();
                        progress.goes_to(Step::Overdue)
                    }
                },
                Step::Overdue => match dispatch.queue().next_overdue(config.timeouts_per_turn) {
                    Some(token) => {
                        dispatch.is_to_fire(environment.now(), token)
                            && dispatch.timeout_call((environment, backend), terms, token)
                    }
                    None => progress.goes_to(Step::Closures),
                },
                Step::Closures => {
                    self.posts.run(&mut refs!(), dispatch, &mut self.verdicts);
                    repeated.run(&mut refs!(), dispatch, &mut self.verdicts);
                    self.verdicts.apply(environment, dispatch);
                    progress.drain_left = config.scan_budget;
                    progress.goes_to(Step::Drain)
                }
                Step::Drain => match self.drain.next_to_tell(dispatch, &mut progress.drain_left) {
                    Some(token) => dispatch.draining_call((environment, backend), terms, token),
                    None => {
                        self.drain.tell_last(environment, dispatch);
                        progress.goes_to(Step::End)
                    }
                },
                Step::End => return Ok(false),
            };
            if is_call {
                return Ok(true);
            }
            // In one place, so that it is inlined.
            if let Some((token, pending)) = &mut progress.resumed {
                let is_call = dispatch.pending_call((environment, backend), terms, *token, pending);
                if !is_call || pending.is_empty() {
                    progress.resumed = None;
                }
                if is_call {
                    return Ok(true);
                }
            }
        }
    }

    /// Takes the machine that is to be called out of its slot.
    #[inline(always)]
    pub(in crate::event_loop) fn lift(
        &mut self,
        environment: &AnyEnvironment,
        terms: &mut Terms<M>,
    ) -> Lifted<M> {
        self.dispatch.lift(environment, &self.config, terms)
    }

    /// Applies the answer to a call. Returns the machine where there is a next one, in which it is
    /// to hear of its spawn.
    #[inline(always)]
    pub(in crate::event_loop) fn answered(
        &mut self,
        terms: &mut Terms<M>,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        response: Response<M, M::Seed>,
    ) -> Lifted<M> {
        let Core { backend, config, dispatch, .. } = self;
        let refs = &mut Refs { context, environment, backend, config };
        if let Response { answer: Answer::Continue(machine), deadline } = response {
            dispatch.goes_on(refs, terms, machine, deadline)
        } else {
            dispatch.answered(refs, terms, response)
        }
    }

    /// The same for a machine that goes on.
    #[inline(always)]
    pub(in crate::event_loop) fn goes_on(
        &mut self,
        terms: &mut Terms<M>,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        (machine, deadline): (M, Deadline),
    ) -> Lifted<M> {
        let Core { backend, config, dispatch, .. } = self;
        let refs = &mut Refs { context, environment, backend, config };
        dispatch.goes_on(refs, terms, machine, deadline)
    }

    /// A handler that was away goes on, or its answer is applied. Between two turns that is time of
    /// the loop as well, which ends when the next one begins.
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

    /// A handler has panicked, wherever it was: its machine is gone.
    ///
    /// # Errors
    ///
    /// If no handler ran: the panic is the backend's.
    pub(in crate::event_loop) fn handler_panicked(
        &mut self,
        environment: &AnyEnvironment,
        progress: &mut Progress,
        panicked: &Panicked,
    ) -> io::Result<()> {
        let token = self.dispatch.handler_panicked(environment, &self.config, panicked)?;
        progress.resumed.take_if(|(resumed, _)| *resumed == token);
        if self.dispatch.stop_reason().is_some() && progress.step != Step::Between {
            // What is left of the turn waits in its queues for the next one.
            progress.step = Step::End;
            if let Some((token, pending)) = progress.resumed.take() {
                self.dispatch.scheduler().pend_all(token, pending);
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
