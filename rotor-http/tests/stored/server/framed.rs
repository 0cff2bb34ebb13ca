//! The same on HTTP/2, where several bodies arrive at a time, and windows say how much of each.

use std::collections::BTreeMap;

use rotor_http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use rotor_http::h2::frame_writer::{self, frame_header};
use rotor_http::h2::hpack::{Bounds, FieldList, HpackDecoder, HpackEncoder};
use rotor_http::server::{Http2Config, ServerConfig};
use rotor_stream::testing::Driver;

use super::{Machine, Mirror, driver_with};
use crate::place::{SlowDisk, SpoolDirectory, pattern_bytes, wait_until_empty};

/// What has come of a request.
#[derive(Default)]
struct Answer {
    statuses: Vec<u16>,
    body: Vec<u8>,
    is_whole: bool,
    reset: Option<u32>,
}

/// A body that is sent as the windows allow.
struct Upload {
    body: Vec<u8>,
    sent: usize,
    window: usize,
}

/// A client with several uploads.
struct Client {
    driver: Driver<Machine<Mirror>>,
    unread: Vec<u8>,
    decoder: HpackDecoder,
    window: usize,
    uploads: BTreeMap<u32, Upload>,
    answers: BTreeMap<u32, Answer>,
}

/// What a connection may take before the first update (RFC 9113 §6.9.2).
const CONNECTION_WINDOW: usize = 65_535;

/// What each stream may take before the first update.
const STREAM_WINDOW: usize = 64 << 10;

/// How often a client looks whether a disk that works has come to its end: far more than it needs.
const TURNS_MAX: usize = 10_000_000;

impl Client {
    fn new(config: ServerConfig) -> Client {
        let http2 = Http2Config::new().prior_knowledge(true).stream_window(STREAM_WINDOW as u32);
        let mut driver = driver_with(config.http2(http2));
        let mut settings = Vec::new();
        // INITIAL_WINDOW_SIZE: the answers need no updates.
        frame_writer::settings(&[(4, (1 << 31) - 1)], &mut settings);
        let update = frame_header(4, kind::WINDOW_UPDATE, 0, 0);
        let bytes = (1_u32 << 30).to_be_bytes();
        let acknowledgement = frame_writer::settings_ack();
        driver.send(&[&PREFACE[..], &settings, &acknowledgement, &update, &bytes].concat());
        Client {
            driver,
            unread: Vec::new(),
            decoder: HpackDecoder::new(4096),
            window: CONNECTION_WINDOW,
            uploads: BTreeMap::new(),
            answers: BTreeMap::new(),
        }
    }

    fn begin(&mut self, stream: u32, fields: &[(&str, &str)], body: Vec<u8>) {
        let pseudo =
            [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "h")];
        let mut block = Vec::new();
        for (name, value) in pseudo.iter().chain(fields) {
            HpackEncoder::new().field(name.as_bytes(), value.as_bytes(), &mut block);
        }
        let header = frame_header(block.len(), kind::HEADERS, flag::END_HEADERS, stream);
        self.driver.send(&[&header[..], &block].concat());
        self.uploads.insert(stream, Upload { body, sent: 0, window: STREAM_WINDOW });
        self.answers.insert(stream, Answer::default());
    }

    /// Sends one frame of a body, if the windows allow any.
    fn send(&mut self, stream: u32) -> bool {
        let Some(upload) = self.uploads.get_mut(&stream) else { return false };
        let left = upload.body.len() - upload.sent;
        let count = left.min(upload.window).min(self.window).min(16_384);
        if count == 0 {
            return false;
        }
        let is_end = count == left;
        let header = frame_header(count, kind::DATA, u8::from(is_end), stream);
        let frame = [&header[..], &upload.body[upload.sent..upload.sent + count]].concat();
        upload.sent += count;
        upload.window -= count;
        self.window -= count;
        if is_end {
            self.uploads.remove(&stream);
        }
        self.driver.send(&frame);
        true
    }

    /// Reads what has come, and sends all that the windows allow.
    fn turn(&mut self) {
        self.driver.settle();
        self.read();
        let streams: Vec<u32> = self.uploads.keys().copied().collect();
        for stream in streams {
            while self.send(stream) {
                self.read();
            }
        }
    }

    fn read(&mut self) {
        self.unread.extend(self.driver.take_received());
        while let Some(header) = FrameHeader::read(&self.unread) {
            let len = 9 + header.len;
            if self.unread.len() < len {
                return;
            }
            let payload: Vec<u8> = self.unread.drain(..len).skip(9).collect();
            self.frame(header, &payload);
        }
    }

    fn frame(&mut self, header: FrameHeader, payload: &[u8]) {
        let number = || u32::from_be_bytes(payload[..4].try_into().expect("four bytes"));
        let is_end = header.flags & flag::END_STREAM != 0;
        let mut answer = self.answers.get_mut(&header.stream);
        match header.kind {
            kind::WINDOW_UPDATE if header.stream == 0 => self.window += number() as usize,
            kind::WINDOW_UPDATE => {
                if let Some(upload) = self.uploads.get_mut(&header.stream) {
                    upload.window += number() as usize;
                }
            }
            kind::HEADERS => {
                let bounds = Bounds { list_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20 };
                let mut list = FieldList::new();
                self.decoder.decode(payload, &mut list, &bounds).expect("a block of fields");
                let field = list.fields().iter().next().expect("a status");
                let status = std::str::from_utf8(field.value).expect("text");
                let answer = answer.as_mut().expect("it was requested");
                answer.statuses.push(status.parse().expect("a number"));
                answer.is_whole = is_end;
            }
            kind::DATA => {
                let answer = answer.as_mut().expect("it was requested");
                answer.body.extend_from_slice(payload);
                answer.is_whole = is_end;
            }
            kind::RST_STREAM => {
                answer.expect("it was requested").reset = Some(number());
                self.uploads.remove(&header.stream);
            }
            kind::GOAWAY => panic!("the connection ends: {payload:?}"),
            _ => {}
        }
    }

    fn until(&mut self, is_so: impl Fn(&Client) -> bool) {
        for _ in 0..TURNS_MAX {
            self.turn();
            if is_so(self) {
                return;
            }
            std::thread::yield_now();
        }
        let is_open = |(_, answer): &(&u32, &Answer)| !answer.is_whole && answer.reset.is_none();
        let open: Vec<_> = self.answers.iter().filter(is_open).map(|(stream, _)| stream).collect();
        panic!("streams {open:?} get no further");
    }

    fn is_whole(&self, stream: u32) -> bool {
        self.answers[&stream].is_whole
    }
}

