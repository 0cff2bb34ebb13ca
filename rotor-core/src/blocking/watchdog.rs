//! `Watchdog`: the thread that watches loops, and the list of them.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::Duration;

use super::alarm::Alarm;
use super::current_sections::{OverlongSection, Sections};
use super::heartbeat::{Heartbeat, HeartbeatWriter, Reading};
use super::rhythm::{Pause, Rhythm};
use super::stall_detector::{EndedStall, Finding, StallDetector, TICKS, ThreadObservation};
use super::stuck::{StuckOutcome, StuckReport, ThreadState, UnstuckReport};
use super::takeover_policy::{TakeoverPolicy, TakeoverResult};
use super::thread_probe::ThreadProbe;
use super::timer_slack::sleep_exactly;
use crate::clock::Clock;
use crate::guard::{guard, log_guarded};
use crate::stats::LagCounters;
use crate::time::Time;
use crate::wake_queue::WakeQueue;

/// The settings of a watch: its limits and hooks.
#[derive(Clone)]
pub(crate) struct WatchSettings {
    pub(super) patience: Duration,
    /// How long a handler may run while its loop is behind, if the loop may be taken from it.
    pub(super) lagging_patience: Duration,
    pub(super) on_stuck: Option<Arc<OnStuck>>,
    pub(super) on_still_stuck: Option<Arc<OnStuck>>,
    pub(super) on_unstuck: Option<Arc<OnUnstuck>>,
}

