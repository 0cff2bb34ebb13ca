//! `StallDetector`: decides what to report about a loop, from what was observed at each tick.
//!
//! ```text
//!              asleep, or polled since the last tick
//!            ┌────────────────────────────────────────┐
//!            ▼                                        │
//!          nothing ──same poll as at the last tick──▶ its thread is sampled, tick by tick
//!                                                     │
//!              own time: its CPU's, and what it waited of its own will
//!                                                     ├─ ≥ patience, 10 ×, 100 × ──▶ stuck
//!                                                     └─ less than half of what passed ──▶ starved
//! ```
//!
//! What is reported is a stall: a handler that takes long, or many that take long together. A stall
//! begins with its first report, and is over when the handler has returned, or the loop has polled.
//! At 10 and 100 times the patience it is reported again.
//!
//! Time in which other threads had the CPU does not count as the handler's: on an overloaded
//! computer every loop is late, and no handler is at fault.

use std::mem;
use std::time::Duration;

use super::heartbeat::Reading;
use super::stuck::ThreadState;
use super::thread_probe::ThreadSample;
use crate::time::Time;

/// How often the watchdog checks a loop within one patience. Reports are made between one patience
/// and one and a half after the handler began.
pub(super) const TICKS: u32 = 4;

/// The CPU time of a computing thread grows in steps of up to this (HZ 100), so only after twice
/// this time can it be concluded that a thread got none.
const CPU_TIME_GRAIN: Duration = Duration::from_millis(10);

/// The number of reports about one handler: at 1, 10 and 100 times the patience.
const LEVELS: u32 = 3;

/// How many calls count as the first ones of a thread. Before a thread calls a handler, it applies
/// late answers, each of which counts as a call as well.
const FIRST_CALLS: u64 = 4;

/// The observations of one loop, and what was reported.
pub(super) struct StallDetector {
    patience: Duration,
    /// The reading of the last tick.
    last: Option<Reading>,
    /// When that was.
    last_tick: Time,
    /// The time since the loop has polled.
    poll: Period,
    /// The time since the current handler was called.
    call: Period,
    /// How long the current call may have been running before it was first seen.
    unseen: Duration,
    /// How long the current call may have waited in the kernel.
    possible_wait: Duration,
    /// The latest sample of the thread, and when it was taken.
    thread: Option<(Time, ThreadObservation)>,
    /// The stalls that were reported and go on: the handler's and the loop's.
    stalls: [Option<Stall>; 2],
    /// The stalls that are over, until they are taken by `take_ended`.
    ended: [Option<EndedStall>; 2],
}

/// A stall that was reported.
#[derive(Clone, Copy)]
struct Stall {
    /// The reading at its last report.
    reading: Reading,
    since: Time,
    calls: u64,
}

/// The index of each stall: the handler's and the loop's.
const CALL_STALL: usize = 0;
const LOOP_STALL: usize = 1;

/// A reported stall that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EndedStall {
    /// The reading at its last report.
    pub(super) reading: Reading,
    /// How long it lasted, as far as was observed.
    pub(super) time: Duration,
    /// How many calls there were until its last report.
    pub(super) calls: u64,
}

/// A sample of the thread that runs the loop.
#[derive(Clone, Copy)]
pub(super) struct ThreadObservation {
    /// How often the loop had moved to another thread before: the times of two threads cannot be
    /// compared.
    pub(super) changes: u64,
    /// When this thread got the loop.
    pub(super) acquired_at: Time,
    /// How many calls there were before that.
    pub(super) calls_before: u64,
    pub(super) sample: ThreadSample,
}

/// A period of time in which something has not changed.
struct Period {
    /// When it was first observed.
    since: Time,
    /// The call in which it was first observed.
    first_call: u64,
    /// For how long the thread was observed in it.
    watched: Duration,
    /// How much of that counts as the handler's own time.
    own_time: Duration,
    /// How many reports were made.
    level: u32,
    is_starved: bool,
}

/// What to report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Finding {
    Nothing,
    /// The loop is late because it did not get a CPU.
    Starved,
    Stuck {
        time: Duration,
        calls: u64,
        thread: ThreadState,
        /// Whether it was reported before.
        is_repeated: bool,
    },
}

