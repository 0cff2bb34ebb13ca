//! An HTTP/2 server on a scripted socket. It writes any frames that a test wants, and reads its
//! input strictly, with its own record of both windows.

use std::collections::BTreeMap;
use std::sync::Arc;

use rotor_core::Outcome;
use rotor_http::Limits;
use rotor_http::client::{ClientConfig, Http2Config};
use rotor_http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use rotor_http::h2::frame_writer::{self, frame_header};
use rotor_http::h2::hpack::{Bounds, FieldList, HpackDecoder, HpackEncoder};

use crate::probe::{Probe, describe};
use crate::script::{ProbeDriver, connection_with_config};

/// The request that was received on a stream.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ReceivedRequest {
    /// In the form `GET http h /path`.
    pub(crate) line: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    pub(crate) is_whole: bool,
    /// The code of RST_STREAM.
    pub(crate) reset: Option<u32>,
}

pub(crate) struct Server {
    pub(crate) driver: ProbeDriver,
    decoder: HpackDecoder,
    unread: Vec<u8>,
    has_preface: bool,
    pub(crate) requests: BTreeMap<u32, ReceivedRequest>,
    pub(crate) goaways: Vec<u32>,
    pub(crate) pings: Vec<[u8; 8]>,
    pub(crate) pongs: usize,
    pub(crate) settings_acks: usize,
    /// How much we may send: on the connection (0) and on each stream.
    pub(crate) windows: BTreeMap<u32, i64>,
    pub(crate) stream_window: i64,
    /// How much the client may send.
    pub(crate) granted: BTreeMap<u32, i64>,
    pub(crate) initial: i64,
    pub(crate) outcomes: Vec<Option<String>>,
    /// Whether its settings allow extended CONNECT.
    pub(crate) offers_protocols: bool,
}

pub(crate) fn http2() -> Http2Config {
    Http2Config::new().prior_knowledge(true)
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&frame_header(payload.len(), kind, flags, stream)[..], payload].concat()
}

pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        HpackEncoder::new().field(name.as_bytes(), value.as_bytes(), &mut block);
    }
    block
}

/// A complete HEADERS frame with these fields.
pub(crate) fn headers(stream: u32, fields: &[(&str, &str)], is_end: bool) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | u8::from(is_end), stream, &block(fields))
}

pub(crate) fn data(stream: u32, body: &[u8], is_end: bool) -> Vec<u8> {
    frame(kind::DATA, u8::from(is_end), stream, body)
}

pub(crate) fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame_writer::settings(pairs, &mut frame);
    frame
}

/// A complete 200 response with this body.
pub(crate) fn page(stream: u32, body: &str) -> Vec<u8> {
    let head = headers(stream, &[(":status", "200")], body.is_empty());
    if body.is_empty() { head } else { [head, data(stream, body.as_bytes(), true)].concat() }
}

pub(crate) fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

pub(crate) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
}

impl Server {
    /// A server that has sent its settings, and a client with these requests.
    pub(crate) fn new(plans: impl IntoIterator<Item = Probe>) -> Server {
        let config = ClientConfig::new().http2(http2());
        Server::of(config, &[], plans)
    }

    pub(crate) fn with_limits(limits: Limits, plans: impl IntoIterator<Item = Probe>) -> Server {
        Server::of(ClientConfig::new().http2(http2()).limits(limits), &[], plans)
    }

    pub(crate) fn of(
        config: ClientConfig,
        pairs: &[(u16, u32)],
        plans: impl IntoIterator<Item = Probe>,
    ) -> Server {
        let mut server = Server::silent(config, plans);
        for pair in pairs.iter().filter(|(name, _)| *name == 4) {
            server.initial = i64::from(pair.1);
        }
        server.offers_protocols = pairs.contains(&(8, 1));
        let begins = [settings(pairs), frame_writer::settings_ack().to_vec()].concat();
        server.send(&begins);
        server
    }

