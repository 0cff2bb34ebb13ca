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
    client: TlsClient,
    name: ServerName<'static>,
    /// Absent until the handshake begins.
    guard: Option<HandshakeGuard>,
}

impl ClientStart {
    pub(super) fn new(client: TlsClient, name: ServerName<'static>) -> ClientStart {
        ClientStart { client, name, guard: None }
    }

    /// Counts the handshake as under way, now that the socket is connected. An attempt to connect
    /// that fails, or that another address wins, is none.
    pub(crate) fn begin_handshake(&mut self) {
        self.guard.get_or_insert_with(|| HandshakeGuard::begin(self.client.counters().clone()));
    }

    pub(crate) fn into_guard(self) -> Option<HandshakeGuard> {
        self.guard
    }

    /// Turns this into a connection with an engine, whose hello is ready to be sent.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn into_connection(self) -> Result<Box<Connection>, (HandshakeGuard, TlsError)> {
        let ClientStart { client, name, guard } = self;
        let guard = guard.unwrap_or_else(|| HandshakeGuard::begin(client.counters().clone()));
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
