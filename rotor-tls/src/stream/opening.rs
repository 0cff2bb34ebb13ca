//! What happens before the first byte of the protocol.
//!
//! ```text
//!   server   ReadingHello ──hello is whole──▶ ┐
//!                                             ├─▶ Handshaking ──────▶ Open
//!   client   Starting ───────────────────────▶┘    │      ▲
//!                                           offload▼      │done
//!                                                Offloaded
//!   from each of them: Failed
//! ```

use std::io::{self, ErrorKind};
use std::mem;
use std::sync::atomic::AtomicU64;

use rotor_core::net::StreamSocket;
use rotor_core::{Future, LogLimit, OffloadFull, Outcome, Scope, Time, with_causes};
use rotor_stream::Buf;
use rustls::HandshakeKind;

use crate::alerts::{Alert, CLOSE_NOTIFY};
use crate::certificate_fault::CertificateFault;
use crate::client::ClientStart;
use crate::clock;
use crate::connection::{Connection, flush};
use crate::counters::{HandshakeGuard, TlsCounters};
use crate::engine::EngineState;
use crate::error::{TlsError, is_retryable};
use crate::server::{HelloOutcome, PendingHello};

pub(super) enum Opening {
    /// A server whose client's hello is not complete.
    ReadingHello(Box<PendingHello>),
    /// A client that has sent nothing yet.
    Starting(ClientStart),
    Handshaking(Box<Connection>),
    /// Another thread is making a step.
    Offloaded(Future<HandshakeStep>),
}

/// A connection, and the result of a step of its handshake.
type HandshakeStep = (Box<Connection>, Result<EngineState, TlsError>);

/// The result of a step.
enum StepOutcome {
    Continue(Opening),
    Open(Box<Connection>),
}

/// Why the handshake does not continue.
enum Stop {
    /// It waits; the error says for what (`WouldBlock`, a signal).
    Waiting(Opening, io::Error),
    /// The connection has ended, or the network has lost it.
    Lost(Option<HandshakeGuard>, io::Error),
    /// It has failed, and the buffer is sent to the peer.
    Failed(Option<HandshakeGuard>, TlsError, Buf),
}

impl Opening {
    pub(super) fn wants_write(&self) -> bool {
        self.unsent_len() > 0
    }

    pub(super) fn unsent_len(&self) -> usize {
        match self {
            Opening::Handshaking(connection) => connection.outgoing.len(),
            _ => 0,
        }
    }

    /// Returns whether nothing is left to be read before the next event. A connection on another
    /// thread cannot be checked.
    pub(super) fn has_drained<S: StreamSocket>(&self, inner: &S) -> bool {
        match self {
            Opening::ReadingHello(hello) => hello.has_drained(inner),
            Opening::Handshaking(connection) => {
                connection.outgoing.is_empty() && connection.incoming.has_drained(inner)
            }
            Opening::Starting(_) | Opening::Offloaded(_) => false,
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Opening::ReadingHello(hello) => hello.held_bytes(),
            Opening::Handshaking(connection) => connection.held_bytes(),
            Opening::Starting(_) | Opening::Offloaded(_) => 0,
        }
    }

    pub(super) fn flush<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        match self {
            Opening::Handshaking(connection) => connection.flush(inner),
            _ => Ok(()),
        }
    }
}

/// The result when the handshake ends, or waits.
pub(super) enum OpeningOutcome {
    Open(Box<Connection>),
    Waiting(Opening, io::Error),
    /// Why it has failed, and the bytes that must still be sent to the peer.
    Failed(io::Error, Buf),
}

impl Opening {
    /// Continues the handshake until it has ended or waits.
    pub(super) fn advance<S: StreamSocket, C>(
        self,
        inner: &mut S,
        scope: &Scope<'_, C>,
    ) -> OpeningOutcome {
        clock::set(scope.wall_time());
        let mut opening = self;
        if let Opening::Handshaking(connection) = &mut opening {
            connection.incoming.invalidate_short_read();
        }
        loop {
            match step(opening, inner, scope) {
                Ok(StepOutcome::Continue(next)) => opening = next,
                Ok(StepOutcome::Open(connection)) => return OpeningOutcome::Open(connection),
                Err(Stop::Waiting(opening, error)) => {
                    return OpeningOutcome::Waiting(opening, error);
                }
                Err(Stop::Lost(guard, error)) => {
                    count_outcome(guard, |counters| &counters.abandoned);
                    return OpeningOutcome::Failed(error, Buf::new());
                }
                Err(Stop::Failed(guard, error, mut outgoing)) => {
                    count_outcome(guard, |counters| error.counter(counters));
                    log_own_failure(&error, scope.now());
                    // The rest is flushed before the connection is closed.
                    let _is_sent = flush(&mut outgoing, inner);
                    return OpeningOutcome::Failed(error.into(), outgoing);
                }
            }
        }
    }
}

