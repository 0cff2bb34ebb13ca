//! One turn of the loop: what is done, in which order, and how much of it.
//!
//! ```text
//!   drain? ─▶ poll ─▶ events ─▶ again ─▶ wake-ups ─▶ deadlines ─▶ overdue ─▶ posted ─▶ drain ─▶ room ─▶ free slots ─▶ end?
//! ```
//!
//! Each step has a bound; what is left waits in its queue for the next turn, behind what comes
//! first there. So a machine that wakes itself for ever, one that spawns for ever and one whose
//! deadlines have always passed leave a fourth at least one event a turn. Turns that do not poll
//! the backend are bounded as well: see `run_queue/pace.rs`.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use super::closures::Repeated;
use super::core::Core;
use super::dispatch::{Dispatch, Lent};
use super::handle::{Control, Exit, take_flag};
use super::run_queue::Wait;
use crate::backend::{Backend, BackendHandle};
use crate::config::TICK;
use crate::environment::Environment;
use crate::guard::{guard, log_guarded};
use crate::scope::AnyEnvironment;
use crate::{ExitPolicy, Machine, Time};

impl<M: Machine, B: Backend> Core<M, B> {
    pub(super) fn turn(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut Repeated<M>,
        control: &Control,
        wait: Wait,
    ) -> std::io::Result<Option<Exit>> {
        *self.dispatch.ended() = None;
        self.take_drain(environment, control);
        if let Some(exit) = self.reason_to_end(environment, control) {
            self.dispatch.publish();
            return Ok(Some(exit));
        }
        let polled = self.poll(environment, repeated, control, wait)?;
        let begun = environment.refresh_now();
        self.begin(begun, polled);
        while let Err(panicked) = guard(|| self.do_due_work(context, environment, repeated)) {
            self.dispatch.handler_panicked(environment, &self.config, &panicked);
            if self.dispatch.ended().is_some() {
                break;
            }
        }
        self.obey(environment, control);
        if environment.waiters.are_any() {
            self.serve_waiters(context, environment);
        }
        self.finish(environment, begun);
        let ended = self.dispatch.ended().take();
        let ended = ended.or_else(|| self.reason_to_end(environment, control));
        self.dispatch.publish();
        Ok(ended)
    }

    /// The steps of a turn. Each takes its work from a queue, so after a panic it is simply called
    /// again.
    fn do_due_work(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        repeated: &mut Repeated<M>,
    ) {
        let Core { backend, config, dispatch, .. } = self;
        let lent = &mut Lent { context, environment, backend, config };
        while let Some((token, events)) = dispatch.queue().next_event() {
            dispatch.ready(lent, token, events);
        }
        while let Some(token) = dispatch.queue().next_runnable() {
            dispatch.resume(lent, token);
        }
        while let Some((token, seed)) = dispatch.queue().next_deferred_spawn() {
            dispatch.resume_spawn(lent, token, seed);
        }
        while let Some(index) = dispatch.queue().next_woken() {
            dispatch.wake_slot(lent, index);
        }
        if expire_deadlines(lent, dispatch) {
            while let Some(index) = dispatch.queue().next_expired() {
                dispatch.fire(lent, index);
            }
            // Those left over wait for a turn that has polled: input comes before deadlines.
            dispatch.queue().poll_before_expired();
        }
        while let Some(token) = dispatch.queue().next_overdue(lent.config.timeouts_per_turn) {
            dispatch.fire_overdue(lent, token);
        }
        self.posts.run(lent, dispatch, &mut self.verdicts);
        repeated.run(lent, dispatch, &mut self.verdicts);
        self.verdicts.apply(environment, dispatch);
        self.drain.tell(lent, dispatch);
    }

    /// Begins a drain that was asked for, before the poll of this turn: who handles what that
    /// brings knows of it.
    fn take_drain(&mut self, environment: &AnyEnvironment, control: &Control) {
        if let Some(time) = control.take_drain() {
            self.drain.begin(environment, &self.config, &self.dispatch, time);
        }
        if self.drain.wants_poll() {
            self.dispatch.queue().pace().poll_next();
        }
    }

    /// Waits, unless there is something to do; then it only polls, or leaves that to a later turn.
    /// Returns whether it polled.
    fn poll(
        &mut self,
        environment: &AnyEnvironment,
        repeated: &Repeated<M>,
        control: &Control,
        wait: Wait,
    ) -> std::io::Result<bool> {
        let until = self.next_deadline(environment, repeated, control);
        let until = match wait {
            // No clock is needed for this.
            Wait::AtMost(Some(Duration::ZERO)) => Some(environment.now()),
            // From now, not from the last turn: whoever embeds the loop may have been busy in
            // between.
            Wait::AtMost(Some(time)) => {
                Some(until.unwrap_or(Time::NEVER).min(environment.handle.now() + time))
            }
            Wait::AtMost(None) | Wait::AtPace => until,
        };
        let is_due = until.is_some_and(|until| until <= environment.now());
        let queue = self.dispatch.queue();
        if is_due && wait == Wait::AtPace && queue.pace().allows_a_turn() {
            return Ok(false);
        }
        // A wake-up or a command that came since `next_deadline` asked for them is seen here, or
        // else wakes the backend.
        let may_sleep =
            !is_due && queue.wakes().sleep() && !control.is_asked() && self.posts.is_empty();
        let until = if may_sleep { until } else { Some(Time::ZERO) };
        self.backend.wait(until, queue.events())?;
        Ok(true)
    }

