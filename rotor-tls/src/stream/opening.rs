//! What happens before the first byte of the protocol.
//!
//! ```text
//!   server   Greets ──hello is whole──▶ ┐
//!                                       ├─▶ Shakes ──────────▶ Open
//!   client   Starts ───────────────────▶┘    │   ▲
//!                                     offload▼   │done
//!                                         Elsewhere
//!   from each of them: Failed
//! ```

use std::io::{self, ErrorKind};
use std::mem;
use std::sync::atomic::AtomicU64;

use rotor_core::net::StreamSocket;
use rotor_core::{Future, OffloadFull, Outcome, Scope};
use rotor_stream::Buf;
use rustls::HandshakeKind;

use crate::client::ClientStart;
use crate::clock;
use crate::counters::{TlsCounters, UnderWay};
use crate::engine::At;
use crate::error::TlsError;
use crate::last_words::{Alert, CLOSE_NOTIFY};
use crate::live::{Live, flush, is_for_later};
use crate::server::{Greeted, Greets};

pub(super) enum Opening {
    /// A server whose client's hello is not complete.
    Greets(Box<Greets>),
    /// A client that has sent nothing yet.
    Starts(ClientStart),
    Shakes(Box<Live>),
    /// Another thread is making a step.
    Elsewhere(Future<Advanced>),
}

/// A connection, and the result of a step of its handshake.
type Advanced = (Box<Live>, Result<At, TlsError>);

/// The result of a step.
enum Went {
    On(Opening),
    Open(Box<Live>),
}

/// Why the handshake does not continue.
enum Stop {
    /// It waits; the error says for what (`WouldBlock`, a signal).
    Waits(Opening, io::Error),
    /// The connection has ended, or the network has lost it.
    Gone(Option<UnderWay>, io::Error),
    /// It has failed, and the buffer is sent to the peer.
    Failed(Option<UnderWay>, TlsError, Buf),
}

impl Opening {
    pub(super) fn wants_write(&self) -> bool {
        self.unsent_len() > 0
    }

    pub(super) fn unsent_len(&self) -> usize {
        match self {
            Opening::Shakes(live) => live.outgoing.len(),
            _ => 0,
        }
    }

    /// Returns whether nothing is left to be read before the next event. A connection on another
    /// thread cannot be checked.
    pub(super) fn has_drained<S: StreamSocket>(&self, inner: &S) -> bool {
        match self {
            Opening::Greets(greets) => greets.has_drained(inner),
            Opening::Shakes(live) => live.outgoing.is_empty() && live.incoming.has_drained(inner),
            Opening::Starts(_) | Opening::Elsewhere(_) => false,
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Opening::Greets(greets) => greets.held_bytes(),
            Opening::Shakes(live) => live.held_bytes(),
            Opening::Starts(_) | Opening::Elsewhere(_) => 0,
        }
    }

    pub(super) fn flush<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        match self {
            Opening::Shakes(live) => live.flush(inner),
            _ => Ok(()),
        }
    }
}

/// The result when the handshake ends, or waits.
pub(super) enum Opened {
    Well(Box<Live>),
    Waits(Opening, io::Error),
    /// Why it has failed, and the bytes that must still be sent to the peer.
    Badly(io::Error, Buf),
}

impl Opening {
    /// Continues the handshake until it has ended or waits.
    pub(super) fn go_on<S: StreamSocket, C>(self, inner: &mut S, scope: &Scope<'_, C>) -> Opened {
        clock::set(scope.wall_time());
        let mut opening = self;
        if let Opening::Shakes(live) = &mut opening {
            live.incoming.forget_short();
        }
        loop {
            match step(opening, inner, scope) {
                Ok(Went::On(next)) => opening = next,
                Ok(Went::Open(live)) => return Opened::Well(live),
                Err(Stop::Waits(opening, error)) => return Opened::Waits(opening, error),
                Err(Stop::Gone(under_way, error)) => {
                    count(under_way, |counters| &counters.abandoned);
                    return Opened::Badly(error, Buf::new());
                }
                Err(Stop::Failed(under_way, error, mut outgoing)) => {
                    count(under_way, |counters| error.counter(counters));
                    // The rest is flushed before the connection is closed.
                    let _is_sent = flush(&mut outgoing, inner);
                    return Opened::Badly(error.into(), outgoing);
                }
            }
        }
    }
}

impl Opening {
    /// Counts the handshake as one whose connection was lost.
    #[cold]
    pub(super) fn abandon(self) {
        let under_way = match self {
            Opening::Greets(greets) => Some(greets.into_under_way()),
            Opening::Starts(start) => Some(start.into_under_way()),
            Opening::Shakes(mut live) => live.end_shaking(),
            // It is counted on the other thread.
            Opening::Elsewhere(_) => None,
        };
        count(under_way, |counters| &counters.abandoned);
    }

    /// Aborts the handshake because its time is over. Returns the bytes for the peer; none if it
    /// has not sent any TLS.
    #[cold]
    pub(super) fn cancel(self) -> Buf {
        let mut outgoing = Buf::new();
        match self {
            Opening::Greets(greets) if greets.is_tls() => outgoing.extend(&CLOSE_NOTIFY),
            // A peer that has sent no TLS, such as a port scanner, gets nothing. A client in
            // `Starts` sends nothing either: the inner socket is not ready, and got no hello.
            Opening::Greets(_) | Opening::Starts(_) => {}
            Opening::Shakes(live) => outgoing = live.cancel(),
            // The engine is on another thread, which signs; no record is encrypted before that is
            // done.
            Opening::Elsewhere(_) => outgoing.extend(&CLOSE_NOTIFY),
        }
        outgoing
    }
}