    /// A server that has sent nothing.
    pub(crate) fn silent(config: ClientConfig, plans: impl IntoIterator<Item = Probe>) -> Server {
        let mut server = Server {
            driver: connection_with_config(&Arc::new(config), plans),
            decoder: HpackDecoder::new(4096),
            unread: Vec::new(),
            has_preface: false,
            requests: BTreeMap::new(),
            goaways: Vec::new(),
            pings: Vec::new(),
            pongs: 0,
            settings_acks: 0,
            windows: BTreeMap::from([(0, 65_535)]),
            stream_window: 65_535,
            granted: BTreeMap::from([(0, 65_535)]),
            initial: 65_535,
            outcomes: Vec::new(),
            offers_protocols: false,
        };
        server.read();
        server
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.driver.send(bytes);
        self.read();
    }

    /// Lets the client send this many more bytes.
    pub(crate) fn grant_window(&mut self, stream: u32, more: u32) {
        let initial = if stream == 0 { 65_535 } else { self.initial };
        *self.granted.entry(stream).or_insert(initial) += i64::from(more);
        self.send(&frame_writer::window_update(stream, more));
    }

    /// Sends this many bytes of a body, if both windows allow it.
    pub(crate) fn send_body(&mut self, stream: u32, octets: usize, is_end: bool) -> bool {
        let own = self.windows.get(&stream).copied().unwrap_or(self.stream_window);
        let all = self.windows.get(&0).copied().unwrap_or_default();
        if own.min(all) < octets as i64 {
            return false;
        }
        self.windows.insert(stream, own - octets as i64);
        self.windows.insert(0, all - octets as i64);
        self.send(&data(stream, &vec![b'x'; octets], is_end));
        true
    }

    pub(crate) fn add_request(&mut self, probe: Probe) {
        self.driver.context_mut().plans.push_back(probe);
        self.driver.wakeup();
        self.read();
    }

    /// The request lines, in the order of their streams.
    pub(crate) fn request_lines(&self) -> Vec<&str> {
        self.requests.values().map(|request| request.line.as_str()).collect()
    }

    /// The outcome of the request with this index in the order of their start, from 0.
    pub(crate) fn outcome(&mut self, at: usize) -> String {
        self.read();
        self.outcomes.get(at).cloned().flatten().unwrap_or_else(|| "nothing yet".to_owned())
    }

    /// The code with which the client ended the connection, if it did.
    pub(crate) fn end(&mut self) -> Option<u32> {
        self.read();
        if self.driver.is_ended() { self.goaways.last().copied() } else { None }
    }

    /// Reads the client's output and the outcomes of the requests.
    pub(crate) fn read(&mut self) {
        self.unread.extend(self.driver.take_received());
        if !self.has_preface && self.unread.len() >= PREFACE.len() {
            assert!(self.unread.starts_with(PREFACE));
            self.unread.drain(..PREFACE.len());
            self.has_preface = true;
        }
        while let Some(header) = FrameHeader::read(&self.unread) {
            let len = 9 + header.len;
            if self.unread.len() < len {
                break;
            }
            let payload = self.unread[9..len].to_vec();
            self.unread.drain(..len);
            self.frame(header, &payload);
        }
        let futures = std::mem::take(&mut self.driver.context_mut().futures);
        let mut waiting = std::collections::VecDeque::new();
        let mut places = 0..;
        for future in futures {
            // The future belongs to the next request without an outcome.
            let at = places
                .find(|at| self.outcomes.get(*at).is_none_or(Option::is_none))
                .expect("without end");
            self.outcomes.resize(self.outcomes.len().max(at + 1), None);
            match future.take() {
                Outcome::Pending(future) => waiting.push_back(future),
                Outcome::Value(result) => self.outcomes[at] = Some(describe(result)),
                Outcome::Lost(lost) => self.outcomes[at] = Some(format!("{lost:?}")),
            }
        }
        self.driver.context_mut().futures = waiting;
    }

