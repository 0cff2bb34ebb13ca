//! `Shared`: what the machines of a pool share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rotor_core::{Notifier, Scope};

use super::origins::Origins;
use crate::client::config::ClientConfig;
use crate::client::handler::Client;
use crate::client::job::Job;

/// What manager and connections share. They run in one loop, so nobody ever waits for the lock.
pub(super) struct Shared<K: Client, O> {
    pub(super) origins: Mutex<Origins<O, Job<K>, Notifier>>,
    pub(super) manager: Notifier,
    /// A request that was under way waits again, and the manager has not looked at its deadline
    /// yet.
    pub(super) is_given_back: AtomicBool,
    pub(super) config: Arc<ClientConfig>,
    /// Where the same server is asked over HTTP/1.1 alone.
    pub(super) without_http2: fn(&O) -> Option<O>,
}

impl<K: Client, O> Shared<K, O> {
    /// Returns the books of the pool.
    pub(super) fn origins(&self) -> MutexGuard<'_, Origins<O, Job<K>, Notifier>> {
        // No handler is called under the lock, so the books are right even if it is poisoned.
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Weighs a job: what it takes while it waits. It fails if its handler panics on being asked.
    pub(super) fn weigh(
        &self,
        job: Job<K>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Option<(Job<K>, usize)> {
        // `held_bytes` is the user's: a panic in it costs its own request only.
        match scope.guard(|_| job.weight()) {
            Ok(bytes) => Some((job, bytes.saturating_add(size_of::<O>()))),
            Err(panicked) => {
                job.panicked(&panicked, self.config.count());
                None
            }
        }
    }
}
