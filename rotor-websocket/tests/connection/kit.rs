//! A server whose handler obeys text commands and records its events. The test talks to it in
//! frames.

use std::sync::Arc;
use std::time::Duration;

use rotor_core::{Description, Scope};
use rotor_http::server::{self, Connection, Head, HttpSeed, Response, Server, ServerConfig};
use rotor_stream::testing::Driver;
use rotor_websocket::{
    self as websocket, Closed, Code, Counters, Deflate, Delivery, Handler, Kind, Member, Message,
    Next, Piece, Prepared, Room, SendError, Sender, WebSocket, WebSocketConfig,
};

/// The recorded events of the handlers, and a room that they may join.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) events: Vec<String>,
    pub(crate) room: Option<Room>,
    /// What handlers do when they are woken: a text, handled like a received one.
    pub(crate) on_wakeup: Option<String>,
    /// The same for an expired deadline.
    pub(crate) on_timeout: Option<String>,
}

/// Obeys commands, and echoes other messages.
pub(crate) struct Probe {
    member: Option<Member>,
    /// How many bytes it still has to send, a thousand per message.
    pending_bytes: usize,
}

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

impl Probe {
    fn obey(mut self, text: &str, out: &mut Sender<'_>, scope: &mut Scope<'_, Seen>) -> Next<Self> {
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut sent = Ok(());
        match verb {
            "close" => {
                let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
                let code = code.parse().ok().and_then(Code::new).unwrap_or(Code::NO_STATUS);
                let next = Next::close(self, code, reason.to_string());
                // The handler returns here, so nothing can follow in the same call.
                return next;
            }
            // Echoes the text, and closes in the same call.
            "last" => {
                out.text(text).expect("there is room");
                return Next::close(self, Code::NORMAL, "");
            }
            "drop" => return Next::drop_now(self),
            "hold" => return Next::hold(self).deadline(scope.now() + seconds(3)),
            "pieces" => return Next::pieces(self).keep_deadline(),
            "whole" => return Next::messages(self).keep_deadline(),
            "alarm" => return Next::go_on(self).deadline(scope.now() + seconds(7)),
            "panic" => panic!("as it was told"),
            "fragments" => {
                sent = out.begin(Kind::Text);
                for word in rest.split(' ') {
                    sent = sent.and_then(|()| out.piece(word.as_bytes()));
                }
                sent = sent.and_then(|()| out.end());
            }
            "ping" => sent = out.ping(rest.as_bytes()),
            "binary" => sent = out.binary(&vec![b'x'; rest.parse().expect("a number")]),
            "owe" => {
                self.pending_bytes = rest.parse().expect("a number");
                return self.send_pending(out, scope);
            }
            "join" => {
                let notifier = scope.notifier();
                self.member = scope.room.as_mut().map(|room| room.join(notifier));
            }
            "say" => {
                if let Some(room) = &mut scope.room {
                    room.say(Prepared::text(rest));
                }
            }
            "prepared" => sent = out.prepared(&Prepared::text(rest)),
            _ => sent = out.text(text),
        }
        if let Err(error) = sent {
            scope.events.push(format!("not sent: {error:?}"));
        }
        Next::go_on(self).keep_deadline()
    }

    /// Sends pending bytes as long as there is room.
    fn send_pending(mut self, out: &mut Sender<'_>, scope: &mut Scope<'_, Seen>) -> Next<Self> {
        while self.pending_bytes > 0 && out.room() > 0 {
            out.binary(&[b'o'; 1000]).expect("there is room");
            self.pending_bytes = self.pending_bytes.saturating_sub(1000);
        }
        if self.pending_bytes > 0 {
            assert_eq!(out.text("one more"), Err(SendError::Full));
            let unsent = out.unsent();
            scope.events.push(format!("full at {unsent}"));
        }
        Next::go_on(self).keep_deadline()
    }

    fn receive_from_room(
        mut self,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Seen>,
    ) -> Next<Self> {
        let Seen { room, .. } = &mut **scope;
        let (Some(room), Some(member)) = (room, &mut self.member) else {
            return Next::go_on(self).keep_deadline();
        };
        match room.deliver(member, out) {
            Delivery::Cut => Next::close(self, Code::TRY_AGAIN_LATER, "too slow"),
            _ => Next::go_on(self).keep_deadline(),
        }
    }
}

