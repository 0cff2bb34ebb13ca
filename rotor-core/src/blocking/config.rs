//! `Blocking`: how a loop deals with handlers that block.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::budget::ThreadBudget;
use super::stuck::{StuckReport, UnstuckReport};
use super::watchdog::{WatchSettings, Watchdog};

/// Watches loops for handlers that block them. [`Config::blocking`](crate::Config::blocking) sets
/// it.
///
/// A watchdog thread notices a loop that has not polled its backend for longer than its
/// [patience](Blocking::patience), and reports this while it is still going on: the machine, its
/// token, and what the loop's thread does ([`StuckReport`]). The first report is a warning in the
/// log and a call of a [hook](Blocking::on_stuck). Further reports follow after 10 and after 100
/// times the patience, in the log and to [a second hook](Blocking::on_still_stuck), and one when it
/// is over, in the log and to [a third hook](Blocking::on_unstuck). Statistics count it too:
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
/// Clones share the thread, and so do all loops made from clones of one `Config`. The thread exists
/// while one of these loops [runs](crate::LoopInstance::run). It checks the loops four times per
/// patience while one of them is awake, and sleeps when all of them sleep. Loops that are embedded
/// by [`turn`](crate::LoopInstance::turn), and therefore simulations, are not watched.
///
/// # What it costs
///
/// A watched loop: one store for each event and two for each wait, some 2 ns each time, and at most
/// one futex wake per second. The watchdog: a few microseconds for each check. A loop without a
/// watchdog: nothing.
///
/// # What it cannot do
///
/// It reports the machine, but no line of its code: a backtrace of another thread needs unsafe
/// code. For that, start a profiler in the hook, or end the process for a core dump.
///
/// On Linux the watchdog knows which thread had the CPU, so no handler is reported if a loop is
/// late only because it did not get a CPU. On other systems, and without `/proc`, all time counts
/// as the handler's, so on an overloaded computer handlers are reported that are not at fault.
#[doc(alias = "watchdog")]
#[doc(alias = "stall detector")]
#[doc(alias = "blocked")]
#[derive(Clone)]
#[must_use]
pub struct Blocking {
    watch: WatchSettings,
    watchdog: Arc<Watchdog>,
    declared_patience: Duration,
    keep_idle: Duration,
    threads: Arc<ThreadBudget>,
}

impl Blocking {
    /// Returns the default settings, with a watchdog of its own.
    pub fn new() -> Blocking {
        let watch = WatchSettings {
            patience: PATIENCE,
            lagging_patience: LAGGING_PATIENCE,
            on_stuck: None,
            on_still_stuck: None,
            on_unstuck: None,
        };
        Blocking {
            watch,
            watchdog: Arc::default(),
            declared_patience: DECLARED_PATIENCE,
            keep_idle: KEEP_IDLE,
            threads: Arc::new(ThreadBudget::new(THREADS_MAX)),
        }
    }

    /// Sets how long a declared section ([`Scope::blocking`](crate::Scope::blocking)) may take
    /// without a hand-over of the loop. Default 50 µs, which is some ten times the cost of a
    /// hand-over. With zero, the loop is handed over for each section.
    ///
    /// How long a section takes is only known afterwards. So the sections of each type of machine
    /// are measured: while the moving average of the recent ones is shorter than this, no other
    /// thread is woken for the next one. If that section takes long after all, the watchdog hands
    /// the loop over, at the latest a quarter to half of a [patience](Blocking::patience) later,
    /// depending on its ticks. If the system has no thread for a watchdog, the loop is handed over
    /// for each section.
    pub fn patience_declared(mut self, time: Duration) -> Blocking {
        self.declared_patience = time;
        self
    }

    /// Sets how many threads loops that [hand over](crate::LoopInstance::handing_over) may have,
    /// beside the one that runs each loop. This many handlers can block at the same time without
    /// holding up a loop. The limit is shared by all loops and clones of this value. Default 64.
    /// With zero, all sections run on the loop's thread.
    ///
    /// Each thread costs a stack (2 MiB of address space, of which only the used part takes memory)
    /// and the spare buffers that streams keep for each thread: at most 3 MiB.
    pub fn threads_max(mut self, threads: usize) -> Blocking {
        self.threads = Arc::new(ThreadBudget::new(threads));
        self
    }

    /// Sets how long an idle thread is kept. Default 10 s. Starting a thread takes some 50 µs,
    /// waking one 5 µs.
    pub fn keep_idle(mut self, time: Duration) -> Blocking {
        self.keep_idle = time;
        self
    }

    /// Sets how long a loop may go without polling its backend. Default 10 ms, which is ten times
    /// the resolution of deadlines. At least 1 ms.
    ///
    /// On Linux, time in which other threads have the CPU is not counted. If the interval of the
    /// kernel's timer interrupt is longer than the patience, a handler that computes is noticed up
    /// to 10 ms later.
    #[doc(alias = "timeout")]
    pub fn patience(mut self, time: Duration) -> Blocking {
        self.watch.patience = time.max(PATIENCE_MIN);
        self
    }

