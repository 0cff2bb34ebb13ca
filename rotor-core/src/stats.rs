//! `Stats`: counts of what a loop has done, to be read from any thread.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::blocking::BlockCounts;
use crate::loop_times::{LoopTimes, TimeCells};
use crate::offload::in_flight::JobCounts;
use crate::time::Time;

/// What a loop has done since it was made. Counters never decrease; they are published at the end
/// of each turn, unless a field says otherwise.
#[doc(alias = "metrics")]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Turns. A turn is a wait, followed by the calls that are due.
    pub turns: u64,
    /// Events of sources that were delivered to machines, and calls of machines that had returned
    /// [`again`](crate::Response::again).
    pub events: u64,
    /// Wake-ups that were delivered to machines, after coalescing.
    pub wakeups: u64,
    /// Deadlines that fired.
    pub timeouts: u64,
    /// The machines that exist now.
    pub alive: u64,
    /// The slots for machines in this loop ([`Config::machines_max`](crate::Config::machines_max)).
    pub slots: u64,
    /// Deadlines in the timer wheel: those of the machines and, for a while, those that were
    /// cancelled or postponed.
    pub armed: u64,
    /// Machines made, including those added at the start.
    pub spawned: u64,
    /// Machines that ended normally, including those ended by a scan or by the end of a drain.
    pub ended: u64,
    /// Machines that ended with an error.
    pub failed: u64,
    /// Machines that ended with a panic.
    pub panicked: u64,
    /// Machines that ended to make room for others
    /// ([`Machine::make_room`](crate::Machine::make_room)). Those that did so normally also count
    /// in [`ended`](Stats::ended). A machine that panics in `make_room` is not counted here, and
    /// another one is called in its place.
    pub made_room: u64,
    /// Events, wake-ups and deadlines whose machine had ended.
    pub stale: u64,
    /// Offloaded jobs whose result was not taken, because the future was dropped or its machine had
    /// ended. This includes jobs that did not even begin for that reason.
    pub unclaimed: u64,
    /// Handlers that held up the loop for too long, and series of handlers that did so together.
    /// Each counts once, however long it lasts ([`StuckReport`](crate::StuckReport)). This and the
    /// next two are counted only with [`Config::blocking`](crate::Config::blocking), and while the
    /// handler runs, not at the end of the turn.
    pub stuck: u64,
    /// How often the loop had not polled for that long because other threads had its CPU. The
    /// computer is overloaded, and no handler is to blame.
    pub starved: u64,
    /// The longest time in which the loop was seen not to poll, for whatever reason.
    pub lag_max: Duration,
    /// Blocking sections ([`Scope::blocking`](crate::Scope::blocking)) during which another thread
    /// went on with the loop: only in a loop that can be [handed
    /// over](crate::LoopInstance::handing_over). This and the next seven fields are updated at
    /// once.
    pub handed_over: u64,
    /// Blocking sections for which no other thread was woken, because earlier ones of the same
    /// machine type were short, and which were short again
    /// ([`Blocking::patience_declared`](crate::Blocking::patience_declared)).
    pub handed_quick: u64,
    /// Blocking sections that held up their loop, because it cannot be handed over, or not at that
    /// place, or because no thread was left.
    pub blocked_inline: u64,
    /// How often another thread was needed to go on with the loop and none was left
    /// ([`Blocking::threads_max`](crate::Blocking::threads_max), or the system's limit). A blocking
    /// section counts once. A stuck handler counts for each attempt to take the loop from it, and
    /// there is one attempt per [patience](crate::Blocking::patience), so this number may be higher
    /// than that of such handlers.
    pub no_thread: u64,
    /// Handlers from which the loop was taken because they blocked without declaring it, and
    /// handlers that ran detached because others of the same type had just done so: only in a loop
    /// that can be [taken over](crate::LoopInstance::taking_over). Attempts for which no thread was
    /// left count in [`no_thread`](Stats::no_thread).
    pub taken_over: u64,
    /// How many of those handlers have returned, or panicked, since then.
    pub late_answers: u64,
    /// The threads that a loop that can be handed over has now, including idle ones.
    pub threads: u64,
    /// The most such threads that existed at a time.
    pub threads_most: u64,
    /// The longest turn, without its wait, measured by the loop's own readings of the clock.
    pub longest_turn: Duration,
    /// The longest handler and the type of its machine: only with
    /// [`Config::time_handlers`](crate::Config::time_handlers).
    pub longest_handler: Option<LongestHandler>,
}

