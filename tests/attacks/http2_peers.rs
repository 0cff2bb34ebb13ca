//! Scripted HTTP/2 clients that are not ours, one honest and one hostile, and the server that both
//! talk to.

use std::sync::Arc;

use rotor::http::Status;
use rotor::http::server::{
    self, Counters, Head, Http2Config, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Response,
    Server, ServerConfig,
};
use rotor::stream::BytesHeld;
use rotor::stream::testing::{Door, Peer, ScriptedListener, TestLoop, listener};
use rotor::{Scope, Time};

/// Frame types, RFC 9113 §6.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
    pub(crate) const PRIORITY_UPDATE: u8 = 16;
}

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A request whose fields are all in the static table, except for its path.
pub(crate) fn block(method: u8, path: &str) -> Vec<u8> {
    let mut block = vec![method, 0x86, 0x04, path.len() as u8];
    block.extend(path.as_bytes());
    block.extend([0x01, 1, b'a']);
    block
}

pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(kind::HEADERS, END_HEADERS | END_STREAM, stream, &block(0x82, path))
}

pub(crate) fn post(stream: u32, path: &str) -> Vec<u8> {
    frame(kind::HEADERS, END_HEADERS, stream, &block(0x83, path))
}

/// The preface and SETTINGS, with an initial window of `window` bytes for each response.
pub(crate) fn beginning(window: u32) -> Vec<u8> {
    let settings = [&[0, 4][..], &window.to_be_bytes()].concat();
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &frame(kind::SETTINGS, 0, 0, &settings)[..],
        &frame(kind::SETTINGS, 1, 0, &[]),
    ]
    .concat()
}

/// Responds immediately, reads bodies in pieces, waits forever, or sends without end while there is
/// room.
pub(crate) struct Site;

impl Site {
    fn send(self, response: &mut Response<'_>) -> Next<Site> {
        while response.room() > 0 {
            let count = response.room().min(4096);
            if response.write_body(&[b's'; 4096][..count]).is_err() {
                return Next::finished();
            }
        }
        Next::go_on(self).no_deadline()
    }
}

impl Server for Site {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Site> {
        match head.path() {
            "/wait" => Next::go_on(Site).no_deadline(),
            "/upload" => Next::recv(Site, RecvMode::Progressive(1)).no_deadline(),
            "/stream" => {
                let begun = response
                    .status(Status::OK)
                    .and_then(|()| response.add_chunked())
                    .and_then(|()| response.done_headers());
                if begun.is_ok() { Site.send(response) } else { Next::finished() }
            }
            _ => response.reply(Status::OK, "text/plain", b"hello").into(),
        }
    }

    fn request_chunk(self, _: &[u8], _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Site> {
        Next::go_on(self).keep_deadline()
    }

    fn response_flushed(self, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Site> {
        self.send(response)
    }

    fn timeout(self, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Site> {
        Next::go_on(self).keep_deadline()
    }

    fn draining(self, _: Time, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Site> {
        Next::finished()
    }
}

/// A server with default settings, in an in-memory loop.
pub(crate) struct Stage {
    pub(crate) test: TestLoop<HttpAccept<Site, ScriptedListener>>,
    door: Door,
    pub(crate) counters: Arc<Counters>,
    /// How much the connections hold.
    pub(crate) held: Arc<BytesHeld>,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let config = ServerConfig::new().http2(Http2Config::new().prior_knowledge(true));
        let (counters, held) = (config.counters(), config.held());
        let mut test = TestLoop::new(());
        let (listener, door) = listener(test.world());
        test.add(|scope| server::listen(listener, HttpSeed::new((), config), scope));
        Stage { test, door, counters, held }
    }

    /// A connection that has sent nothing.
    pub(crate) fn silent(&mut self) -> Peer {
        let peer = self.door.connect();
        self.test.settle();
        peer
    }

    /// A connection that has sent the preface and SETTINGS.
    pub(crate) fn connect(&mut self, window: u32) -> Peer {
        let peer = self.silent();
        peer.send(&beginning(window));
        self.test.settle();
        peer.take_received();
        peer
    }
}

/// Each received frame: type, flags, stream, payload.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while bytes.len() >= 9 {
        let len = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
        let stream = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]);
        let Some(payload) = bytes.get(9..9 + len) else { break };
        frames.push((bytes[3], bytes[4], stream, payload.to_vec()));
        bytes = &bytes[9 + len..];
    }
    frames
}

/// The error code of the last GOAWAY.
pub(crate) fn goaway(bytes: &[u8]) -> Option<u32> {
    let frames = frames(bytes);
    let last = frames.iter().rev().find(|(kind, ..)| *kind == kind::GOAWAY);
    last.map(|(.., payload)| u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]))
}
