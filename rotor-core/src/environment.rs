//! What handlers see of their loop: the environment, shared by reference, changed through atomics only.
//!
//! A loop has three owners: this environment, the rest (backend, slab, timers and all due work, see `event_loop`) and
//! the context. The scope borrows the first and the last, never the rest, so that the rest can be carried on by another
//! thread while a handler blocks.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::BackendHandle;
use crate::wake_queue::WakeQueue;
use crate::{Notifier, Time, Token};

pub(crate) struct Environment<H: ?Sized> {
    /// The loop's time, in nanoseconds.
    now: AtomicU64,
    /// The state of the random numbers.
    random: AtomicU64,
    pub(crate) queue: Arc<WakeQueue>,
    pub(crate) free_slots: AtomicUsize,
    /// Machines there are, those with a handler included.
    pub(crate) machines: AtomicUsize,
    pub(crate) waiters: SlotWaiters,
    pub(crate) last: LastMachines,
    /// Until when the loop drains, in nanoseconds; `u64::MAX` while it does not.
    draining: AtomicU64,
    /// A machine has asked the loop to stop.
    pub(crate) stop: AtomicBool,
    /// Offloaded jobs whose result nobody was there to take.
    pub(crate) unclaimed: Arc<AtomicU64>,
    pub(crate) handle: H,
}

impl<H: BackendHandle> Environment<H> {
    pub(crate) fn new(handle: H, queue: Arc<WakeQueue>, seed: u64, free_slots: usize) -> Environment<H> {
        Environment {
            now: AtomicU64::new(handle.now().as_nanos()),
            random: AtomicU64::new(seed),
            queue,
            free_slots: AtomicUsize::new(free_slots),
            machines: AtomicUsize::new(0),
            waiters: SlotWaiters::default(),
            last: LastMachines::default(),
            draining: AtomicU64::new(u64::MAX),
            stop: AtomicBool::new(false),
            unclaimed: Arc::default(),
            handle,
        }
    }
}

impl<H: BackendHandle + ?Sized> Environment<H> {
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.now.load(Relaxed))
    }

    pub(crate) fn set_now(&self, now: Time) {
        self.now.store(now.as_nanos(), Relaxed);
    }

    /// Reads the clock; answers what it says.
    pub(crate) fn refresh_now(&self) -> Time {
        let now = self.handle.now();
        self.set_now(now);
        now
    }

    /// The next number of a SplitMix64 generator: an even spread, a period of 2⁶⁴, one atomic step.
    pub(crate) fn random_u64(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.random.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn draining(&self) -> Option<Time> {
        Some(self.draining.load(Relaxed)).filter(|until| *until != u64::MAX).map(Time::from_nanos)
    }

    pub(crate) fn set_draining(&self, until: Time) {
        self.draining.store(until.as_nanos().min(u64::MAX - 1), Relaxed);
    }

    pub(crate) fn end_draining(&self) {
        self.draining.store(u64::MAX, Relaxed);
        self.last.clear();
    }
}

/// The machines that end last in a drain: each waits for all that are not in here.
#[derive(Default)]
pub(crate) struct LastMachines {
    tokens: Mutex<BTreeSet<Token>>,
}

impl LastMachines {
    /// Adds one; answers how many there are.
    pub(crate) fn add(&self, token: Token) -> usize {
        let mut tokens = self.lock();
        tokens.insert(token);
        tokens.len()
    }

    pub(crate) fn remove(&self, token: Token) {
        self.lock().remove(&token);
    }

    pub(crate) fn contains(&self, token: Token) -> bool {
        self.lock().contains(&token)
    }

    /// All of them, if there are so many.
    pub(crate) fn all(&self, count: usize) -> Option<Vec<Token>> {
        let tokens = self.lock();
        (tokens.len() == count).then(|| tokens.iter().copied().collect())
    }

    fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Token>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who waits for a free slot, first come, first served, each once.
#[derive(Default)]
pub(crate) struct SlotWaiters {
    count: AtomicUsize,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    order: VecDeque<Notifier>,
    present: BTreeSet<(Token, u32)>,
    /// How long it may grow before those who are gone are taken out.
    len_max: usize,
}

/// A line that is no longer is not looked through for those who are gone.
const LINE_LEN_MIN: usize = 64;

impl Line {
    fn add(&mut self, waiter: Notifier) {
        if !self.present.insert((waiter.token(), waiter.part())) {
            return;
        }
        self.order.push_back(waiter);
        // While no slot is ever free at the end of a turn, nobody leaves the line by being woken.
        if self.order.len() > self.len_max.max(LINE_LEN_MIN) {
            let Line { order, present, .. } = self;
            order.retain(|waiter| {
                let is_alive = waiter.is_alive();
                if !is_alive {
                    present.remove(&(waiter.token(), waiter.part()));
                }
                is_alive
            });
            self.len_max = self.order.len() * 2;
        }
    }
}

impl SlotWaiters {
    pub(crate) fn add(&self, waiter: Notifier) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.add(waiter);
        self.count.store(line.order.len(), SeqCst);
    }

    /// Whether anybody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// Wakes up to `free` of those who wait. One that is gone does not count.
    #[inline]
    pub(crate) fn wake(&self, free: usize) {
        if !self.is_empty() {
            self.wake_first(free);
        }
    }

    fn wake_first(&self, free: usize) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = free;
        while left > 0 {
            let Some(waiter) = line.order.pop_front() else { break };
            line.present.remove(&(waiter.token(), waiter.part()));
            left -= usize::from(waiter.wakeup());
        }
        self.count.store(line.order.len(), SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake_queue::Wake;

    struct NoWaker;

    impl Wake for NoWaker {
        fn wake(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_in_which_nobody_is_served_holds_no_more_than_those_who_live() {
        const LIVING: usize = 100;
        let queue = Arc::new(WakeQueue::new(LIVING + 1, Arc::new(NoWaker)).expect("room").0);
        let notifier = |index| {
            let token = Token::new(index, queue.generation(index));
            Notifier::new(queue.clone(), token, 0)
        };
        let waiters = SlotWaiters::default();
        (0..LIVING as u32).for_each(|index| waiters.add(notifier(index)));
        for _ in 0..10_000 {
            waiters.add(notifier(LIVING as u32));
            queue.end_generation(LIVING as u32);
        }
        let line = waiters.line.lock().expect("no panic");
        assert!(line.order.len() <= 2 * LIVING + 1, "{} in the line", line.order.len());
        assert_eq!(line.order.len(), line.present.len());
        let first: Vec<u32> = line.order.iter().take(LIVING).map(|waiter| waiter.token().index()).collect();
        assert_eq!(first, (0..LIVING as u32).collect::<Vec<u32>>(), "those who live keep their places");
    }
}
