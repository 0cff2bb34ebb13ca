//! `Alarm`: wakes the watchdog, if it sleeps, when a loop wakes.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;

/// Wakes the watchdog's thread. While that is awake, this costs loops one relaxed load.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    is_armed: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Alarm {
    /// Sets the thread to be woken.
    pub(super) fn set_thread(&self, thread: Option<Thread>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = thread;
    }

    /// Sets that the next loop that wakes also wakes the watchdog.
    pub(super) fn arm(&self) {
        self.is_armed.store(true, Relaxed);
    }

    /// Sets that loops do not wake the watchdog any more.
    pub(super) fn disarm(&self) {
        self.is_armed.store(false, Relaxed);
    }

    pub(super) fn is_armed(&self) -> bool {
        self.is_armed.load(Relaxed)
    }

    /// Records that a loop is awake.
    #[inline]
    pub(super) fn ring_if_armed(&self) {
        if self.is_armed() {
            self.ring();
        }
    }

    #[cold]
    pub(super) fn ring(&self) {
        self.disarm();
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }
}
