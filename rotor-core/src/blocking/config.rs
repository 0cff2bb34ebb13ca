//! `Blocking`: what is wanted where handlers block.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::budget::ThreadBudget;
use super::stuck::{Stuck, Unstuck};
use super::watchdog::{Watch, Watchdog};

/// Watches loops for handlers that block them: set by
/// [`Config::blocking`](crate::Config::blocking).
///
/// A watchdog thread notices a loop that has not polled its backend for longer than its
/// [patience](Blocking::patience), and says so while it is going on: machine, token, and what the
/// loop's thread does ([`Stuck`]), as a warning in the log and to a [hook](Blocking::on_stuck),
/// once when it begins; once it is over it says that, too, to the log and to
/// [another](Blocking::on_unstuck). In between, what lasts for 10 and for 100 times the patience is
/// logged again, for [a third one](Blocking::on_still_stuck). It counts as well:
/// [`Stats::stuck`](crate::Stats::stuck), [`starved`](crate::Stats::starved),
/// [`lag_max`](crate::Stats::lag_max).
///
/// ```
/// # use rotor_core as rotor;
/// use std::time::Duration;
/// use rotor::{Blocking, Config};
///
/// let blocking = Blocking::new()
///     .patience(Duration::from_millis(20))
///     .on_stuck(|stuck| eprintln!("{stuck}"));
/// let config = Config::new().blocking(blocking);
/// ```
///
/// Clones share the thread, and so do all loops made from clones of one `Config`. It is there
/// while one of them [runs](crate::LoopInstance::run), looks at them four times per patience while
/// one is awake, and sleeps when all do. Loops that are embedded by
/// [`turn`](crate::LoopInstance::turn) are not watched, and so no simulation is.
///
/// # What it costs
///
/// A loop that is watched: one store an event and two a wait, some 2 ns each time; and a futex
/// wake at most once a second. The watchdog: a few microseconds each tick. A loop without it:
/// nothing.
///
/// # What it cannot do
///
/// It names the machine and no line of its code: another thread's backtrace cannot be had without
/// unsafe code. Let the hook start a profiler, or end the process for a core.
///
/// Which thread had the CPU is known on Linux, where it says nothing about a loop that is late for
/// want of a CPU. Elsewhere, and without `/proc`, all time is the handler's, and a machine with too
/// much to do has handlers reported that are not to blame.
#[doc(alias = "watchdog")]
#[doc(alias = "stall detector")]
#[doc(alias = "blocked")]
#[derive(Clone)]
#[must_use]
pub struct Blocking {
    watch: Watch,
    watchdog: Arc<Watchdog>,
    declared: Duration,
    keep_idle: Duration,
    threads: Arc<ThreadBudget>,
}

impl Blocking {
    /// Returns the defaults, with a watchdog of its own.
    pub fn new() -> Blocking {
        let watch = Watch {
            patience: PATIENCE,
            behind: BEHIND,
            on_stuck: None,
            on_still_stuck: None,
            on_unstuck: None,
        };
        Blocking {
            watch,
            watchdog: Arc::default(),
            declared: DECLARED,
            keep_idle: KEEP_IDLE,
            threads: Arc::new(ThreadBudget::new(THREADS_MAX)),
        }
    }

    /// Sets how long a section that is declared ([`Scope::blocking`](crate::Scope::blocking)) may
    /// be to be no cause for a hand-over. Default 50 µs: some ten times what that takes. Zero:
    /// none is.
    ///
    /// How long a section is, is known afterwards. So those of a machine's type are measured; while
    /// the moving average of the last ones is shorter than this, no other thread is woken for the
    /// next. One that lasts all the same is handed over by the watchdog, a quarter of a
    /// [patience](Blocking::patience) later at the latest or half of one, as its ticks fall. Where
    /// the system has no thread for a watchdog, each section is handed over.
    pub fn patience_declared(mut self, time: Duration) -> Blocking {
        self.declared = time;
        self
    }

    /// Sets how many threads loops that [hand over](crate::LoopInstance::handing_over) may have
    /// beside the one that runs each: so many handlers can block at a time without holding up a
    /// loop, those of all loops and clones of this together. Default 64. Zero: all sections run in
    /// their handlers.
    ///
    /// Each costs a stack (2 MiB of address space, of which what is used takes memory), and what
    /// streams keep for a thread: 3 MiB of spare blocks at most.
    pub fn threads_max(mut self, threads: usize) -> Blocking {
        self.threads = Arc::new(ThreadBudget::new(threads));
        self
    }

    /// Sets how long a thread that was of no use stays. Default 10 s; then it ends. Starting one
    /// takes some 50 µs, waking one 5.
    pub fn keep_idle(mut self, time: Duration) -> Blocking {
        self.keep_idle = time;
        self
    }