impl Handler for Probe {
    type Context = Seen;
    type Seed = String;

    fn opened(seed: String, out: &mut Sender<'_>, scope: &mut Scope<'_, Seen>) -> Next<Self> {
        scope.events.push(format!("opened {seed}"));
        let probe = Probe { member: None, pending_bytes: 0 };
        match seed.strip_prefix('/') {
            Some("") | None => Next::go_on(probe).no_deadline(),
            Some(command) => probe.obey(&command.replace('+', " "), out, scope),
        }
    }

    fn message(
        self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Seen>,
    ) -> Next<Self> {
        match message {
            Message::Text(text) => {
                let shown: String = text.chars().take(40).collect();
                scope.events.push(format!("text {shown}"));
                self.obey(text, out, scope)
            }
            Message::Binary(bytes) => {
                scope.events.push(format!("binary {}", bytes.len()));
                if let Err(error) = out.binary(bytes) {
                    scope.events.push(format!("not sent: {error:?}"));
                }
                Next::go_on(self).keep_deadline()
            }
        }
    }

    fn piece(
        self,
        piece: Piece<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Seen>,
    ) -> Next<Self> {
        let Piece { kind, bytes, is_first, is_last, .. } = piece;
        let marks = [if is_first { "first " } else { "" }, if is_last { "last " } else { "" }];
        scope.events.push(format!("piece {}{kind:?} {}", marks.concat(), bytes.len()));
        if bytes == b"whole" {
            return self.obey("whole", out, scope);
        }
        Next::go_on(self).keep_deadline()
    }

    fn pong(self, bytes: &[u8], out: &mut Sender<'_>, scope: &mut Scope<'_, Seen>) -> Next<Self> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        // Those that answer the connection's own pings are empty.
        if !text.is_empty() {
            scope.events.push(format!("pong {text}"));
        }
        match text.starts_with("close ") {
            true => self.obey(&text, out, scope),
            false => Next::go_on(self).keep_deadline(),
        }
    }

    fn flushed(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Seen>) -> Next<Self> {
        let unsent = out.unsent();
        scope.events.push(format!("flushed to {unsent}"));
        if self.pending_bytes > 0 {
            self.send_pending(out, scope)
        } else {
            self.receive_from_room(out, scope)
        }
    }

    fn wakeup(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Seen>) -> Next<Self> {
        match scope.on_wakeup.take() {
            Some(command) => self.obey(&command, out, scope),
            None => self.receive_from_room(out, scope),
        }
    }

    fn timeout(self, out: &mut Sender<'_>, scope: &mut Scope<'_, Seen>) -> Next<Self> {
        scope.events.push("timeout".to_string());
        match scope.on_timeout.take() {
            Some(command) => self.obey(&command, out, scope),
            None => Next::messages(self).keep_deadline(),
        }
    }

    fn describe(&self, to: &mut Description) {
        if self.member.is_some() {
            to.set_state("in the room");
        }
    }

    fn closed(self, end: Closed<'_>, scope: &mut Scope<'_, Seen>) {
        let Closed { code, reason, cause, .. } = end;
        scope.events.push(format!("closed {code} {cause:?} {reason}").trim_end().to_string());
        if let (Some(room), Some(member)) = (&mut scope.room, self.member) {
            room.leave(member);
        }
    }
}

/// The HTTP server whose connections become a [`Probe`].
pub(crate) struct Site;

impl Server for Site {
    type Context = Seen;
    type Seed = Arc<WebSocketConfig>;
    type Upgrade = WebSocket<Probe>;

    fn headers_received(
        config: Arc<WebSocketConfig>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Seen>,
    ) -> server::Next<Self> {
        match websocket::accept(head, response, &config) {
            Ok(accepted) => server::Next::upgrade(accepted.seed(head.path().to_string())),
            Err(refusal) => {
                scope.events.push(format!("refused: {refusal:?}"));
                server::Next::finished()
            }
        }
    }
}

pub(crate) type ServerDriver = Driver<Connection<Site>>;