impl Opening {
    /// Counts the handshake as one whose connection was lost.
    #[cold]
    pub(super) fn abandon(self) {
        let guard = match self {
            Opening::ReadingHello(hello) => Some(hello.into_guard()),
            Opening::Starting(start) => start.into_guard(),
            Opening::Handshaking(mut connection) => connection.end_handshake(),
            // It is counted on the other thread.
            Opening::Offloaded(_) => None,
        };
        count_outcome(guard, |counters| &counters.abandoned);
    }

    /// Aborts the handshake because its time is over. Returns the bytes for the peer; none if it
    /// has not sent any TLS.
    #[cold]
    pub(super) fn cancel(self) -> Buf {
        let mut outgoing = Buf::new();
        match self {
            Opening::ReadingHello(hello) if hello.is_tls() => outgoing.extend(&CLOSE_NOTIFY),
            // A peer that has sent no TLS, such as a port scanner, gets nothing. A client in
            // `Starting` sends nothing either: the inner socket is not ready, and got no hello.
            Opening::ReadingHello(_) | Opening::Starting(_) => {}
            Opening::Handshaking(connection) => outgoing = connection.cancel(),
            // The engine is on another thread, which signs; no record is encrypted before that is
            // done.
            Opening::Offloaded(_) => outgoing.extend(&CLOSE_NOTIFY),
        }
        outgoing
    }
}

fn count_outcome(guard: Option<HandshakeGuard>, outcome: impl FnOnce(&TlsCounters) -> &AtomicU64) {
    if let Some(guard) = guard {
        guard.end(outcome);
    }
}

/// Limits how often it is logged that this side makes handshakes fail: an expired revocation list
/// does so with each.
static OWN_FAILURES: LogLimit = LogLimit::new();

/// Logs a failure that only the operator of this side can mend.
#[cold]
fn log_own_failure(error: &TlsError, now: Time) {
    let is_own = matches!(error, TlsError::Here(_))
        || error.certificate_fault() == Some(CertificateFault::RevocationUnknown);
    if is_own && let Some(others) = OWN_FAILURES.try_pass(now) {
        let error = with_causes(error);
        log::warn!(
            "a TLS handshake fails because of this side: {error} (before, {others} more did)"
        );
    }
}

fn step<S: StreamSocket, C>(
    opening: Opening,
    inner: &mut S,
    scope: &Scope<'_, C>,
) -> Result<StepOutcome, Stop> {
    match opening {
        Opening::ReadingHello(hello) => read_hello(hello, inner, scope),
        Opening::Starting(start) => match start.into_connection() {
            Ok(connection) => Ok(StepOutcome::Continue(Opening::Handshaking(connection))),
            Err((guard, error)) => Err(Stop::Failed(Some(guard), error, Buf::new())),
        },
        Opening::Handshaking(connection) => advance_handshake(connection, inner, scope),
        Opening::Offloaded(future) => match future.take() {
            Outcome::Pending(future) => {
                let waiting = Opening::Offloaded(future);
                Err(Stop::Waiting(waiting, ErrorKind::WouldBlock.into()))
            }
            Outcome::Value((mut connection, result)) => {
                // It was read before events that have not been looked at since.
                connection.incoming.invalidate_short_read();
                handle_result(connection, result, inner)
            }
            // The pool has ended, or the step has panicked. The connection was dropped and counted
            // there.
            Outcome::Lost(lost) => Err(Stop::Failed(None, TlsError::Here(lost.into()), Buf::new())),
        },
    }
}

/// Reads the hello, on a server.
fn read_hello<S: StreamSocket, C>(
    mut hello: Box<PendingHello>,
    inner: &mut S,
    scope: &Scope<'_, C>,
) -> Result<StepOutcome, Stop> {
    let refused = match hello.advance(inner, scope) {
        Ok(HelloOutcome::Complete) => match hello.into_connection() {
            Ok(connection) => return Ok(StepOutcome::Continue(Opening::Handshaking(connection))),
            Err(refused) => refused,
        },
        Ok(HelloOutcome::Refused(error, answer)) => (hello.into_guard(), error, answer),
        Err(error) if is_retryable(&error) => {
            return Err(Stop::Waiting(Opening::ReadingHello(hello), error));
        }
        Err(error) => return Err(Stop::Lost(Some(hello.into_guard()), error)),
    };
    let (guard, error, answer) = refused;
    let mut outgoing = Buf::new();
    outgoing.extend(&answer);
    Err(Stop::Failed(Some(guard), error, outgoing))
}

