//! `Poller`: the waker and the time of the loop, for polling futures in a machine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ptr;
use std::task::{Context, Waker};

use rotor_core::{Future as Value, Notifier, Scope, Time};

use crate::deferred_start::DeferredStart;
#[cfg(feature = "tokio")]
use crate::tokio_runtime::without_budget;

/// What a machine needs to poll futures: a waker that wakes the machine, and the loop's time for
/// [sleeps](crate::sleep).
///
/// Each [`Driven`](crate::Driven) and [`Task`](crate::Task) has a poller. A machine that polls
/// something else (a stream, a body, a tower service) keeps its own.
pub struct Poller {
    waker: Waker,
    /// The notifier that the waker uses. `None` only during a poll.
    notifier: Option<Notifier>,
    sleeps: Sleeps,
}

/// The wakers of sleeping futures, by the time and the number of the sleep. Moved to `CurrentPoll`
/// during a poll.
type Sleeps = BTreeMap<(Time, u64), Waker>;

/// The current poll of this thread.
struct CurrentPoll {
    now: Time,
    /// Identifies the poller's waker and its clones.
    waker: *const (),
    notifier: Option<Notifier>,
    sleeps: Sleeps,
    /// To be done after the poll, with the scope.
    deferred_starts: Vec<DeferredStart>,
}

thread_local! {
    static CURRENT: RefCell<Option<CurrentPoll>> = const { RefCell::new(None) };
}

impl Poller {
    /// Makes a poller that wakes the machine of this scope, or its part.
    pub fn new<C>(scope: &Scope<'_, C>) -> Poller {
        let notifier = scope.notifier();
        let waker = notifier.clone().into_waker();
        Poller { waker, notifier: Some(notifier), sleeps: Sleeps::new() }
    }

    /// Calls `poll` with a context for polling futures. Before that, wakes the futures whose
    /// [sleep](crate::sleep) has ended by the loop's time.
    ///
    /// Polls may be nested, for example if a future runs a loop. With the feature `tokio`, they are
    /// without tokio's cooperative budget, which would otherwise run out in a loop that runs in
    /// `#[tokio::main]`.
    pub fn poll<C, R>(
        &mut self,
        scope: &Scope<'_, C>,
        poll: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        let now = scope.now();
        self.wake_sleepers(now);
        let (notifier, sleeps) = (self.notifier.take(), std::mem::take(&mut self.sleeps));
        let waker = self.waker.data();
        let current = CurrentPoll { now, waker, notifier, sleeps, deferred_starts: Vec::new() };
        let outer = CURRENT.replace(Some(current));
        // Restores the outer poll in any case, even after a panic.
        let guard = PollGuard { outer, notifier: &mut self.notifier, sleeps: &mut self.sleeps };
        let polled = without_budget(|| poll(&mut Context::from_waker(&self.waker)));
        let starts = CURRENT.with_borrow_mut(|current| {
            current.as_mut().map(|it| std::mem::take(&mut it.deferred_starts))
        });
        drop(guard);
        for start in starts.into_iter().flatten() {
            start(scope);
        }
        polled
    }

    /// Returns when the first of the polled sleeps ends. Poll again by then.
    pub fn deadline(&self) -> Option<Time> {
        self.sleeps.keys().next().map(|(time, _)| *time)
    }

    /// Returns the waker that is used in all polls.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Wakes the futures whose sleeps this poller holds, because nothing will poll it any more. A
    /// future that several machines poll registers its sleep with one of the others then.
    pub(crate) fn release_sleeps(&mut self) {
        self.wake_sleepers(Time::NEVER);
    }

    fn wake_sleepers(&mut self, now: Time) {
        while let Some(first) = self.sleeps.first_entry() {
            if first.key().0 > now {
                return;
            }
            let waker = first.remove();
            // A future that is polled with the poller's own waker is polled now anyway. Futures
            // with other wakers (in a set of futures) are not polled unless they are woken.
            if !waker.will_wake(&self.waker) {
                waker.wake();
            }
        }
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.release_sleeps();
    }
}

/// Exists during a poll; restores the outer one when dropped.
struct PollGuard<'a> {
    outer: Option<CurrentPoll>,
    notifier: &'a mut Option<Notifier>,
    sleeps: &'a mut Sleeps,
}

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        if let Some(current) = CURRENT.replace(self.outer.take()) {
            *self.notifier = current.notifier;
            *self.sleeps = current.sleeps;
        }
    }
}

/// Calls `f`. With the feature `tokio`, this keeps tokio's budget from stopping the futures.
#[cfg(not(feature = "tokio"))]
fn without_budget<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Returns the loop's time, if a poll is under way.
pub(crate) fn now() -> Option<Time> {
    CURRENT.with_borrow(|current| current.as_ref().map(|current| current.now))
}

/// Returns whether polling this value needs no waker of its own: the waker is that of the current
/// poll's poller, and the value wakes the same machine.
pub(crate) fn is_woken_with_current_poll<V>(value: &Value<V>, waker: &Waker) -> bool {
    CURRENT.with_borrow(|current| {
        current.as_ref().is_some_and(|current| {
            ptr::eq(current.waker, waker.data())
                && current.notifier.as_ref().is_some_and(|notifier| value.wakes(notifier))
        })
    })
}

/// Returns whether a poll is under way, of another machine than the one that the value wakes.
pub(crate) fn is_of_another_machine<V>(value: &Value<V>) -> bool {
    CURRENT.with_borrow(|current| {
        let notifier = current.as_ref().and_then(|current| current.notifier.as_ref());
        notifier.is_some_and(|notifier| !value.wakes(notifier))
    })
}

/// Adds work to be done after the poll. Returns false if no poll is under way.
pub(crate) fn defer_start(start: DeferredStart) -> bool {
    CURRENT.with_borrow_mut(|current| match current {
        Some(current) => {
            current.deferred_starts.push(start);
            true
        }
        None => false,
    })
}

/// Wakes `waker` at `time`, for the sleep of this number. Outside of a poll it does nothing.
pub(crate) fn register_sleep(time: Time, number: u64, waker: &Waker) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.sleeps.insert((time, number), waker.clone());
        }
    });
}

/// Forgets the sleep of this number, which was dropped or has ended.
pub(crate) fn cancel_sleep(time: Time, number: u64) {
    // Outside of a poll the whole future is usually dropped, with its sleeps. If not, it is woken
    // once spuriously. At the end of a thread there is nothing left to forget.
    let _ended = CURRENT.try_with(|current| {
        if let Ok(mut current) = current.try_borrow_mut()
            && let Some(current) = &mut *current
        {
            current.sleeps.remove(&(time, number));
        }
    });
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").field("sleeps", &self.sleeps.len()).finish_non_exhaustive()
    }
}
