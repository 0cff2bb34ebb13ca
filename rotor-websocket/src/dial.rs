//! The client's side of the handshake (RFC 6455 §4.1).

use std::fmt;
use std::sync::Arc;

use rotor_core::Scope;
use rotor_http::client::{Client, ClientError, Head, Next, Request};
use rotor_http::{MessageError, Method, Status, Version, list_has_token};

use crate::accepted::Accepted;
use crate::config::WebSocketConfig;
use crate::counters::Count;
use crate::deflate::params;
use crate::handler::Handler;
use crate::handshake::VERSION;
use crate::key::Key;
use crate::refusal::Refusal;
use crate::websocket::WebSocket;

/// A request for a WebSocket whose response has not arrived. It is for clients that write their own
/// requests; most need only [`Dial`].
#[doc(alias = "Asked")]
pub struct HandshakeRequest {
    /// `None` on HTTP/2, where `:protocol` proves that the server has understood (RFC 8441 §5.1).
    key: Option<Key>,
    config: Arc<WebSocketConfig>,
}

/// Writes the fields of a handshake into a request that was [started](Request::start) with GET. The
/// caller writes `Host`, and any other fields that the server needs.
///
/// # Errors
///
/// As [`Request::add_header`].
#[doc(alias = "handshake")]
pub fn request<C>(
    request: &mut Request<'_>,
    config: &Arc<WebSocketConfig>,
    scope: &Scope<'_, C>,
) -> Result<HandshakeRequest, MessageError> {
    let key = match request.version() {
        Version::Http2 => None,
        _ => Some(Key::random(scope)),
    };
    request.add_header("Upgrade", "websocket")?;
    request.add_header("Sec-WebSocket-Version", VERSION)?;
    if let Some(key) = &key {
        request.add_header("Sec-WebSocket-Key", key.as_str())?;
    }
    if !config.subprotocols.is_empty() {
        request.add_header("Sec-WebSocket-Protocol", config.subprotocols.join(", "))?;
    }
    if let Some(deflate) = &config.deflate {
        request.add_header("Sec-WebSocket-Extensions", params::offer(deflate))?;
    }
    Ok(HandshakeRequest { key, config: config.clone() })
}

/// Checks the response to a [`request`].
///
/// # Errors
///
/// [`Refusal`]: the server's mistake, or its decision. The connection still speaks HTTP, unless the
/// status is 101; then it must be ended.
pub fn check(head: &Head<'_>, asked: HandshakeRequest) -> Result<Accepted, Refusal> {
    let HandshakeRequest { key, config } = asked;
    let checked = check_response(head, key, &config);
    if checked.is_err() {
        config.counters.count(Count::refused);
    }
    let (agreed, subprotocol) = checked?;
    Ok(Accepted { config, agreed, subprotocol, is_client: true })
}

type Choices = (Option<params::AgreedParams>, Option<usize>);

fn check_response(
    head: &Head<'_>,
    key: Option<Key>,
    config: &WebSocketConfig,
) -> Result<Choices, Refusal> {
    if head.status() != Status::SWITCHING_PROTOCOLS {
        return Err(match head.version() {
            Version::Http2 if !head.answers_upgrade() => Refusal::NotOnHttp2(head.status()),
            _ => Refusal::Status(head.status()),
        });
    }
    let fields = head.fields();
    if let Some(key) = key {
        // RFC 6455 §4.1: both fields are required, as in the request.
        let names = |field, token| fields.get_all(field).any(|value| list_has_token(value, token));
        let is_answer = names("Upgrade", "websocket") && names("Connection", "upgrade");
        if !is_answer || !key.is_proven_in(fields) {
            return Err(Refusal::Answer);
        }
    }
    let mut chosen = fields.get_all("Sec-WebSocket-Protocol");
    let subprotocol = match (chosen.next(), chosen.next()) {
        (None, _) => None,
        (Some(chosen), None) => {
            let known = config.subprotocols.iter().position(|name| name.as_bytes() == chosen);
            Some(known.ok_or(Refusal::Subprotocol)?)
        }
        // RFC 6455 §11.3.4: at most one.
        (Some(_), Some(_)) => return Err(Refusal::Subprotocol),
    };
    let mut extensions = fields.list("Sec-WebSocket-Extensions").filter(|one| !one.is_empty());
    let agreed = match (extensions.next(), &config.deflate) {
        (None, _) => None,
        (Some(_), None) => return Err(Refusal::Extension),
        (Some(answer), Some(deflate)) => {
            Some(params::check_answer(answer, deflate).ok_or(Refusal::Extension)?)
        }
    };
    if extensions.next().is_some() {
        return Err(Refusal::Extension);
    }
    Ok((agreed, subprotocol))
}

