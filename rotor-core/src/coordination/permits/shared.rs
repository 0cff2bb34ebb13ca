//! The permits of all clones of [`Permits`](super::Permits), and the queue for them.
//!
//! An atomic word contains the number of free permits. As long as nothing waits, taking a permit
//! and giving it back need only this word. Its bit `NEEDS_LOCK` says that there is more to do,
//! under the lock.

use std::fmt;
use std::sync::{Arc, PoisonError, Weak};

use super::super::wait_queue::WaitQueue;
use crate::future::{FutureError, Port};
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{Mutex, MutexGuard, thread};
use crate::time::Time;
use crate::waiter_queue::WaiterQueue;

/// One of the [`Permits`](super::Permits). Dropping it gives it back.
///
/// A permit that is dropped without having been [used](Permit::run) is counted
/// ([`PermitStats::unused`]), because the code that it should limit has usually forgotten about it.
#[doc(alias = "SemaphorePermit")]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    /// `None` if there is nothing to give back.
    shared: Option<Arc<Shared>>,
    is_used: bool,
}

/// The statistics of [`Permits`](super::Permits), all taken at the same moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PermitStats {
    /// Permits that are free.
    pub available: usize,
    /// How many futures and jobs ([`JobBuilder::permits`](crate::JobBuilder::permits)) wait for a
    /// permit.
    pub waiting: usize,
    /// The largest number that waited at the same time so far.
    pub waiting_most: usize,
    /// How many had to wait so far.
    pub waited: u64,
    /// How many stopped waiting without getting a permit: the future was dropped, it was too late,
    /// or the pool of the job ended.
    pub left: u64,
    /// Permits that were given back without having been used.
    pub unused: u64,
}

pub(super) struct Shared {
    /// Twice the number of free permits, plus [`NEEDS_LOCK`]. Without the lock it is changed only
    /// while `NEEDS_LOCK` is not set.
    word: AtomicUsize,
    state: Mutex<State>,
}

/// The bit that says that the lock is needed: there are waiters, or there is something else to
/// check.
const NEEDS_LOCK: usize = 1;

/// The maximum number of permits, which leaves room for the bit [`NEEDS_LOCK`]. Nobody needs that
/// many.
pub(super) const PERMITS_MAX: usize = usize::MAX / 4;

pub(super) struct State {
    pub(super) queue: WaitQueue<QueuedWaiter>,
    /// How many permits there should be.
    pub(super) total: usize,
    /// Permits in use that disappear when they are given back, because their number was reduced.
    pub(super) surplus: usize,
    pub(super) is_closed: bool,
    /// Whether a thread is giving free permits to waiters.
    is_serving: bool,
    /// The latest time that was passed in with a request.
    pub(super) now: Time,
    pub(super) stats: PermitStats,
}

pub(super) struct QueuedWaiter {
    pub(super) waiter: Waiter,
    until: Time,
}

/// What gets a permit.
pub(super) enum Waiter {
    Machine(Port<Permit>),
    Job(Box<dyn JobWaiter>),
}

/// A job that needs a permit before it begins. It must catch a panic of its closure's drop, so that
/// the thread that serves the queue is not affected.
pub(crate) trait JobWaiter: Send {
    /// Sets that its place in `queue` is freed when it is cancelled. Returns `false` if it is
    /// cancelled already.
    fn leave_queue_on_cancel(&self, queue: Weak<dyn WaiterQueue>, place: u64) -> bool;

    fn give(self: Box<Self>, permit: Permit);

    /// Tells the job that it will get no permit, or was cancelled.
    fn fail(self: Box<Self>, lost: FutureError);
}

impl Permit {
    /// Runs `f`, the work that the permit allows. A permit may be used any number of times.
    pub fn run<V>(&mut self, f: impl FnOnce() -> V) -> V {
        self.note_used();
        f()
    }

    /// Marks the permit as used, for work that is not run by [`run`](Permit::run).
    pub fn note_used(&mut self) {
        self.is_used = true;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        if self.is_used {
            let mut seen = shared.word.load(Relaxed);
            while seen & NEEDS_LOCK == 0 {
                match shared.word.compare_exchange_weak(seen, seen + 2, Release, Relaxed) {
                    Ok(_) => return,
                    Err(now) => seen = now,
                }
            }
        } else {
            shared.lock().state.stats.unused += 1;
        }
        shared.return_permit(false);
        shared.serve();
    }
}

/// The lock, together with the word: while this exists, the word is not changed without the lock.
pub(super) struct StateGuard<'a> {
    pub(super) state: MutexGuard<'a, State>,
    pub(super) free: usize,
    word: &'a AtomicUsize,
}

impl Drop for StateGuard<'_> {
    fn drop(&mut self) {
        let State { queue, surplus, is_closed, .. } = &*self.state;
        let needs_lock = !queue.is_empty() || *surplus > 0 || *is_closed;
        self.word.store(word_for(self.free) | if needs_lock { NEEDS_LOCK } else { 0 }, Release);
    }
}

fn word_for(free: usize) -> usize {
    free * 2
}

impl Shared {
    /// Makes this many permits, all of them free.
    pub(super) fn new(permits: usize) -> Shared {
        let state = State {
            queue: WaitQueue::default(),
            total: permits,
            surplus: 0,
            is_closed: false,
            is_serving: false,
            now: Time::ZERO,
            stats: PermitStats::default(),
        };
        Shared { word: AtomicUsize::new(word_for(permits)), state: Mutex::new(state) }
    }

    #[inline]
    pub(super) fn try_take(self: &Arc<Self>) -> Option<Permit> {
        let word = &self.word;
        let mut seen = word.load(Relaxed);
        loop {
            if seen & NEEDS_LOCK != 0 {
                return self.try_take_locked();
            }
            if seen == 0 {
                return None;
            }
            match word.compare_exchange_weak(seen, seen - 2, Acquire, Relaxed) {
                Ok(_) => return Some(self.permit()),
                Err(now) => seen = now,
            }
        }
    }

