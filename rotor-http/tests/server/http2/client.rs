//! An HTTP/2 client on a scripted socket. It writes any frames that a test wants, and reads the
//! output strictly, with its own record of both windows.

use std::collections::BTreeMap;

use rotor_http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use rotor_http::h2::frame_writer::{self, frame_header};
use rotor_http::h2::hpack::{Bounds, FieldList, HpackDecoder, HpackEncoder};
use rotor_http::server::{Connection, Http2Config, Server, ServerConfig};
use rotor_stream::testing::Driver;

use crate::probe::{Probe, probe};

/// The frames that were received on a stream, combined.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// END_STREAM has come.
    pub(crate) is_whole: bool,
    /// The code of RST_STREAM.
    pub(crate) reset: Option<u32>,
    /// Interim statuses, in order.
    pub(crate) interim: Vec<u16>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Client<S: Server = Probe> {
    pub(crate) driver: Driver<Connection<S>>,
    encoder: HpackEncoder,
    decoder: HpackDecoder,
    unread: Vec<u8>,
    pub(crate) answers: BTreeMap<u32, Answer>,
    /// Code and last stream of each GOAWAY.
    pub(crate) goaways: Vec<(u32, u32)>,
    /// Acknowledged pings, and pings that still need an acknowledgement.
    pub(crate) pongs: usize,
    pub(crate) pings: Vec<[u8; 8]>,
    pub(crate) settings_acks: usize,
    /// The server's settings, in the order in which they came.
    pub(crate) settings: Vec<(u16, u32)>,
    /// How much we may send: on the connection (0) and on each stream.
    pub(crate) windows: BTreeMap<u32, i64>,
    pub(crate) stream_window: i64,
    block: Vec<u8>,
}

pub(crate) fn config() -> ServerConfig {
    ServerConfig::new().http2(http2())
}

pub(crate) fn http2() -> Http2Config {
    Http2Config::new().prior_knowledge(true)
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&frame_header(payload.len(), kind, flags, stream)[..], payload].concat()
}

/// A complete HEADERS frame of a request, with these fields after the four pseudo-header fields.
pub(crate) fn headers(
    stream: u32,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    is_end: bool,
) -> Vec<u8> {
    let mut list =
        vec![(":method", method), (":scheme", "http"), (":path", path), (":authority", "a")];
    list.extend_from_slice(fields);
    frame(kind::HEADERS, flag::END_HEADERS | u8::from(is_end), stream, &block(&list))
}

pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        HpackEncoder::new().field(name.as_bytes(), value.as_bytes(), &mut block);
    }
    block
}

pub(crate) fn data(stream: u32, body: &[u8], is_end: bool) -> Vec<u8> {
    frame(kind::DATA, u8::from(is_end), stream, body)
}

pub(crate) fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame_writer::settings(pairs, &mut frame);
    frame
}

/// The preface, settings, and the acknowledgement of the server's settings.
pub(crate) fn preface_and_settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    [&PREFACE[..], &settings(pairs), &frame_writer::settings_ack()].concat()
}

impl Client {
    /// A client that has sent its preface and settings.
    pub(crate) fn new(config: ServerConfig) -> Client {
        let mut client = Client::silent(config);
        client.send(&preface_and_settings(&[]));
        client
    }

    /// A client that has sent nothing.
    pub(crate) fn silent(config: ServerConfig) -> Client {
        Client::on(probe(config))
    }
}