pub(super) type OnUnstuck = dyn Fn(&UnstuckReport<'_>) + Send + Sync;

pub(super) type OnStuck = dyn Fn(&StuckReport<'_>) + Send + Sync;

/// The watched loops, and the watchdog's thread, which exists while there are any.
#[derive(Default)]
pub(crate) struct Watchdog {
    loops: Mutex<Loops>,
    alarm: Arc<Alarm>,
}

#[derive(Default)]
struct Loops {
    all: Vec<Arc<WatchedLoop>>,
    /// How often `all` has changed.
    changes: u64,
    /// Whether the thread exists, and will check `all` once more.
    has_thread: bool,
}

/// A watched loop.
struct WatchedLoop {
    watch: WatchSettings,
    heartbeat: Arc<Heartbeat>,
    loop_name: String,
    /// The thread that runs the loop now.
    thread: Mutex<RunningThread>,
    counters: LagCounters,
    /// How to deal with a loop that can be handed over.
    hand_over: Mutex<Option<HandOverHooks>>,
}

/// The thread that runs a loop.
struct RunningThread {
    probe: ThreadProbe,
    /// How often the loop has moved to another thread.
    changes: u64,
    /// When this thread got the loop, and how many calls there were before.
    acquired_at: Time,
    calls_before: u64,
}

/// A loop that can be handed over, as the watchdog sees it.
struct HandOverHooks {
    sections: Arc<Sections>,
    /// Takes a loop that was lent for too long, so that another thread goes on with it.
    rescue: Box<dyn Fn(u64) -> u64 + Send + Sync>,
    /// The last result of `rescue`.
    last_lend_count: u64,
    /// Takes the loop from the handler of this call, if that is allowed.
    take: Option<Box<TakeFn>>,
}

type TakeFn = dyn Fn(u64) -> TakeoverResult + Send + Sync;

/// The thread's own list of the loops, with its observations.
struct WatchedLoops {
    /// The number of changes up to which the list is current.
    seen_changes: u64,
    all: Vec<(Arc<WatchedLoop>, StallDetector, TakeoverPolicy)>,
}

/// Tells the watchdog which thread runs a loop that can be handed over.
pub(crate) struct RunnerHandle {
    watched: Arc<WatchedLoop>,
}

/// Ends the watch of a loop when it is dropped.
pub(crate) struct WatchGuard {
    watchdog: Arc<Watchdog>,
    watched: Arc<WatchedLoop>,
}

impl WatchSettings {
    /// Starts to watch the loop that this thread is about to run. Returns `None` if the system
    /// cannot start a thread for it.
    pub(crate) fn start(
        &self,
        watchdog: &Arc<Watchdog>,
        counters: LagCounters,
        wakes: Arc<WakeQueue>,
    ) -> Option<(HeartbeatWriter, WatchGuard)> {
        let heartbeat = Arc::new(Heartbeat::new(wakes));
        let watched = Arc::new(WatchedLoop {
            watch: self.clone(),
            heartbeat: heartbeat.clone(),
            loop_name: thread::current().name().unwrap_or_default().to_owned(),
            thread: Mutex::new(RunningThread {
                probe: ThreadProbe::of_this_thread(),
                changes: 0,
                acquired_at: Clock::new().now(),
                calls_before: heartbeat.read().call_number(),
            }),
            counters,
            hand_over: Mutex::new(None),
        });
        watchdog.add(watched.clone()).then(|| {
            let writer = HeartbeatWriter::new(heartbeat, watchdog.alarm.clone());
            (writer, WatchGuard { watchdog: watchdog.clone(), watched })
        })
    }
}

impl Watchdog {
    fn lock(&self) -> MutexGuard<'_, Loops> {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a loop. Returns whether a thread watches it.
    fn add(self: &Arc<Self>, watched: Arc<WatchedLoop>) -> bool {
        let mut loops = self.lock();
        if !loops.has_thread {
            let watchdog = self.clone();
            let run = move || watchdog.run();
            match Builder::new().name("watchdog".to_owned()).spawn(run) {
                Ok(thread) => self.alarm.set_thread(Some(thread.thread().clone())),
                Err(error) => {
                    log_guarded!(warn, "no thread to watch a loop, which runs unwatched: {error}");
                    return false;
                }
            }
            loops.has_thread = true;
        }
        loops.all.push(watched);
        loops.changes += 1;
        drop(loops);
        self.alarm.ring();
        true
    }

    fn remove(&self, watched: &Arc<WatchedLoop>) {
        let mut loops = self.lock();
        loops.all.retain(|other| !Arc::ptr_eq(other, watched));
        loops.changes += 1;
        drop(loops);
        self.alarm.ring();
    }

    /// Runs on the watchdog's thread until no loop is left.
    fn run(&self) {
        let clock = Clock::new();
        sleep_exactly();
        let mut watched_loops = WatchedLoops { seen_changes: 0, all: Vec::new() };
        let mut rhythm = Rhythm::new(clock.now());
        while self.refresh(&mut watched_loops, &clock) {
            let now = clock.now();
            let mut is_any_awake = false;
            let mut tick = Duration::MAX;
            for (watched, detector, policy) in &mut watched_loops.all {
                is_any_awake |= watched.check(detector, policy, now);
                tick = tick.min(watched.check_interval(detector, policy, now));
            }
            match rhythm.pause(now, is_any_awake, !self.alarm.is_armed()) {
                Pause::Tick => {
                    self.alarm.disarm();
                    thread::park_timeout(tick);
                }
                Pause::DrowsyTick => {
                    self.alarm.arm();
                    thread::park_timeout(tick);
                }
                Pause::Sleep => thread::park(),
            }
        }
    }

    /// Updates the list of loops, and keeps the observations of those that stay. Returns whether
    /// there are any; without one, the thread ends.
    fn refresh(&self, watched_loops: &mut WatchedLoops, clock: &Clock) -> bool {
        let mut loops = self.lock();
        let has_any = !loops.all.is_empty();
        if !has_any {
            loops.has_thread = false;
            self.alarm.set_thread(None);
        } else if loops.changes == watched_loops.seen_changes {
            return true;
        }
        watched_loops.seen_changes = loops.changes;
        let mut known = mem::take(&mut watched_loops.all);
        watched_loops.all.extend(loops.all.iter().map(|watched| {
            match known.iter().position(|(other, ..)| Arc::ptr_eq(other, watched)) {
                Some(place) => known.swap_remove(place),
                None => {
                    let WatchSettings { patience, lagging_patience, .. } = watched.watch;
                    (
                        watched.clone(),
                        StallDetector::new(patience),
                        TakeoverPolicy::new(patience, lagging_patience),
                    )
                }
            }
        }));
        drop(loops);
        // The others have ended, perhaps with the handler that was stuck.
        for (watched, mut detector, _) in known {
            detector.end_all(clock.now());
            watched.report_ends(&mut detector);
        }
        has_any
    }
}

impl WatchedLoop {
    /// Checks the loop once, and makes reports if necessary. Returns whether the loop is awake.
    fn check(&self, detector: &mut StallDetector, policy: &mut TakeoverPolicy, now: Time) -> bool {
        let reading = self.heartbeat.read();
        let has_sections = self.check_sections(now);
        let observe = || {
            let (probe, changes, acquired_at, calls_before) = {
                let runner = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
                (runner.probe.clone(), runner.changes, runner.acquired_at, runner.calls_before)
            };
            ThreadObservation { changes, acquired_at, calls_before, sample: probe.sample() }
        };
        let finding = detector.sample(now, reading, observe);
        let lag = detector.lag(now);
        // Counted before the hook is called, which may let the handler go on.
        self.counters.record_lag(lag);
        let mut takeover = TakeoverResult::NotTaken;
        let (own_time, possible_wait) = (detector.call_time(), detector.possible_wait());
        if !reading.is_asleep() && policy.is_due(now, reading.call, own_time, possible_wait, lag) {
            takeover = self.take(reading);
            policy.record(now, reading.call, takeover);
        } else if policy.is_refused(reading.call) {
            takeover = TakeoverResult::NoThread;
        }
        // If the loop is taken on an alert, nothing may have been reported yet.
        if takeover == TakeoverResult::Taken && detector.is_call_reported() {
            self.mark_reported(reading);
        }
        match finding {
            Finding::Nothing => {}
            Finding::Starved => self.counters.count_starved(),
            found @ Finding::Stuck { .. } => self.report_stall(reading, found, takeover),
        }
        self.report_ends(detector);
        !reading.is_asleep() || has_sections
    }

    fn mark_reported(&self, reading: Reading) {
        let hand_over = self.hand_over.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(HandOverHooks { sections, .. }), Some(token)) = (&*hand_over, reading.token) {
            sections.mark_reported(token);
        }
    }

    fn report_ends(&self, detector: &mut StallDetector) {
        detector.take_ended().for_each(|ended| self.report_end(ended));
    }

    fn report_end(&self, EndedStall { reading, time, calls }: EndedStall) {
        let (loop_name, machine) = (&self.loop_name, self.heartbeat.name(reading));
        let unstuck = UnstuckReport { loop_name, token: reading.token, machine, time, calls };
        log_guarded!(info, "{unstuck}");
        let Some(hook) = &self.watch.on_unstuck else { return };
        if let Err(panicked) = guard(|| hook(&unstuck)) {
            log_guarded!(error, "the hook for loops that are stuck no more {panicked}");
        }
    }

    /// Lets a loop go on whose section turned out not to be short, and reports sections that do not
    /// end. Returns whether there are other sections to watch.
    fn check_sections(&self, now: Time) -> bool {
        let mut hand_over = self.hand_over.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(HandOverHooks { sections, rescue, last_lend_count, .. }) = &mut *hand_over else {
            return false;
        };
        *last_lend_count = rescue(*last_lend_count);
        let (overlong, has_unreported) =
            sections.find_overlong(now, overlong_after(self.watch.patience));
        drop(hand_over);
        if let Some(OverlongSection { token, machine, is_declared, is_repeated, time }) = overlong {
            let handed = StuckOutcome::HandedOver;
            let stuck = StuckReport {
                loop_name: &self.loop_name,
                token: Some(token),
                machine,
                time,
                calls: 1,
                thread: ThreadState::Unknown,
                outcome: if is_declared { handed } else { StuckOutcome::TakenOver },
            };
            self.send_report(&stuck, is_repeated);
        }
        has_unreported
    }

    /// Takes the loop from the handler that is stuck in this call.
    fn take(&self, reading: Reading) -> TakeoverResult {
        let hand_over = self.hand_over.lock().unwrap_or_else(PoisonError::into_inner);
        let take = hand_over.as_ref().and_then(|hand_over| hand_over.take.as_ref());
        take.map_or(TakeoverResult::NotTaken, |take| take(reading.call))
    }

    /// Returns how long to wait before the next check.
    fn check_interval(
        &self,
        detector: &StallDetector,
        policy: &TakeoverPolicy,
        now: Time,
    ) -> Duration {
        let hand_over = self.hand_over.lock().unwrap_or_else(PoisonError::into_inner);
        if hand_over.as_ref().is_some_and(|hand_over| hand_over.take.is_some()) {
            policy.check_interval(now, detector.last_call(), detector.lag(now))
        } else {
            self.watch.patience / TICKS
        }
    }

    fn report_stall(&self, reading: Reading, found: Finding, takeover: TakeoverResult) {
        let Finding::Stuck { time, calls, thread, is_repeated } = found else { return };
        let stuck = StuckReport {
            loop_name: &self.loop_name,
            token: reading.token,
            machine: self.heartbeat.name(reading),
            time,
            calls,
            thread,
            outcome: match takeover {
                TakeoverResult::Taken => StuckOutcome::TakenOver,
                TakeoverResult::NoThread => StuckOutcome::NoThread,
                TakeoverResult::NotTaken => StuckOutcome::Watched,
            },
        };
        self.send_report(&stuck, is_repeated);
    }

    fn send_report(&self, stuck: &StuckReport<'_>, is_repeated: bool) {
        let hook = if is_repeated {
            log_guarded!(warn, "still: {stuck}");
            &self.watch.on_still_stuck
        } else {
            self.counters.count_stuck();
            log_guarded!(warn, "{stuck}");
            &self.watch.on_stuck
        };
        let Some(hook) = hook else { return };
        if let Err(panicked) = guard(|| hook(stuck)) {
            log_guarded!(error, "the hook for loops that are stuck {panicked}");
        }
    }
}

impl WatchGuard {
    /// Makes the handle for a loop that is run by several threads, one at a time. `rescue` takes
    /// the loop if it is still lent since before the previous check. `take` takes the loop from a
    /// handler that is stuck.
    pub(crate) fn runner(
        &self,
        sections: Arc<Sections>,
        rescue: impl Fn(u64) -> u64 + Send + Sync + 'static,
        take: Option<Box<TakeFn>>,
    ) -> RunnerHandle {
        let hand_over =
            HandOverHooks { sections, rescue: Box::new(rescue), last_lend_count: 0, take };
        *self.watched.hand_over.lock().unwrap_or_else(PoisonError::into_inner) = Some(hand_over);
        RunnerHandle { watched: self.watched.clone() }
    }
}

impl RunnerHandle {
    /// Records that the thread of this probe runs the loop from now on.
    pub(crate) fn set_running_thread(&self, probe: &ThreadProbe) {
        let (acquired_at, calls_before) =
            (Clock::new().now(), self.watched.heartbeat.read().call_number());
        let mut runner = self.watched.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = runner.changes + 1;
        *runner = RunningThread { probe: probe.clone(), changes, acquired_at, calls_before };
    }
}

/// A section that was handed over is reported after this many times the patience.
const OVERLONG_FACTOR: u32 = 100;

/// Returns the time after which a section is reported. It saturates, so that a very long patience
/// cannot make the watchdog panic.
fn overlong_after(patience: Duration) -> Duration {
    patience.saturating_mul(OVERLONG_FACTOR)
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.watchdog.remove(&self.watched);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_patience_is_no_overflow() {
        assert_eq!(overlong_after(Duration::from_millis(10)), Duration::from_secs(1));
        assert_eq!(overlong_after(Duration::MAX), Duration::MAX);
    }
}
