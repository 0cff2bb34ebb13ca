//! A client with blocking calls that opens a WebSocket over TLS, with either version of HTTP, and
//! then transfers bytes in both directions.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rotor::http::h2::ErrorCode;
use rotor::http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use rotor::http::h2::frame_writer::{self, frame_header, window_update};
use rotor::http::h2::hpack::{Bounds, FieldList, HpackDecoder, HpackEncoder};
use rotor_bench::server::Server;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::certificates::Certificates;
use crate::client::{again, connect};

/// The key of HTTP/1.1 clients, and its `Sec-WebSocket-Accept`: those of RFC 6455 §1.3.
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const PROOF: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The only stream of an HTTP/2 connection.
const STREAM: u32 = 1;

/// How the other side's direction ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    InOrder,
    /// RST_STREAM with this code, or the end of the connection without `close_notify`.
    Cut(Option<u32>),
}

/// The head of a response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

pub(crate) struct TunnelClient {
    socket: StreamOwned<ClientConnection, TcpStream>,
    is_http2: bool,
    /// Bytes that were received but not parsed.
    unread: Vec<u8>,
    /// Received data of the stream: the body of its response, or the other protocol.
    came: Vec<u8>,
    end: Option<End>,
    answer: Option<Answer>,
    pongs: usize,
    has_settings: bool,
    /// How much may be sent, on the connection and on the stream.
    windows: [i64; 2],
}

