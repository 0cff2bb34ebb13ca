//! `Environment`: the part of a loop that handlers see. It is shared by reference and changed
//! through atomics and uncontended locks.
//!
//! A loop has three owners: this environment, the core (backend, machines and all due work, see
//! `event_loop`) and the context. The scope borrows the environment and the context, but never the
//! core, so that another thread can go on with the core while a handler blocks.

use std::any::Any;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::backend::BackendHandle;
use crate::blocking::BlockCounts;
use crate::config::Config;
use crate::drain::{Grace, Phase};
use crate::last_machines::LastMachines;
use crate::offload::in_flight::{JobCounts, YieldPolicy};
use crate::return_on_drop::AnyEndQueue;
use crate::secure_random::SecureRandom;
use crate::slot_waiters::SlotWaiters;
use crate::sync::atomic::AtomicBool;
use crate::time::Time;
use crate::wake_queue::WakeQueue;

pub(crate) struct Environment<H: ?Sized> {
    // These are atomics because everything here is borrowed by `&`. Apart from `jobs`, and from
    // handlers whose loop was taken, only one thread uses them at a time, so `Relaxed` is enough.
    /// The loop's time, in nanoseconds.
    now: AtomicU64,
    /// The state of the fast random numbers.
    random: AtomicU64,
    secure_random: SecureRandom,
    pub(crate) wakes: Arc<WakeQueue>,
    pub(crate) free_slots: AtomicUsize,
    /// The number of machines, including those that are with a handler.
    pub(crate) machines: AtomicUsize,
    pub(crate) waiters: SlotWaiters,
    pub(crate) last: LastMachines,
    /// The time until which the loop drains, in nanoseconds; `u64::MAX` while it does not.
    drain_until: AtomicU64,
    /// How long machines that wait for their peers do so while the loop drains, in nanoseconds.
    grace: AtomicU64,
    /// The phase of the loop, as a number.
    phase: AtomicU8,
    /// Whether the machine whose handler runs has woken itself.
    has_self_wakeup: AtomicBool,
    /// Whether a machine has asked the loop to stop.
    pub(crate) stop: AtomicBool,
    pub(crate) jobs: Arc<JobCounts>,
    pub(crate) blocks: Arc<BlockCounts>,
    pub(crate) yield_policy: YieldPolicy,
    /// The `AnyEndQueue` for the loop's context, whose type is not known here. Empty before there
    /// is a context.
    end_queue: OnceLock<Box<dyn Any + Send + Sync>>,
    pub(crate) handle: H,
}

impl<H: BackendHandle> Environment<H> {
    /// Makes the environment of a loop.
    ///
    /// # Errors
    ///
    /// The backend's error, if it cannot provide random bytes.
    pub(crate) fn new(
        handle: H,
        wakes: Arc<WakeQueue>,
        config: &Config,
    ) -> io::Result<Environment<H>> {
        let secure_random = SecureRandom::new(&handle)?;
        let seed = config.seed.unwrap_or_else(|| u64::from_ne_bytes(secure_random.bytes()));
        Ok(Environment {
            now: AtomicU64::new(handle.now().as_nanos()),
            random: AtomicU64::new(seed),
            secure_random,
            wakes,
            free_slots: AtomicUsize::new(config.machines_max),
            machines: AtomicUsize::new(0),
            waiters: SlotWaiters::default(),
            last: LastMachines::default(),
            drain_until: AtomicU64::new(u64::MAX),
            grace: AtomicU64::new(0),
            phase: AtomicU8::new(Phase::Serving as u8),
            has_self_wakeup: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            jobs: Arc::default(),
            blocks: Arc::default(),
            yield_policy: YieldPolicy::default(),
            end_queue: OnceLock::new(),
            handle,
        })
    }
}

impl<H: BackendHandle + ?Sized> Environment<H> {
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.now.load(Relaxed))
    }

    pub(crate) fn set_now(&self, now: Time) {
        self.now.store(now.as_nanos(), Relaxed);
    }

    /// Reads the clock, sets the loop's time and returns it.
    pub(crate) fn refresh_now(&self) -> Time {
        let now = self.handle.now();
        self.set_now(now);
        now
    }

    /// Returns the next number of a SplitMix64 generator: evenly distributed, with a period of 2⁶⁴,
    /// at the cost of one atomic operation. Each step can be inverted, so one number reveals all
    /// others: none may leave the process.
    pub(crate) fn random_u64(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.random.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn secure_random<const N: usize>(&self) -> [u8; N] {
        self.secure_random.bytes()
    }

    /// Counts a section that blocked and was run on the loop's thread.
    pub(crate) fn count_inline(&self) {
        BlockCounts::add(&self.blocks.inline);
    }

    /// Records that the machine whose handler runs has woken itself.
    pub(crate) fn record_self_wakeup(&self) {
        self.has_self_wakeup.store(true, Relaxed);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_self_wakeup(&self) -> bool {
        self.has_self_wakeup.load(Relaxed)
    }

    /// Returns whether the machine whose handler has returned woke itself, and resets that.
    pub(crate) fn take_self_wakeup(&self) -> bool {
        // Two operations instead of one atomic swap, which would cost more: handlers run one at a
        // time.
        let has_self_wakeup = self.has_self_wakeup();
        self.has_self_wakeup.store(false, Relaxed);
        has_self_wakeup
    }

    pub(crate) fn set_end_queue<C: 'static>(&self, end_queue: AnyEndQueue<C>) {
        // A loop is instantiated once.
        let _ = self.end_queue.set(Box::new(end_queue));
    }

    /// Returns the queue in which functions of `ReturnOnDrop` wait for a context of this type;
    /// `None` for the context of an early scope.
    pub(crate) fn end_queue<C: 'static>(&self) -> Option<AnyEndQueue<C>> {
        self.end_queue.get()?.downcast_ref().cloned()
    }

    pub(crate) fn drain_until(&self) -> Option<Time> {
        Some(self.drain_until.load(Relaxed))
            .filter(|until| *until != u64::MAX)
            .map(Time::from_nanos)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn phase(&self) -> Phase {
        Phase::from_number(self.phase.load(Relaxed))
    }

    /// Returns the time until which a machine may wait that begins to wait now.
    pub(crate) fn grace_until(&self) -> Option<Time> {
        let grace = Duration::from_nanos(self.grace.load(Relaxed));
        self.drain_until().map(|until| until.min(self.now() + grace))
    }

    pub(crate) fn set_announced(&self) {
        self.phase.store(Phase::Announced as u8, Relaxed);
    }

    pub(crate) fn set_draining(&self, until: Time, grace: Grace) {
        // `u64::MAX` means that there is no drain, so a drain without an end is stored as the value
        // before it.
        self.drain_until.store(until.as_nanos().min(u64::MAX - 1), Relaxed);
        let grace = u64::try_from(grace.time().as_nanos()).unwrap_or(u64::MAX);
        self.grace.store(grace, Relaxed);
        self.phase.store(Phase::Draining as u8, Relaxed);
    }

    pub(crate) fn end_draining(&self) {
        self.drain_until.store(u64::MAX, Relaxed);
        self.phase.store(Phase::Serving as u8, Relaxed);
        self.last.clear();
    }
}