/// Continues the handshake with the received bytes, here or on another thread.
fn advance_handshake<S: StreamSocket, C>(
    mut connection: Box<Connection>,
    inner: &mut S,
    scope: &Scope<'_, C>,
) -> Result<StepOutcome, Stop> {
    if !should_offload(&connection) {
        let result = connection.advance();
        return handle_result(connection, result, inner);
    }
    let time = scope.wall_time();
    let counters = connection.counters().clone();
    let job = move || {
        clock::set(time);
        let result = connection.advance();
        (connection, result)
    };
    match scope.offload(job) {
        Ok(future) => {
            TlsCounters::add(&counters.offloaded);
            Ok(StepOutcome::Continue(Opening::Offloaded(future)))
        }
        // The pool is full, so the loop does the step itself.
        Err(OffloadFull(job)) => {
            TlsCounters::add(&counters.not_offloaded);
            let (connection, result) = job();
            handle_result(connection, result, inner)
        }
    }
}

/// Returns whether the next step may sign with a slow key: a hello has arrived, and a server
/// answers the first or the second one with its signature (RFC 8446 §4.1.4).
fn should_offload(connection: &Connection) -> bool {
    let is_slow = connection.handshake.as_ref().is_some_and(|handshake| handshake.is_slow);
    is_slow && connection.incoming.has_plain_handshake() && {
        let common = connection.session.engine.common();
        let has_retried = common.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
        common.protocol_version().is_none() || has_retried
    }
}

/// Handles the result of a step of the handshake.
fn handle_result<S: StreamSocket>(
    mut connection: Box<Connection>,
    result: Result<EngineState, TlsError>,
    inner: &mut S,
) -> Result<StepOutcome, Stop> {
    match result {
        Err(error) => {
            let mut outgoing = mem::take(&mut connection.outgoing);
            // In one such case rustls does not tell the peer; nothing is encrypted yet.
            if outgoing.is_empty() && matches!(error, TlsError::NothingInCommon(_)) {
                outgoing.extend(&Alert::HandshakeFailure.record());
            }
            return Err(Stop::Failed(connection.end_handshake(), error, outgoing));
        }
        Ok(_) if !connection.session.engine.is_handshaking() && connection.lacks_certificate() => {
            let error = rustls::Error::NoCertificatesPresented.into();
            return Err(Stop::Failed(connection.end_handshake(), error, Buf::new()));
        }
        Ok(state) if !connection.session.engine.is_handshaking() => {
            // It arrived in the same flight, and is not reported again.
            if state == EngineState::PeerClosed {
                connection.set_peer_closed();
            }
            let is_resumed = connection.session.is_resumed();
            count_outcome(connection.end_handshake(), |counters| {
                if is_resumed { &counters.resumed } else { &counters.full }
            });
            // Records that are still to be sent (tickets) go with the first answer, or with the
            // next flush.
            return Ok(StepOutcome::Open(connection));
        }
        Ok(EngineState::PeerClosed) => {
            return Err(Stop::Lost(connection.end_handshake(), ErrorKind::UnexpectedEof.into()));
        }
        Ok(_) => {}
    }
    let flushed = connection.flush(inner);
    if let Err(error) = &flushed
        && !is_retryable(error)
        && let Some(refusal) = read_refusal(&mut connection, inner)
    {
        return Err(Stop::Failed(connection.end_handshake(), refusal, Buf::new()));
    }
    match flushed.and_then(|()| connection.fill_unless_drained(inner)) {
        Ok(()) => Ok(StepOutcome::Continue(Opening::Handshaking(connection))),
        Err(error) if is_retryable(&error) => {
            Err(Stop::Waiting(Opening::Handshaking(connection), error))
        }
        Err(error) => Err(Stop::Lost(connection.end_handshake(), error)),
    }
}

/// Reads once more after a write has failed: the peer may have sent an alert before it left, which
/// says more than the error of the write.
#[cold]
fn read_refusal<S: StreamSocket>(connection: &mut Connection, inner: &mut S) -> Option<TlsError> {
    connection.incoming.fill(inner).ok()?;
    // A handshake message is not answered any more.
    if should_offload(connection) {
        return None;
    }
    connection.advance().err().filter(|error| matches!(error, TlsError::Refused(_)))
}
