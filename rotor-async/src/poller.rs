//! `Poller`: the waker and the time of the loop, for polling futures in a machine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ptr;
use std::task::{Context, Waker};

use rotor_core::{Future as Value, Notifier, Scope, Time};

use crate::start::Start;

/// What a machine needs to poll futures: a waker that wakes the machine, and the loop's time for
/// the [sleeps](crate::sleep) in them.
///
/// [`Driven`](crate::Driven) and [`Task`](crate::Task) have one each. A machine that polls
/// something else (a stream, a body, a tower service) keeps one of its own.
pub struct Poller {
    waker: Waker,
    /// What the waker wakes. Absent only while a poll is under way.
    notifier: Option<Notifier>,
    sleeps: Sleeps,
}

/// Who sleeps until when, each by its number. It is put aside while nothing is polled.
type Sleeps = BTreeMap<(Time, u64), Waker>;

/// The poll that is under way on this thread.
struct Current {
    now: Time,
    /// Which waker is the poller's: it and its clones have this.
    waker: *const (),
    notifier: Option<Notifier>,
    sleeps: Sleeps,
    /// What is done behind it, with the scope.
    starts: Vec<Start>,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

impl Poller {
    /// Makes a poller that wakes the machine of this scope, or its part.
    pub fn new<C>(scope: &Scope<'_, C>) -> Poller {
        let notifier = scope.notifier();
        let waker = notifier.clone().into_waker();
        Poller { waker, notifier: Some(notifier), sleeps: Sleeps::new() }
    }

    /// Calls `poll` with the context that a future gets when it is polled. Futures whose
    /// [sleep](crate::sleep) is over by the loop's time are woken before.
    ///
    /// Polls may be nested, for example if a loop is run in a future.
    pub fn poll<C, R>(
        &mut self,
        scope: &Scope<'_, C>,
        poll: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        let now = scope.now();
        self.wake_sleepers(now);
        let (notifier, sleeps) = (self.notifier.take(), std::mem::take(&mut self.sleeps));
        let waker = self.waker.data();
        let current = Current { now, waker, notifier, sleeps, starts: Vec::new() };
        let outer = CURRENT.replace(Some(current));
        // Whatever happens in the poll: a panic leaves no poll under way.
        let within = Within { outer, notifier: &mut self.notifier, sleeps: &mut self.sleeps };
        let polled = poll(&mut Context::from_waker(&self.waker));
        let starts = CURRENT
            .with_borrow_mut(|current| current.as_mut().map(|it| std::mem::take(&mut it.starts)));
        drop(within);
        for start in starts.into_iter().flatten() {
            start(scope);
        }
        polled
    }

    /// Returns when the first of the sleeps that were polled is over: poll again by then.
    pub fn deadline(&self) -> Option<Time> {
        self.sleeps.keys().next().map(|(time, _)| *time)
    }

    /// Returns the waker of all polls.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    fn wake_sleepers(&mut self, now: Time) {
        while let Some(first) = self.sleeps.first_entry() {
            if first.key().0 > now {
                return;
            }
            let waker = first.remove();
            // Who is polled with this poller's own waker is polled now, by way of the others; what
            // has wakers of its own (a set of futures) learns by them whom to poll.
            if !waker.will_wake(&self.waker) {
                waker.wake();
            }
        }
    }
}

/// While a poll is under way: afterwards the one around it is again.
struct Within<'a> {
    outer: Option<Current>,
    notifier: &'a mut Option<Notifier>,
    sleeps: &'a mut Sleeps,
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        if let Some(current) = CURRENT.replace(self.outer.take()) {
            *self.notifier = current.notifier;
            *self.sleeps = current.sleeps;
        }
    }
}

/// The loop's time, in a poll.
pub(crate) fn now() -> Option<Time> {
    CURRENT.with_borrow(|current| current.as_ref().map(|current| current.now))
}

/// Whether who polls with this waker is polled when the value has come, without being woken by it:
/// it is the waker of the poller whose poll is under way, and the value wakes the same machine.
pub(crate) fn hears_of<V>(value: &Value<V>, waker: &Waker) -> bool {
    CURRENT.with_borrow(|current| {
        current.as_ref().is_some_and(|current| {
            ptr::eq(current.waker, waker.data())
                && current.notifier.as_ref().is_some_and(|notifier| value.wakes(notifier))
        })
    })
}

/// To be done behind the poll. Returns whether there is one.
pub(crate) fn start(start: Start) -> bool {
    CURRENT.with_borrow_mut(|current| match current {
        Some(current) => {
            current.starts.push(start);
            true
        }
        None => false,
    })
}

/// The sleeper of this number is to be woken then. Nothing outside of a poll.
pub(crate) fn sleep_until(time: Time, number: u64, waker: &Waker) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.sleeps.insert((time, number), waker.clone());
        }
    });
}

/// The sleeper of this number is gone, or awake.
pub(crate) fn forget(time: Time, number: u64) {
    // Outside of a poll as a rule all of the future is dropped, and its sleeps with it; if not, it
    // is woken once for nothing. At the end of a thread there is nothing left to forget.
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
