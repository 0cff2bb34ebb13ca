//! The permits of all clones of [`Permits`](super::Permits), and the queue for them.
//!
//! An atomic word contains the number of free permits. As long as nothing waits, taking a permit
//! and giving it back need only this word. Its bit `SLOW` says that there is more to do, under the
//! lock.

use std::fmt;
use std::sync::{Arc, PoisonError, Weak};

use super::super::wait_line::WaitLine;
use crate::future::{Leave, Lost, Port};
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{Mutex, MutexGuard, thread};
use crate::time::Time;

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
    /// How many stopped waiting without getting a permit: the future was dropped, or it was too
    /// late.
    pub left: u64,
    /// Permits that were given back without having been used.
    pub unused: u64,
}

pub(super) struct Shared {
    /// Twice the number of free permits, plus [`SLOW`]. Without the lock it is changed only while
    /// `SLOW` is not set.
    word: AtomicUsize,
    state: Mutex<State>,
}

/// The bit that says that the lock is needed: there are waiters, or there is something else to
/// check.
const SLOW: usize = 1;

/// The maximum number of permits, which leaves room for the bit [`SLOW`]. Nobody needs that many.
pub(super) const PERMITS_MAX: usize = usize::MAX / 4;

pub(super) struct State {
    pub(super) line: WaitLine<Waiting>,
    /// How many permits there should be.
    pub(super) total: usize,
    /// Permits in use that disappear when they are given back, because their number was reduced.
    pub(super) surplus: usize,
    pub(super) is_closed: bool,
    /// Whether a thread is giving free permits to waiters.
    is_served: bool,
    /// The latest time that was passed in with a request.
    pub(super) now: Time,
    pub(super) stats: PermitStats,
}

pub(super) struct Waiting {
    pub(super) whom: Waiter,
    until: Time,
}

/// What gets a permit.
pub(super) enum Waiter {
    Machine(Port<Permit>),
    Job(Box<dyn WaitingJob>),
}

/// A job that needs a permit before it begins. It must catch a panic of its closure's drop, so that
/// the thread that serves the queue is not affected.
pub(crate) trait WaitingJob: Send {
    /// Sets that its place in `line` is freed when it is cancelled. Returns `false` if it is
    /// cancelled already.
    fn leave_on_cancel(&self, line: Weak<dyn Leave>, place: u64) -> bool;

    fn give(self: Box<Self>, permit: Permit);

    /// Tells the job that it will get no permit, or was cancelled.
    fn lose(self: Box<Self>, lost: Lost);
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
            while seen & SLOW == 0 {
                match shared.word.compare_exchange_weak(seen, seen + 2, Release, Relaxed) {
                    Ok(_) => return,
                    Err(now) => seen = now,
                }
            }
        } else {
            shared.look().state.stats.unused += 1;
        }
        shared.put_back(false);
        shared.serve();
    }
}

/// The lock, together with the word: while this exists, the word is not changed without the lock.
pub(super) struct Look<'a> {
    pub(super) state: MutexGuard<'a, State>,
    pub(super) free: usize,
    word: &'a AtomicUsize,
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let State { line, surplus, is_closed, .. } = &*self.state;
        let is_slow = !line.is_empty() || *surplus > 0 || *is_closed;
        self.word.store(word_of(self.free) | if is_slow { SLOW } else { 0 }, Release);
    }
}

fn word_of(free: usize) -> usize {
    free * 2
}

impl Shared {
    /// Makes this many permits, all of them free.
    pub(super) fn new(permits: usize) -> Shared {
        let state = State {
            line: WaitLine::default(),
            total: permits,
            surplus: 0,
            is_closed: false,
            is_served: false,
            now: Time::ZERO,
            stats: PermitStats::default(),
        };
        Shared { word: AtomicUsize::new(word_of(permits)), state: Mutex::new(state) }
    }

