//! `Manager`: receives requests, wakes connections or has new ones made, and fails requests that
//! wait too long.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rotor_core::{Calls, ReceiveError, Scope, SpawnCause, SpawnError, Time};
use rotor_stream::Fatal;

use super::config::PoolConfig;
use super::handle::PoolRequest;
use super::member::Member;
use super::origin::MemberId;
use super::origins::PoolAction;
use super::seed::PoolSeed;
use super::shared::Shared;
use crate::client::connection::ConnectionSeed;
use crate::client::counters::Counters;
use crate::client::error::{ClientError, Stage};
use crate::client::handler::Client;
use crate::client::job::{ClientResult, Job};

/// The machine of a pool that is not a connection.
pub(super) struct Manager<K: Client, O: Ord + Clone> {
    config: PoolConfig,
    calls: Calls<PoolRequest<K, O>, ClientResult<K>>,
    shared: Arc<Shared<K, O>>,
    /// No waiting request has an earlier deadline.
    earliest_deadline: Time,
    /// Whether requests may wait that a connection has had before: the calls do not report if these
    /// are cancelled.
    has_attempted: bool,
    /// The connection that is being made.
    connecting: Option<(O, MemberId)>,
    /// There was no slot for a connection. The manager tries again when one becomes free.
    waits_for_slot: bool,
    /// No further requests can be received.
    is_closed: bool,
    is_draining: bool,
}

/// What the manager does next.
pub(super) enum Decision<K: Client, O: Ord + Clone> {
    Wait,
    /// There are more requests than one event looks at.
    Again,
    Spawn(PoolSeed<K, O>),
    Done,
}

impl<K: Client, O: Ord + Clone> Manager<K, O> {
    pub(super) fn new(
        config: PoolConfig,
        calls: Calls<PoolRequest<K, O>, ClientResult<K>>,
        shared: Arc<Shared<K, O>>,
    ) -> Manager<K, O> {
        Manager {
            config,
            calls,
            shared,
            earliest_deadline: Time::NEVER,
            has_attempted: false,
            connecting: None,
            waits_for_slot: false,
            is_closed: false,
            is_draining: false,
        }
    }

    /// Does everything that is due, whatever the event was.
    pub(super) fn manage(&mut self, scope: &mut Scope<'_, K::Context>) -> Decision<K, O> {
        // Whatever the event was: a failure to connect has been handled before.
        self.connecting = None;
        let has_more = self.receive_calls(scope);
        // Before `serve_waiting`, so that no connection is made for a request that is cancelled or
        // too late.
        let has_returned_job = self.shared.has_returned_job.swap(false, Relaxed);
        self.has_attempted |= has_returned_job;
        if has_returned_job {
            // Its deadline may have been forgotten while it was under way.
            self.earliest_deadline = scope.now();
        }
        if self.calls.take_cancelled() || self.has_attempted {
            let mut origins = self.shared.origins();
            let cancelled = origins.remove_where(Job::is_cancelled);
            self.has_attempted = self.has_attempted
                && (origins.has_repeated() || origins.waiting().any(Job::was_attempted));
            drop(origins);
            // Dropped after the lock is released, because dropping a handler may run any code.
            drop(cancelled);
        }
        self.fail_expired(scope);
        self.waits_for_slot &= !scope.has_free_slot();
        if self.waits_for_slot {
            // Asked again, because another machine may have taken the slot for which this one was
            // woken.
            scope.wake_on_free_slot();
        }
        if let Some(seed) = self.serve_waiting() {
            return Decision::Spawn(seed);
        }
        let is_over = (self.is_draining || self.is_closed) && self.shared.origins().is_empty();
        match has_more {
            true => Decision::Again,
            // Only if no calls are left, which would be lost without an outcome.
            false if is_over => Decision::Done,
            false => Decision::Wait,
        }
    }

