//! `Config`: all limits and options of a loop.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::blocking::Blocking;
use crate::machine_failure::MachineFailure;
use crate::offload::OffloadPool;
use crate::token::MACHINES_LIMIT;

/// The limits and options of a loop, each with its unit, default and reason.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Config, ExitPolicy};
///
/// let config = Config::new().machines_max(10_000).exit(ExitPolicy::OnRequest);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Config {
    pub(crate) machines_max: usize,
    pub(crate) events_max: usize,
    pub(crate) spawns_per_event: u32,
    pub(crate) wakeups_per_turn: u32,
    pub(crate) timeouts_per_turn: u32,
    pub(crate) posts_max: usize,
    pub(crate) scan_budget: usize,
    pub(crate) exit: ExitPolicy,
    pub(crate) on_panic: OnPanic,
    pub(crate) seed: Option<u64>,
    pub(crate) time_handlers: bool,
    /// The handlers of a turn are timed for the samples if these bits of its number are zero.
    pub(crate) sample_mask: u64,
    pub(crate) keep_ages: bool,
    pub(crate) observer: Option<Observer>,
    pub(crate) offload: OffloadPool,
    pub(crate) blocking: Option<Blocking>,
}

/// When `run` returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum ExitPolicy {
    /// When no machine is left, or on request. This is the default: a loop without machines has
    /// nothing to wait for, unless its [backend](crate::backend::Backend::has_unsent) still sends
    /// what they have written.
    #[default]
    WhenEmpty,
    /// On request only, by a machine ([`Scope::stop_loop`](crate::Scope::stop_loop)) or by a
    /// [`LoopHandle`](crate::LoopHandle). For loops that get machines through
    /// [`LoopInstance::spawn`](crate::LoopInstance::spawn) while they run.
    OnRequest,
    /// Never at the request of a machine: only a [`LoopHandle`](crate::LoopHandle) ends the loop,
    /// or a panic under [`OnPanic::StopLoop`]. A machine's request is logged and ignored. For a
    /// loop that runs other people's machines.
    Never,
}

/// What ends when a handler panics: its machine, or the loop.
///
/// A handler that got its machine by value drops it as it unwinds. If that drop panics as well, the
/// process is aborted. This happens to every Rust program whose drop panics while another panic
/// unwinds, and a loop cannot prevent it. Everything that the loop itself holds (a machine in
/// [`handle_in_place`](crate::Machine::handle_in_place), machines that it ends, seeds, jobs,
/// messages) is dropped in such a way that a panic costs no more than that one thing.
#[doc(alias = "catch_unwind")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnPanic {
    /// The machine ends. This is the default.
    #[default]
    EndMachine,
    /// The loop ends: `run` returns [`Exit::Panicked`](crate::Exit::Panicked). For tests, and for
    /// programs that would rather restart.
    ///
    /// After a panic in a handler, the rest of the turn is left for the next one. After a panic in
    /// [`create`](crate::Machine::create), the turn is finished first, and the machine that spawned
    /// gets the error. If a machine is made for code outside of the loop
    /// ([`LoopInstance::spawn`](crate::LoopInstance::spawn),
    /// [`Broadcast::add_machine_with`](crate::Broadcast::add_machine_with)), the panic is reported
    /// to that code and does not stop the loop. Nor does a panic in the drop of a machine that the
    /// loop ends, in a closure between handlers, or in [`idle`](crate::Machine::idle).
    StopLoop,
}