fn count(under_way: Option<UnderWay>, outcome: impl FnOnce(&TlsCounters) -> &AtomicU64) {
    if let Some(under_way) = under_way {
        under_way.end(outcome);
    }
}

fn step<S: StreamSocket, C>(
    opening: Opening,
    inner: &mut S,
    scope: &Scope<'_, C>,
) -> Result<Went, Stop> {
    match opening {
        Opening::Greets(greets) => greet(greets, inner, scope),
        Opening::Starts(start) => match start.into_live() {
            Ok(live) => Ok(Went::On(Opening::Shakes(live))),
            Err((under_way, error)) => Err(Stop::Failed(Some(under_way), error, Buf::new())),
        },
        Opening::Shakes(live) => shake(live, inner, scope),
        Opening::Elsewhere(future) => match future.take() {
            Outcome::Pending(future) => {
                let waits = Opening::Elsewhere(future);
                Err(Stop::Waits(waits, ErrorKind::WouldBlock.into()))
            }
            Outcome::Value((mut live, result)) => {
                // It was read before events that have not been looked at since.
                live.incoming.forget_short();
                settle(live, result, inner)
            }
            // The pool has ended, or the step has panicked. The connection was dropped and counted
            // there.
            Outcome::Lost(lost) => Err(Stop::Failed(None, TlsError::Here(lost.into()), Buf::new())),
        },
    }
}

/// Reads the hello, on a server.
fn greet<S: StreamSocket, C>(
    mut greets: Box<Greets>,
    inner: &mut S,
    scope: &Scope<'_, C>,
) -> Result<Went, Stop> {
    let refused = match greets.go_on(inner, scope) {
        Ok(Greeted::Well) => match greets.into_live() {
            Ok(live) => return Ok(Went::On(Opening::Shakes(live))),
            Err(refused) => refused,
        },
        Ok(Greeted::Badly(error, answer)) => (greets.into_under_way(), error, answer),
        Err(error) if is_for_later(&error) => {
            return Err(Stop::Waits(Opening::Greets(greets), error));
        }
        Err(error) => return Err(Stop::Gone(Some(greets.into_under_way()), error)),
    };
    let (under_way, error, answer) = refused;
    let mut outgoing = Buf::new();
    outgoing.extend(&answer);
    Err(Stop::Failed(Some(under_way), error, outgoing))
}

/// Continues the handshake with the received bytes, here or on another thread.
fn shake<S: StreamSocket, C>(
    mut live: Box<Live>,
    inner: &mut S,
    scope: &Scope<'_, C>,
) -> Result<Went, Stop> {
    if !is_for_others(&live) {
        let result = live.advance();
        return settle(live, result, inner);
    }
    let time = scope.wall_time();
    let counters = live.counters().clone();
    let job = move || {
        clock::set(time);
        let result = live.advance();
        (live, result)
    };
    match scope.offload(job) {
        Ok(future) => {
            TlsCounters::add(&counters.offloaded);
            Ok(Went::On(Opening::Elsewhere(future)))
        }
        // The pool is full, so the loop does the step itself.
        Err(OffloadFull(job)) => {
            TlsCounters::add(&counters.not_offloaded);
            let (live, result) = job();
            settle(live, result, inner)
        }
    }
}

/// Returns whether the next step may sign with a slow key: a hello has arrived, and a server
/// answers the first or the second one with its signature (RFC 8446 §4.1.4).
fn is_for_others(live: &Live) -> bool {
    let is_slow = live.shaking.as_ref().is_some_and(|shaking| shaking.is_slow);
    is_slow && live.incoming.has_plain_handshake() && {
        let common = live.session.engine.common();
        let has_retried = common.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
        common.protocol_version().is_none() || has_retried
    }
}

/// Handles the result of a step of the handshake.
fn settle<S: StreamSocket>(
    mut live: Box<Live>,
    result: Result<At, TlsError>,
    inner: &mut S,
) -> Result<Went, Stop> {
    match result {
        Err(error) => {
            let mut outgoing = mem::take(&mut live.outgoing);
            // In one such case rustls does not tell the peer; nothing is encrypted yet.
            if outgoing.is_empty() && matches!(error, TlsError::NothingInCommon(_)) {
                outgoing.extend(&Alert::HandshakeFailure.record());
            }
            return Err(Stop::Failed(live.end_shaking(), error, outgoing));
        }
        Ok(_) if !live.session.engine.is_handshaking() && live.lacks_certificate() => {
            let error = rustls::Error::NoCertificatesPresented.into();
            return Err(Stop::Failed(live.end_shaking(), error, Buf::new()));
        }
        Ok(at) if !live.session.engine.is_handshaking() => {
            // It arrived in the same flight, and is not reported again.
            if at == At::PeerClosed {
                live.note_peer_closed();
            }
            let is_resumed = live.session.is_resumed();
            count(
                live.end_shaking(),
                |counters| {
                    if is_resumed { &counters.resumed } else { &counters.full }
                },
            );
            // Records that are still to be sent (tickets) go with the first answer, or with the
            // next flush.
            return Ok(Went::Open(live));
        }
        Ok(At::PeerClosed) => {
            return Err(Stop::Gone(live.end_shaking(), ErrorKind::UnexpectedEof.into()));
        }
        Ok(_) => {}
    }
    match live.flush(inner).and_then(|()| live.fill_unless_drained(inner)) {
        Ok(()) => Ok(Went::On(Opening::Shakes(live))),
        Err(error) if is_for_later(&error) => Err(Stop::Waits(Opening::Shakes(live), error)),
        Err(error) => Err(Stop::Gone(live.end_shaking(), error)),
    }
}
