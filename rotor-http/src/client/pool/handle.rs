//! `Pool`: the handle of a pool. `PoolRequest`: a request to a pool.

use std::fmt;
use std::net::SocketAddr;

use rotor_core::{Future, Scope, SendError, Service, Time};

use crate::client::handler::Client;
use crate::client::job::ClientResult;

/// The handle of a pool.
///
/// Put one into the context, and any machine of the loop can make requests; send one to another
/// thread, and the machines of that thread's loop can make requests.
///
/// Requests are made by handlers of one type `K`; if you need several, use an enum of handlers. `O`
/// is the type that identifies servers.
///
/// # What the pool promises
///
/// * Each request gets exactly one outcome, at the latest at its deadline (with the precision of a
///   tick), whether it is in the queue, waits for a connection, or is under way.
/// * Requests for one origin are begun in the order in which they were made.
/// * If a connection cannot be made, the request that it was made for gets the error; later
///   requests try again.
/// * Dropping the future cancels the request: if it still waits, it is never made; if it is under
///   way, it is aborted.
#[doc(alias = "connection pool")]
pub struct Pool<K: Client, O = SocketAddr> {
    pub(super) service: Service<PoolRequest<K, O>, ClientResult<K>>,
}

impl<K: Client, O> Pool<K, O> {
    /// Has `handler` make its request to `origin`, and wakes this machine with the outcome.
    ///
    /// # Errors
    ///
    /// Returns the request: [`Full`](SendError::Full) if there are already
    /// [`PoolConfig::asks_max`](super::PoolConfig::asks_max) requests that the pool has not looked
    /// at, [`Closed`](SendError::Closed) if the pool is gone.
    pub fn ask<C>(
        &self,
        origin: O,
        handler: K,
        scope: &Scope<'_, C>,
    ) -> Result<Future<ClientResult<K>>, SendError<PoolRequest<K, O>>> {
        self.service.ask(PoolRequest::new(origin, handler), scope)
    }

    /// Like [`ask`](Pool::ask), with a deadline for this request.
    ///
    /// # Errors
    ///
    /// Like [`ask`](Pool::ask).
    pub fn ask_until<C>(
        &self,
        origin: O,
        handler: K,
        deadline: Time,
        scope: &Scope<'_, C>,
    ) -> Result<Future<ClientResult<K>>, SendError<PoolRequest<K, O>>> {
        self.service.ask(PoolRequest::new(origin, handler).deadline(deadline), scope)
    }

    /// Returns the service behind the handle. Plain threads use it to make requests
    /// ([`ask_from_thread`](Service::ask_from_thread)).
    pub fn service(&self) -> &Service<PoolRequest<K, O>, ClientResult<K>> {
        &self.service
    }
}

/// A request to a pool.
#[doc(alias = "Ask")]
#[must_use]
#[non_exhaustive]
pub struct PoolRequest<K, O = SocketAddr> {
    /// The server.
    pub origin: O,
    /// The handler that makes the request and takes its response.
    pub handler: K,
    /// The deadline. `None` means
    /// [`PoolConfig::request_timeout`](super::PoolConfig::request_timeout) after the pool receives
    /// the request. `Time::NEVER` means no deadline: then only the connection's limits apply.
    pub deadline: Option<Time>,
}

impl<K, O> PoolRequest<K, O> {
    /// Makes a request to `origin` by `handler`, with the default time limit
    /// ([`PoolConfig::request_timeout`](super::PoolConfig::request_timeout)).
    pub fn new(origin: O, handler: K) -> PoolRequest<K, O> {
        PoolRequest { origin, handler, deadline: None }
    }

    /// Sets the deadline; `Time::NEVER` for none.
    pub fn deadline(mut self, time: Time) -> PoolRequest<K, O> {
        self.deadline = Some(time);
        self
    }
}

impl<K: Client, O> Clone for Pool<K, O> {
    fn clone(&self) -> Pool<K, O> {
        Pool { service: self.service.clone() }
    }
}

impl<K: Client, O> fmt::Debug for Pool<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.service).finish()
    }
}

impl<K, O: fmt::Debug> fmt::Debug for PoolRequest<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolRequest")
            .field("origin", &self.origin)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
