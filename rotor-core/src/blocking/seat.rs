//! `Seat`: the place at which a thread waits for a value.
//!
//! The thread spins before it sleeps, as long as spinning has been worth it: if it sleeps, both
//! threads pay for a system call, and the waiting one for getting a CPU.

use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::spinning::Spinning;
use crate::sync::atomic::AtomicBool;
use crate::sync::{Condvar, Mutex, MutexGuard, hint, spins};

/// How often a thread checks for a value before it sleeps. This takes 35 to 100 µs, depending on
/// how long the CPU pauses in a spin loop (17 ns where this number was chosen). That is about as
/// long as it takes to wake the thread that was given something, and for the other one to go on and
/// give it away again.
const LOOKS: u32 = 2_000;

pub(crate) struct Seat<T> {
    place: Mutex<Place<T>>,
    /// Whether the place is no longer empty: for a thread that spins, which does not take the lock
    /// to check.
    is_taken: AtomicBool,
    arrived: Condvar,
}

struct Place<T> {
    what: What<T>,
    /// Whether the thread sleeps and must be woken.
    is_asleep: bool,
    spinning: Spinning,
}

enum What<T> {
    Nothing,
    Given(T),
    /// No further values will be given.
    Closed,
}

impl<T> Seat<T> {
    pub(crate) fn new() -> Arc<Seat<T>> {
        let spinning = Spinning::new(has_processors());
        let place = Place { what: What::Nothing, is_asleep: false, spinning };
        let is_taken = AtomicBool::new(false);
        Arc::new(Seat { place: Mutex::new(place), is_taken, arrived: Condvar::new() })
    }

    pub(crate) fn give(&self, value: T) {
        self.put(What::Given(value));
    }

    /// Tells the thread that no further values will be given.
    pub(super) fn close(&self) {
        self.put(What::Closed);
    }

    /// Waits for a value. Returns `None` if the line was closed.
    pub(crate) fn wait(&self) -> Option<T> {
        let mut place = self.spin(self.lock());
        loop {
            match self.take(&mut place) {
                What::Given(value) => return Some(value),
                What::Closed => return None,
                What::Nothing => {}
            }
            place.is_asleep = true;
            place = self.arrived.wait(place).unwrap_or_else(PoisonError::into_inner);
            place.is_asleep = false;
        }
    }

    /// Waits for a value for at most `time`. The outer `None` means that the time is over.
    pub(super) fn wait_for(&self, time: Duration) -> Option<Option<T>> {
        let mut place = self.lock();
        if !time.is_zero() {
            place = self.spin(place);
        }
        // Waits only once: a thread that is woken spuriously was not needed either.
        if let What::Nothing = place.what {
            place.is_asleep = true;
            let waited = self.arrived.wait_timeout(place, time);
            place = waited.unwrap_or_else(PoisonError::into_inner).0;
            place.is_asleep = false;
        }
        match self.take(&mut place) {
            What::Given(value) => Some(Some(value)),
            What::Closed => Some(None),
            What::Nothing => None,
        }
    }

    /// Spins for a moment, if there is no value yet and spinning has been worth it.
    fn spin<'a>(&'a self, mut place: MutexGuard<'a, Place<T>>) -> MutexGuard<'a, Place<T>> {
        if !matches!(place.what, What::Nothing) || !place.spinning.begins() {
            return place;
        }
        drop(place);
        let has_come = (0..spins(LOOKS)).any(|_| {
            hint::spin_loop();
            self.is_taken.load(Relaxed)
        });
        let mut place = self.lock();
        place.spinning.ends(has_come);
        place
    }

    fn take(&self, place: &mut Place<T>) -> What<T> {
        self.is_taken.store(false, Relaxed);
        mem::replace(&mut place.what, What::Nothing)
    }

    fn put(&self, what: What<T>) {
        let is_asleep = {
            let mut place = self.lock();
            place.what = what;
            self.is_taken.store(true, Relaxed);
            place.is_asleep
        };
        if is_asleep {
            self.arrived.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Place<T>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether this process has more than one CPU. On a single CPU, a thread that spins keeps
/// the CPU from the thread that it waits for.
fn has_processors() -> bool {
    // Cached, because the call opens files of the control groups.
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| thread::available_parallelism().is_ok_and(|all| all.get() > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_before_is_there_and_is_had_once() {
        let seat = Seat::new();
        seat.give(7);
        assert_eq!(seat.wait_for(Duration::ZERO), Some(Some(7)));
        assert_eq!(seat.wait_for(Duration::ZERO), None);
    }

    #[test]
    fn who_sleeps_is_woken_and_who_spins_need_not_be() {
        let (here, there) = (Seat::new(), Seat::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(value) = there.wait() {
                    here.give(value + 1);
                }
                here.close();
            });
            for number in 0..1_000 {
                there.give(number);
                assert_eq!(here.wait(), Some(number + 1));
            }
            there.close();
            assert_eq!(here.wait_for(Duration::MAX), Some(None));
        });
    }
}
