//! The server's side of the handshake (RFC 6455 §4.2).

use std::sync::Arc;

use rotor_http::server::{Head, Response};
use rotor_http::{MessageError, Method, Status, Version, list_has_token};

use crate::accepted::Accepted;
use crate::config::WebSocketConfig;
use crate::counters::Count;
use crate::deflate::params::{self, AgreedParams};
use crate::handshake::{VERSION, single_value};
use crate::key::Key;
use crate::refusal::Refusal;

/// Answers a request for a WebSocket: with 101 and the choices made, or with an error that says
/// what is wrong. In both cases this call completes the response.
///
/// It checks that the request asks for a WebSocket, and its version (13), key and
/// [origin](WebSocketConfig::origins). It chooses the first of the configured subprotocols that the
/// client offers, if any, and agrees on compression if both sides want it.
///
/// A request over HTTP/2 (RFC 8441) looks the same here, except that it has no key. Its WebSocket
/// runs on the request's stream, beside other requests of the connection.
///
/// # Errors
///
/// [`Refusal`]. The peer has been told, so the handler should finish.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_http as http; pub use rotor_websocket as websocket; }
/// use std::sync::Arc;
///
/// use rotor::Scope;
/// use rotor::http::server::{Head, Next, Response, Server};
/// use rotor::websocket::{self as websocket, Handler, WebSocket, WebSocketConfig};
/// # use rotor::websocket::{Message, Sender};
/// #
/// # struct Chat;
/// # impl Handler for Chat {
/// #     type Context = ();
/// #     type Seed = String;
/// #     fn opened(_: String, _: &mut Sender<'_>, _: &mut Scope<'_, ()>) -> websocket::Next<Self> {
/// #         websocket::Next::go_on(Chat).no_deadline()
/// #     }
/// #     fn message(self, _: Message<'_>, _: &mut Sender<'_>, _: &mut Scope<'_, ()>) -> websocket::Next<Self> {
/// #         websocket::Next::go_on(self).keep_deadline()
/// #     }
/// # }
///
/// struct Site;
///
/// impl Server for Site {
///     type Context = ();
///     type Seed = Arc<WebSocketConfig>;
///     type Upgrade = WebSocket<Chat>;
///
///     fn headers_received(
///         config: Arc<WebSocketConfig>,
///         head: &Head<'_>,
///         response: &mut Response<'_>,
///         _: &mut Scope<'_, ()>,
///     ) -> Next<Self> {
///         match websocket::accept(head, response, &config) {
///             Ok(accepted) => Next::upgrade(accepted.seed(head.path().to_string())),
///             Err(_refusal) => Next::finished(),
///         }
///     }
/// }
/// ```
#[doc(alias = "handshake")]
pub fn accept(
    head: &Head<'_>,
    response: &mut Response<'_>,
    config: &Arc<WebSocketConfig>,
) -> Result<Accepted, Refusal> {
    let refused = match check_request(head, config) {
        Ok(key) => match write_acceptance(key, head, response, config) {
            Ok(accepted) => return Ok(accepted),
            Err(error) => Refusal::Response(error),
        },
        Err(refusal) => refusal,
    };
    config.counters.count(Count::refused);
    write_refusal(refused, head, response).map_err(Refusal::Response)?;
    Err(refused)
}

/// Checks that a request is a valid handshake; returns its key, which a request over HTTP/2 does
/// not have.
fn check_request(head: &Head<'_>, config: &WebSocketConfig) -> Result<Option<Key>, Refusal> {
    let names_websocket =
        head.fields().get_all("Upgrade").any(|value| list_has_token(value, "websocket"));
    if head.method() != Method::Get || !head.wants_upgrade() || !names_websocket || head.has_body()
    {
        return Err(Refusal::NoWebSocket);
    }
    if single_value("Sec-WebSocket-Version", head.fields()) != Some(VERSION.as_bytes()) {
        return Err(Refusal::Version);
    }
    let key = match head.version() {
        // RFC 8441 §5.1: the key proves that the server has understood; over HTTP/2, `:protocol`
        // does.
        Version::Http2 => None,
        _ => Some(Key::of(head.fields()).ok_or(Refusal::Key)?),
    };
    // RFC 6454 §7.3: at most one. With two, we and code after us could look at different ones.
    let mut origins = head.fields().get_all("Origin");
    let origin = origins.next();
    if origins.next().is_some() || !config.origins.allows(origin, head.authority()) {
        return Err(Refusal::Origin);
    }
    Ok(key)
}

/// Writes the response that accepts.
fn write_acceptance(
    key: Option<Key>,
    head: &Head<'_>,
    response: &mut Response<'_>,
    config: &Arc<WebSocketConfig>,
) -> Result<Accepted, MessageError> {
    let offers = |name: &String| {
        let offered = head.fields().list("Sec-WebSocket-Protocol");
        offered.into_iter().any(|offered| offered == name.as_bytes())
    };
    let subprotocol = config.subprotocols.iter().position(offers);
    let extension: Option<(AgreedParams, String)> = config.deflate.and_then(|deflate| {
        params::choose(head.fields().list("Sec-WebSocket-Extensions"), &deflate)
    });
    response.status(Status::SWITCHING_PROTOCOLS)?;
    response.add_header("Upgrade", "websocket")?;
    if let Some(key) = key {
        response.add_header("Sec-WebSocket-Accept", key.proof())?;
    }
    if let Some(chosen) = subprotocol {
        response.add_header("Sec-WebSocket-Protocol", &config.subprotocols[chosen])?;
    }
    if let Some((_, answer)) = &extension {
        response.add_header("Sec-WebSocket-Extensions", answer)?;
    }
    response.done_headers()?;
    response.done()?;
    let agreed = extension.map(|(agreed, _)| agreed);
    Ok(Accepted { config: config.clone(), agreed, subprotocol, is_client: false })
}

/// Writes the response that refuses.
fn write_refusal(
    refusal: Refusal,
    head: &Head<'_>,
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    const REQUIRED_FIELDS: &[(&str, &[u8])] =
        &[("Upgrade", b"websocket"), ("Sec-WebSocket-Version", VERSION.as_bytes())];
    let (status, fields): (Status, &[(&str, &[u8])]) = match refusal {
        Refusal::NoWebSocket if head.method() != Method::Get => {
            (Status::METHOD_NOT_ALLOWED, &[("Allow", b"GET")])
        }
        // A 426 names the protocol in `Upgrade`, which HTTP/2 does not have.
        Refusal::NoWebSocket | Refusal::Version if head.version() == Version::Http2 => {
            (Status::BAD_REQUEST, &REQUIRED_FIELDS[1..])
        }
        Refusal::NoWebSocket | Refusal::Version => (Status::UPGRADE_REQUIRED, REQUIRED_FIELDS),
        Refusal::Origin => (Status::FORBIDDEN, &[]),
        // The response had begun already, so the handler decides how it ends.
        Refusal::Response(error) => return Err(error),
        _ => (Status::BAD_REQUEST, &[]),
    };
    response.send_with(status, fields, "text/plain", format!("{refusal}\n").as_bytes())
}
