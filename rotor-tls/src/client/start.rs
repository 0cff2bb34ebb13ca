//! `ClientStart`: a client's connection before its first message.

use rustls::pki_types::ServerName;

use super::tls_client::TlsClient;
use crate::connection::{Connection, Handshake};
use crate::counters::HandshakeGuard;
use crate::engine::Engine;
use crate::error::TlsError;
use crate::incoming::Incoming;

/// A client's connection before its first message. It has no engine before it is connected, because
/// many addresses may be tried.
pub(crate) struct ClientStart {
    pub(super) client: TlsClient,
    pub(super) name: ServerName<'static>,
    pub(super) guard: HandshakeGuard,
}

impl ClientStart {
    pub(crate) fn into_guard(self) -> HandshakeGuard {
        self.guard
    }

    /// Turns this into a connection with an engine, whose hello is ready to be sent.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn into_connection(self) -> Result<Box<Connection>, (HandshakeGuard, TlsError)> {
        let ClientStart { client, name, guard } = self;
        let server_name = match &name {
            ServerName::DnsName(name) => Some(name.as_ref().to_ascii_lowercase().into()),
            _ => None,
        };
        let engine = match Engine::client(client.shared.config.clone(), name) {
            Ok(engine) => engine,
            Err(error) => return Err((guard, error.into())),
        };
        let handshake = Handshake {
            guard,
            _permit: None,
            is_slow: false,
            requires_certificate: false,
            session_began: None,
        };
        Ok(Connection::new(engine, server_name, Incoming::default(), handshake))
    }
}