    /// Sets how long a loop may go without polling its backend. Default 10 ms: ten times what
    /// deadlines are exact to. At least 1 ms.
    ///
    /// Time in which other threads have the CPU is not counted (on Linux). Where the kernel's timer
    /// interrupt is less frequent than the patience, a handler that computes is noticed up to 10 ms
    /// later.
    #[doc(alias = "timeout")]
    pub fn patience(mut self, time: Duration) -> Blocking {
        self.watch.patience = time.max(PATIENCE_MIN);
        self
    }

    /// Sets how long a handler may run while its loop is behind, in one that
    /// [takes over](crate::LoopInstance::taking_over): after it has not polled for one
    /// [patience](Blocking::patience), and for 50 ms after each time that it was taken. Default
    /// 100 µs: more than handlers take, and so little that a hundred which block at once are let go
    /// within some tens of milliseconds. At least 10 µs, at most one patience.
    ///
    /// The watchdog looks twice in that time, while the loop is behind. Of a handler that computes
    /// the system tells the time at the timer's interrupt only, 1 to 10 ms later.
    pub fn patience_behind(mut self, time: Duration) -> Blocking {
        self.watch.behind = time.max(BEHIND_MIN);
        self
    }

    /// Sets what is called when a handler, or a loop, is found to be stuck, once each, after it was
    /// logged and counted. Default: none.
    ///
    /// It runs on the watchdog's thread. While it blocks, no loop is watched, and a declared
    /// section that was to be short ([`patience_declared`](Blocking::patience_declared)) holds up
    /// its loop for as long as it lasts; so hand work that takes long to another thread. What it
    /// must not wait for is the loop itself, which waits for its handler. If it panics, that is
    /// logged and costs the one call.
    pub fn on_stuck(mut self, hook: impl Fn(&Stuck<'_>) + Send + Sync + 'static) -> Blocking {
        self.watch.on_stuck = Some(Arc::new(hook));
        self
    }

    /// Sets what is called when something that was reported goes on for 10 times the patience, and
    /// for 100 times: to end the process for a core, say. Default: none. It runs where
    /// [`on_stuck`](Blocking::on_stuck) does, and the same holds for it.
    pub fn on_still_stuck(mut self, hook: impl Fn(&Stuck<'_>) + Send + Sync + 'static) -> Blocking {
        self.watch.on_still_stuck = Some(Arc::new(hook));
        self
    }

    /// Sets what is called once something that was reported is over: the handler has returned, or
    /// the loop has polled its backend. That is logged as well, as information. Default: none. It
    /// runs where [`on_stuck`](Blocking::on_stuck) does, and the same holds for it.
    pub fn on_unstuck(mut self, hook: impl Fn(&Unstuck<'_>) + Send + Sync + 'static) -> Blocking {
        self.watch.on_unstuck = Some(Arc::new(hook));
        self
    }

    pub(crate) fn declared(&self) -> Duration {
        self.declared
    }

    pub(crate) fn behind(&self) -> Duration {
        self.watch.behind.min(self.watch.patience)
    }

    pub(crate) fn idle_time(&self) -> Duration {
        self.keep_idle
    }

    pub(crate) fn thread_budget(&self) -> Arc<ThreadBudget> {
        self.threads.clone()
    }

    pub(crate) fn watch(&self) -> (&Watch, &Arc<Watchdog>) {
        (&self.watch, &self.watchdog)
    }
}

const PATIENCE: Duration = Duration::from_millis(10);

const DECLARED: Duration = Duration::from_micros(50);

const KEEP_IDLE: Duration = Duration::from_secs(10);

const THREADS_MAX: usize = 64;

const BEHIND: Duration = Duration::from_micros(100);

const BEHIND_MIN: Duration = Duration::from_micros(10);

const PATIENCE_MIN: Duration = Duration::from_millis(1);

impl Default for Blocking {
    fn default() -> Blocking {
        Blocking::new()
    }
}

impl fmt::Debug for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking")
            .field("patience", &self.watch.patience)
            .field("patience_behind", &self.watch.behind)
            .field("patience_declared", &self.declared)
            .field("threads_max", &self.threads.max())
            .field("keep_idle", &self.keep_idle)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_a_millisecond_at_least() {
        for (asked, set) in [(0, 1_000), (999, 1_000), (1_000, 1_000), (1_001, 1_001)] {
            let blocking = Blocking::new().patience(Duration::from_micros(asked));
            assert_eq!(blocking.watch.patience, Duration::from_micros(set));
        }
        for (asked, set) in [(0, 10), (10, 10), (11, 11)] {
            let blocking = Blocking::new().patience_behind(Duration::from_micros(asked));
            assert_eq!(blocking.watch.behind, Duration::from_micros(set));
        }
        let printed = "Blocking { patience: 10ms, patience_behind: 100µs, patience_declared: 50µs, threads_max: 64, \
                       keep_idle: 10s, .. }";
        assert_eq!(format!("{:?}", Blocking::default()), printed);
    }
}
