//! One turn of the loop: its steps, their order, and the limit of each.
//!
//! ```text
//!   drain? ─▶ poll ─▶ events ─▶ pending calls ─▶ deferred spawns ─▶ wake-ups
//!     ─▶ deadlines, perhaps after another poll and its events ─▶ overdue
//!     ─▶ posted, every ─▶ verdicts ─▶ drain ─▶ room ─▶ free slots ─▶ stop? ─▶ end?
//! ```
//!
//! Each step has a limit; the remaining work waits in its queue for the next turn, behind the steps
//! that come before. So even if some machines wake themselves forever, spawn forever, or always set
//! deadlines that have passed, every other machine gets at least one event a turn. Turns that do
//! not poll the backend are limited as well: see `run_queue/pace.rs`.

use std::io;
use std::ops::ControlFlow;
use std::ops::ControlFlow::{Break, Continue};

use super::Core;
use crate::backend::Backend;
use crate::config::TICK;
use crate::event_loop::closures::RepeatedClosures;
use crate::event_loop::dispatch::inline_caller::InlineCaller;
use crate::event_loop::dispatch::{Caller, Delivery, Refs};
use crate::event_loop::handle::{Control, Exit};
use crate::event_loop::run_queue::{NextWoken, Pending, WaitMode, polls_for};
use crate::guard::guard;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

impl<M: Machine, B: Backend> Core<M, B> {
    /// Takes one turn. Returns why the loop has ended, or `None` if it has not.
    ///
    /// # Errors
    ///
    /// Fails if the backend can no longer wait, or if it or its clock panics between two calls. A
    /// panic while it waits is not caught here.
    pub(in crate::event_loop) fn turn(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut RepeatedClosures<M>,
        control: &Control,
        wait: WaitMode,
    ) -> io::Result<Option<Exit>> {
        let begun = match self.begin_turn(environment, repeated, control, wait)? {
            Continue(begun) => begun,
            Break(exit) => return Ok(Some(exit)),
        };
        // One guard for all handlers. A machine is passed to its handler by value, or is called in
        // its slot, so a panic costs only that machine, and everything else waits in queues. With
        // `OnPanic::StopLoop` the rest of the turn waits there for the next one. A panic of
        // `create` has its own guard, and the turn goes on to its end.
        loop {
            // `InlineCaller` makes all calls itself and never stops.
            let all = || self.do_due_work(InlineCaller, context, environment, repeated).map(|_| ());
            match guard(all) {
                Ok(done) => break done?,
                Err(panicked) => {
                    self.dispatch.handler_panicked(environment, &self.config, &panicked)?;
                }
            }
            if self.dispatch.stop_reason().is_some() {
                break;
            }
        }
        self.end_turn(context, environment, control, begun)
    }

    /// Begins a turn, and waits. Returns when the turn began, unless the loop has ended.
    pub(super) fn begin_turn(
        &mut self,
        environment: &AnyEnvironment,
        repeated: &RepeatedClosures<M>,
        control: &Control,
        wait: WaitMode,
    ) -> io::Result<ControlFlow<Exit, Time>> {
        self.take_drain_request(environment, control);
        if let Some(exit) = self.exit_reason(environment, control) {
            self.dispatch.publish();
            return Ok(Break(exit));
        }
        let reported_until = self.wait_or_poll(environment, repeated, control, wait)?;
        let begun = environment.refresh_now();
        self.open_turn(control, begun, reported_until);
        Ok(Continue(begun))
    }

    /// Does the steps that follow all due work. Returns why the loop has ended, or `None` if it has
    /// not.
    pub(super) fn end_turn(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        control: &Control,
        begun: Time,
    ) -> io::Result<Option<Exit>> {
        if environment.waiters.has_any() {
            self.serve_waiters(context, environment)?;
        }
        // After everything that calls machines, because any of them may request it.
        self.take_stop_request(environment, control);
        self.close_turn(environment, begun);
        let ended = self.exit_reason(environment, control);
        self.dispatch.publish();
        Ok(ended)
    }