    #[inline]
    pub(super) fn try_take(self: &Arc<Self>) -> Option<Permit> {
        let word = &self.word;
        let mut seen = word.load(Relaxed);
        loop {
            if seen & SLOW != 0 {
                return self.try_take_slowly();
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
    fn try_take_slowly(self: &Arc<Self>) -> Option<Permit> {
        let mut look = self.look();
        if look.free == 0 || look.state.is_closed || !look.state.line.is_empty() {
            return None;
        }
        look.free -= 1;
        drop(look);
        Some(self.permit())
    }

    fn permit(self: &Arc<Self>) -> Permit {
        Permit { shared: Some(self.clone()), is_used: false }
    }

    pub(super) fn look(&self) -> Look<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.word.swap(SLOW, AcqRel) / 2;
        Look { state, free, word: &self.word }
    }

    /// Appends `whom` to the queue, then serves the queue.
    pub(super) fn line_up(self: &Arc<Self>, whom: Waiter, until: Time) {
        let refused = {
            let mut look = self.look();
            let free = look.free;
            look.state.line_up(Waiting { whom, until }, free, self)
        };
        match refused {
            Some(refused) => refused.whom.lose(Lost::Cancelled),
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
        let mut serving = Serving { shared: self, is_it: false };
        while let Some(Waiting { whom, until }) = serving.next() {
            if until < self.look().state.now {
                whom.lose(Lost::Late);
                self.put_back(true);
            } else if !whom.give(self.permit()) {
                self.put_back(true);
            }
        }
    }

    /// Puts a permit back. `has_left` says that the waiter that it was meant for is gone.
    pub(super) fn put_back(&self, has_left: bool) {
        let mut look = self.look();
        look.state.stats.left += u64::from(has_left);
        if look.state.surplus > 0 {
            look.state.surplus -= 1;
        } else {
            look.free += 1;
        }
    }
}

/// Serves the queue, if no other thread does.
struct Serving<'a> {
    shared: &'a Arc<Shared>,
    is_it: bool,
}

impl Serving<'_> {
    /// Takes a free permit for the first waiter. If there is no permit, or no waiter, serving ends.
    /// This is noted under the same lock, so that a permit that is given back later is served by
    /// the thread that gives it back.
    fn next(&mut self) -> Option<Waiting> {
        let mut look = self.shared.look();
        if look.state.is_served && !self.is_it {
            return None;
        }
        let first = if look.free == 0 { None } else { look.state.line.next() };
        look.free -= usize::from(first.is_some());
        self.is_it = first.is_some();
        look.state.is_served = self.is_it;
        first
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        // A panic happened while a permit was being given.
        if self.is_it {
            self.shared.look().state.is_served = false;
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // No permit will be given back any more. Each waiter gets its result, even if the drop of a
        // job misbehaves.
        let waiting = self.look().state.line.take_all();
        let lost = if thread::panicking() { Lost::Panicked } else { Lost::Dropped };
        waiting.for_each(|waiting| waiting.whom.lose(lost));
    }
}

impl State {
    /// Appends `waiting` to the queue. Returns it if the permits are closed, or if it was cancelled
    /// meanwhile, which happens to jobs.
    fn line_up(&mut self, waiting: Waiting, free: usize, shared: &Arc<Shared>) -> Option<Waiting> {
        let (line, place) = (Arc::downgrade(shared) as _, self.line.next_place());
        let is_there = match &waiting.whom {
            _ if self.is_closed => false,
            Waiter::Machine(port) => port.leave_on_cancel(line, place),
            Waiter::Job(job) => job.leave_on_cancel(line, place),
        };
        if !is_there {
            return Some(waiting);
        }
        self.stats.waited += u64::from(free == 0 || !self.line.is_empty());
        self.line.join(waiting);
        self.stats.waiting_most = self.stats.waiting_most.max(self.line.len());
        None
    }
}

impl Leave for Shared {
    fn leave(&self, place: u64) {
        let gone = {
            let mut look = self.look();
            let gone = look.state.line.leave(place);
            look.state.stats.left += u64::from(gone.is_some());
            gone
        };
        if let Some(gone) = gone {
            gone.whom.lose(Lost::Cancelled);
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

    pub(super) fn lose(self, lost: Lost) {
        match self {
            Waiter::Machine(port) => port.lose(lost),
            Waiter::Job(job) => job.lose(lost),
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit(used: {})", self.is_used)
    }
}
