//! `ClientStart`: a client's connection before its first message.

use rustls::pki_types::ServerName;

use super::tls_client::TlsClient;
use crate::counters::UnderWay;
use crate::engine::Engine;
use crate::error::TlsError;
use crate::incoming::Incoming;
use crate::live::{Live, Shaking};

/// A client's connection before its first message. It has no engine before it is connected, because
/// many addresses may be tried.
pub(crate) struct ClientStart {
    pub(super) client: TlsClient,
    pub(super) name: ServerName<'static>,
    pub(super) under_way: UnderWay,
}

impl ClientStart {
    pub(crate) fn into_under_way(self) -> UnderWay {
        self.under_way
    }

    /// Turns this into a connection with an engine, whose hello is ready to be sent.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn into_live(self) -> Result<Box<Live>, (UnderWay, TlsError)> {
        let ClientStart { client, name, under_way } = self;
        let asked_for = match &name {
            ServerName::DnsName(name) => Some(name.as_ref().to_ascii_lowercase().into()),
            _ => None,
        };
        let engine = match Engine::client(client.shared.config.clone(), name) {
            Ok(engine) => engine,
            Err(error) => return Err((under_way, error.into())),
        };
        let shaking = Shaking {
            under_way,
            _permit: None,
            is_slow: false,
            requires_certificate: false,
            session_began: None,
        };
        Ok(Live::new(engine, asked_for, Incoming::default(), shaking))
    }
}
