//! `Member`: a connection's place in its pool, from which it gets its requests.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rotor_core::Scope;
use rotor_stream::Fatal;

use super::origin::{MemberId, TakeResult};
use super::shared::Shared;
use crate::client::error::ClientError;
use crate::client::handler::Client;
use crate::client::job::Job;
use crate::client::request_source::{Offer, RequestSource, Room};

/// A connection's place in its pool. It is dropped with the connection, however that ends, and then
/// frees the place.
pub(super) struct Member<K: Client, O: Ord + Clone> {
    pub(super) shared: Arc<Shared<K, O>>,
    pub(super) origin: O,
    pub(super) id: MemberId,
}

impl<K: Client, O: Ord + Clone> RequestSource<K> for Member<K, O> {
    fn next(&mut self, _: bool, scope: &mut Scope<'_, K::Context>) -> Offer<K> {
        let mut origins = self.shared.origins();
        let result = origins.take(&self.origin, self.id, || scope.notifier());
        let has_due = origins.has_due();
        drop(origins);
        // Other connections can take the requests that are left, and only the manager wakes them or
        // makes new ones.
        if has_due {
            self.shared.manager.wakeup();
        }
        match result {
            TakeResult::Job(job) => Offer::Job(job),
            TakeResult::Nothing => Offer::Idle,
            TakeResult::End => Offer::Close,
        }
    }

    fn room(&mut self, room: Room, scope: &mut Scope<'_, K::Context>) {
        let mut origins = self.shared.origins();
        origins.set_room(&self.origin, self.id, room, || scope.notifier());
        let has_due = origins.has_due();
        drop(origins);
        if has_due {
            self.shared.manager.wakeup();
        }
    }

    fn return_job(&mut self, job: Job<K>, scope: &mut Scope<'_, K::Context>) {
        self.requeue(self.origin.clone(), job, scope);
    }

    fn has_http1(&self) -> bool {
        (self.shared.without_http2)(&self.origin).is_some()
    }

    fn return_for_http1(&mut self, job: Job<K>, scope: &mut Scope<'_, K::Context>) {
        let origin = (self.shared.without_http2)(&self.origin);
        let origin = origin.unwrap_or_else(|| self.origin.clone());
        if job.is_repeated() {
            return self.requeue(origin, job, scope);
        }
        // No connection was lost during this request, so any connection to that origin may make it.
        // It joins that queue only if there is room: otherwise requests that pass through this
        // connection would wait there without a limit.
        let Some((job, bytes)) = self.shared.measure_job(job, scope) else { return };
        job.port.on_cancel(self.shared.manager.clone());
        let refused = self.shared.origins().add(origin, job, bytes).err();
        if let Some(job) = refused {
            return job.fail(ClientError::Full, self.shared.config.counters_ref(), scope);
        }
        self.notify_manager();
    }

    fn not_connected(self, error: Fatal, scope: &mut Scope<'_, K::Context>) {
        let job = self.shared.origins().take_for_failure(&self.origin);
        if let Some(job) = job {
            job.fail(ClientError::NotConnected(error), self.shared.config.counters_ref(), scope);
        }
    }
}

impl<K: Client, O: Ord + Clone> Member<K, O> {
    /// Has the request made again, at this origin.
    fn requeue(&self, origin: O, job: Job<K>, scope: &mut Scope<'_, K::Context>) {
        let Some((job, bytes)) = self.shared.measure_job(job, scope) else { return };
        // So far a cancellation woke this connection, which no longer has the request.
        job.port.on_cancel(self.shared.manager.clone());
        self.shared.origins().add_repeated(origin, job, bytes);
        self.notify_manager();
    }

    /// Tells the manager that a request waits again.
    fn notify_manager(&self) {
        // The request's deadline may be earlier than any that the manager knows.
        self.shared.has_returned_job.store(true, Relaxed);
        // An HTTP/2 connection may go on, and wake the manager by its drop only much later.
        self.shared.manager.wakeup();
    }
}

impl<K: Client, O: Ord + Clone> Drop for Member<K, O> {
    fn drop(&mut self) {
        self.shared.origins().remove(&self.origin, self.id);
        self.shared.manager.wakeup();
    }
}