    #[cold]
    fn try_take_locked(self: &Arc<Self>) -> Option<Permit> {
        let mut guard = self.lock();
        if guard.free == 0 || guard.state.is_closed || !guard.state.queue.is_empty() {
            return None;
        }
        guard.free -= 1;
        drop(guard);
        Some(self.permit())
    }

    fn permit(self: &Arc<Self>) -> Permit {
        Permit { shared: Some(self.clone()), is_used: false }
    }

    pub(super) fn lock(&self) -> StateGuard<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.word.swap(NEEDS_LOCK, AcqRel) / 2;
        StateGuard { state, free, word: &self.word }
    }

    /// Appends `waiter` to the queue, then serves the queue.
    pub(super) fn enqueue(self: &Arc<Self>, waiter: Waiter, until: Time) {
        let refused = {
            let mut guard = self.lock();
            let free = guard.free;
            guard.state.enqueue(QueuedWaiter { waiter, until }, free, self)
        };
        match refused {
            Some(refused) => refused.waiter.fail(FutureError::Cancelled),
            None => self.serve(),
        }
    }

    /// Gives free permits to waiters, one by one. Each is given without the lock, since this wakes
    /// a machine, which may also be gone.
    ///
    /// Only one thread at a time does this. A job may give its permit back as soon as it gets it,
    /// for example because its pool is gone; otherwise each job in the queue would then add some
    /// nested calls to the stack.
    pub(super) fn serve(self: &Arc<Self>) {
        let mut serving = ServingGuard { shared: self, is_active: false };
        while let Some(QueuedWaiter { waiter, until }) = serving.next() {
            if until < self.lock().state.now {
                waiter.fail(FutureError::Late);
                self.return_permit(true);
            } else if !waiter.give(self.permit()) {
                self.return_permit(true);
            }
        }
    }

    /// Puts a permit back. `is_waiter_gone` says that the waiter that it was meant for is gone.
    pub(super) fn return_permit(&self, is_waiter_gone: bool) {
        let mut guard = self.lock();
        guard.state.stats.left += u64::from(is_waiter_gone);
        if guard.state.surplus > 0 {
            guard.state.surplus -= 1;
        } else {
            guard.free += 1;
        }
    }
}

/// Serves the queue, if no other thread does.
struct ServingGuard<'a> {
    shared: &'a Arc<Shared>,
    is_active: bool,
}

impl ServingGuard<'_> {
    /// Takes a free permit for the first waiter. If there is no permit, or no waiter, serving ends.
    /// This is recorded under the same lock, so that a permit that is given back later is served by
    /// the thread that gives it back.
    fn next(&mut self) -> Option<QueuedWaiter> {
        let mut guard = self.shared.lock();
        if guard.state.is_serving && !self.is_active {
            return None;
        }
        let first = if guard.free == 0 { None } else { guard.state.queue.pop() };
        guard.free -= usize::from(first.is_some());
        self.is_active = first.is_some();
        guard.state.is_serving = self.is_active;
        first
    }
}

impl Drop for ServingGuard<'_> {
    fn drop(&mut self) {
        // A panic happened while a permit was being given.
        if self.is_active {
            self.shared.lock().state.is_serving = false;
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // No permit will be given back any more. Each waiter gets its result, even if the drop of a
        // job misbehaves.
        let waiting = self.lock().state.queue.take_all();
        let lost = if thread::panicking() { FutureError::Panicked } else { FutureError::Dropped };
        waiting.for_each(|waiting| waiting.waiter.fail(lost));
    }
}

impl State {
    /// Appends `waiting` to the queue. Returns it if the permits are closed, or if it was cancelled
    /// meanwhile, which happens to jobs.
    fn enqueue(
        &mut self,
        waiting: QueuedWaiter,
        free: usize,
        shared: &Arc<Shared>,
    ) -> Option<QueuedWaiter> {
        let (queue, place) = (Arc::downgrade(shared) as _, self.queue.next_place());
        let can_wait = match &waiting.waiter {
            _ if self.is_closed => false,
            Waiter::Machine(port) => port.leave_queue_on_cancel(queue, place),
            Waiter::Job(job) => job.leave_queue_on_cancel(queue, place),
        };
        if !can_wait {
            return Some(waiting);
        }
        self.stats.waited += u64::from(free == 0 || !self.queue.is_empty());
        self.queue.push(waiting);
        self.stats.waiting_most = self.stats.waiting_most.max(self.queue.len());
        None
    }
}

impl WaiterQueue for Shared {
    fn remove(&self, place: u64) {
        let removed = {
            let mut guard = self.lock();
            let removed = guard.state.queue.remove(place);
            guard.state.stats.left += u64::from(removed.is_some());
            removed
        };
        if let Some(removed) = removed {
            removed.waiter.fail(FutureError::Cancelled);
        }
    }
}

impl Waiter {
    /// Gives the permit away. Returns `false` if the receiver is gone; the permit is then not given
    /// back.
    pub(super) fn give(self, permit: Permit) -> bool {
        match self {
            Waiter::Machine(port) => match port.set(permit) {
                Ok(()) => true,
                Err(mut permit) => {
                    permit.shared = None;
                    false
                }
            },
            Waiter::Job(job) => {
                job.give(permit);
                true
            }
        }
    }

    pub(super) fn fail(self, lost: FutureError) {
        match self {
            Waiter::Machine(port) => port.fail(lost),
            Waiter::Job(job) => job.fail(lost),
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit(used: {})", self.is_used)
    }
}