impl StallDetector {
    pub(super) fn new(patience: Duration) -> StallDetector {
        let stretch = || Period::new(Time::ZERO, 0);
        StallDetector {
            patience,
            last: None,
            last_tick: Time::ZERO,
            poll: stretch(),
            call: stretch(),
            unseen: Duration::ZERO,
            possible_wait: Duration::ZERO,
            thread: None,
            stalls: [None; 2],
            ended: [None; 2],
        }
    }

    /// Processes the reading of this tick. `observe` is called only if the loop has not polled
    /// since the last tick.
    pub(super) fn sample(
        &mut self,
        now: Time,
        reading: Reading,
        observe: impl FnOnce() -> ThreadObservation,
    ) -> Finding {
        let last = self.last.replace(reading);
        let last_tick = mem::replace(&mut self.last_tick, now);
        if last != Some(reading) {
            self.unseen = now - last_tick;
        }
        if reading.is_asleep() || last.is_none_or(|last| last.polls != reading.polls) {
            self.end_all(now);
            self.poll = Period::new(now, reading.call_number());
            self.call = Period::new(now, reading.call_number());
            self.possible_wait = Duration::ZERO;
            self.thread = None;
            return Finding::Nothing;
        }
        let is_same_call = last == Some(reading);
        if !is_same_call {
            self.end(CALL_STALL, now);
        }
        if is_same_call && self.can_skip_sample(now) {
            return Finding::Nothing;
        }
        let observed = observe();
        let (passed, own_time) = self.time_since_last_sample(now, observed);
        self.poll.add(passed, own_time);
        if is_same_call {
            self.call.add(passed, own_time);
        } else {
            self.call = Period::new(now, reading.call_number());
        }
        // Time in which it is known to have waited for a CPU does not count.
        let not_its_own = self.call.watched.saturating_sub(self.call.own_time);
        let first_seen = self.call.since + not_its_own;
        self.possible_wait = observed.possible_wait(now, reading, first_seen, self.unseen);
        self.evaluate(now, reading, observed.sample)
    }

    /// Ends all stalls: the loop has polled, or has ended.
    pub(super) fn end_all(&mut self, now: Time) {
        self.end(CALL_STALL, now);
        self.end(LOOP_STALL, now);
    }

    /// Ends a stall, if there is one.
    fn end(&mut self, kind: usize, now: Time) {
        if let Some(Stall { reading, since, calls }) = self.stalls[kind].take() {
            self.ended[kind] = Some(EndedStall { reading, time: now - since, calls });
        }
    }

    /// Takes the stalls that the last tick has found to be over, each once.
    pub(super) fn take_ended(&mut self) -> impl Iterator<Item = EndedStall> + use<> {
        mem::take(&mut self.ended).into_iter().flatten()
    }

    /// Returns for how long the loop has not polled, as far as was observed.
    pub(super) fn lag(&self, now: Time) -> Duration {
        match self.last {
            Some(last) if !last.is_asleep() => now - self.poll.since,
            _ => Duration::ZERO,
        }
    }

    /// Returns the call of the last tick, as it is encoded in the heartbeat.
    pub(super) fn last_call(&self) -> u64 {
        self.last.map_or(0, |last| last.call)
    }

    /// Returns whether the stall of the current call was found, at this tick or before.
    pub(super) fn is_call_reported(&self) -> bool {
        self.stalls[CALL_STALL].is_some()
    }

    /// Returns how much time of its own the current call has had, as far as was observed.
    pub(super) fn call_time(&self) -> Duration {
        self.call.own_time
    }

    /// Returns how long the current call may have waited in the kernel, if it waits there now. It
    /// may as well have computed, or waited for a CPU before it was sampled, so this is not used for
    /// reports, but only for loops on alert.
    pub(super) fn possible_wait(&self) -> Duration {
        self.possible_wait
    }

    /// Returns whether the current call was reported, and its thread was sampled so recently that
    /// there is nothing to add. A sample reads three files.
    fn can_skip_sample(&self, now: Time) -> bool {
        let Some((observed, _)) = self.thread.filter(|_| self.call.level > 0) else { return false };
        self.call.level == LEVELS || now - observed < self.threshold(self.call.level - 1) / TICKS
    }