    /// Does the steps of a turn. Each takes its work from a queue, so after a panic this is simply
    /// called again. It breaks off when the caller issues a call, and is called again after that
    /// call as well.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn do_due_work(
        &mut self,
        caller: impl StepCaller<M>,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut RepeatedClosures<M>,
    ) -> io::Result<ControlFlow<()>> {
        let Core { backend, config, dispatch, .. } = self;
        let refs = Refs { context, environment, backend, config };
        let due = &mut Delivery { dispatch, refs, caller };
        if due.make_due_calls().is_break() {
            return Ok(Break(()));
        }
        let has_polled =
            due.caller.enter_step(Step::CollectExpired) && due.collect_due_deadlines()?;
        if due.fire_deadlines(has_polled).is_break() {
            return Ok(Break(()));
        }
        if due.caller.enter_step(Step::Closures) {
            self.posts.run(&mut due.refs, due.dispatch, &mut self.verdicts);
            repeated.run(&mut due.refs, due.dispatch, &mut self.verdicts);
            self.verdicts.apply(environment, due.dispatch);
        }
        // The last step: the turn can be stopped in it, and never behind it.
        due.caller.enter_step(Step::Drain);
        Ok(self.drain.notify(due))
    }

    /// Counts the turn, and sets its limits. `reported_until` comes from
    /// [`wait_or_poll`](Core::wait_or_poll).
    fn open_turn(&mut self, control: &Control, begun: Time, reported_until: Option<Time>) {
        self.dispatch.clock().record_reading(begun);
        self.dispatch.monitor_mut().begin_turn(&self.config, begun);
        self.verdicts.begin_turn(self.config.scan_budget);
        let machines = self.dispatch.slots().len();
        let queue = self.dispatch.queue();
        if let Some(reported_until) = reported_until {
            let is_full = self.backend.may_have_more();
            let round =
                is_full.then(|| polls_for(machines, &self.config, self.backend.full_waits()));
            // Requests wake the loop as events do, and are still there.
            let had_requests = control.has_request() || !self.posts.is_empty();
            let had_events = queue.has_events() || !queue.wakes().is_empty() || had_requests;
            // What ended the wait came at an unknown time.
            let reported_until = if had_events { Time::ZERO } else { reported_until };
            queue.pace().begin_turn_after_poll(begun, reported_until, round);
            self.drain.record_poll(is_full);
        }
        queue.begin_turn(&self.config);
    }

    /// Has machines make room for those that asked for it, and grants free slots to those that wait
    /// for one. A machine that panics in `make_room` leaves room, but is not counted as having made
    /// it.
    #[cold]
    fn serve_waiters(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
    ) -> io::Result<()> {
        // The search may take a while, which counts as time of the turn.
        self.dispatch.clock().discard_reading();
        while self.dispatch.stop_reason().is_none()
            && let Err(panicked) = guard(|| {
                let Core { backend, config, dispatch, room, .. } = self;
                room.serve_requests(&mut Refs { context, environment, backend, config }, dispatch);
            })
        {
            self.dispatch.handler_panicked(environment, &self.config, &panicked)?;
        }
        environment.waiters.grant(self.dispatch.slots().vacant());
        Ok(())
    }

    /// Ends the turn, and records how long it took, for the statistics and for the pace.
    fn close_turn(&mut self, environment: &AnyEnvironment, begun: Time) {
        self.dispatch.queue().shrink_if_large();
        let end = self.dispatch.clock().take_reading().unwrap_or_else(|| environment.handle.now());
        self.dispatch.monitor().counters().times().record_turn_end(begun, end);
        self.dispatch.queue().pace().record_turn_end(end);
    }
}

/// The steps of a turn, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Default, Debug)]
pub(in crate::event_loop) enum Step {
    /// No turn is in progress.
    #[default]
    Between,
    Events,
    Runnable,
    Spawns,
    Woken,
    CollectExpired,
    /// The events of the poll before the deadlines.
    EventsBeforeDeadlines,
    Expired,
    Overdue,
    Closures,
    Drain,
    /// All due work is done, or a panic has stopped the turn.
    End,
}

/// How a caller goes through the steps of a turn. By default all of them are done, one after the
/// other.
pub(in crate::event_loop) trait StepCaller<M: Machine>: Caller<M> {
    /// Enters a step. Returns whether to do it, which is false if the turn has stopped in a later
    /// step.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enter_step(&mut self, _: Step) -> bool {
        true
    }

    /// Returns whether the turn has stopped in this step.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_stopped_at(&self, _: Step) -> bool {
        false
    }

    /// Takes the rest of a machine's pending calls, which come first, whatever the step.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take_remaining_calls(&mut self) -> Option<(Token, Pending)> {
        None
    }
}

impl<M: Machine> StepCaller<M> for InlineCaller {}

