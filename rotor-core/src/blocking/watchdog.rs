//! `Watchdog`: the thread that watches loops, and the list of them.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::Duration;

use super::alarm::Alarm;
use super::away::{Overlong, Sections};
use super::beat::{Beat, Pulse, Reading};
use super::haste::{Haste, Taking};
use super::patience::{Asked, Finding, Over, Patience, TICKS};
use super::rhythm::{Pause, Rhythm};
use super::stuck::{Stuck, StuckOutcome, ThreadState, Unstuck};
use super::thread_probe::ThreadProbe;
use super::timer_slack::sleep_exactly;
use crate::clock::Clock;
use crate::guard::{guard, log_guarded};
use crate::stats::LagCounters;
use crate::time::Time;
use crate::wake_queue::WakeQueue;

/// The settings of a watch: its limits and hooks.
#[derive(Clone)]
pub(crate) struct Watch {
    pub(super) patience: Duration,
    /// How long a handler may run while its loop is behind, if the loop may be taken from it.
    pub(super) behind: Duration,
    pub(super) on_stuck: Option<Arc<OnStuck>>,
    pub(super) on_still_stuck: Option<Arc<OnStuck>>,
    pub(super) on_unstuck: Option<Arc<OnUnstuck>>,
}

pub(super) type OnUnstuck = dyn Fn(&Unstuck<'_>) + Send + Sync;

pub(super) type OnStuck = dyn Fn(&Stuck<'_>) + Send + Sync;

/// The watched loops, and the watchdog's thread, which exists while there are any.
#[derive(Default)]
pub(crate) struct Watchdog {
    loops: Mutex<Loops>,
    alarm: Arc<Alarm>,
}

#[derive(Default)]
struct Loops {
    all: Vec<Arc<Subject>>,
    /// How often `all` has changed.
    changes: u64,
    /// Whether the thread exists, and will check `all` once more.
    has_thread: bool,
}

/// A watched loop.
struct Subject {
    watch: Watch,
    beat: Arc<Beat>,
    loop_name: String,
    /// The thread that runs the loop now.
    thread: Mutex<RunBy>,
    counters: LagCounters,
    /// How to deal with a loop that can be handed over.
    handing: Mutex<Option<Handing>>,
}

/// The thread that runs a loop.
struct RunBy {
    probe: ThreadProbe,
    /// How often the loop has moved to another thread.
    changes: u64,
    /// When this thread got the loop, and how many calls there were before.
    came: Time,
    calls_before: u64,
}

/// A loop that can be handed over, as the watchdog sees it.
struct Handing {
    sections: Arc<Sections>,
    /// Takes a loop that was lent for too long, so that another thread goes on with it.
    rescue: Box<dyn Fn(u64) -> u64 + Send + Sync>,
    /// The last result of `rescue`.
    seen: u64,
    /// Takes the loop from the handler of this call, if that is allowed.
    take: Option<Box<Take>>,
}

type Take = dyn Fn(u64) -> Taking + Send + Sync;

/// The thread's own list of the loops, with its observations.
struct Subjects {
    /// The number of changes up to which the list is current.
    seen: u64,
    all: Vec<(Arc<Subject>, Patience, Haste)>,
}

/// Tells the watchdog which thread runs a loop that can be handed over.
pub(crate) struct Runner {
    subject: Arc<Subject>,
}

/// Ends the watch of a loop when it is dropped.
pub(crate) struct Watched {
    watchdog: Arc<Watchdog>,
    subject: Arc<Subject>,
}

impl Watch {
    /// Starts to watch the loop that this thread is about to run. Returns `None` if the system
    /// cannot start a thread for it.
    pub(crate) fn begin(
        &self,
        watchdog: &Arc<Watchdog>,
        counters: LagCounters,
        wakes: Arc<WakeQueue>,
    ) -> Option<(Pulse, Watched)> {
        let beat = Arc::new(Beat::new(wakes));
        let subject = Arc::new(Subject {
            watch: self.clone(),
            beat: beat.clone(),
            loop_name: thread::current().name().unwrap_or_default().to_owned(),
            thread: Mutex::new(RunBy {
                probe: ThreadProbe::of_this_thread(),
                changes: 0,
                came: Clock::new().now(),
                calls_before: beat.read().calls(),
            }),
            counters,
            handing: Mutex::new(None),
        });
        watchdog.add(subject.clone()).then(|| {
            let pulse = Pulse::new(beat, watchdog.alarm.clone());
            (pulse, Watched { watchdog: watchdog.clone(), subject })
        })
    }
}

impl Watchdog {
    fn lock(&self) -> MutexGuard<'_, Loops> {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a loop. Returns whether a thread watches it.
    fn add(self: &Arc<Self>, subject: Arc<Subject>) -> bool {
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
        loops.all.push(subject);
        loops.changes += 1;
        drop(loops);
        self.alarm.ring();
        true
    }

    fn remove(&self, subject: &Arc<Subject>) {
        let mut loops = self.lock();
        loops.all.retain(|other| !Arc::ptr_eq(other, subject));
        loops.changes += 1;
        drop(loops);
        self.alarm.ring();
    }

    /// Runs on the watchdog's thread until no loop is left.
    fn run(&self) {
        let clock = Clock::new();
        sleep_exactly();
        let mut subjects = Subjects { seen: 0, all: Vec::new() };
        let mut rhythm = Rhythm::new(clock.now());
        while self.follow(&mut subjects) {
            let now = clock.now();
            let mut is_any_awake = false;
            let mut tick = Duration::MAX;
            for (subject, patience, haste) in &mut subjects.all {
                is_any_awake |= subject.look(patience, haste, now);
                tick = tick.min(subject.tick(patience, haste, now));
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
    fn follow(&self, subjects: &mut Subjects) -> bool {
        let mut loops = self.lock();
        if loops.all.is_empty() {
            loops.has_thread = false;
            self.alarm.set_thread(None);
            return false;
        }
        if loops.changes == mem::replace(&mut subjects.seen, loops.changes) {
            return true;
        }
        let mut known = mem::take(&mut subjects.all);
        subjects.all.extend(loops.all.iter().map(|subject| {
            match known.iter().position(|(other, ..)| Arc::ptr_eq(other, subject)) {
                Some(place) => known.swap_remove(place),
                None => {
                    let Watch { patience, behind, .. } = subject.watch;
                    (subject.clone(), Patience::new(patience), Haste::new(patience, behind))
                }
            }
        }));
        true
    }
}

impl Subject {
    /// Checks the loop once, and makes reports if necessary. Returns whether the loop is awake.
    fn look(&self, patience: &mut Patience, haste: &mut Haste, now: Time) -> bool {
        let reading = self.beat.read();
        let is_section_left = self.look_after_sections(now);
        let ask = || {
            let (probe, changes, came, calls_before) = {
                let run_by = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
                (run_by.probe.clone(), run_by.changes, run_by.came, run_by.calls_before)
            };
            Asked { changes, came, calls_before, sample: probe.sample() }
        };
        let finding = patience.sample(now, reading, ask);
        let lag = patience.lag(now);
        // Counted before the hook is called, which may let the handler go on.
        self.counters.lag(lag);
        let mut taking = Taking::Not;
        let (own, unseen) = (patience.call_time(), patience.unseen_time());
        if !reading.is_asleep() && haste.is_due(now, reading.call, own, unseen, lag) {
            taking = self.take(reading);
            haste.note(now, reading.call, taking);
        } else if haste.is_refused(reading.call) {
            taking = Taking::NoThread;
        }
        // If the loop is taken in haste, nothing may have been reported yet.
        if taking == Taking::Taken && patience.is_call_reported() {
            self.note_known(reading);
        }
        match finding {
            Finding::Nothing => {}
            Finding::Starved => self.counters.starved(),
            found @ Finding::Stuck { .. } => self.report(reading, found, taking),
        }
        for over in patience.take_over() {
            self.tell_over(over);
        }
        !reading.is_asleep() || is_section_left
    }

    fn note_known(&self, reading: Reading) {
        let handing = self.handing.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(Handing { sections, .. }), Some(token)) = (&*handing, reading.token) {
            sections.note_known(token);
        }
    }

    fn tell_over(&self, Over { reading, time, calls }: Over) {
        let (loop_name, machine) = (&self.loop_name, self.beat.name(reading));
        let unstuck = Unstuck { loop_name, token: reading.token, machine, time, calls };
        log_guarded!(info, "{unstuck}");
        let Some(hook) = &self.watch.on_unstuck else { return };
        if let Err(panicked) = guard(|| hook(&unstuck)) {
            log_guarded!(error, "the hook for loops that are stuck no more {panicked}");
        }
    }

    /// Lets a loop go on whose section turned out not to be short, and reports sections that do not
    /// end. Returns whether there are other sections to watch.
    fn look_after_sections(&self, now: Time) -> bool {
        let mut handing = self.handing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Handing { sections, rescue, seen, .. }) = &mut *handing else { return false };
        *seen = rescue(*seen);
        let (overlong, is_any_left) = sections.look(now, overlong(self.watch.patience));
        drop(handing);
        if let Some(Overlong { token, machine, is_declared, is_again, time }) = overlong {
            let handed = StuckOutcome::HandedOver;
            let stuck = Stuck {
                loop_name: &self.loop_name,
                token: Some(token),
                machine,
                time,
                calls: 1,
                thread: ThreadState::Unknown,
                outcome: if is_declared { handed } else { StuckOutcome::TakenOver },
            };
            self.tell(&stuck, is_again);
        }
        is_any_left
    }

    /// Takes the loop from the handler that is stuck in this call.
    fn take(&self, reading: Reading) -> Taking {
        let handing = self.handing.lock().unwrap_or_else(PoisonError::into_inner);
        let take = handing.as_ref().and_then(|handing| handing.take.as_ref());
        take.map_or(Taking::Not, |take| take(reading.call))
    }

    /// Returns how long to wait before the next check.
    fn tick(&self, patience: &Patience, haste: &Haste, now: Time) -> Duration {
        let handing = self.handing.lock().unwrap_or_else(PoisonError::into_inner);
        if handing.as_ref().is_some_and(|handing| handing.take.is_some()) {
            haste.tick(now, patience.lag(now))
        } else {
            self.watch.patience / TICKS
        }
    }

    fn report(&self, reading: Reading, found: Finding, taking: Taking) {
        let Finding::Stuck { time, calls, thread, is_again } = found else { return };
        let stuck = Stuck {
            loop_name: &self.loop_name,
            token: reading.token,
            machine: self.beat.name(reading),
            time,
            calls,
            thread,
            outcome: match taking {
                Taking::Taken => StuckOutcome::TakenOver,
                Taking::NoThread => StuckOutcome::NoThread,
                Taking::Not => StuckOutcome::Watched,
            },
        };
        self.tell(&stuck, is_again);
    }

    fn tell(&self, stuck: &Stuck<'_>, is_again: bool) {
        let hook = if is_again {
            log_guarded!(warn, "still: {stuck}");
            &self.watch.on_still_stuck
        } else {
            self.counters.stuck();
            log_guarded!(warn, "{stuck}");
            &self.watch.on_stuck
        };
        let Some(hook) = hook else { return };
        if let Err(panicked) = guard(|| hook(stuck)) {
            log_guarded!(error, "the hook for loops that are stuck {panicked}");
        }
    }
}

impl Watched {
    /// Makes the handle for a loop that is run by several threads, one at a time. `rescue` takes
    /// the loop if it is still lent since before the previous check. `take` takes the loop from a
    /// handler that is stuck.
    pub(crate) fn runner(
        &self,
        sections: Arc<Sections>,
        rescue: impl Fn(u64) -> u64 + Send + Sync + 'static,
        take: Option<Box<Take>>,
    ) -> Runner {
        let handing = Handing { sections, rescue: Box::new(rescue), seen: 0, take };
        *self.subject.handing.lock().unwrap_or_else(PoisonError::into_inner) = Some(handing);
        Runner { subject: self.subject.clone() }
    }
}

impl Runner {
    /// Notes that the thread of this probe runs the loop from now on.
    pub(crate) fn is_here(&self, probe: &ThreadProbe) {
        let (came, calls_before) = (Clock::new().now(), self.subject.beat.read().calls());
        let mut run_by = self.subject.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = run_by.changes + 1;
        *run_by = RunBy { probe: probe.clone(), changes, came, calls_before };
    }
}

/// A section that was handed over is reported after this many times the patience.
const OVERLONG: u32 = 100;

/// Returns the time after which a section is reported. It saturates, so that a very long patience
/// cannot make the watchdog panic.
fn overlong(patience: Duration) -> Duration {
    patience.saturating_mul(OVERLONG)
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watchdog.remove(&self.subject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_patience_is_no_overflow() {
        assert_eq!(overlong(Duration::from_millis(10)), Duration::from_secs(1));
        assert_eq!(overlong(Duration::MAX), Duration::MAX);
    }
}
