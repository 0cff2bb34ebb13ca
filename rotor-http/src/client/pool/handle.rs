//! `Pool`: the handle of a pool, and `Ask`: what it is asked.

use std::fmt;
use std::net::SocketAddr;

use rotor_core::{Future, Scope, SendError, Service, Time};

use crate::client::handler::Client;
use crate::client::job::ClientResult;

/// The handle of a pool. Put one into the context, and any machine of the loop can make requests;
/// send one to another thread, and the machines of its loop can.
///
/// Requests are made by handlers of one type `K`; if you need several, use an enum of handlers. `O`
/// is the type that names servers.
///
/// # What is promised
///
/// * Each request gets one outcome before its deadline, to the tick, wherever it is by then: in the
///   queue, waiting for a connection, under way.
/// * Requests for one origin are begun in the order in which they were asked.
/// * A request that finds no connection because the server refuses gets that error; those after it
///   try again.
/// * Dropping the future cancels the request: one that waits is never made; one that is under way
///   is cut off.
#[doc(alias = "connection pool")]
pub struct Pool<K: Client, O = SocketAddr> {
    pub(super) service: Service<Ask<K, O>, ClientResult<K>>,
}

impl<K: Client, O> Pool<K, O> {
    /// Asks for a request to be made, and wakes this machine with its outcome.
    ///
    /// # Errors
    ///
    /// Returns the request: [`Full`](SendError::Full) when
    /// [`PoolConfig::asks_max`](super::PoolConfig::asks_max) requests have not even been looked at,
    /// [`Closed`](SendError::Closed) when the pool is gone.
    pub fn ask<C>(
        &self,
        origin: O,
        handler: K,
        scope: &Scope<'_, C>,
    ) -> Result<Future<ClientResult<K>>, SendError<Ask<K, O>>> {
        self.service.ask(Ask::new(origin, handler), scope)
    }

    /// As [`ask`](Pool::ask), with a deadline of its own.
    ///
    /// # Errors
    ///
    /// As [`ask`](Pool::ask).
    pub fn ask_until<C>(
        &self,
        origin: O,
        handler: K,
        deadline: Time,
        scope: &Scope<'_, C>,
    ) -> Result<Future<ClientResult<K>>, SendError<Ask<K, O>>> {
        self.service.ask(Ask::new(origin, handler).deadline(deadline), scope)
    }

    /// Returns the service behind the handle: for plain threads, which
    /// [`ask_from_thread`](Service::ask_from_thread).
    pub fn service(&self) -> &Service<Ask<K, O>, ClientResult<K>> {
        &self.service
    }
}

/// A request to a pool.
#[must_use]
#[non_exhaustive]
pub struct Ask<K, O = SocketAddr> {
    /// The server.
    pub origin: O,
    /// Makes the request and takes its response.
    pub handler: K,
    /// The deadline. `None` means
    /// [`PoolConfig::request_timeout`](super::PoolConfig::request_timeout) from when the pool gets
    /// the request. `Time::NEVER` means none: then only the connection's limits are in force.
    pub deadline: Option<Time>,
}

impl<K, O> Ask<K, O> {
    /// Makes a request to `origin` by `handler`, within
    /// [`PoolConfig::request_timeout`](super::PoolConfig::request_timeout).
    pub fn new(origin: O, handler: K) -> Ask<K, O> {
        Ask { origin, handler, deadline: None }
    }

    /// Sets the deadline; `Time::NEVER` for none.
    pub fn deadline(mut self, time: Time) -> Ask<K, O> {
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

impl<K, O: fmt::Debug> fmt::Debug for Ask<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("origin", &self.origin)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
