//! `RequestKind`, `UpgradeRequest`: the two handshakes of a WebSocket, with the client and with the
//! upstream, each in its version of HTTP.
//!
//! ```text
//!            HTTP/1.1 (RFC 6455)                HTTP/2 (RFC 8441)
//!   asks     GET, Upgrade, a key                CONNECT with :protocol, which the library shows as GET
//!                                               and makes of GET with Upgrade
//!   agrees   101, Upgrade, the key's proof      200, which it shows as 101, and makes of it
//! ```
//!
//! So key and proof belong to one side, as framing does. What the two ends must agree on (version,
//! subprotocols, extensions, origin) is passed on as other fields are.

use rotor::Scope;
use rotor::http::client::{self, Request};
use rotor::http::server;
use rotor::http::{MessageError, Method, Status, Version};
use rotor::websocket::Key;

use super::fields;

/// What a client requests.
#[derive(Clone, Copy)]
pub(crate) enum RequestKind {
    /// A response.
    Answer,
    /// A WebSocket, with a proof that its key was understood.
    ByKey(Key),
    /// A WebSocket, on a stream of HTTP/2.
    OnStream,
}

impl RequestKind {
    /// Examines a request. Returns `None` if it requests a WebSocket without a valid key.
    pub(crate) fn of(head: &server::Head<'_>) -> Option<RequestKind> {
        // A WebSocket is requested with a GET without a body, or not at all (RFC 6455 §4.1).
        let offers = head.wants_upgrade() && head.method() == Method::Get && !head.has_body();
        if !offers || !fields::names_websocket(head.fields()) {
            return Some(RequestKind::Answer);
        }
        match head.version() {
            Version::Http2 => Some(RequestKind::OnStream),
            _ => Key::of(head.fields()).map(RequestKind::ByKey),
        }
    }

    pub(crate) fn is_for_websocket(&self) -> bool {
        !matches!(self, RequestKind::Answer)
    }

    /// Returns whether the client must not get a response with this status: on a stream, any 2xx
    /// would mean that the WebSocket begins, and the page in the body would be taken for frames.
    pub(crate) fn is_wrongly_switched_by(&self, status: Status) -> bool {
        matches!(self, RequestKind::OnStream) && status.is_success()
    }

    /// Writes this side's part of the response that agrees.
    pub(crate) fn grant(&self, response: &mut server::Response<'_>) -> Result<(), MessageError> {
        response.add_header("Upgrade", "websocket")?;
        match self {
            RequestKind::ByKey(key) => response.add_header("Sec-WebSocket-Accept", key.proof()),
            RequestKind::Answer | RequestKind::OnStream => Ok(()),
        }
    }
}

/// The request for a WebSocket that was sent to the upstream.
#[derive(Clone, Copy)]
pub(crate) struct UpgradeRequest {
    /// Present on HTTP/1.1.
    key: Option<Key>,
}

impl UpgradeRequest {
    /// Writes the handshake into a request that was started.
    pub(crate) fn write<C>(
        request: &mut Request<'_>,
        scope: &Scope<'_, C>,
    ) -> Result<UpgradeRequest, MessageError> {
        request.add_header("Upgrade", "websocket")?;
        let key = (request.version() != Version::Http2).then(|| Key::random(scope));
        if let Some(key) = &key {
            request.add_header("Sec-WebSocket-Key", key.as_str())?;
        }
        Ok(UpgradeRequest { key })
    }

    /// Returns whether a 101 agrees to exactly this.
    pub(crate) fn is_granted_by(&self, head: &client::Head<'_>) -> bool {
        self.key.is_none_or(|key| {
            fields::names_websocket(head.fields()) && key.is_proven_in(head.fields())
        })
    }
}