    /// When the next turn is wanted: now, if there is work.
    pub(super) fn next_deadline<H: BackendHandle + ?Sized>(
        &self,
        environment: &Environment<H>,
        repeated: &Repeated<M>,
        control: &Control,
    ) -> Option<Time> {
        let slots = self.dispatch.slots();
        let is_due = self.dispatch.is_due()
            || !self.verdicts.is_empty()
            || !self.posts.is_empty()
            || control.is_asked()
            || environment.stop.load(SeqCst)
            || self.backend.may_have_more()
            || environment.waiters.is_due(slots.vacant())
            || (self.drain.is_under_way() && self.dispatch.is_drain_to_be_told());
        if is_due {
            return Some(environment.now());
        }
        [slots.next_deadline(), repeated.next(), self.drain.until()].into_iter().flatten().min()
    }

    /// Marks off what belongs to this turn.
    fn begin(&mut self, begun: Time, polled: bool) {
        self.dispatch.clock().was_read(begun);
        self.dispatch.counters().stats.turns += 1;
        self.verdicts.begin_turn(self.config.scan_budget);
        let queue = self.dispatch.queue();
        if polled {
            queue.pace().polled(begun, self.backend.may_have_more());
            self.drain.note_poll(queue.events().len(), &self.config);
        }
        queue.begin_turn(&self.config);
    }

    /// Obeys a machine that asked the loop to stop.
    fn obey(&mut self, environment: &AnyEnvironment, control: &Control) {
        if !take_flag(&environment.stop) {
            return;
        }
        if self.config.exit == ExitPolicy::Never {
            log_guarded!(warn, "a machine asked the loop to stop, which ExitPolicy::Never refuses");
        } else {
            control.stop.store(true, SeqCst);
        }
    }

    /// Has machines make room for those that asked for it, and gives free slots to those who wait
    /// for one.
    #[cold]
    fn serve_waiters(&mut self, context: &mut M::Context, environment: &AnyEnvironment) {
        // The search may take a while, and is part of the turn.
        self.dispatch.clock().take_fresh();
        while self.dispatch.ended().is_none()
            && let Err(panicked) = guard(|| {
                let Core { backend, config, dispatch, room, .. } = self;
                room.serve(&mut Lent { context, environment, backend, config }, dispatch);
            })
        {
            self.dispatch.handler_panicked(environment, &self.config, &panicked);
        }
        environment.waiters.grant(self.dispatch.slots().vacant());
    }

    /// The turn is over: takes its time.
    fn finish(&mut self, environment: &AnyEnvironment, begun: Time) {
        self.dispatch.queue().give_back();
        let end = self.dispatch.clock().take_fresh().unwrap_or_else(|| environment.handle.now());
        let longest = &mut self.dispatch.counters().stats.longest_turn;
        *longest = (*longest).max(end - begun);
        self.dispatch.queue().pace().turn_ended(end);
    }

    fn reason_to_end(&mut self, environment: &AnyEnvironment, control: &Control) -> Option<Exit> {
        if take_flag(&control.stop) {
            return Some(Exit::Stopped);
        }
        if self.drain.is_under_way() {
            return self.drain.is_over(environment, &self.dispatch).then(|| {
                let dropped = self.drain.end(environment, &self.config, &mut self.dispatch);
                Exit::Drained { dropped }
            });
        }
        (self.dispatch.slots().len() == 0
            && self.config.exit == ExitPolicy::WhenEmpty
            && !control.is_asked())
        .then_some(Exit::Empty)
    }
}

/// Collects the deadlines that have passed, after another look at the clock. Returns whether they
/// may fire.
///
/// After a stall, what a peer sent in time may lie behind the first batch of events. So deadlines
/// wait until there is no more, or every machine's source has had its place in a batch: a loop that
/// never gets to the end of its events has deadlines all the same.
fn expire_deadlines<M: Machine, B: Backend>(
    lent: &mut Lent<'_, M::Context, B>,
    dispatch: &mut Dispatch<M>,
) -> bool {
    let now = lent.environment.handle.now();
    dispatch.clock().was_read(now);
    // Deadlines have this grain.
    if now - lent.environment.now() >= TICK {
        lent.environment.set_now(now);
    }
    let machines = dispatch.slots().len();
    let pace = dispatch.queue().pace();
    if pace.was_full() && pace.may_have_missed(machines.div_ceil(lent.config.events_max)) {
        return false;
    }
    dispatch.collect_expired(lent);
    true
}
