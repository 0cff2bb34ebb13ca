//! `Permits`: how many may do something at a time, across machines, loops and threads.
//!
//! One word has the number of permits that are free. As long as nobody waits it is all there is to
//! taking one and giving it back; `SLOW` in it says that there is more to look at, under the lock.

use std::fmt;
use std::sync::{Arc, PoisonError, Weak};

use super::wait_line::WaitLine;
use crate::future::{Future, Leave, Lost, Port};
use crate::scope::Scope;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{Mutex, MutexGuard, thread};
use crate::time::Time;

/// How many may do something at a time: run a section that blocks, use a library that bears only so
/// many callers, ask one server.
///
/// Clones are the same permits, for machines of any loop and for threads. Whoever comes first is
/// served first: while anybody waits, [`try_take`](Permits::try_take) has none. A [`Permit`] gives
/// itself back when it is dropped, to the first who waits.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Future, Outcome, Permit, Permits, Response, Scope};
/// # use rotor::{Machine, Infallible};
///
/// enum Writer {
///     Waits(Future<Permit>),
///     Writes(Permit),
/// }
///
/// # struct Disk { permits: Permits }
/// impl Writer {
///     fn new(scope: &Scope<'_, Disk>) -> Writer {
///         Writer::Waits(scope.permits.ask(scope))
///     }
/// }
///
/// impl Machine for Writer {
///     type Context = Disk;
///     type Seed = Infallible;
///
///     fn wakeup(self, _: &mut Scope<'_, Disk>) -> Response<Self, Infallible> {
///         match self {
///             Writer::Waits(permit) => match permit.take() {
///                 Outcome::Value(permit) => Response::keep(Writer::Writes(permit)),
///                 Outcome::Pending(permit) => Response::keep(Writer::Waits(permit)),
///                 Outcome::Lost(closed) => Response::error(closed),
///             },
///             writes => Response::keep(writes),
///         }
///     }
/// }
/// ```
#[doc(alias = "semaphore")]
#[derive(Clone)]
pub struct Permits {
    shared: Arc<Shared>,
}

/// One of the [`Permits`], for as long as it is not dropped.
///
/// One that is dropped and was never [used](Permit::run) is counted
/// ([`PermitStats::unused`]): as a rule the code that was to be limited forgot about it.
#[doc(alias = "SemaphorePermit")]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    /// Absent when there is nothing to give back.
    shared: Option<Arc<Shared>>,
    is_used: bool,
}

/// What permits have come to, all of one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PermitStats {
    /// Permits that are free.
    pub available: usize,
    /// Who waits for one: futures, and jobs ([`JobBuilder::permits`](crate::JobBuilder::permits)).
    pub waiting: usize,
    /// The most that waited at a time.
    pub waiting_most: usize,
    /// Who ever had to wait.
    pub waited: u64,
    /// Who waited and went: the future was dropped, or it was too late.
    pub left: u64,
    /// Permits that were given back and had not been used.
    pub unused: u64,
}

struct Shared {
    /// Twice the number of permits that are free, and [`SLOW`]. Without the lock it is changed only
    /// while that is not set.
    word: AtomicUsize,
    state: Mutex<State>,
}

/// Somebody waits, or there is something else to look at: the lock is needed.
const SLOW: usize = 1;

/// The most permits: one bit of the word is [`SLOW`]. Nobody has so many of anything.
const PERMITS_MAX: usize = usize::MAX / 4;

struct State {
    line: WaitLine<Waiting>,
    /// How many permits there are to be.
    total: usize,
    /// Permits that are out and are not to come back, since there are to be fewer.
    surplus: usize,
    is_closed: bool,
    /// Somebody gives what is free to those who wait.
    is_served: bool,
    /// The latest time that somebody came with.
    now: Time,
    stats: PermitStats,
}

struct Waiting {
    whom: Waiter,
    until: Time,
}

/// Who gets a permit.
enum Waiter {
    Machine(Port<Permit>),
    Job(Box<dyn WaitingJob>),
}