    /// Sets how long a handler may run while its loop is behind, in a loop that [takes
    /// over](crate::LoopInstance::taking_over). A loop is behind when it has not polled for one
    /// [patience](Blocking::patience), and for 50 ms after each time that it was taken. Default 100
    /// µs: longer than handlers usually take, but so short that the loop gets past a hundred
    /// handlers that block at once within some tens of milliseconds. At least 10 µs, at most one
    /// patience.
    ///
    /// While the loop is behind, the watchdog checks it twice in that time, unless the loop could
    /// not be taken from the handler that runs. A handler that waits in the kernel is assumed to
    /// have waited since the check before the one that saw it first, so the loop is usually taken
    /// from it after half of this time to all of it. One of the first four calls of a thread is
    /// assumed to have waited since the thread got the loop. For a handler that computes, the system
    /// updates the CPU time only at the timer interrupt, 1 to 10 ms later.
    pub fn patience_behind(mut self, time: Duration) -> Blocking {
        self.watch.lagging_patience = time.max(LAGGING_PATIENCE_MIN);
        self
    }

    /// Sets a hook that is called once for each handler or loop that is found to be stuck, after
    /// that was logged and counted. Default: none.
    ///
    /// The hook runs on the watchdog's thread. While it blocks, no loop is watched, and a declared
    /// section that was expected to be short ([`patience_declared`](Blocking::patience_declared))
    /// holds up its loop for as long as it lasts. So give work that takes long to another thread.
    /// The hook must not wait for the loop itself, because the loop waits for its handler. If the
    /// hook panics, that is logged and only this call is lost.
    pub fn on_stuck(mut self, hook: impl Fn(&StuckReport<'_>) + Send + Sync + 'static) -> Blocking {
        self.watch.on_stuck = Some(Arc::new(hook));
        self
    }

    /// Sets a hook that is called when something that was reported lasts for 10 times the patience,
    /// and again for 100 times: for example, to end the process for a core dump. Default: none. It
    /// runs on the same thread as [`on_stuck`](Blocking::on_stuck), with the same restrictions.
    pub fn on_still_stuck(
        mut self,
        hook: impl Fn(&StuckReport<'_>) + Send + Sync + 'static,
    ) -> Blocking {
        self.watch.on_still_stuck = Some(Arc::new(hook));
        self
    }

    /// Sets a hook that is called when something that was reported is over: the handler has
    /// returned, or the loop has polled its backend, or has ended. This is also logged, at level
    /// info. Default: none. It runs on the same thread as [`on_stuck`](Blocking::on_stuck), with the
    /// same restrictions.
    pub fn on_unstuck(
        mut self,
        hook: impl Fn(&UnstuckReport<'_>) + Send + Sync + 'static,
    ) -> Blocking {
        self.watch.on_unstuck = Some(Arc::new(hook));
        self
    }

    pub(crate) fn declared_patience(&self) -> Duration {
        self.declared_patience
    }

    pub(crate) fn lagging_patience(&self) -> Duration {
        self.watch.lagging_patience.min(self.watch.patience)
    }

    pub(crate) fn idle_time(&self) -> Duration {
        self.keep_idle
    }

    pub(crate) fn thread_budget(&self) -> Arc<ThreadBudget> {
        self.threads.clone()
    }

    pub(crate) fn watch(&self) -> (&WatchSettings, &Arc<Watchdog>) {
        (&self.watch, &self.watchdog)
    }
}

const PATIENCE: Duration = Duration::from_millis(10);

const DECLARED_PATIENCE: Duration = Duration::from_micros(50);

const KEEP_IDLE: Duration = Duration::from_secs(10);

const THREADS_MAX: usize = 64;

const LAGGING_PATIENCE: Duration = Duration::from_micros(100);

const LAGGING_PATIENCE_MIN: Duration = Duration::from_micros(10);

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
            .field("patience_behind", &self.watch.lagging_patience)
            .field("patience_declared", &self.declared_patience)
            .field("threads_max", &self.threads.max())
            .field("keep_idle", &self.keep_idle)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_at_least_a_millisecond() {
        for (asked, set) in [(0, 1_000), (999, 1_000), (1_000, 1_000), (1_001, 1_001)] {
            let blocking = Blocking::new().patience(Duration::from_micros(asked));
            assert_eq!(blocking.watch.patience, Duration::from_micros(set));
        }
        for (asked, set) in [(0, 10), (10, 10), (11, 11)] {
            let blocking = Blocking::new().patience_behind(Duration::from_micros(asked));
            assert_eq!(blocking.watch.lagging_patience, Duration::from_micros(set));
        }
        let printed = "Blocking { patience: 10ms, patience_behind: 100µs, patience_declared: 50µs, threads_max: 64, \
                       keep_idle: 10s, .. }";
        assert_eq!(format!("{:?}", Blocking::default()), printed);
    }
}
