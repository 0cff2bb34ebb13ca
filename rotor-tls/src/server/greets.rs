//! `Greets`: a server's connection whose client's hello is not complete.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use rotor_core::net::StreamSocket;
use rotor_core::{Future, Outcome, Permit, Scope};

use super::shared::Shared;
use crate::counters::{TlsCounters, UnderWay};
use crate::engine::Engine;
use crate::error::TlsError;
use crate::hello::{Greeting, HelloReader};
use crate::incoming::Incoming;
use crate::last_words::{Alert, plain_http_answer};
use crate::live::{Live, Shaking};

pub(crate) struct Greets {
    shared: Arc<Shared>,
    reader: HelloReader,
    incoming: Incoming,
    /// The name that the client requests.
    name: Option<Box<str>>,
    place: Place,
    under_way: UnderWay,
}

/// A place among the handshakes that may be under way.
enum Place {
    /// Requested once the hello is complete, so that silent clients take no places from others.
    NotAsked,
    Asked(Future<Permit>),
    /// `None` if places are no longer counted.
    Taken(Option<Permit>),
}

/// The result of reading a hello.
pub(crate) enum Greeted {
    Well,
    /// It is refused, and this is sent to the peer unencrypted.
    Badly(TlsError, Vec<u8>),
}

impl Greets {
    pub(super) fn new(shared: Arc<Shared>) -> Box<Greets> {
        let under_way = UnderWay::begin(shared.counters.clone());
        Box::new(Greets {
            shared,
            reader: HelloReader::default(),
            incoming: Incoming::unread(),
            name: None,
            place: Place::NotAsked,
            under_way,
        })
    }

    /// Reads until the hello is complete and there is a place for the handshake.
    ///
    /// # Errors
    ///
    /// `WouldBlock` until then; `UnexpectedEof` if the connection ends; errors of the inner socket.
    pub(crate) fn go_on<S: StreamSocket, C>(
        &mut self,
        inner: &mut S,
        scope: &Scope<'_, C>,
    ) -> io::Result<Greeted> {
        // The result of the last read is older than the event of this call.
        self.incoming.forget_short();
        while let Place::NotAsked = self.place {
            match self.reader.look(&self.incoming.bytes) {
                Greeting::Incomplete => {
                    self.incoming.fill_unless_drained(inner)?;
                }
                Greeting::Hello { name } => {
                    self.name = name;
                    self.take_place(scope);
                }
                Greeting::PlainHttp => {
                    return Ok(Greeted::Badly(TlsError::PlainHttp, plain_http_answer()));
                }
                Greeting::NotTls => return Ok(badly(TlsError::NotTls, Alert::DecodeError)),
                Greeting::TooLarge => {
                    return Ok(badly(TlsError::HelloTooLarge, Alert::DecodeError));
                }
            }
        }
        if self.has_place() { Ok(Greeted::Well) } else { Err(ErrorKind::WouldBlock.into()) }
    }

    /// Takes a place, or asks for one.
    fn take_place<C>(&mut self, scope: &Scope<'_, C>) {
        // Usually there is a place, and then no wake-up is needed.
        if let Some(permit) = self.shared.handshakes.try_take() {
            self.place = Place::Taken(Some(permit));
            return;
        }
        self.place = Place::Asked(self.shared.handshakes.ask(scope));
        if !self.has_place() {
            TlsCounters::add(&self.shared.counters.waited);
            self.incoming.bytes.shrink();
        }
    }

    /// Returns whether there is a place by now.
    fn has_place(&mut self) -> bool {
        match std::mem::replace(&mut self.place, Place::NotAsked) {
            Place::Asked(permit) => match permit.take() {
                Outcome::Value(permit) => self.place = Place::Taken(Some(permit)),
                Outcome::Pending(permit) => self.place = Place::Asked(permit),
                // This does not happen: the permits are never closed.
                Outcome::Lost(_) => self.place = Place::Taken(None),
            },
            other => self.place = other,
        }
        matches!(self.place, Place::Taken(_))
    }

    /// Turns this into a connection with an engine.
    ///
    /// # Errors
    ///
    /// Why there is none, and the message for the peer.
    pub(crate) fn into_live(self) -> Result<Box<Live>, (UnderWay, TlsError, Vec<u8>)> {
        let Greets { shared, incoming, name, place, under_way, .. } = self;
        let current = shared.current();
        if let Some(name) = &name
            && !current.serves(name)
        {
            let error = TlsError::UnknownName(name.clone());
            return Err((under_way, error, Alert::UnrecognizedName.record().into()));
        }
        let is_slow = current.is_slow(name.as_deref());
        let engine = match Engine::server(current.config.clone()) {
            Ok(engine) => engine,
            Err(error) => {
                let alert = Alert::InternalError.record().into();
                return Err((under_way, error.into(), alert));
            }
        };
        let _permit = match place {
            Place::Taken(permit) => permit,
            _ => None,
        };
        let requires_certificate = current.requires_certificate;
        let shaking =
            Shaking { under_way, _permit, is_slow, requires_certificate, session_began: None };
        Ok(Live::new(engine, name, incoming, shaking))
    }

    /// Returns whether nothing is left to be read before the next event. A connection that waits
    /// for its place has not looked for bytes after the hello.
    pub(crate) fn has_drained<S: StreamSocket>(&self, inner: &S) -> bool {
        matches!(self.place, Place::NotAsked) && self.incoming.has_drained(inner)
    }

    /// Returns whether the client's bytes so far are TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.reader.is_tls(&self.incoming.bytes)
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.incoming.bytes.capacity()
    }

    pub(crate) fn into_under_way(self) -> UnderWay {
        self.under_way
    }
}

fn badly(error: TlsError, alert: Alert) -> Greeted {
    Greeted::Badly(error, alert.record().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_has_said_nothing_costs_little() {
        assert_eq!(size_of::<Greets>(), 120);
    }
}