impl TunnelClient {
    /// Connects with TLS, and checks that this protocol was negotiated.
    pub(crate) fn connect(proxy: &Server, trusted: &Certificates, protocol: &str) -> TunnelClient {
        let root = CertificateDer::from_pem_file(trusted.path("issuer.crt")).expect("a file");
        let mut roots = RootCertStore::empty();
        roots.add(root).expect("it is well made");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("there are versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let tls = ClientConnection::new(Arc::new(config), name).expect("it begins");
        let mut client = TunnelClient {
            socket: StreamOwned::new(tls, connect(proxy)),
            is_http2: protocol == "h2",
            unread: Vec::new(),
            came: Vec::new(),
            end: None,
            answer: None,
            pongs: 0,
            has_settings: false,
            windows: [65_535; 2],
        };
        if client.is_http2 {
            let mut begins = PREFACE.to_vec();
            frame_writer::settings(&[], &mut begins);
            client.write(&begins);
            // RFC 8441 §3: not before the server has sent SETTINGS_ENABLE_CONNECT_PROTOCOL.
            while !client.has_settings {
                assert!(!client.frame(), "it ends at once");
            }
        }
        assert_eq!(client.socket.conn.alpn_protocol().unwrap_or(b"http/1.1"), protocol.as_bytes());
        client
    }

    /// Requests a WebSocket, with these fields in addition to the usual ones.
    pub(crate) fn ask(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let usual = [("sec-websocket-version", "13"), ("origin", "https://a.example")];
        let fields = usual.iter().chain(fields);
        let request = match self.is_http2 {
            true => {
                let pseudo = [
                    (":method", "CONNECT"),
                    (":protocol", "websocket"),
                    (":scheme", "https"),
                    (":path", path),
                    (":authority", "a.example"),
                ];
                let mut block = Vec::new();
                for (name, value) in pseudo.iter().chain(fields) {
                    HpackEncoder::new().field(name.as_bytes(), value.as_bytes(), &mut block);
                }
                [&frame_header(block.len(), kind::HEADERS, flag::END_HEADERS, STREAM)[..], &block]
                    .concat()
            }
            false => {
                let fields: String =
                    fields.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                format!(
                    "GET {path} HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\n\
                     Upgrade: websocket\r\nSec-WebSocket-Key: {KEY}\r\n{fields}\r\n"
                )
                .into_bytes()
            }
        };
        self.write(&request);
        loop {
            if let Some(answer) = self.answer.take() {
                return answer;
            }
            match self.is_http2 {
                true => assert!(!self.frame() || self.answer.is_some(), "{:?}", self.end),
                false => self.head(),
            }
        }
    }

    /// Sends these bytes, as fast as the other side accepts them.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        if !self.is_http2 {
            return self.write(bytes);
        }
        for piece in bytes.chunks(16_384) {
            while self.windows[0].min(self.windows[1]) < piece.len() as i64 {
                assert!(!self.frame(), "the stream ended: {:?}", self.end);
            }
            self.windows.iter_mut().for_each(|window| *window -= piece.len() as i64);
            self.write(&frame_header(piece.len(), kind::DATA, 0, STREAM));
            self.write(piece);
        }
    }

    /// Ends this direction properly.
    pub(crate) fn end(&mut self) {
        if self.is_http2 {
            return self.write(&frame_header(0, kind::DATA, flag::END_STREAM, STREAM));
        }
        self.socket.conn.send_close_notify();
        self.socket.flush().expect("the proxy reads");
    }

    /// Aborts: RST_STREAM, or the end of the connection without notice.
    pub(crate) fn cut(mut self) {
        if self.is_http2 {
            self.write(&frame_writer::reset(STREAM, ErrorCode::Cancel));
        }
    }

    /// Reads the next `count` bytes.
    pub(crate) fn hear(&mut self, count: usize) -> Vec<u8> {
        while self.came.len() < count {
            let ends = self.more() && self.came.len() < count;
            assert!(!ends, "{:?} after {} of {count} bytes", self.end, self.came.len());
        }
        self.came.drain(..count).collect()
    }

    /// Reads until the other direction ends. Returns the bytes, and how it ended.
    pub(crate) fn hear_end(&mut self) -> (Vec<u8>, End) {
        while !self.more() {}
        (std::mem::take(&mut self.came), self.end.expect("it has ended"))
    }

    /// Waits for a PING round trip on an HTTP/2 connection.
    pub(crate) fn ping(&mut self) {
        let pongs = self.pongs;
        self.write(&frame_writer::ping([7; 8], false));
        while self.pongs == pongs {
            assert!(!self.frame(), "the stream ended");
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the proxy reads");
    }

    /// Reads more of the stream. Returns whether it has ended.
    fn more(&mut self) -> bool {
        if self.is_http2 {
            return self.frame();
        }
        if self.end.is_none() {
            self.fill();
            self.came.append(&mut self.unread);
        }
        self.end.is_some()
    }

    /// Reads from the connection.
    fn fill(&mut self) {
        let mut chunk = [0; 16 << 10];
        match again(|| self.socket.read(&mut chunk)) {
            Ok(0) => self.end = Some(End::InOrder),
            Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ) =>
            {
                self.end = Some(End::Cut(None));
            }
            Err(error) => panic!("the proxy writes: {error}"),
        }
    }

    /// Reads the head of an HTTP/1.1 response.
    fn head(&mut self) {
        let Some(len) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") else {
            assert!(self.end.is_none(), "the end after {}", self.unread.escape_ascii());
            return self.fill();
        };
        let head: Vec<u8> = self.unread.drain(..len + 4).collect();
        let head = String::from_utf8(head).expect("ASCII");
        let status = head.get(9..12).and_then(|code| code.parse().ok()).expect("a status");
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let fields = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        self.answer = Some(Answer { status, fields });
        self.came.append(&mut self.unread);
    }

    /// Reads a frame. Returns whether the stream has ended.
    fn frame(&mut self) -> bool {
        let header = loop {
            match FrameHeader::read(&self.unread) {
                Some(header) if self.unread.len() >= 9 + header.len => break header,
                _ if self.end.is_some() => return true,
                _ => self.fill(),
            }
        };
        let frame: Vec<u8> = self.unread.drain(..9 + header.len).collect();
        let payload = &frame[9..];
        let number =
            |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four octets"));
        match header.kind {
            kind::SETTINGS if header.flags & flag::ACK == 0 => {
                let offers = payload.chunks(6).any(|pair| pair == [0, 8, 0, 0, 0, 1]);
                assert!(offers, "it takes WebSockets on streams: {payload:?}");
                if let Some(at) = payload.chunks(6).position(|pair| pair[..2] == [0, 4]) {
                    self.windows[1] = i64::from(number(6 * at + 2));
                }
                self.has_settings = true;
                self.write(&frame_writer::settings_ack());
            }
            kind::WINDOW_UPDATE => {
                self.windows[usize::from(header.stream != 0)] += i64::from(number(0));
            }
            kind::PING if header.flags & flag::ACK != 0 => self.pongs += 1,
            kind::GOAWAY => assert_eq!(number(4), 0, "the proxy goes away"),
            kind::RST_STREAM => self.end = Some(End::Cut(Some(number(0)))),
            kind::HEADERS => self.answer = Some(answer_of(payload)),
            kind::DATA => {
                self.came.extend_from_slice(payload);
                if !payload.is_empty() {
                    let more = payload.len() as u32;
                    self.write(&window_update(0, more));
                    self.write(&window_update(STREAM, more));
                }
            }
            _ => {}
        }
        let ends = matches!(header.kind, kind::HEADERS | kind::DATA);
        if ends && header.flags & flag::END_STREAM != 0 {
            self.end = Some(End::InOrder);
        }
        self.end.is_some()
    }
}

fn answer_of(block: &[u8]) -> Answer {
    let bounds = Bounds { list_bytes_max: 4096, decoded_bytes_max: 4096 };
    let mut list = FieldList::new();
    HpackDecoder::new(4096).decode(block, &mut list, &bounds).expect("a block of fields");
    let fields: Vec<(String, String)> = list
        .fields()
        .iter()
        .map(|field| (field.name.to_owned(), String::from_utf8_lossy(field.value).into_owned()))
        .collect();
    let status = fields.iter().find(|(name, _)| name == ":status");
    let status = status.and_then(|(_, code)| code.parse().ok()).expect("a status");
    Answer { status, fields }
}
