//! The server, and a client that is written by hand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor::http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use rotor::http::h2::frame_writer::{self, frame_header};
use rotor::http::h2::hpack::HpackEncoder;
use rotor::http::server::{
    self, Head, Http2Config, HttpSeed, RecvMode, Response, Server, ServerConfig,
};
use rotor::http::{BodyError, Status};
use rotor::net::StreamSocket;
use rotor::proxy_protocol::{
    ProxyHeader, ProxyProtocol, ProxyProtocolConfig, ProxyStream, Version,
};
use rotor::stream::{BytesHeld, PeerConnections};
use rotor::tls::{TlsServer, TlsStream};
use rotor::websocket::{self, Closed, Handler, Message, Next, Sender, WebSocket, WebSocketConfig};
use rotor::{Notifier, Scope};

use crate::kit::{Issuer, RawClient};
use crate::wire::Wire;

/// What the handlers have seen.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) events: Vec<String>,
    pub(crate) waiting: Vec<Notifier>,
    /// Handlers of requests that were made and not ended.
    pub(crate) requests: u32,
    /// The same for WebSockets.
    pub(crate) sockets: u32,
    /// Handlers of WebSockets that have panicked; they are not called again.
    pub(crate) panics: u32,
}

/// A handler of WebSockets that obeys.
pub(crate) struct Obeys;

impl Handler for Obeys {
    type Context = Seen;
    type Seed = ();

    fn opened(_: (), _: &mut Sender<'_>, scope: &mut Scope<'_, Seen>) -> Next<Self> {
        scope.sockets += 1;
        Next::go_on(Obeys).no_deadline()
    }

    fn message(
        self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Seen>,
    ) -> Next<Self> {
        let text = String::from_utf8_lossy(message.as_bytes()).into_owned();
        let (verb, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match verb {
            "close" => return Next::close(self, websocket::Code::NORMAL, ""),
            "hold" => return Next::hold(self).deadline(scope.now() + seconds(50)),
            "binary" => out.binary(&vec![b'x'; rest.parse().expect("a number")]).expect("room"),
            "panic" => {
                scope.panics += 1;
                panic!("as it was told");
            }
            _ => scope.events.push(text.clone()),
        }
        Next::go_on(self).keep_deadline()
    }

    fn timeout(self, _: &mut Sender<'_>, _: &mut Scope<'_, Seen>) -> Next<Self> {
        Next::messages(self).no_deadline()
    }

    fn closed(self, end: Closed<'_>, scope: &mut Scope<'_, Seen>) {
        scope.sockets -= 1;
        scope.events.push(format!("closed {} {:?}", end.code, end.cause));
    }
}

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// `/ws` is a WebSocket, `/wait` waits until it is woken, `/upload` takes a body.
pub(crate) enum Site {
    Waits,
    Receives,
}

impl Server for Site {
    type Context = Seen;
    type Seed = Arc<WebSocketConfig>;
    type Upgrade = WebSocket<Obeys>;

    fn headers_received(
        config: Arc<WebSocketConfig>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Seen>,
    ) -> server::Next<Self> {
        assert_eq!(head.peer_address(), Some(CLIENT), "the balancer names it");
        match head.path() {
            "/ws" => match websocket::accept(head, response, &config) {
                Ok(accepted) => server::Next::upgrade(accepted.seed(())),
                Err(_) => server::Next::finished(),
            },
            "/wait" => {
                scope.requests += 1;
                let notifier = scope.notifier();
                scope.waiting.push(notifier);
                server::Next::go_on(Site::Waits).keep_deadline()
            }
            _ => {
                scope.requests += 1;
                server::Next::recv(Site::Receives, RecvMode::Buffered(1 << 20)).keep_deadline()
            }
        }
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Seen>,
    ) -> server::Next<Self> {
        scope.requests -= 1;
        response.send(Status::OK, "text/plain", body).expect("in order");
        server::Next::finished()
    }

    fn wakeup(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Seen>,
    ) -> server::Next<Self> {
        scope.requests -= 1;
        response.send(Status::OK, "text/plain", b"woken").expect("in order");
        server::Next::finished()
    }

    fn timeout(self, _: &mut Response<'_>, scope: &mut Scope<'_, Seen>) -> server::Next<Self> {
        scope.requests -= 1;
        server::Next::fail(Status::SERVICE_UNAVAILABLE)
    }

    fn bad_request(self, _: BodyError, scope: &mut Scope<'_, Seen>) {
        scope.requests -= 1;
    }
}

/// The client, as the balancer names it.
const CLIENT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 5);

const BALANCER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 1);

/// What all connections share: certificates are made once.
pub(crate) struct Shared {
    issuer: Issuer,
    pub(crate) tls: TlsServer,
}

impl Shared {
    pub(crate) fn new() -> Shared {
        let issuer = Issuer::new();
        let tls = issuer.server_with(|config| config.alpn(&[b"h2"]));
        Shared { issuer, tls }
    }
}

/// Layers and a seed for the machine of one connection.
pub(crate) struct Serving {
    tls: TlsServer,
    behind: ProxyProtocol,
    pub(crate) seed: HttpSeed<Site>,
}

impl Serving {
    /// Puts the layers around a socket.
    pub(crate) fn wrap<S: StreamSocket>(&self, socket: S) -> TlsStream<ProxyStream<S>> {
        self.tls.wrap(self.behind.wrap(socket, Some(BALANCER)))
    }
}

/// One connection.
pub(crate) struct Rig {
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) client: RawClient,
    pub(crate) peers: Arc<PeerConnections>,
    pub(crate) http: Arc<server::Counters>,
    pub(crate) held: Arc<BytesHeld>,
    pub(crate) messages: Arc<BytesHeld>,
    read: usize,
    /// The payload of each WebSocket, and what ended its stream.
    pub(crate) streams: std::collections::BTreeMap<u32, (Vec<u8>, &'static str)>,
    pub(crate) goaways: Vec<u32>,
}