/// A job that needs a permit before it begins. What its closure does as it is dropped is its own:
/// it is kept from whoever serves the line.
pub(crate) trait WaitingJob: Send {
    /// From now on its place in `line` becomes free when it is cancelled; `false` if it is already.
    fn leave_on_cancel(&self, line: Weak<dyn Leave>, place: u64) -> bool;

    fn give(self: Box<Self>, permit: Permit);

    /// There will be none, or it was cancelled.
    fn lose(self: Box<Self>, lost: Lost);
}

impl Permits {
    /// Makes so many permits, of which none is taken. None at all is allowed: until
    /// [`set`](Permits::set) says otherwise, everybody waits.
    ///
    /// At most 2^62 - 1; `usize::MAX`, and any number above that, is as many.
    pub fn new(permits: usize) -> Permits {
        let permits = permits.min(PERMITS_MAX);
        let state = State {
            line: WaitLine::default(),
            total: permits,
            surplus: 0,
            is_closed: false,
            is_served: false,
            now: Time::ZERO,
            stats: PermitStats::default(),
        };
        let shared = Shared { word: AtomicUsize::new(word_of(permits)), state: Mutex::new(state) };
        Permits { shared: Arc::new(shared) }
    }

    /// Takes a permit, if one is free and nobody waits for it.
    pub fn try_take(&self) -> Option<Permit> {
        let word = &self.shared.word;
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
    fn try_take_slowly(&self) -> Option<Permit> {
        let mut look = self.shared.look();
        if look.free == 0 || look.state.is_closed || !look.state.line.is_empty() {
            return None;
        }
        look.free -= 1;
        drop(look);
        Some(self.permit())
    }

    /// Asks for a permit: the machine is woken when it is there, also when it is there at once.
    /// Then [`Future::take`] gives it, or [`Lost::Cancelled`] once the permits are
    /// [closed](Permits::close), or [`Lost::Dropped`] when there are neither permits nor clones of
    /// this any more.
    ///
    /// Dropping the future leaves the line; a permit that had come gives itself back.
    pub fn ask<C>(&self, scope: &Scope<'_, C>) -> Future<Permit> {
        self.ask_until(Time::NEVER, scope)
    }

    /// Asks for a permit that is of no use after some time: then the future says [`Lost::Late`].
    ///
    /// It is no deadline: the machine hears of it when its turn has come, so it returns a deadline
    /// of its own where it is to do something else then, and drops the future. What time it is, the
    /// permits know from those who ask with such a time, of whatever loop.
    pub fn ask_until<C>(&self, until: Time, scope: &Scope<'_, C>) -> Future<Permit> {
        let (port, future) = scope.create_future();
        let waiter = Waiter::Machine(port);
        match self.try_take() {
            Some(permit) => {
                // Whoever asks is there; if not, it goes back.
                if !waiter.give(permit) {
                    self.shared.put_back(true);
                    self.shared.serve();
                }
            }
            None => {
                if until != Time::NEVER {
                    self.tell_time(scope.now());
                }
                self.shared.line_up(waiter, until);
            }
        }
        future
    }

    /// Notes how late it is, so that nobody is given what has become useless to him.
    fn tell_time(&self, now: Time) {
        let mut look = self.shared.look();
        look.state.now = look.state.now.max(now);
    }

    /// Gives the job a permit, at once or when somebody gives one back.
    pub(crate) fn take_or_wait(&self, job: Box<dyn WaitingJob>) {
        match self.try_take() {
            Some(permit) => job.give(permit),
            None => self.shared.line_up(Waiter::Job(job), Time::NEVER),
        }
    }

    /// Sets how many permits there are. More are given to those who wait at once; if there are
    /// fewer, those that are out stay valid, and as many are not given again when they come back.
    pub fn set(&self, permits: usize) {
        let permits = permits.min(PERMITS_MAX);
        {
            let look = &mut self.shared.look();
            let state = &mut *look.state;
            let before = std::mem::replace(&mut state.total, permits);
            if permits >= before {
                let kept = state.surplus.min(permits - before);
                state.surplus -= kept;
                look.free += permits - before - kept;
            } else {
                let taken = look.free.min(before - permits);
                state.surplus += before - permits - taken;
                look.free -= taken;
            }
        }
        self.shared.serve();
    }

    /// Returns how many permits are free now.
    pub fn available(&self) -> usize {
        self.shared.look().free
    }

    /// Returns how many wait for a permit.
    pub fn waiting(&self) -> usize {
        self.shared.look().state.line.len()
    }

    /// Ends it: who waits, and who asks from now on, hears [`Lost::Cancelled`], and
    /// [`try_take`](Permits::try_take) has none. Permits that are out stay valid.
    pub fn close(&self) {
        let waiting = {
            let mut look = self.shared.look();
            look.state.is_closed = true;
            look.state.line.take_all()
        };
        waiting.for_each(|waiting| waiting.whom.lose(Lost::Cancelled));
    }

    /// Returns what has come of them.
    pub fn stats(&self) -> PermitStats {
        let look = self.shared.look();
        PermitStats { available: look.free, waiting: look.state.line.len(), ..look.state.stats }
    }

    fn permit(&self) -> Permit {
        Permit { shared: Some(self.shared.clone()), is_used: false }
    }
}

impl Permit {
    /// Does what the permit is for. It may be used any number of times.
    pub fn run<V>(&mut self, f: impl FnOnce() -> V) -> V {
        self.note_used();
        f()
    }