/// The steps that deliver calls.
impl<M: Machine, B: Backend, C: StepCaller<M>> Delivery<'_, M, B, C> {
    /// Calls machines for events, pending calls, deferred spawns and wake-ups.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn make_due_calls(&mut self) -> ControlFlow<()> {
        if let Some((token, pending)) = self.caller.take_remaining_calls() {
            self.make_pending_calls(token, pending)?;
        }
        if self.caller.enter_step(Step::Events) {
            self.deliver_events()?;
        }
        if self.caller.enter_step(Step::Runnable) {
            while let Some(token) = self.dispatch.queue().next_runnable() {
                self.resume(token)?;
            }
        }
        if self.caller.enter_step(Step::Spawns) {
            while let Some((token, seed)) = self.dispatch.queue().next_deferred_spawn() {
                self.resume_spawn(token, seed)?;
            }
        }
        if self.caller.enter_step(Step::Woken) {
            while let Some(next) = self.dispatch.queue().next_woken() {
                match next {
                    NextWoken::Slot(index) => self.wake_slot(index)?,
                    NextWoken::WokenInCreate(token) => self.resume(token)?,
                }
            }
        }
        Continue(())
    }

    /// Fires deadlines, in their order. Those that had already passed when they were set come last.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn fire_deadlines(&mut self, has_polled: bool) -> ControlFlow<()> {
        if has_polled || self.caller.is_stopped_at(Step::EventsBeforeDeadlines) {
            self.deliver_events_before_deadlines()?;
        }
        if self.caller.enter_step(Step::Expired) {
            while let Some(index) = self.dispatch.queue().next_expired() {
                self.fire_deadline(index)?;
            }
            // The deadlines that are left wait for a turn that has polled: input comes before
            // deadlines.
            self.dispatch.queue().request_poll_for_expired();
        }
        // Also if other deadlines wait for input: these machines were called in this turn, and knew
        // the time when they set their deadline.
        if self.caller.enter_step(Step::Overdue) {
            while let Some(token) =
                self.dispatch.queue().next_overdue(self.refs.config.timeouts_per_turn)
            {
                self.fire_overdue(token)?;
            }
        }
        Continue(())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn deliver_events(&mut self) -> ControlFlow<()> {
        while let Some((token, events)) = self.dispatch.queue().next_event() {
            self.deliver_ready(token, events)?;
        }
        Continue(())
    }

    /// Delivers the events of the poll before the deadlines, and then collects the deadlines that
    /// had passed at the time of that poll.
    #[cold]
    #[inline(never)]
    fn deliver_events_before_deadlines(&mut self) -> ControlFlow<()> {
        if self.caller.enter_step(Step::EventsBeforeDeadlines) {
            self.deliver_events()?;
        }
        if self.dispatch.queue().pace().may_have_missed_events() {
            self.dispatch.queue().suspend_deadlines();
        } else {
            self.collect_expired();
        }
        Continue(())
    }

    /// Reads the clock once more, and collects the deadlines that had passed when the backend was
    /// polled.
    ///
    /// Input that arrived in time comes before a deadline. So a deadline that has passed since the
    /// last poll fires only after another poll and the events that it reports. If polls are full,
    /// there may be more input that arrived in time than they have reported. Then no deadline fires
    /// until a poll is not full, or until a round of polls has shown each source once. So deadlines
    /// fire even in a loop that never gets to the end of its events.
    ///
    /// Returns whether it has polled once more; the remaining deadlines wait for the events of that
    /// poll.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn collect_due_deadlines(&mut self) -> io::Result<bool> {
        let now = self.refs.environment.handle.now();
        self.dispatch.clock().record_reading(now);
        // Handlers of one turn see the same time unless a tick has passed, which is the resolution
        // of deadlines.
        if now - self.refs.environment.now() >= TICK {
            self.refs.environment.set_now(now);
        }
        let now = self.refs.environment.now();
        if self.dispatch.queue().pace().may_have_missed_events() {
            self.dispatch.queue().suspend_deadlines();
            return Ok(false);
        }
        // The usual case. `next_deadline` is never later than the first deadline, so none can be
        // collected.
        if self.dispatch.slots().next_deadline().is_none_or(|next| next > now) {
            return Ok(false);
        }
        self.collect_expired();
        if self.dispatch.slots().next_deadline().is_none_or(|next| next > now) {
            return Ok(false);
        }
        self.poll_once_more()?;
        Ok(true)
    }

    /// Polls once more in a turn in which a deadline has passed.
    #[cold]
    #[inline(never)]
    fn poll_once_more(&mut self) -> io::Result<()> {
        let machines = self.dispatch.slots().len();
        let queue = self.dispatch.queue();
        self.refs.backend.wait(Some(Time::ZERO), queue.events())?;
        let round = self
            .refs
            .backend
            .may_have_more()
            .then(|| polls_for(machines, self.refs.config, self.refs.backend.full_waits()));
        queue.pace().record_poll(self.refs.environment.now(), round);
        if let Some(heartbeat) = self.dispatch.monitor_mut().heartbeat() {
            heartbeat.record_poll();
        }
        Ok(())
    }

    /// Collects the deadlines that had passed when the backend was polled.
    fn collect_expired(&mut self) {
        let until = self.dispatch.queue().pace().reported_until();
        self.dispatch.scheduler().collect_expired(until, |tokens| self.refs.backend.order(tokens));
    }
}
