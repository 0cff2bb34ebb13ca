//! A server's connection that echoes and records its messages.

use std::sync::Arc;

use rotor_core::Scope;
use rotor_http::server::{self, Connection, Head, HttpSeed, Response, Server, ServerConfig};
use rotor_stream::testing::Driver;
use rotor_websocket::{
    self as websocket, Deflate, Handler, Kind, Message, Next, Piece, Sender, WebSocket,
    WebSocketConfig,
};

/// The longest message that is received whole.
pub(super) const MESSAGE_MAX: usize = 20_000;

/// How messages are received, and whether they may be compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mode {
    pieces: bool,
    deflate: bool,
}

impl Mode {
    pub(super) const PLAIN: Mode = Mode { pieces: false, deflate: false };
    pub(super) const DEFLATE: Mode = Mode { pieces: false, deflate: true };
    pub(super) const DEFLATE_PIECES: Mode = Mode { pieces: true, deflate: true };

    pub(super) fn of(byte: u8) -> Mode {
        Mode { pieces: byte & 1 != 0, deflate: byte & 2 != 0 }
    }
}

/// The complete messages, each with whether it is a text.
type Heard = Vec<(bool, Vec<u8>)>;

/// The result of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) sent: Vec<u8>,
    pub(super) heard: Heard,
}

pub(super) struct Echo {
    begun: Vec<u8>,
}

impl Handler for Echo {
    type Context = Heard;
    type Seed = bool;

    fn opened(pieces: bool, _: &mut Sender<'_>, _: &mut Scope<'_, Heard>) -> Next<Self> {
        let echo = Echo { begun: Vec::new() };
        if pieces { Next::pieces(echo).no_deadline() } else { Next::messages(echo).no_deadline() }
    }

    fn message(
        self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, Heard>,
    ) -> Next<Self> {
        assert!(message.as_bytes().len() <= MESSAGE_MAX);
        scope.push((message.kind() == Kind::Text, message.as_bytes().to_vec()));
        out.message(message).expect("there is always room for one");
        Next::go_on(self).keep_deadline()
    }

    fn piece(
        mut self,
        piece: Piece<'_>,
        _: &mut Sender<'_>,
        scope: &mut Scope<'_, Heard>,
    ) -> Next<Self> {
        assert_eq!(piece.is_first, self.begun.is_empty() && piece.is_first);
        self.begun.extend_from_slice(piece.bytes);
        if piece.is_last {
            let bytes = std::mem::take(&mut self.begun);
            let is_text = piece.kind == Kind::Text;
            assert!(!is_text || std::str::from_utf8(&bytes).is_ok());
            scope.push((is_text, bytes));
        }
        Next::go_on(self).keep_deadline()
    }
}

pub(super) struct Site;

impl Server for Site {
    type Context = Heard;
    type Seed = (Arc<WebSocketConfig>, bool);
    type Upgrade = WebSocket<Echo>;

    fn headers_received(
        (config, pieces): Self::Seed,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, Heard>,
    ) -> server::Next<Self> {
        match websocket::accept(head, response, &config) {
            Ok(accepted) => server::Next::upgrade(accepted.seed(pieces)),
            Err(_) => server::Next::finished(),
        }
    }
}

/// A connection that has become a WebSocket.
pub(super) fn opened(mode: Mode) -> Driver<Connection<Site>> {
    let deflate = mode.deflate.then(Deflate::new);
    let config = WebSocketConfig::new().message_max(MESSAGE_MAX).deflate(deflate).share();
    let seed = HttpSeed::<Site>::new((config, mode.pieces), ServerConfig::new());
    let mut driver = Driver::<Connection<Site>>::new(seed, Vec::new());
    driver.send(
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
          Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
          Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
    );
    assert!(driver.take_received().starts_with(b"HTTP/1.1 101 "));
    driver
}

/// Sends the parts of an input, then the end. Returns what comes of them.
pub(super) fn answer<'a>(mode: Mode, parts: impl Iterator<Item = &'a [u8]>) -> Answer {
    let mut driver = opened(mode);
    parts.for_each(|part| driver.send(part));
    driver.end();
    assert!(!driver.is_alive(), "its peer has ended");
    assert!(driver.failures().is_empty(), "{:?}", driver.failures());
    Answer { sent: driver.take_received(), heard: driver.context().clone() }
}