    /// Notes that what the permit is for was done.
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

/// The lock, and with it the word: while it is held nobody changes that without.
struct Look<'a> {
    state: MutexGuard<'a, State>,
    free: usize,
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
    fn look(&self) -> Look<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.word.swap(SLOW, AcqRel) / 2;
        Look { state, free, word: &self.word }
    }

    /// Puts somebody at the end of the line, then serves it.
    fn line_up(self: &Arc<Self>, whom: Waiter, until: Time) {
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

    /// Gives what is free to those who wait, one by one: each without the lock, since somebody is
    /// woken, and may be gone.
    ///
    /// One at a time does so: a job may give its permit back as it gets it, since its pool is gone,
    /// say, and each in line would be a few more calls on the stack.
    fn serve(self: &Arc<Self>) {
        let mut serving = Serving { shared: self, is_it: false };
        while let Some(Waiting { whom, until }) = serving.next() {
            if until < self.look().state.now {
                whom.lose(Lost::Late);
                self.put_back(true);
            } else if !whom.give(Permit { shared: Some(self.clone()), is_used: false }) {
                self.put_back(true);
            }
        }
    }

    /// Puts a permit back; `has_left` if whom it was for is gone.
    fn put_back(&self, has_left: bool) {
        let mut look = self.look();
        look.state.stats.left += u64::from(has_left);
        if look.state.surplus > 0 {
            look.state.surplus -= 1;
        } else {
            look.free += 1;
        }
    }
}

/// Who serves the line, if nobody else does.
struct Serving<'a> {
    shared: &'a Arc<Shared>,
    is_it: bool,
}

impl Serving<'_> {
    /// Takes a free permit for the first in line. Where there is none, or nobody, that is the end:
    /// noted under the same lock, so that what comes back later is seen to by whoever brings it.
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
        // Somebody panicked as he got his.
        if self.is_it {
            self.shared.look().state.is_served = false;
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Nobody gives one back any more. Who waits hears of it one by one, whatever a job does as
        // it is dropped.
        let waiting = self.look().state.line.take_all();
        let lost = if thread::panicking() { Lost::Panicked } else { Lost::Dropped };
        waiting.for_each(|waiting| waiting.whom.lose(lost));
    }
}

impl State {
    /// Puts somebody at the end of the line; gives him back if nobody gets anything any more, or he
    /// has gone meanwhile, as a job may.
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
    /// Hands a permit over. Returns `false` when there is nobody to take it: it is not given back
    /// then.
    fn give(self, permit: Permit) -> bool {
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

    fn lose(self, lost: Lost) {
        match self {
            Waiter::Machine(port) => port.lose(lost),
            Waiter::Job(job) => job.lose(lost),
        }
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PermitStats { available, waiting, .. } = self.stats();
        write!(f, "Permits({available} free, {waiting} wait)")
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit(used: {})", self.is_used)
    }
}
