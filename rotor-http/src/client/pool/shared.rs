//! `Shared`: what the machines of a pool share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rotor_core::{Notifier, Scope};

use super::origins::Origins;
use crate::client::config::ClientConfig;
use crate::client::handler::Client;
use crate::client::job::Job;

/// What the manager and the connections share. They run in one loop, so there is never contention
/// for the lock.
pub(super) struct Shared<K: Client, O> {
    pub(super) origins: Mutex<Origins<O, Job<K>, Notifier>>,
    pub(super) manager: Notifier,
    /// Whether a request that was under way waits again, and the manager has not looked at its
    /// deadline yet.
    pub(super) has_returned_job: AtomicBool,
    pub(super) config: Arc<ClientConfig>,
    /// Returns the origin under which the same server is reached over HTTP/1.1 alone.
    pub(super) without_http2: fn(&O) -> Option<O>,
}

impl<K: Client, O> Shared<K, O> {
    /// Returns the records of the pool.
    pub(super) fn origins(&self) -> MutexGuard<'_, Origins<O, Job<K>, Notifier>> {
        // No handler is called while the lock is held, so the records are consistent even if it is
        // poisoned.
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the job and what it takes while it waits. Returns `None` if its handler panicked
    /// when it was asked.
    pub(super) fn measure_job(
        &self,
        job: Job<K>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Option<(Job<K>, usize)> {
        // `held_bytes` is the user's code: a panic in it costs only its own request.
        match scope.guard(|_| job.queued_bytes()) {
            Ok(bytes) => Some((job, bytes.saturating_add(size_of::<O>()))),
            Err(panicked) => {
                job.panicked(&panicked, self.config.counters_ref());
                None
            }
        }
    }
}
