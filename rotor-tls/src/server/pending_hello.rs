//! `PendingHello`: a server's connection whose client's hello is not complete.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use rotor_core::net::StreamSocket;
use rotor_core::{Future, Outcome, Permit, Scope};

use super::shared::ServerShared;
use crate::alerts::{Alert, plain_http_answer};
use crate::connection::{Connection, Handshake};
use crate::counters::{HandshakeGuard, TlsCounters};
use crate::engine::Engine;
use crate::error::TlsError;
use crate::hello::{HelloReader, HelloResult};
use crate::incoming::Incoming;

pub(crate) struct PendingHello {
    shared: Arc<ServerShared>,
    reader: HelloReader,
    incoming: Incoming,
    /// The name that the client requests.
    name: Option<Box<str>>,
    admission: Admission,
    guard: HandshakeGuard,
}

/// A place among the handshakes that may be under way.
enum Admission {
    /// Requested once the hello is complete, so that silent clients take no places from others.
    NotRequested,
    Requested(Future<Permit>),
    /// `None` if places are no longer counted.
    Granted(Option<Permit>),
}

/// The result of reading a hello.
pub(crate) enum HelloOutcome {
    Complete,
    /// It is refused, and this is sent to the peer unencrypted.
    Refused(TlsError, Vec<u8>),
}

impl PendingHello {
    pub(super) fn new(shared: Arc<ServerShared>) -> Box<PendingHello> {
        let guard = HandshakeGuard::begin(shared.counters.clone());
        Box::new(PendingHello {
            shared,
            reader: HelloReader::default(),
            incoming: Incoming::for_unread_socket(),
            name: None,
            admission: Admission::NotRequested,
            guard,
        })
    }

    /// Reads until the hello is complete and there is a place for the handshake.
    ///
    /// # Errors
    ///
    /// `WouldBlock` until then; `UnexpectedEof` if the connection ends; errors of the inner socket.
    pub(crate) fn advance<S: StreamSocket, C>(
        &mut self,
        inner: &mut S,
        scope: &Scope<'_, C>,
    ) -> io::Result<HelloOutcome> {
        // The result of the last read is older than the event of this call.
        self.incoming.invalidate_short_read();
        while let Admission::NotRequested = self.admission {
            match self.reader.examine(&self.incoming.bytes) {
                HelloResult::Incomplete => {
                    self.incoming.fill_unless_drained(inner)?;
                }
                HelloResult::Hello { name } => {
                    self.name = name;
                    self.request_permit(scope);
                }
                HelloResult::PlainHttp => {
                    return Ok(HelloOutcome::Refused(TlsError::PlainHttp, plain_http_answer()));
                }
                HelloResult::NotTls => return Ok(refused(TlsError::NotTls, Alert::DecodeError)),
                HelloResult::TooLarge => {
                    return Ok(refused(TlsError::HelloTooLarge, Alert::DecodeError));
                }
            }
        }
        let has_waited = matches!(self.admission, Admission::Requested(_));
        if !self.has_permit() {
            return Err(ErrorKind::WouldBlock.into());
        }
        if has_waited {
            self.check_presence(inner)?;
        }
        Ok(HelloOutcome::Complete)
    }

    /// Checks that the client has not left while it waited for its place: it would cost a signature
    /// that nobody reads, in a place for which others wait.
    #[cold]
    fn check_presence<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        match self.incoming.fill(inner) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Takes a place, or asks for one.
    fn request_permit<C>(&mut self, scope: &Scope<'_, C>) {
        // Usually there is a place, and then no wake-up is needed.
        if let Some(permit) = self.shared.handshakes.try_take() {
            self.admission = Admission::Granted(Some(permit));
            return;
        }
        self.admission = Admission::Requested(self.shared.handshakes.ask(scope));
        if !self.has_permit() {
            TlsCounters::add(&self.shared.counters.waited);
            self.incoming.bytes.shrink();
        }
    }

    /// Returns whether there is a place by now.
    fn has_permit(&mut self) -> bool {
        match std::mem::replace(&mut self.admission, Admission::NotRequested) {
            Admission::Requested(permit) => match permit.take() {
                Outcome::Value(permit) => self.admission = Admission::Granted(Some(permit)),
                Outcome::Pending(permit) => self.admission = Admission::Requested(permit),
                // This does not happen: the permits are never closed.
                Outcome::Lost(_) => self.admission = Admission::Granted(None),
            },
            other => self.admission = other,
        }
        matches!(self.admission, Admission::Granted(_))
    }

    /// Turns this into a connection with an engine.
    ///
    /// # Errors
    ///
    /// Why there is none, and the message for the peer.
    pub(crate) fn into_connection(
        self,
    ) -> Result<Box<Connection>, (HandshakeGuard, TlsError, Vec<u8>)> {
        let PendingHello { shared, incoming, name, admission, guard, .. } = self;
        let current = shared.current();
        if let Some(name) = &name
            && !current.serves(name)
        {
            let error = TlsError::UnknownName(name.clone());
            return Err((guard, error, Alert::UnrecognizedName.record().into()));
        }
        let is_slow = current.is_slow(name.as_deref());
        let engine = match Engine::server(current.config.clone()) {
            Ok(engine) => engine,
            Err(error) => {
                let alert = Alert::InternalError.record().into();
                return Err((guard, error.into(), alert));
            }
        };
        let _permit = match admission {
            Admission::Granted(permit) => permit,
            _ => None,
        };
        let requires_certificate = current.requires_certificate;
        let handshake =
            Handshake { guard, _permit, is_slow, requires_certificate, session_began: None };
        Ok(Connection::new(engine, name, incoming, handshake))
    }

    /// Returns whether nothing is left to be read before the next event. A connection that waits
    /// for its place has not looked for bytes after the hello.
    pub(crate) fn has_drained<S: StreamSocket>(&self, inner: &S) -> bool {
        matches!(self.admission, Admission::NotRequested) && self.incoming.has_drained(inner)
    }

    /// Returns whether the client's bytes so far are TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.reader.is_tls(&self.incoming.bytes)
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.incoming.bytes.capacity()
    }

    pub(crate) fn into_guard(self) -> HandshakeGuard {
        self.guard
    }
}

fn refused(error: TlsError, alert: Alert) -> HelloOutcome {
    HelloOutcome::Refused(error, alert.record().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_client_costs_little_memory() {
        assert_eq!(size_of::<PendingHello>(), 120);
    }
}