#[test]
fn bodies_of_several_streams_are_stored_in_files_and_sent_back() {
    let place = SpoolDirectory::new();
    let spool = place.spool();
    let mut client = Client::new(ServerConfig::new().spool(spool.clone()));
    let lengths = [1, 999, 1_000, 1_001, 65_536, 100_000, 200_000];
    let streams: Vec<u32> = (0..lengths.len() as u32).map(|at| 2 * at + 1).collect();
    for (stream, len) in streams.iter().zip(lengths) {
        let text = len.to_string();
        let fields: &[(&str, &str)] =
            if stream % 4 == 1 { &[("content-length", &text)] } else { &[] };
        client.begin(*stream, fields, pattern_bytes(len));
    }
    client.until(|client| streams.iter().all(|stream| client.is_whole(*stream)));
    for (stream, len) in streams.iter().zip(lengths) {
        let answer = &client.answers[stream];
        assert_eq!((&answer.statuses[..], answer.reset), (&[200][..], None), "{len}");
        assert!(answer.body == pattern_bytes(len), "{len}");
    }
    client.driver.context_mut().bodies.clear();
    drop(client);
    wait_until_empty(&spool);
    assert!(place.is_empty());
}

#[test]
fn a_held_disk_stops_the_stored_bodies_and_no_others() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let mut client = Client::new(ServerConfig::new().spool(spool.clone()));
    for stream in [1, 3, 5] {
        client.begin(stream, &[("content-length", "200000")], pattern_bytes(200_000));
    }
    for _ in 0..20 {
        client.turn();
    }
    for stream in [1, 3, 5] {
        assert_eq!(client.uploads[&stream].sent, STREAM_WINDOW, "no more than its window");
    }
    client.begin(7, &[("content-length", "900")], pattern_bytes(900));
    client.until(|client| client.is_whole(7));
    disk.release();
    client.until(|client| [1, 3, 5].iter().all(|stream| client.is_whole(*stream)));
    for stream in [1, 3, 5] {
        assert!(client.answers[&stream].body == pattern_bytes(200_000), "{stream}");
    }
}

#[test]
fn a_body_that_cannot_be_stored_ends_its_stream_alone() {
    let place = SpoolDirectory::new();
    let spool = place.config().keep_free_bytes(u64::MAX).open().expect("it can be opened");
    let mut client = Client::new(ServerConfig::new().spool(spool.clone()));
    client.begin(1, &[("content-length", "200000")], pattern_bytes(200_000));
    client.begin(3, &[], pattern_bytes(200_000));
    client.begin(5, &[("content-length", "200001")], pattern_bytes(200_001));
    client.begin(7, &[("content-length", "500"), ("expect", "100-continue")], pattern_bytes(500));
    let expected = [(1, &[507][..]), (3, &[507]), (5, &[413]), (7, &[100, 200])];
    client.until(|client| expected.iter().all(|(stream, _)| client.is_whole(*stream)));
    for (stream, statuses) in expected {
        assert_eq!(client.answers[&stream].statuses, statuses, "{stream}");
    }
    assert!(client.answers[&7].body == pattern_bytes(500));
    drop(client);
    wait_until_empty(&spool);
    assert!(place.is_empty());
}