    fn frame(&mut self, header: FrameHeader, payload: &[u8]) {
        let stream = header.stream;
        let number =
            |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four octets"));
        assert!(header.len <= 16_384, "{header:?}");
        let is_end = header.flags & flag::END_STREAM != 0;
        match header.kind {
            kind::SETTINGS if header.flags & flag::ACK != 0 => self.settings_acks += 1,
            kind::SETTINGS => {
                for pair in payload.chunks(6) {
                    let value = u32::from_be_bytes(pair[2..].try_into().expect("four octets"));
                    match pair[..2] {
                        [0, 2] => assert_eq!(value, 0, "no pushes"),
                        [0, 4] => self.stream_window = i64::from(value),
                        _ => {}
                    }
                }
            }
            kind::PING if header.flags & flag::ACK != 0 => self.pongs += 1,
            kind::PING => self.pings.push(payload.try_into().expect("eight octets")),
            kind::GOAWAY => self.goaways.push(number(4)),
            kind::WINDOW_UPDATE => {
                let first = if stream == 0 { 65_535 } else { self.stream_window };
                let window = self.windows.entry(stream).or_insert(first);
                *window += i64::from(number(0));
                assert!(number(0) > 0 && *window < 1 << 31, "stream {stream}: {window}");
            }
            kind::HEADERS => self.fields(header, payload),
            kind::DATA => {
                for own in [0, stream] {
                    let initial = if own == 0 { 65_535 } else { self.initial };
                    let left = self.granted.entry(own).or_insert(initial);
                    *left -= payload.len() as i64;
                    assert!(*left >= 0, "beyond the window of {own}: {left}");
                }
                let request = self.requests.get_mut(&stream).expect("it has begun");
                assert!(
                    !request.is_whole && request.reset.is_none(),
                    "{header:?} after {request:?}"
                );
                assert!(header.len > 0 || is_end, "{header:?}");
                request.body.extend_from_slice(payload);
                request.is_whole = is_end;
            }
            kind::RST_STREAM => {
                let request = self.requests.get_mut(&stream).expect("it has begun");
                assert!(request.reset.replace(number(0)).is_none());
            }
            _ => panic!("a client does not send {header:?}"),
        }
    }

    fn fields(&mut self, header: FrameHeader, payload: &[u8]) {
        assert!(header.flags & flag::END_HEADERS != 0);
        let bounds = Bounds { list_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20 };
        let mut list = FieldList::new();
        self.decoder.decode(payload, &mut list, &bounds).expect("a block of fields");
        let mut fields: Vec<(String, String)> = list
            .fields()
            .iter()
            .map(|field| {
                assert_eq!(field.name, field.name.to_ascii_lowercase());
                (field.name.to_owned(), String::from_utf8_lossy(field.value).into_owned())
            })
            .collect();
        let is_end = header.flags & flag::END_STREAM != 0;
        let last = self.requests.keys().last().copied().unwrap_or_default();
        if let Some(request) = self.requests.get_mut(&header.stream) {
            assert!(is_end && !request.is_whole && request.reset.is_none());
            request.trailers = fields;
            request.is_whole = true;
            return;
        }
        assert!(header.stream > last && header.stream % 2 == 1, "{header:?} after {last}");
        let names: Vec<&str> = fields[..4].iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [":method", ":scheme", ":authority", ":path"]);
        let own = |at: usize| fields[at].1.as_str();
        let line = format!("{} {} {} {}", own(0), own(1), own(2), own(3));
        fields.drain(..4);
        let is_protocol = fields.first().is_some_and(|(name, _)| name == ":protocol");
        assert_eq!(is_protocol, line.starts_with("CONNECT"), "{line}");
        assert!(!is_protocol || self.offers_protocols, "it was not offered");
        for (name, _) in &fields {
            assert!(!["connection", "upgrade", "transfer-encoding", "host"].contains(&&**name));
        }
        let request =
            ReceivedRequest { line, fields, is_whole: is_end, ..ReceivedRequest::default() };
        self.requests.insert(header.stream, request);
    }
}