impl<S: Server> Client<S> {
    /// A client on a connection of any server, which has sent nothing.
    pub(crate) fn on(driver: Driver<Connection<S>>) -> Client<S> {
        Client {
            driver,
            encoder: HpackEncoder::new(),
            decoder: HpackDecoder::new(4096),
            unread: Vec::new(),
            answers: BTreeMap::new(),
            goaways: Vec::new(),
            pongs: 0,
            pings: Vec::new(),
            settings_acks: 0,
            settings: Vec::new(),
            windows: BTreeMap::from([(0, 65_535)]),
            stream_window: 65_535,
            block: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = &self.encoder;
        self.driver.send(bytes);
        self.read();
    }

    pub(crate) fn get(&mut self, stream: u32, path: &str) {
        self.send(&headers(stream, "GET", path, &[], true));
    }

    /// Sends this many bytes of a body, and padding, if both windows allow it.
    pub(crate) fn upload(&mut self, stream: u32, octets: usize, padding: u8, is_end: bool) -> bool {
        let sent = octets as i64 + if padding > 0 { 1 + i64::from(padding) } else { 0 };
        let own = self.windows.get(&stream).copied().unwrap_or(self.stream_window);
        let all = self.windows.get(&0).copied().unwrap_or_default();
        if own.min(all) < sent {
            return false;
        }
        self.windows.insert(stream, own - sent);
        self.windows.insert(0, all - sent);
        let body = vec![b'x'; octets + usize::from(padding)];
        let flags = u8::from(is_end);
        let frame = match padding {
            0 => data(stream, &body, is_end),
            _ => frame(kind::DATA, flags | flag::PADDED, stream, &[&[padding], &body[..]].concat()),
        };
        self.send(&frame);
        true
    }

    pub(crate) fn answer(&self, stream: u32) -> Answer {
        self.answers.get(&stream).cloned().unwrap_or_default()
    }

    /// `200 whole text`, or how it failed.
    pub(crate) fn outcome(&self, stream: u32) -> String {
        let answer = self.answer(stream);
        match (answer.reset, answer.is_whole) {
            (Some(code), _) => format!("{} reset {code}", answer.status),
            (None, true) => format!("{} {}", answer.status, answer.text()),
            (None, false) => format!("{} cut", answer.status),
        }
    }

    /// The code of the GOAWAY with which the connection ended, if it did.
    pub(crate) fn end(&mut self) -> Option<u32> {
        self.read();
        if self.driver.is_ended() { self.goaways.last().map(|(code, _)| *code) } else { None }
    }

    /// The bytes of the body that a stream has sent.
    pub(crate) fn body_len(&self, stream: u32) -> usize {
        self.answer(stream).body.len()
    }

    /// Reads what has come.
    pub(crate) fn read(&mut self) {
        self.unread.extend(self.driver.take_received());
        loop {
            let Some(header) = FrameHeader::read(&self.unread) else { return };
            let len = 9 + header.len;
            if self.unread.len() < len {
                return;
            }
            let payload = self.unread[9..len].to_vec();
            self.unread.drain(..len);
            self.frame(header, &payload);
        }
    }

    fn frame(&mut self, header: FrameHeader, payload: &[u8]) {
        let stream = header.stream;
        let number =
            |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four octets"));
        assert!(header.len <= 16_384, "{header:?}");
        match header.kind {
            kind::SETTINGS if header.flags & flag::ACK != 0 => self.settings_acks += 1,
            kind::SETTINGS => {
                for pair in payload.chunks(6) {
                    let name = u16::from_be_bytes([pair[0], pair[1]]);
                    let value = u32::from_be_bytes(pair[2..].try_into().expect("four octets"));
                    self.settings.push((name, value));
                    if name == 4 {
                        self.stream_window = i64::from(value);
                    }
                }
            }
            kind::PING if header.flags & flag::ACK != 0 => self.pongs += 1,
            kind::PING => self.pings.push(payload.try_into().expect("eight octets")),
            kind::GOAWAY => self.goaways.push((number(4), number(0))),
            kind::WINDOW_UPDATE => {
                let first = if stream == 0 { 65_535 } else { self.stream_window };
                let window = self.windows.entry(stream).or_insert(first);
                *window += i64::from(number(0));
                assert!(number(0) > 0 && *window < 1 << 31, "stream {stream}: {window}");
            }
            kind::HEADERS | kind::CONTINUATION => self.fields(header, payload),
            kind::DATA => {
                let answer = self.answers.entry(stream).or_default();
                assert!(answer.status >= 200 && !answer.is_whole, "{header:?} after {answer:?}");
                assert!(answer.reset.is_none(), "DATA after RST_STREAM");
                // Some peers count an empty frame as a flood (CVE-2019-9518).
                assert!(header.len > 0 || header.flags & flag::END_STREAM != 0, "{header:?}");
                answer.body.extend_from_slice(payload);
                answer.is_whole = header.flags & flag::END_STREAM != 0;
            }
            kind::RST_STREAM => self.answers.entry(stream).or_default().reset = Some(number(0)),
            _ => panic!("a server does not send {header:?}"),
        }
    }

    fn fields(&mut self, header: FrameHeader, payload: &[u8]) {
        self.block.extend_from_slice(payload);
        if header.flags & flag::END_HEADERS == 0 {
            return;
        }
        let bounds = Bounds { list_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20 };
        let mut list = FieldList::new();
        let block = std::mem::take(&mut self.block);
        self.decoder.decode(&block, &mut list, &bounds).expect("a block of fields");
        let answer = self.answers.entry(header.stream).or_default();
        assert!(!answer.is_whole && answer.reset.is_none(), "HEADERS after the end: {answer:?}");
        for (at, field) in list.fields().iter().enumerate() {
            assert_eq!(field.name, field.name.to_ascii_lowercase());
            let value = String::from_utf8_lossy(field.value).into_owned();
            assert!(!["connection", "upgrade", "transfer-encoding"].contains(&field.name));
            match field.name {
                ":status" => {
                    assert_eq!(at, 0);
                    answer.status = value.parse().expect("a number");
                }
                name => answer.fields.push((name.to_owned(), value)),
            }
        }
        if (100..200).contains(&answer.status) {
            answer.interim.push(answer.status);
            answer.fields.clear();
            answer.status = 0;
        }
        answer.is_whole = header.flags & flag::END_STREAM != 0;
    }
}
