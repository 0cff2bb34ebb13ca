//! `Lock`: a value that one machine holds at a time.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use super::wait_queue::WaitQueue;
use crate::future::{Future, Port};
use crate::scope::Scope;
use crate::sync::thread;
use crate::sync::{Mutex, MutexGuard};
use crate::waiter_queue::WaiterQueue;

/// A value that one machine, or thread, holds at a time, over any number of events.
///
/// Clones are the same lock. A machine that [asks](Lock::ask) for the value is woken when it gets
/// the value, first come, first served. It then *owns* the value as a [`LockGuard`], until it drops
/// that. No handler blocks. For a value that is needed within one event only, the context or std's
/// `Mutex` is better.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::Lock;
///
/// let ledger = Lock::new(vec![1, 2]);
/// let mut held = ledger.try_take().expect("nobody holds it");
/// held.push(3);
/// assert!(ledger.try_take().is_none());
/// drop(held);
/// assert_eq!(*ledger.try_take().expect("it is back"), [1, 2, 3]);
/// ```
#[doc(alias = "mutex")]
pub struct Lock<T> {
    shared: Arc<Shared<T>>,
}

/// The value of a [`Lock`], owned by the current holder. Dropping this gives the value back.
#[doc(alias = "Held")]
#[doc(alias = "MutexGuard")]
#[must_use = "the value is given back when this is dropped"]
pub struct LockGuard<T> {
    /// `None` only while the value is being given back.
    value: Option<T>,
    shared: Arc<Shared<T>>,
    was_panicked: bool,
    /// Whether the holder knows about an earlier panic: it has called `was_panicked`, or changed
    /// the value.
    is_panic_reported: AtomicBool,
}

struct Shared<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    /// `None` while the value is held.
    value: Option<T>,
    queue: WaitQueue<Port<LockGuard<T>>>,
    was_panicked: bool,
}

impl<T> Lock<T> {
    /// Makes a lock that holds `value`.
    pub fn new(value: T) -> Lock<T> {
        let state = State { value: Some(value), queue: WaitQueue::default(), was_panicked: false };
        Lock { shared: Arc::new(Shared { state: Mutex::new(state) }) }
    }

    /// Takes the value. Returns `None` if the value is held, or others wait for it.
    pub fn try_take(&self) -> Option<LockGuard<T>> {
        let mut state = self.shared.lock();
        let value = state.value.take()?;
        let was_panicked = std::mem::take(&mut state.was_panicked);
        drop(state);
        Some(self.shared.new_held(value, was_panicked))
    }

    /// Returns how many machines wait for the value.
    pub fn waiting(&self) -> usize {
        self.shared.lock().queue.len()
    }
}

impl<T: Send + 'static> Lock<T> {
    /// Asks for the value. The machine is woken when it gets the value, even if it gets it at once.
    ///
    /// Dropping the future leaves the queue. If it already contained the value, the next machine in
    /// the queue gets the value.
    pub fn ask<C>(&self, scope: &Scope<'_, C>) -> Future<LockGuard<T>> {
        let (port, future) = scope.create_future();
        let mut state = self.shared.lock();
        match state.value.take() {
            Some(value) => {
                let was_panicked = std::mem::take(&mut state.was_panicked);
                drop(state);
                // The machine that asks is alive; if it were not, the value would be given back.
                drop(port.set(self.shared.new_held(value, was_panicked)));
            }
            None => state.queue.push_port(port, Arc::downgrade(&self.shared) as _),
        }
        future
    }
}

impl<T> LockGuard<T> {
    /// Returns whether an earlier holder panicked while it held the value, and no holder since then
    /// has called this method or changed the value. The value may then be half changed. The lock is
    /// not poisoned: this is reported to one holder, and later ones get the value as usual.
    #[doc(alias = "poison")]
    pub fn was_panicked(&self) -> bool {
        self.is_panic_reported.store(true, Relaxed);
        self.was_panicked
    }
}

impl<T> Drop for LockGuard<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        let is_unreported = self.was_panicked && !*self.is_panic_reported.get_mut();
        self.shared.pass_on(value, is_unreported || thread::panicking());
    }
}

impl<T> Shared<T> {
    fn new_held(self: &Arc<Self>, value: T, was_panicked: bool) -> LockGuard<T> {
        let (shared, is_panic_reported) = (self.clone(), AtomicBool::new(false));
        LockGuard { value: Some(value), shared, was_panicked, is_panic_reported }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the value to the first machine in the queue that still exists, or puts it back.
    fn pass_on(self: &Arc<Self>, mut value: T, was_panicked: bool) {
        loop {
            let first = {
                let mut state = self.lock();
                match state.queue.pop() {
                    Some(first) => first,
                    None => {
                        state.value = Some(value);
                        state.was_panicked = was_panicked;
                        return;
                    }
                }
            };
            // Called without the lock, since this wakes a machine.
            match first.set(self.new_held(value, was_panicked)) {
                Ok(()) => return,
                Err(mut new_held) => match new_held.value.take() {
                    Some(back) => value = back,
                    None => return,
                },
            }
        }
    }
}

impl<T: Send> WaiterQueue for Shared<T> {
    fn remove(&self, place: u64) {
        let removed = self.lock().queue.remove(place);
        drop(removed);
    }
}

impl<T> Clone for Lock<T> {
    fn clone(&self) -> Lock<T> {
        Lock { shared: self.shared.clone() }
    }
}

impl<T> Deref for LockGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is taken only as this is dropped")
    }
}

impl<T> DerefMut for LockGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        *self.is_panic_reported.get_mut() = true;
        self.value.as_mut().expect("it is taken only as this is dropped")
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        write!(f, "Lock(held: {}, {} wait)", state.value.is_none(), state.queue.len())
    }
}

impl<T: fmt::Debug> fmt::Debug for LockGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockGuard").field(&self.value).finish()
    }
}