/// A server before any request.
pub(crate) fn server(config: WebSocketConfig) -> (ServerDriver, Arc<Counters>) {
    server_with(config, ServerConfig::new())
}

pub(crate) fn server_with(
    config: WebSocketConfig,
    http: ServerConfig,
) -> (ServerDriver, Arc<Counters>) {
    let counters = config.counters().clone();
    let seed = HttpSeed::new(config.share(), http);
    (Driver::new(seed, Seen::default()), counters)
}

pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// A WebSocket request with additional fields.
pub(crate) fn request(path: &str, fields: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{fields}\r\n"
    )
}

/// The field that offers compression.
pub(crate) const DEFLATE: &str = "Sec-WebSocket-Extensions: permessage-deflate\r\n";

/// A server whose connection is a WebSocket.
pub(crate) fn open(config: WebSocketConfig) -> (ServerDriver, Arc<Counters>) {
    open_with(config, "/", "")
}

pub(crate) fn open_with(
    config: WebSocketConfig,
    path: &str,
    fields: &str,
) -> (ServerDriver, Arc<Counters>) {
    let (mut driver, counters) = server(config);
    driver.send(request(path, fields).as_bytes());
    let head = driver.take_received();
    let end = head.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head") + 4;
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", head.escape_ascii());
    assert!(end == head.len() || path != "/", "nothing follows by itself");
    (driver, counters)
}

pub(crate) fn open_deflate(config: Deflate) -> (ServerDriver, Arc<Counters>) {
    open_with(WebSocketConfig::new().deflate(config), "/", DEFLATE)
}

/// The first byte of a final frame of each kind.
pub(crate) const TEXT: u8 = 0x81;
pub(crate) const BINARY: u8 = 0x82;
pub(crate) const CLOSE: u8 = 0x88;
pub(crate) const PING: u8 = 0x89;
pub(crate) const PONG: u8 = 0x8a;

/// A client's frame.
pub(crate) fn frame(first: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
    let payload = payload.as_ref();
    let mut bytes = header(first, payload.len(), 0x80);
    bytes.extend(MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, key)| byte ^ key));
    bytes
}

/// A server's frame.
pub(crate) fn server_frame(first: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    [&header(first, payload.as_ref().len(), 0), payload.as_ref()].concat()
}

fn header(first: u8, len: usize, masked: u8) -> Vec<u8> {
    match len {
        0..126 => vec![first, masked | len as u8],
        126..65_536 => [&[first, masked | 126][..], &(len as u16).to_be_bytes()].concat(),
        _ => [&[first, masked | 127][..], &(len as u64).to_be_bytes()].concat(),
    }
}

/// A close frame's payload.
pub(crate) fn close_payload(code: u16, reason: &str) -> Vec<u8> {
    [&code.to_be_bytes(), reason.as_bytes()].concat()
}

/// The frames of a server: the first byte and the payload of each. All must be complete.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (size, len) = match bytes[1] {
            126 => (4, usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))),
            127 => (10, u64::from_be_bytes(bytes[2..10].try_into().expect("eight")) as usize),
            len => (2, usize::from(len)),
        };
        all.push((bytes[0], bytes[size..size + len].to_vec()));
        bytes = &bytes[size + len..];
    }
    all
}

/// The frames of a server in readable form: `text abc`, `binary 5`, `close 1002 why`, `ping`, `pong
/// abc`.
pub(crate) fn shown_frames(bytes: &[u8]) -> Vec<String> {
    let show = |(first, payload): (u8, Vec<u8>)| {
        let text = String::from_utf8_lossy(&payload).into_owned();
        match (first, &payload[..]) {
            (TEXT, _) => format!("text {text}"),
            (BINARY, _) => format!("binary {}", payload.len()),
            (CLOSE, []) => "close".to_string(),
            (CLOSE, [a, b, ..]) => format!("close {}", u16::from_be_bytes([*a, *b])),
            (PING, _) => format!("ping {text}").trim_end().to_string(),
            (PONG, _) => format!("pong {text}").trim_end().to_string(),
            (first, _) => format!("{first:#x} {text}"),
        }
    };
    frames(bytes).into_iter().map(show).collect()
}
