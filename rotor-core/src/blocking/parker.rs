//! `Parker`: the place at which a thread waits for a value.
//!
//! The thread spins before it sleeps, as long as spinning has been worth it: if it sleeps, both
//! threads pay for a system call, and the waiting one for getting a CPU.

use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::adaptive_spin::AdaptiveSpin;
use crate::sync::atomic::AtomicBool;
use crate::sync::{Condvar, Mutex, MutexGuard, hint, spins};

/// How often a thread checks for a value before it sleeps. This takes 35 to 100 µs, depending on
/// how long the CPU pauses in a spin loop (17 ns where this number was chosen). That is about as
/// long as it takes to wake the thread that was given something, and for the other one to go on and
/// give it away again.
const SPINS: u32 = 2_000;

pub(crate) struct Parker<T> {
    state: Mutex<State<T>>,
    /// Whether the place is no longer empty: for a thread that spins, which does not take the lock
    /// to check.
    is_filled: AtomicBool,
    arrived: Condvar,
}

struct State<T> {
    content: Content<T>,
    /// Whether the thread sleeps and must be woken.
    is_asleep: bool,
    spin_policy: AdaptiveSpin,
}

enum Content<T> {
    Nothing,
    Given(T),
    /// No further values will be given.
    Closed,
}

impl<T> Parker<T> {
    pub(crate) fn new() -> Arc<Parker<T>> {
        let spin_policy = AdaptiveSpin::new(has_multiple_cpus());
        let state = State { content: Content::Nothing, is_asleep: false, spin_policy };
        let is_filled = AtomicBool::new(false);
        Arc::new(Parker { state: Mutex::new(state), is_filled, arrived: Condvar::new() })
    }

    pub(crate) fn give(&self, value: T) {
        self.put(Content::Given(value));
    }

    /// Tells the thread that no further values will be given.
    pub(super) fn close(&self) {
        self.put(Content::Closed);
    }

    /// Waits for a value. Returns `None` if the queue was closed.
    pub(crate) fn wait(&self) -> Option<T> {
        let mut state = self.spin(self.lock());
        loop {
            match self.take(&mut state) {
                Content::Given(value) => return Some(value),
                Content::Closed => return None,
                Content::Nothing => {}
            }
            state.is_asleep = true;
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.is_asleep = false;
        }
    }

    /// Waits for a value for at most `time`. The outer `None` means that the time is over.
    pub(super) fn wait_timeout(&self, time: Duration) -> Option<Option<T>> {
        let mut state = self.lock();
        if !time.is_zero() {
            state = self.spin(state);
            // Waits only once: a thread that is woken spuriously was not needed either.
            if let Content::Nothing = state.content {
                state.is_asleep = true;
                let waited = self.arrived.wait_timeout(state, time);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                state.is_asleep = false;
            }
        }
        match self.take(&mut state) {
            Content::Given(value) => Some(Some(value)),
            Content::Closed => Some(None),
            Content::Nothing => None,
        }
    }

    /// Spins for a moment, if there is no value yet and spinning has been worth it.
    fn spin<'a>(&'a self, mut state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        if !matches!(state.content, Content::Nothing) || !state.spin_policy.begin() {
            return state;
        }
        drop(state);
        let has_arrived = (0..spins(SPINS)).any(|_| {
            hint::spin_loop();
            self.is_filled.load(Relaxed)
        });
        let mut state = self.lock();
        state.spin_policy.end(has_arrived);
        state
    }

    fn take(&self, state: &mut State<T>) -> Content<T> {
        self.is_filled.store(false, Relaxed);
        mem::replace(&mut state.content, Content::Nothing)
    }

    fn put(&self, content: Content<T>) {
        let is_asleep = {
            let mut state = self.lock();
            state.content = content;
            self.is_filled.store(true, Relaxed);
            state.is_asleep
        };
        if is_asleep {
            self.arrived.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether this process has more than one CPU. On a single CPU, a thread that spins keeps
/// the CPU from the thread that it waits for.
fn has_multiple_cpus() -> bool {
    // Cached, because the call opens files of the control groups.
    static RESULT: OnceLock<bool> = OnceLock::new();
    *RESULT.get_or_init(|| thread::available_parallelism().is_ok_and(|all| all.get() > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_given_before_the_wait_is_received_once() {
        let parker = Parker::new();
        parker.give(7);
        assert_eq!(parker.wait_timeout(Duration::ZERO), Some(Some(7)));
        assert_eq!(parker.wait_timeout(Duration::ZERO), None);
    }

    #[test]
    fn values_reach_the_other_thread_whether_it_sleeps_or_spins() {
        let (here, there) = (Parker::new(), Parker::new());
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
            assert_eq!(here.wait_timeout(Duration::MAX), Some(None));
        });
    }
}