/// The longest handler so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LongestHandler {
    /// How long it took, except for what [`Config::time_handlers`](crate::Config::time_handlers)
    /// does not count.
    pub time: Duration,
    /// The type of its machine; see [`Machine::type_name`](crate::Machine::type_name).
    pub machine: &'static str,
}

/// The longest turn and handler since the last call of [`StatsHandle::take_longest`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Longest {
    /// The longest turn, without its wait; zero if no turn has ended.
    pub turn: Duration,
    /// The longest of the handlers that were timed.
    pub handler: Option<LongestHandler>,
}

/// A handle that reads the statistics of one loop, from any thread and even after the loop has
/// ended.
#[derive(Clone)]
pub struct StatsHandle {
    cells: Arc<Cells>,
    jobs: Arc<JobCounts>,
    blocks: Arc<BlockCounts>,
}

impl StatsHandle {
    /// Returns the statistics as of the end of the last turn. Each figure is exact, but together
    /// they may be of two successive turns.
    pub fn read(&self) -> Stats {
        let cells = &self.cells;
        let read = |cell: &AtomicU64| cell.load(Relaxed);
        let (threads, threads_most) = self.blocks.threads();
        let longest = cells.longest_handler.lock().unwrap_or_else(PoisonError::into_inner);
        Stats {
            turns: read(&cells.turns),
            events: read(&cells.events),
            wakeups: read(&cells.wakeups),
            timeouts: read(&cells.timeouts),
            alive: cells.alive.load(Relaxed) as u64,
            slots: read(&cells.slots),
            armed: read(&cells.armed),
            spawned: read(&cells.spawned),
            ended: read(&cells.ended),
            failed: read(&cells.failed),
            panicked: read(&cells.panicked),
            made_room: read(&cells.made_room),
            stale: read(&cells.stale),
            unclaimed: self.jobs.unclaimed(),
            stuck: read(&cells.stuck),
            starved: read(&cells.starved),
            lag_max: Duration::from_nanos(read(&cells.lag_max)),
            handed_over: BlockCounts::read(&self.blocks.handed_over),
            handed_quick: BlockCounts::read(&self.blocks.handed_quick),
            blocked_inline: BlockCounts::read(&self.blocks.inline),
            no_thread: BlockCounts::read(&self.blocks.no_thread),
            taken_over: BlockCounts::read(&self.blocks.taken_over),
            late_answers: BlockCounts::read(&self.blocks.late_answers),
            threads,
            threads_most,
            longest_turn: cells.times.longest(),
            longest_handler: *longest,
        }
    }
}

impl StatsHandle {
    /// Returns how the loop has spent its time: how busy it was, and how long its turns took, how
    /// late its deadlines were and how long its handlers took.
    pub fn times(&self) -> LoopTimes {
        self.cells.times.read()
    }

    /// Returns the longest turn and the longest handler since the last call, and resets both.
    ///
    /// All handles of a loop share them, so use this from one reader only, such as a metrics
    /// scrape. [`Stats`] keeps the longest since the loop was made.
    pub fn take_longest(&self) -> Longest {
        let recent = &self.cells.longest_recent;
        let handler = recent.lock().unwrap_or_else(PoisonError::into_inner).take();
        Longest { turn: self.cells.times.take_longest(), handler }
    }
}

impl fmt::Debug for StatsHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}

#[derive(Default)]
struct Cells {
    turns: AtomicU64,
    events: AtomicU64,
    wakeups: AtomicU64,
    timeouts: AtomicU64,
    alive: AtomicUsize,
    spawned: AtomicU64,
    ended: AtomicU64,
    failed: AtomicU64,
    panicked: AtomicU64,
    made_room: AtomicU64,
    stale: AtomicU64,
    stuck: AtomicU64,
    starved: AtomicU64,
    lag_max: AtomicU64,
    slots: AtomicU64,
    armed: AtomicU64,
    times: TimeCells,
    longest_handler: Mutex<Option<LongestHandler>>,
    /// The longest since a reader last took it.
    longest_recent: Mutex<Option<LongestHandler>>,
}