    /// Puts the received requests into the queues. Returns whether there may be more.
    fn receive_calls(&mut self, scope: &mut Scope<'_, K::Context>) -> bool {
        // Other machines get their turn, however many requests there are.
        for _ in 0..self.config.asks_per_event {
            let call = match self.calls.try_receive() {
                Ok(call) => call,
                Err(ReceiveError::Empty) => return false,
                Err(ReceiveError::Closed) => {
                    self.is_closed = true;
                    return false;
                }
            };
            let (PoolRequest { origin, handler, deadline }, port) = call.into_parts();
            let deadline = deadline.unwrap_or_else(|| scope.now() + self.config.request_timeout);
            let job = Job::new(handler, deadline, port);
            // A cancelled request must not take the place of one that is still wanted.
            if job.is_cancelled() {
                continue;
            }
            let Some((job, bytes)) = self.shared.measure_job(job, scope) else { continue };
            // If the job is refused, this is too early at worst; the check then finds nothing.
            self.earliest_deadline = self.earliest_deadline.min(deadline);
            let refused = self.shared.origins().add(origin, job, bytes).err();
            if let Some(job) = refused {
                job.fail(ClientError::Full, self.shared.config.counters_ref(), scope);
            }
        }
        true
    }

    /// Fails the requests whose deadlines have passed.
    fn fail_expired(&mut self, scope: &mut Scope<'_, K::Context>) {
        let now = scope.now();
        if self.earliest_deadline > now {
            return;
        }
        // The lock is held only for the records, because failing a job calls its handler.
        let expired = {
            let mut origins = self.shared.origins();
            let expired = origins.remove_where(|job| job.deadline() <= now);
            self.earliest_deadline =
                origins.waiting().map(Job::deadline).min().unwrap_or(Time::NEVER);
            expired
        };
        for job in expired {
            job.fail(
                ClientError::Deadline(Stage::Waiting),
                self.shared.config.counters_ref(),
                scope,
            );
        }
    }

    /// Wakes connections for the waiting requests. If a new connection is needed then, returns its
    /// seed.
    fn serve_waiting(&mut self) -> Option<PoolSeed<K, O>> {
        loop {
            let next_action = self.shared.origins().next_action(!self.waits_for_slot);
            match next_action {
                PoolAction::Nothing => return None,
                // A connection that has ended has reported that, or is about to; then the records
                // are checked again.
                PoolAction::Wake(connection) => {
                    connection.wakeup();
                }
                PoolAction::Connect(origin, id) => {
                    self.connecting = Some((origin.clone(), id));
                    let member = Member { shared: self.shared.clone(), origin: origin.clone(), id };
                    let seed = ConnectionSeed::new(member, self.shared.config.clone());
                    return Some(PoolSeed { origin, seed });
                }
            }
        }
    }

    /// Handles a connection that could not be made. Dropping its seed removes it from the records.
    pub(super) fn spawn_failed(
        &mut self,
        error: SpawnError<PoolSeed<K, O>>,
        scope: &mut Scope<'_, K::Context>,
    ) {
        let SpawnError { cause, seed } = error;
        let connecting = self.connecting.take();
        if let (SpawnCause::SlabFull, Some((origin, id))) = (&cause, &connecting) {
            self.shared.origins().remove_unattempted(origin, *id);
        }
        drop(seed);
        let error = match cause {
            SpawnCause::SlabFull => {
                // The request goes on waiting: a slot may become free before its deadline.
                self.waits_for_slot = true;
                return;
            }
            SpawnCause::Failed(error) => match error.downcast::<Fatal>() {
                Ok(error) => {
                    // No connection has counted it, because there was none.
                    Counters::add(&self.shared.config.counters_ref().not_connected);
                    ClientError::NotConnected(*error)
                }
                Err(error) => ClientError::NoRoom(error),
            },
            // The connection ended at once, and its request has been told.
            SpawnCause::Ended => return,
            cause => {
                ClientError::NoRoom(format!("a connection could not be made: {cause:?}").into())
            }
        };
        let job =
            connecting.and_then(|(origin, _)| self.shared.origins().take_for_failure(&origin));
        if let Some(job) = job {
            job.fail(error, self.shared.config.counters_ref(), scope);
        }
    }

    /// Begins to drain: the manager ends when no request waits and no connection is left.
    pub(super) fn drain(&mut self) {
        self.is_draining = true;
    }

    pub(super) fn next_deadline(&self) -> Time {
        self.earliest_deadline
    }
}
