//! Waiting: until when, and whether a loop that has work polls its backend in this turn.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use super::Core;
use crate::backend::Backend;
use crate::event_loop::closures::RepeatedClosures;
use crate::event_loop::handle::Control;
use crate::event_loop::run_queue::WaitMode;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::time::Time;

impl<M: Machine, B: Backend> Core<M, B> {
    /// Waits if there is nothing to do. Otherwise it only polls, or leaves even that to a later
    /// turn. If the backend was called, returns until when it has reported all events, unless the
    /// wait ended before that.
    pub(super) fn wait_or_poll(
        &mut self,
        environment: &AnyEnvironment,
        repeated: &RepeatedClosures<M>,
        control: &Control,
        wait: WaitMode,
    ) -> std::io::Result<Option<Time>> {
        let until = self.next_deadline(environment, repeated, control);
        let until = match wait {
            // A poll, for which the clock need not be read.
            WaitMode::AtMost(Some(Duration::ZERO)) => Some(environment.now()),
            // From now rather than from the last turn: code that embeds the loop may have been busy
            // in between.
            WaitMode::AtMost(Some(time)) => {
                Some(until.unwrap_or(Time::NEVER).min(environment.handle.now() + time))
            }
            WaitMode::AtMost(None) | WaitMode::AtPace => until,
        };
        let is_due = until.is_some_and(|until| until <= environment.now());
        let queue = self.dispatch.queue();
        if is_due && wait == WaitMode::AtPace && queue.pace().allows_turn_without_poll() {
            return Ok(None);
        }
        if !is_due && environment.jobs.has_jobs_in_flight() {
            environment.yield_policy.yield_for_results(|| !queue.wakes().is_empty());
        }
        // A wake-up or a request that has arrived since `next_deadline` checked is either seen
        // here, or wakes the backend.
        let may_sleep = !is_due
            && queue.wakes().try_sleep()
            && !control.has_request()
            && !environment.stop.load(SeqCst)
            && self.posts.is_empty();
        let (until, reported_until) = match wait {
            _ if may_sleep => (until, until.unwrap_or(Time::NEVER)),
            WaitMode::AtPace => (Some(Time::ZERO), Time::ZERO),
            // Code that embeds the loop polls when it has waited for the deadline itself: it would
            // pay for a second poll with each deadline.
            WaitMode::AtMost(_) => (Some(Time::ZERO), Time::NEVER),
        };
        if self.dispatch.monitor().is_watched() {
            self.wait_watched(until, may_sleep)?;
        } else {
            self.backend.wait(until, self.dispatch.queue().events())?;
        }
        Ok(Some(reported_until))
    }

    /// Waits, and tells the watchdog about it.
    #[inline(never)]
    fn wait_watched(&mut self, until: Option<Time>, may_sleep: bool) -> std::io::Result<()> {
        if may_sleep && let Some(heartbeat) = self.dispatch.monitor_mut().heartbeat() {
            heartbeat.record_sleep();
        }
        self.backend.wait(until, self.dispatch.queue().events())?;
        if let Some(heartbeat) = self.dispatch.monitor_mut().heartbeat() {
            heartbeat.record_poll();
        }
        Ok(())
    }

    /// Returns when the next turn is needed: now, if there is work.
    pub(in crate::event_loop) fn next_deadline(
        &self,
        environment: &AnyEnvironment,
        repeated: &RepeatedClosures<M>,
        control: &Control,
    ) -> Option<Time> {
        let slots = self.dispatch.slots();
        let is_due = self.dispatch.is_due()
            || !self.verdicts.is_empty()
            || !self.posts.is_empty()
            || control.has_request()
            || environment.stop.load(SeqCst)
            || self.backend.may_have_more()
            || environment.waiters.is_due(slots.vacant())
            || self.drain.is_due(environment, &self.dispatch);
        if is_due {
            return Some(environment.now());
        }
        let next = slots
            .next_deadline()
            .unwrap_or(Time::NEVER)
            .min(repeated.next_time())
            .min(self.drain.next_deadline());
        // The end of time is not waited for.
        (next < Time::NEVER).then_some(next)
    }
}
