//! A request to be made: its handler, its deadline, and where its outcome goes.

use std::any::type_name;
use std::fmt;

use rotor_core::{Panicked, Port, Scope, Time};

use super::counters::Counters;
use super::error::{ClientError, SendHistory};
use super::handler::Client;

/// The outcome of a request: the output of its handler, or the error.
#[doc(alias = "Outcome")]
pub type ClientResult<K> = Result<<K as Client>::Output, ClientError>;

/// A request to be made.
///
/// Its owner must make sure that it gets an outcome: let a connection make it, or [fail](Job::fail)
/// it.
pub struct Job<K: Client> {
    pub(super) handler: K,
    pub(super) deadline: Time,
    pub(super) port: Port<ClientResult<K>>,
    pub(super) is_repeated: bool,
    /// How often a server has refused the request without processing it.
    pub(super) refusals: u8,
    /// Whether the request was sent on a connection that ended without a response.
    pub(super) was_sent: bool,
}

impl<K: Client> Job<K> {
    /// Makes a job. The request is made by `handler` before `deadline` (`Time::NEVER` for none),
    /// and the outcome goes to `port`.
    pub fn new(handler: K, deadline: Time, port: Port<ClientResult<K>>) -> Job<K> {
        Job { handler, deadline, port, is_repeated: false, refusals: 0, was_sent: false }
    }

    /// Returns the time by which the request must have its response.
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Returns whether nobody waits for the outcome any more.
    pub fn is_cancelled(&self) -> bool {
        self.port.is_cancelled()
    }

    /// Returns whether this is another attempt, after the first one lost its connection, or after a
    /// server refused it without processing it. It needs a new connection, or an HTTP/2 connection.
    pub fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Returns whether a connection has had the request before.
    pub(super) fn was_attempted(&self) -> bool {
        self.is_repeated || self.refusals > 0
    }

    /// Returns the memory that the job takes while it waits, in bytes.
    pub(super) fn queued_bytes(&self) -> usize {
        size_of::<Job<K>>().saturating_add(self.handler.held_bytes())
    }

    /// Fails the job because its handler panicked.
    pub(super) fn panicked(self, panicked: &Panicked, counters: &Counters) {
        Counters::add(&counters.failed);
        let error = record_panic::<K>(panicked, counters).with_send_history(self.send_history());
        let _cancelled = self.port.set(Err(error));
    }

    /// Returns how much of the request the server may have received, while no connection has the
    /// job.
    fn send_history(&self) -> SendHistory {
        SendHistory { on_this_connection: false, on_earlier_connection: self.was_sent }
    }

    /// Fails the request. Its handler is first asked for an outcome
    /// ([`bad_response`](Client::bad_response)).
    ///
    /// The error is adapted to a request that no connection has: see
    /// [`Unsent`](ClientError::Unsent) and [`NotRepeated`](ClientError::NotRepeated).
    pub fn fail(self, error: ClientError, counters: &Counters, scope: &mut Scope<'_, K::Context>) {
        let error = error.with_send_history(self.send_history());
        let Job { handler, port, .. } = self;
        fail(handler, port, error, counters, scope);
    }
}

/// Lets the handler turn the error into an outcome, and sends that to the caller.
pub(super) fn fail<K: Client>(
    handler: K,
    port: Port<ClientResult<K>>,
    error: ClientError,
    counters: &Counters,
    scope: &mut Scope<'_, K::Context>,
) {
    Counters::add(&counters.failed);
    if matches!(error.innermost(), ClientError::Deadline(_)) {
        Counters::add(&counters.deadlines);
    }
    let sent = SendHistory {
        on_this_connection: error.may_have_been_processed(),
        on_earlier_connection: false,
    };
    // If the handler panics here, the caller still gets an error.
    let outcome =
        scope.guard(|scope| handler.bad_response(error, scope)).unwrap_or_else(|panicked| {
            Err(record_panic::<K>(&panicked, counters).with_send_history(sent))
        });
    let _cancelled = port.set(outcome);
}

fn record_panic<K>(panicked: &Panicked, counters: &Counters) -> ClientError {
    Counters::add(&counters.panics);
    log::error!("the handler {} {panicked}", type_name::<K>());
    ClientError::Panicked
}

impl<K: Client> fmt::Debug for Job<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("deadline", &self.deadline)
            .field("cancelled", &self.is_cancelled())
            .field("repeated", &self.is_repeated)
            .finish_non_exhaustive()
    }
}