#[derive(Clone)]
pub(crate) struct Observer(pub(crate) Arc<dyn Fn(&MachineFailure<'_>) + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl Config {
    /// Returns a configuration with the defaults.
    pub fn new() -> Config {
        Config {
            machines_max: 65_536,
            events_max: 1_024,
            spawns_per_event: 1_024,
            wakeups_per_turn: 1_024,
            timeouts_per_turn: 1_024,
            posts_max: 1_024,
            scan_budget: 10_000,
            exit: ExitPolicy::WhenEmpty,
            on_panic: OnPanic::EndMachine,
            seed: None,
            time_handlers: false,
            sample_mask: 63,
            keep_ages: false,
            observer: None,
            offload: OffloadPool::default(),
            blocking: None,
        }
    }

    /// Sets the maximum number of machines at a time: the slots of the slab. Default 65,536, at
    /// least 1, at most [`MACHINES_LIMIT`].
    ///
    /// The address space for all slots is reserved when the loop is made, so that none ever moves.
    /// Memory is used only for slots that have been used, and one word for each slot. Keep
    /// connection limits below this number, so that other machines still find slots.
    pub fn machines_max(mut self, machines: usize) -> Config {
        self.machines_max = machines.clamp(1, MACHINES_LIMIT);
        self
    }

    /// Sets the maximum number of events taken from the backend in one poll; a turn normally has
    /// one poll. Default 1,024: a larger number saves hardly any system calls, and turns stay
    /// short. Each event takes 12 to 16 bytes. At least 1, at most [`EVENTS_LIMIT`].
    ///
    /// A turn in which a deadline passes while handlers run polls a second time, with the same
    /// maximum, so that events that have arrived meanwhile are delivered before the deadline.
    ///
    /// Wake-ups are delivered after the events. If machines pass on to each other what they read,
    /// as in a proxy, a few dozen events are better: what was read is then still in the CPU's cache
    /// when it is written.
    #[doc(alias = "budget")]
    pub fn events_max(mut self, events: usize) -> Config {
        self.events_max = events.clamp(1, EVENTS_LIMIT);
        self
    }

    /// Returns the maximum number of events taken in one poll, for code that opens a backend with
    /// these limits.
    pub fn events_len(&self) -> usize {
        self.events_max
    }

    /// Sets the maximum number of machines that one machine spawns in a row. At least 1; default
    /// 1,024, the same as the number of events in a poll, so that a burst of connections at a
    /// listener is not spread over many turns. The rest are spawned in the next turn.
    #[doc(alias = "budget")]
    pub fn spawns_per_event(mut self, spawns: u32) -> Config {
        // With zero no work would ever be done. The same holds for the other budgets.
        self.spawns_per_event = spawns.max(1);
        self
    }

    /// Sets the maximum number of wake-ups delivered in one turn. At least 1; default 1,024:
    /// machines may wake each other back and forth without a poll of the backend in between, but
    /// not forever.
    #[doc(alias = "budget")]
    #[doc(alias = "fairness")]
    #[doc(alias = "starvation")]
    pub fn wakeups_per_turn(mut self, wakeups: u32) -> Config {
        self.wakeups_per_turn = wakeups.max(1);
        self
    }

    /// Sets the maximum number of deadlines that fire in one turn, and of machines that are called
    /// in one turn because they returned a deadline that had passed. At least 1; default 1,024, the
    /// same as for events. Deadlines that were set together, by a burst of connections or before a
    /// stall, pass together; with this limit, the backend is polled again before the rest of them
    /// fire.
    #[doc(alias = "budget")]
    #[doc(alias = "timer wheel")]
    pub fn timeouts_per_turn(mut self, timeouts: u32) -> Config {
        self.timeouts_per_turn = timeouts.max(1);
        self
    }

    /// Sets the maximum number of closures of [`Broadcast::post`](crate::Broadcast::post) and
    /// [`add_machine_with`](crate::Broadcast::add_machine_with) that wait to be run. At least 1;
    /// default 1,024: they are for configuration and statistics, not for a data path.
    pub fn posts_max(mut self, posts: usize) -> Config {
        self.posts_max = posts.max(1);
        self
    }

    /// Sets the maximum number of machines that all [scans](crate::Machines::scan) together, a drain
    /// and a search for [room](crate::Scope::ask_for_room) may each look at in one turn. At least 1;
    /// default 10,000, which takes about a millisecond. If closures of
    /// [`every`](crate::LoopInstance::every) use up the budget, those for which nothing was left
    /// come first the next time.
    pub fn scan_budget(mut self, machines: usize) -> Config {
        self.scan_budget = machines.max(1);
        self
    }

    /// Sets when `run` returns. Default: when no machine is left, or on request.
    pub fn exit(mut self, policy: ExitPolicy) -> Config {
        self.exit = policy;
        self
    }

    /// Sets what ends when a handler panics. Default: its machine.
    pub fn on_panic(mut self, action: OnPanic) -> Config {
        self.on_panic = action;
        self
    }

    /// Sets the seed of [`Scope::random_u64`](crate::Scope::random_u64). Default: a new one for
    /// each loop, from the backend's random bytes. It does not affect
    /// [`Scope::secure_random`](crate::Scope::secure_random).
    pub fn seed(mut self, seed: u64) -> Config {
        self.seed = Some(seed);
        self
    }

    /// Sets whether each handler is timed, for
    /// [`Stats::longest_handler`](crate::Stats::longest_handler). Default: no, because two clock
    /// readings for each event cost about a tenth of a small request.
    ///
    /// `create`, and `spawned` or `spawn_error` after it, are not timed; they are included in
    /// [`Stats::longest_turn`](crate::Stats::longest_turn). Sections that block
    /// ([`Scope::blocking`](crate::Scope::blocking)) are not timed either if another thread had the
    /// loop when they ended: the measured time is how long a handler holds up the loop.
    pub fn time_handlers(mut self, yes: bool) -> Config {
        self.time_handlers = yes;
        // A call checks only this flag, which a watchdog sets too.
        self
    }

    /// Sets that the handlers of one in this many turns are timed, for
    /// [`LoopTimes::handlers`](crate::LoopTimes::handlers). Default 64, rounded up to a power of
    /// two; with zero, none are timed. A sampled turn costs two clock readings for each handler, so
    /// the cost of the default is negligible.
    pub fn sample_handlers(mut self, turns: u32) -> Config {
        // With all bits set no turn is timed, because no turn has the number zero.
        let one_of = u64::from(turns).next_power_of_two();
        self.sample_mask = if turns == 0 { u64::MAX } else { one_of - 1 };
        self
    }

    /// Sets whether the loop remembers when each machine was made, for
    /// [`Details::made`](crate::Details::made). Default: no. It costs 4 bytes for each slot that
    /// was used.
    pub fn keep_ages(mut self, yes: bool) -> Config {
        self.keep_ages = yes;
        self
    }

    /// Sets a function that is called for each machine that ended with an error or a panic, after
    /// that was logged and counted. It is called on the loop's thread and must not block. Default:
    /// none.
    #[doc(alias = "supervisor")]
    #[doc(alias = "on_error")]
    pub fn observer(
        mut self,
        observer: impl Fn(&MachineFailure<'_>) + Send + Sync + 'static,
    ) -> Config {
        self.observer = Some(Observer(Arc::new(observer)));
        self
    }

    /// Sets the pool to which [`Scope::offload`](crate::Scope::offload) gives work. Default: a pool
    /// of 4 threads and 1,024 jobs, shared by all clones of this `Config`, so that a group of loops
    /// made from one `Config` has one pool.
    pub fn offload_pool(mut self, pool: OffloadPool) -> Config {
        self.offload = pool;
        self
    }

    /// Returns the pool for offloaded work, for code that opens a backend with these limits.
    pub fn pool(&self) -> &OffloadPool {
        &self.offload
    }

    /// Sets what happens when handlers block. Default: nothing, which costs nothing.
    ///
    /// Loops made from clones of this `Config` share its watchdog.
    #[doc(alias = "watchdog")]
    pub fn blocking(mut self, blocking: Blocking) -> Config {
        self.blocking = Some(blocking);
        self
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::new()
    }
}

/// The upper limit of [`Config::events_max`]: 65,536 events in one poll. Memory for that many takes
/// 1 MiB at once, and far fewer are better.
pub const EVENTS_LIMIT: usize = 65_536;

/// The resolution of deadlines: they fire in order of ticks, up to one tick late.
#[doc(alias = "timer wheel")]
#[doc(alias = "timer resolution")]
pub const TICK: Duration = Duration::from_millis(1);
