//! `Wish`, `Ask`: the two handshakes of a WebSocket, with the client and with the upstream, each as
//! its version of HTTP has it.
//!
//! ```text
//!            HTTP/1.1 (RFC 6455)                HTTP/2 (RFC 8441)
//!   asks     GET, Upgrade, a key                CONNECT with :protocol, which the library shows as GET
//!                                               and makes of GET with Upgrade
//!   agrees   101, Upgrade, the key's proof      200, which it shows as 101, and makes of it
//! ```
//!
//! So key and proof are of one side, as framing is. What the two ends have to agree on (version,
//! subprotocols, extensions, origin) passes as other fields do.

use rotor::Scope;
use rotor::http::client::{self, Request};
use rotor::http::server;
use rotor::http::{MessageError, Method, Status, Version};
use rotor::websocket::Key;

use super::fields;

/// What a client asks for.
#[derive(Clone, Copy)]
pub(crate) enum Wish {
    /// An answer.
    Answer,
    /// A WebSocket, and the proof that its key was understood.
    ByKey(Key),
    /// A WebSocket, on a stream of HTTP/2.
    OnStream,
}

impl Wish {
    /// Looks at a request; `None` where it asks for a WebSocket without a proper key.
    pub(crate) fn of(head: &server::Head<'_>) -> Option<Wish> {
        // It is offered with a GET that has no body, or not at all (RFC 6455 §4.1).
        let offers = head.wants_upgrade() && head.method() == Method::Get && !head.has_body();
        if !offers || !fields::names_websocket(head.fields()) {
            return Some(Wish::Answer);
        }
        match head.version() {
            Version::Http2 => Some(Wish::OnStream),
            _ => Key::of(head.fields()).map(Wish::ByKey),
        }
    }

    pub(crate) fn is_for_websocket(&self) -> bool {
        !matches!(self, Wish::Answer)
    }

    /// Whether the client must not be given an answer of this status: on a stream, any 2xx would
    /// say that the WebSocket begins, and the page behind it would be taken for frames.
    pub(crate) fn is_misled_by(&self, status: Status) -> bool {
        matches!(self, Wish::OnStream) && status.is_success()
    }

    /// Writes what is this side's of the answer that agrees.
    pub(crate) fn grant(&self, response: &mut server::Response<'_>) -> Result<(), MessageError> {
        response.add_header("Upgrade", "websocket")?;
        match self {
            Wish::ByKey(key) => response.add_header("Sec-WebSocket-Accept", key.proof()),
            Wish::Answer | Wish::OnStream => Ok(()),
        }
    }
}

/// That the upstream was asked for a WebSocket.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    /// On HTTP/1.1.
    key: Option<Key>,
}

impl Ask {
    /// Asks, in a request that was started.
    pub(crate) fn write<C>(
        request: &mut Request<'_>,
        scope: &Scope<'_, C>,
    ) -> Result<Ask, MessageError> {
        request.add_header("Upgrade", "websocket")?;
        let key = (request.version() != Version::Http2).then(|| Key::random(scope));
        if let Some(key) = &key {
            request.add_header("Sec-WebSocket-Key", key.as_str())?;
        }
        Ok(Ask { key })
    }

    /// Whether a 101 agrees to this, and to nothing else.
    pub(crate) fn is_granted_by(&self, head: &client::Head<'_>) -> bool {
        self.key.is_none_or(|key| {
            fields::names_websocket(head.fields()) && key.is_proven_in(head.fields())
        })
    }
}