/// Opens a WebSocket to a server, as a request to a [pool](rotor_http::client::Pool) or as a
/// [`Job`](rotor_http::client::Job).
///
/// The requester gets the result of the handshake: [`Opened`], or the [`Refusal`]. After that, the
/// WebSocket runs with its handler, and no longer occupies a place in the pool. Over HTTP/2 it is a
/// stream of the connection (RFC 8441), and counts towards the connection's limit of streams.
///
/// Not every server that speaks HTTP/2 supports WebSockets over it. If a server does not, HTTP/1.1
/// is used if possible:
///
/// * A pool whose handshakes offer `h2` and `http/1.1` makes a second connection, which offers only
///   HTTP/1.1. A server that speaks only HTTP/2 refuses this handshake:
///   [`ClientError::NotConnected`], whose cause is `NoApplicationProtocol` of TLS. Such a server
///   does not support WebSockets, or only on another port.
/// * A client that offers only `h2`, one with prior knowledge (`Http2Config::prior_knowledge`), and
///   a connection without a pool cannot fall back. The server gets a plain GET, and its response,
///   whatever it is, becomes [`Refusal::NotOnHttp2`]. Offer HTTP/1.1 to such a server as well, or
///   only HTTP/1.1.
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_http as http; pub use rotor_websocket as websocket; }
/// use rotor::Scope;
/// use rotor::net::TcpStream;
/// use rotor::http::client::{ByAddress, PoolMachine};
/// use rotor::websocket::{Dial, Handler, Message, Next, Sender, WebSocketConfig};
///
/// struct Listens;
///
/// impl Handler for Listens {
///     type Context = ();
///     type Seed = ();
///     fn opened(_: (), out: &mut Sender<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
///         let _closing = out.text("subscribe");
///         Next::go_on(Listens).no_deadline()
///     }
///     fn message(self, message: Message<'_>, _: &mut Sender<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
///         println!("{message:?}");
///         Next::go_on(self).keep_deadline()
///     }
/// }
///
/// type Pooled = PoolMachine<Dial<Listens>, ByAddress<TcpStream>>;
/// let dial: Dial<Listens> = Dial::new("/feed", "example.com", (), WebSocketConfig::new().share());
/// ```
#[doc(alias = "connect")]
pub struct Dial<H: Handler> {
    target: String,
    host: String,
    fields: Vec<(String, String)>,
    config: Arc<WebSocketConfig>,
    seed: H::Seed,
    asked: Option<HandshakeRequest>,
}

/// The result of a successful handshake with a server.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The agreed subprotocol, if any.
    pub subprotocol: Option<String>,
    /// Whether messages may be compressed.
    pub is_compressed: bool,
}

impl<H: Handler> Dial<H> {
    /// Prepares a request for `target` (path and query) of `host` (with its port, unless that is
    /// the scheme's default). [`parse_url`](crate::parse_url) takes them from a URL. The handler is
    /// made from `seed`.
    pub fn new(
        target: impl Into<String>,
        host: impl Into<String>,
        seed: H::Seed,
        config: Arc<WebSocketConfig>,
    ) -> Dial<H> {
        Dial {
            target: target.into(),
            host: host.into(),
            fields: Vec::new(),
            config,
            seed,
            asked: None,
        }
    }

    /// Adds a field to the request, for example `Origin` or `Authorization`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Dial<H> {
        self.fields.push((name.into(), value.into()));
        self
    }

    fn write(
        &self,
        to: &mut Request<'_>,
        scope: &Scope<'_, H::Context>,
    ) -> Result<HandshakeRequest, MessageError> {
        to.start(Method::Get, &self.target)?;
        to.add_header("Host", &self.host)?;
        for (name, value) in &self.fields {
            to.add_header(name, value)?;
        }
        let asked = request(to, &self.config, scope)?;
        to.done_headers()?;
        to.done()?;
        Ok(asked)
    }
}

impl<H: Handler> Client for Dial<H> {
    type Context = H::Context;
    type Output = Result<Opened, Refusal>;
    type Upgrade = WebSocket<H>;

    fn held_bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| name.capacity() + value.capacity());
        self.target.capacity() + self.host.capacity() + fields.sum::<usize>()
    }

    fn prepare_request(
        mut self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, H::Context>,
    ) -> Next<Self> {
        match self.write(request, scope) {
            Ok(asked) => {
                self.asked = Some(asked);
                Next::go_on(self).no_deadline()
            }
            Err(error) => Next::error(error),
        }
    }

    fn headers_received(
        self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        _: &mut Scope<'_, H::Context>,
    ) -> Next<Self> {
        // The head of a response follows its request.
        let Some(asked) = self.asked else { return Next::error(ClientError::Unhandled) };
        match check(head, asked) {
            Ok(accepted) => {
                let opened = Opened {
                    subprotocol: accepted.subprotocol().map(str::to_string),
                    is_compressed: accepted.is_compressed(),
                };
                Next::upgrade(accepted.seed(self.seed), Ok(opened))
            }
            Err(refusal) => Next::finished(Err(refusal)),
        }
    }
}

impl<H: Handler> fmt::Debug for Dial<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dial")
            .field("target", &self.target)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HandshakeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").finish_non_exhaustive()
    }
}