/// The counters of the watchdog. They are published at once.
pub(crate) struct LagCounters {
    cells: Arc<Cells>,
}

impl LagCounters {
    pub(crate) fn count_stuck(&self) {
        self.cells.stuck.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_starved(&self) {
        self.cells.starved.fetch_add(1, Relaxed);
    }

    pub(crate) fn record_lag(&self, time: Duration) {
        self.cells.lag_max.fetch_max(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }
}

/// The counters of the loop. It counts in plain numbers and publishes them once a turn.
pub(crate) struct Counters {
    pub(crate) stats: Stats,
    cells: Arc<Cells>,
    /// The threads of the pool count here, at once.
    jobs: Arc<JobCounts>,
    blocks: Arc<BlockCounts>,
}

impl Counters {
    pub(crate) fn new(jobs: Arc<JobCounts>, blocks: Arc<BlockCounts>) -> Counters {
        Counters { stats: Stats::default(), cells: Arc::default(), jobs, blocks }
    }

    pub(crate) fn handle(&self) -> StatsHandle {
        StatsHandle {
            cells: self.cells.clone(),
            jobs: self.jobs.clone(),
            blocks: self.blocks.clone(),
        }
    }

    /// Returns the counters that the watchdog of this loop updates.
    pub(crate) fn lag_counters(&self) -> LagCounters {
        LagCounters { cells: self.cells.clone() }
    }

    pub(crate) fn publish(&self, alive: usize, armed: usize) {
        // Not `made_room` and `unclaimed`, which are counted directly where they are read.
        let (stats, cells) = (&self.stats, &*self.cells);
        // Relaxed: figures need not be consistent with each other.
        cells.turns.store(stats.turns, Relaxed);
        cells.events.store(stats.events, Relaxed);
        cells.wakeups.store(stats.wakeups, Relaxed);
        cells.timeouts.store(stats.timeouts, Relaxed);
        cells.alive.store(alive, Relaxed);
        cells.spawned.store(stats.spawned, Relaxed);
        cells.ended.store(stats.ended, Relaxed);
        cells.failed.store(stats.failed, Relaxed);
        cells.panicked.store(stats.panicked, Relaxed);
        cells.stale.store(stats.stale, Relaxed);
        cells.armed.store(armed as u64, Relaxed);
    }

    /// Counts a machine that has made room. Published at once: it is rare, so a turn need not
    /// publish this figure too.
    pub(crate) fn count_made_room(&self) {
        self.cells.made_room.fetch_add(1, Relaxed);
    }

    /// Records when the loop was made, and how many slots it has.
    pub(crate) fn record_creation(&self, now: Time, slots: usize) {
        self.cells.times.set_created(now);
        self.cells.slots.store(slots as u64, Relaxed);
    }

    /// Returns the counters of the loop's time.
    #[inline]
    pub(crate) fn times(&self) -> &TimeCells {
        &self.cells.times
    }

    /// Returns whether the handlers of this turn are timed as a sample. One turn in `mask + 1`, a
    /// power of two, is in the sample.
    #[inline]
    pub(crate) fn is_sampled(&self, mask: u64) -> bool {
        self.stats.turns & mask == 0
    }

    /// Records the time of a handler. `all` says whether every handler is timed.
    pub(crate) fn record_handler_time(&mut self, time: Duration, machine: &'static str, all: bool) {
        self.cells.times.record_handler(machine, time);
        let longest = Some(LongestHandler { time, machine });
        let is_longer = |than: &Option<LongestHandler>| than.is_none_or(|than| time > than.time);
        {
            // A reader holds this lock only for the time of a copy.
            let recent = &self.cells.longest_recent;
            let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
            if is_longer(&recent) {
                *recent = longest;
            }
        }
        // Locks only for a new record, which becomes rarer the longer a loop runs.
        if all && is_longer(&self.stats.longest_handler) {
            self.stats.longest_handler = longest;
            *self.cells.longest_handler.lock().unwrap_or_else(PoisonError::into_inner) = longest;
        }
    }
}