/// How often something is tried that is bound to happen. In memory it happens at once.
const TALKS_MAX: usize = 10_000;

impl Rig {
    pub(crate) fn new(shared: &Shared, open: fn(Serving) -> Box<dyn Wire>) -> Rig {
        let peers = PeerConnections::new(1).share();
        let trusted = ["10.0.0.0/8".parse().expect("it is one")];
        let config = ProxyProtocolConfig::new(trusted).per_peer(Some(peers.clone()));
        let behind = ProxyProtocol::new(config);
        let websocket = WebSocketConfig::new();
        let messages = websocket.messages_held();
        let config = ServerConfig::new().http2(Http2Config::new());
        let (http, held) = (config.counters(), config.held());
        let seed = HttpSeed::new(websocket.share(), config);
        let wire = open(Serving { tls: shared.tls.clone(), behind, seed });
        let mut raw = shared.issuer.raw_config();
        raw.alpn_protocols = vec![b"h2".to_vec()];
        let client = RawClient::new(raw, "localhost");
        Rig {
            wire,
            client,
            peers,
            http,
            held,
            messages,
            read: 0,
            streams: Default::default(),
            goaways: Vec::new(),
        }
    }

    pub(crate) fn header() -> Vec<u8> {
        let header = ProxyHeader::proxied(Version::V2, CLIENT, ([198, 51, 100, 1], 443).into());
        header.to_bytes()
    }

    /// Exchanges records until both sides are quiet.
    pub(crate) fn talk(&mut self) {
        loop {
            let records = self.client.take_records();
            if !records.is_empty() {
                self.wire.send(&records);
            }
            self.wire.settle();
            let received = self.wire.take_received();
            if records.is_empty() && received.is_empty() {
                break;
            }
            self.client.receive(&received);
        }
        self.parse();
    }

    /// The same, until this is so.
    pub(crate) fn talk_until(&mut self, is_so: impl Fn(&Rig) -> bool) {
        for _ in 0..TALKS_MAX {
            if is_so(self) {
                return;
            }
            self.talk();
        }
        panic!("it does not come to that");
    }

    /// Reads what the server has sent, and sends nothing.
    pub(crate) fn hear(&mut self) {
        self.wire.settle();
        let records = self.wire.take_received();
        self.client.receive(&records);
        self.parse();
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.client.write(bytes);
        self.talk();
    }

    pub(crate) fn greet(&mut self) {
        self.wire.send(&Rig::header());
        self.talk_until(|rig| !rig.client.tls.is_handshaking());
    }

    /// The connection after its settings.
    pub(crate) fn begin(&mut self) {
        self.greet();
        let mut bytes = PREFACE.to_vec();
        frame_writer::settings(&[(4, 1 << 16)], &mut bytes);
        bytes.extend(frame_writer::settings_ack());
        self.write(&bytes);
    }

    /// A WebSocket on stream 1.
    pub(crate) fn open(&mut self) {
        self.begin();
        self.write(&ask(1));
        self.talk_until(|rig| rig.wire.context().sockets == 1);
    }

    /// Sends a text message.
    pub(crate) fn say(&mut self, text: &str) {
        self.write(&data(1, &ws_frame(0x81, text.as_bytes()), false));
    }

    fn parse(&mut self) {
        while let Some(header) = FrameHeader::read(&self.client.plain[self.read..]) {
            let start = self.read + 9;
            let Some(payload) = self.client.plain.get(start..start + header.len) else { return };
            self.read = start + header.len;
            let stream = self.streams.entry(header.stream).or_default();
            match header.kind {
                kind::DATA => stream.0.extend_from_slice(payload),
                kind::RST_STREAM => stream.1 = "reset",
                kind::GOAWAY => {
                    let code = u32::from_be_bytes(payload[4..8].try_into().expect("four"));
                    self.goaways.push(code);
                }
                _ => {}
            }
            let has_end = matches!(header.kind, kind::DATA | kind::HEADERS);
            if has_end && header.flags & flag::END_STREAM != 0 {
                stream.1 = "ended";
            }
        }
    }
}

pub(crate) fn headers(stream: u32, fields: &[(&str, &str)], is_end: bool) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        HpackEncoder::new().field(name.as_bytes(), value.as_bytes(), &mut block);
    }
    let flags = flag::END_HEADERS | u8::from(is_end);
    [&frame_header(block.len(), kind::HEADERS, flags, stream)[..], &block].concat()
}

/// Asks for a WebSocket.
pub(crate) fn ask(stream: u32) -> Vec<u8> {
    headers(
        stream,
        &[
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "https"),
            (":path", "/ws"),
            (":authority", "localhost"),
            ("sec-websocket-version", "13"),
        ],
        false,
    )
}

pub(crate) fn request(stream: u32, method: &str, path: &str, is_end: bool) -> Vec<u8> {
    let fields =
        [(":method", method), (":scheme", "https"), (":path", path), (":authority", "localhost")];
    headers(stream, &fields, is_end)
}

pub(crate) fn data(stream: u32, payload: &[u8], is_end: bool) -> Vec<u8> {
    let header = frame_header(payload.len(), kind::DATA, u8::from(is_end), stream);
    [&header[..], payload].concat()
}

/// A masked frame; the mask is zero.
pub(crate) fn ws_frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        len @ 0..126 => bytes.push(0x80 | len as u8),
        len => {
            bytes.push(0x80 | 126);
            bytes.extend((len as u16).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}