    /// Returns how much time has passed since the last sample, and how much of it was the thread's
    /// own. Time in which the loop moved to another thread does not count.
    fn time_since_last_sample(
        &mut self,
        now: Time,
        thread: ThreadObservation,
    ) -> (Duration, Duration) {
        let before = self.thread.replace((now, thread));
        let Some((observed, before)) = before.filter(|(_, old)| old.changes == thread.changes)
        else {
            return (Duration::ZERO, Duration::ZERO);
        };
        let passed = now - observed;
        let (Some(before), Some(times)) = (before.sample.times(), thread.sample.times()) else {
            return (passed, passed);
        };
        let own_time = match thread.sample {
            ThreadSample::Waiting { .. } => {
                passed.saturating_sub(times.queued.saturating_sub(before.queued))
            }
            // The system does not count a wait for a CPU that is still going on.
            _ => times.ran.saturating_sub(before.ran),
        };
        (passed, own_time)
    }

    fn evaluate(&mut self, now: Time, reading: Reading, thread: ThreadSample) -> Finding {
        let call_level = self.level(self.call.own_time);
        let poll_level = self.level(self.poll.own_time);
        let (period, kind) = if call_level > self.call.level {
            (&self.call, CALL_STALL)
        // If one handler has had most of the time, the stall will soon be reported as that
        // handler's.
        } else if poll_level > self.poll.level && self.call.own_time <= self.poll.own_time / 2 {
            (&self.poll, LOOP_STALL)
        } else {
            return self.evaluate_starvation();
        };
        let (since, calls) = (period.since, reading.calls_since(period.first_call) + 1);
        let before = self.stalls[kind].replace(Stall { reading, since, calls });
        let found = Finding::Stuck {
            time: now - since,
            calls,
            thread: period.state(thread),
            is_repeated: before.is_some(),
        };
        // One level at a time: a watchdog that was late still makes each report.
        if kind == CALL_STALL {
            self.call.level += 1;
            self.poll.level = self.poll.level.max(poll_level).max(call_level);
        } else {
            self.poll.level += 1;
        }
        found
    }

    fn evaluate_starvation(&mut self) -> Finding {
        let poll = &mut self.poll;
        let enough = self.patience.max(CPU_TIME_GRAIN * 2);
        let is_starved =
            poll.level == 0 && poll.watched >= enough && poll.own_time < poll.watched / 2;
        if !is_starved || poll.is_starved {
            return Finding::Nothing;
        }
        poll.is_starved = true;
        Finding::Starved
    }

    fn threshold(&self, level: u32) -> Duration {
        self.patience.saturating_mul(10_u32.pow(level))
    }

    /// Returns how many reports this much time of its own leads to.
    fn level(&self, own_time: Duration) -> u32 {
        (0..LEVELS).take_while(|level| own_time >= self.threshold(*level)).count() as u32
    }
}

impl ThreadObservation {
    /// Returns how long the call may have waited: for the first calls of a thread, since that got
    /// the loop; for others, for some time before they were first seen, but not for longer than
    /// since then, so that no call counts if it was seen only once.
    fn possible_wait(
        &self,
        now: Time,
        reading: Reading,
        first_seen: Time,
        unseen: Duration,
    ) -> Duration {
        let ThreadSample::Waiting { .. } = self.sample else { return Duration::ZERO };
        match reading.calls_since(self.calls_before) {
            // It is the call of the thread before.
            0 => Duration::ZERO,
            1..=FIRST_CALLS => now - self.acquired_at,
            _ => (now - first_seen) + unseen.min(now - first_seen),
        }
    }
}

impl Period {
    fn new(now: Time, first_call: u64) -> Period {
        let (watched, own_time) = (Duration::ZERO, Duration::ZERO);
        Period { since: now, first_call, watched, own_time, level: 0, is_starved: false }
    }

    fn add(&mut self, passed: Duration, own_time: Duration) {
        self.watched += passed;
        self.own_time += own_time;
    }

    fn state(&self, thread: ThreadSample) -> ThreadState {
        match thread {
            ThreadSample::Unknown => ThreadState::Unknown,
            ThreadSample::Waiting { syscall, .. } => ThreadState::Waiting { syscall },
            ThreadSample::Runnable(_) if self.own_time < self.watched / 2 => ThreadState::Preempted,
            ThreadSample::Runnable(_) => ThreadState::Running,
        }
    }
}

#[cfg(test)]
mod tests;
