//! Any sequence of calls to the writer of requests: a refused call changes nothing, and a finished
//! request is read back complete, as it was accepted.

use rotor_http::h1::{
    Body, BodyDecoder, FieldStorage, HeadReader, Limits, MessageError, Method, RequestSemantics,
    RequestState, Sink,
};

use super::body::decode_data;
use super::input::{HeadLimits, Input};
use super::naive::{self, ChunkLimits, Line, Verdict};

/// The maximum of calls for one input, since the reader accepts this number of fields.
const CALLS_MAX: usize = 100;

/// The parts that have been accepted so far.
#[derive(Default)]
struct Model {
    method: String,
    target: String,
    is_started: bool,
    fields: Vec<Line>,
    length: Option<u64>,
    is_chunked: bool,
    is_head_done: bool,
    is_closed: bool,
    closed_in_time: bool,
    body: Vec<u8>,
    trailers: Vec<Line>,
    is_done: bool,
}

struct Run {
    state: RequestState,
    out: Vec<u8>,
    model: Model,
}

/// Calls, one after another.
pub(super) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut run = Run { state: RequestState::new(), out: Vec::new(), model: Model::default() };
    for _ in 0..CALLS_MAX {
        if input.is_empty() {
            break;
        }
        run.call(&mut input);
    }
    run.check();
}

const NAMES: [&str; 13] = [
    "Host",
    "A",
    "Upgrade",
    "content-length",
    "Transfer-Encoding",
    "Connection",
    "Expect",
    "Keep-Alive",
    "Proxy-Connection",
    "",
    "a b",
    "A\r\nB",
    "TE",
];

const VALUES: [&[u8]; 4] = [b"example.com", b"[::1]:80", b"100-continue", b"a\r\nb"];

/// A method by name: known or unknown, a token or not.
fn choose_method(input: &mut Input<'_>) -> String {
    let known = ["GET", "HEAD", "POST", "PUT", "CONNECT", "OPTIONS", "PATCH"];
    match input.byte() {
        choice @ 0..=6 => known[usize::from(choice)].to_owned(),
        _ => input.text().chars().take(Method::BYTES_MAX).collect(),
    }
}

fn choose_field(input: &mut Input<'_>) -> Line {
    let choice = usize::from(input.byte());
    let name = NAMES.get(choice).map_or_else(|| input.text(), ToString::to_string);
    let choice = usize::from(input.byte());
    let value = VALUES.get(choice).copied().unwrap_or_else(|| input.bytes());
    (name, value.to_vec())
}

impl Model {
    fn is_in_fields(&self) -> bool {
        self.is_started && !self.is_head_done
    }

    fn is_in_body(&self) -> bool {
        self.is_head_done && !self.is_done
    }

    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.0.eq_ignore_ascii_case(name))
    }

    fn can_add(&self, (name, value): &Line) -> bool {
        let lower = name.to_ascii_lowercase();
        let is_reserved = [
            "content-length",
            "transfer-encoding",
            "connection",
            "keep-alive",
            "proxy-connection",
            "expect",
        ]
        .contains(&lower.as_str());
        let is_host_good =
            lower != "host" || (!self.has("Host") && naive::authority(value).is_some());
        let is_field = naive::is_token(name.as_bytes()) && naive::is_value(value);
        self.is_in_fields() && !is_reserved && is_host_good && is_field
    }

    /// Bytes that the body may still have.
    fn room(&self) -> u64 {
        if self.is_chunked { u64::MAX } else { self.length.unwrap_or(0) - self.body.len() as u64 }
    }
}

impl Run {
    /// Makes one call and checks that it is accepted if the model says so.
    fn expect(
        &mut self,
        is_good: bool,
        call: impl FnOnce(&mut RequestState, &mut Vec<u8>) -> Result<(), MessageError>,
    ) -> bool {
        let (state, len) = (self.state, self.out.len());
        let answer = call(&mut self.state, &mut self.out);
        assert_eq!(answer.is_ok(), is_good, "{answer:?} in {state:?}");
        if answer.is_err() {
            assert_eq!(self.out.len(), len, "a refused call writes nothing");
            assert_eq!(
                format!("{:?}", self.state),
                format!("{state:?}"),
                "a refused call changes nothing"
            );
        }
        is_good
    }

    fn call(&mut self, input: &mut Input<'_>) {
        match input.byte() % 10 {
            0 => self.request_line(input),
            1 | 2 => {
                let field = choose_field(input);
                let is_good = self.model.can_add(&field);
                if self.expect(is_good, |state, out| state.add_header(out, &field.0, &field.1)) {
                    self.model.fields.push(naive::as_read(field));
                }
            }
            3 => {
                let length = if input.flag() { input.long() } else { u64::from(input.byte()) };
                let is_good = self.model.is_in_fields() && self.is_length_open();
                if self.expect(is_good, |state, out| state.add_length(out, length)) {
                    self.model.length = Some(length);
                }
            }
            4 => {
                let is_good = self.model.is_in_fields() && self.is_length_open();
                self.model.is_chunked |= self.expect(is_good, |state, out| state.add_chunked(out));
            }
            5 => {
                self.state.close();
                self.model.is_closed = true;
                self.model.closed_in_time |= !self.model.is_head_done;
            }
            6 => {
                let is_good = self.model.is_in_fields() && self.model.has("Host");
                self.model.is_head_done |=
                    self.expect(is_good, |state, out| state.done_headers(out));
            }
            7 => self.body(input),
            8 => {
                let is_good =
                    self.model.is_in_body() && (self.model.is_chunked || self.model.room() == 0);
                self.model.is_done |= self.expect(is_good, |state, out| state.done(out));
            }
            _ => {
                let name = input.pick(&["A", "X-Sum", "Host", "a b", "Content-Length"]);
                let value = input.bytes();
                let is_good = self.model.is_in_body()
                    && self.model.is_chunked
                    && matches!(name, "A" | "X-Sum")
                    && naive::is_value(value);
                if self
                    .expect(is_good, |state, out| state.done_with_trailers(out, &[(name, value)]))
                {
                    self.model.is_done = true;
                    self.model.trailers.push(naive::as_read((name.to_owned(), value.to_vec())));
                }
            }
        }
    }

    fn is_length_open(&self) -> bool {
        self.model.length.is_none() && !self.model.is_chunked
    }

    fn request_line(&mut self, input: &mut Input<'_>) {
        let method = choose_method(input);
        let target = match input.byte() {
            choice @ 0..=4 => {
                ["/", "/a?b", "*", "a:443", "http://a/"][usize::from(choice)].to_owned()
            }
            _ => input.text(),
        };
        // A known method may also be given as an extension method with its name.
        let is_by_name = input.flag();
        let named = if is_by_name { Method::new(&method) } else { None };
        let named = named.unwrap_or(Method::Extension(&method));
        let is_good = !self.model.is_started
            && naive::is_token(method.as_bytes())
            && naive::target(method.as_bytes(), target.as_bytes()).is_some();
        if self.expect(is_good, |state, out| state.request_line(out, named, &target)) {
            (self.model.method, self.model.target) = (method, target);
            self.model.is_started = true;
        }
    }

    fn body(&mut self, input: &mut Input<'_>) {
        let is_pushed = input.flag();
        let bytes = input.bytes();
        let len = bytes.len() as u64;
        let is_good = self.model.is_in_body() && len <= self.model.room();
        let mut was_pushed = false;
        let is_good = self.expect(is_good, |state, out| match is_pushed {
            false => state.write_body(out, bytes),
            true => state.write_body_with(out, len, |out| {
                was_pushed = true;
                out.put(bytes);
            }),
        });
        assert!(!was_pushed || is_good, "nothing is pushed in vain");
        if is_good {
            self.model.body.extend_from_slice(bytes);
        }
    }

    /// Reads the output back, as a server.
    fn check(&self) {
        let model = &self.model;
        assert_eq!(self.state.is_unstarted(), !model.is_started);
        assert_eq!(self.state.is_done(), model.is_done);
        assert_eq!(self.state.keeps_alive(), !model.is_closed);
        let head_limits = HeadLimits {
            head: 1 << 20,
            field: 1 << 20,
            fields: 256,
            target: 1 << 20,
            empty_lines: 0,
        };
        let limits = head_limits.limits();
        let mut storage = FieldStorage::new();
        let read = HeadReader::new().read_request(&self.out, &mut storage, &limits);
        let Some(head) = read.expect("a good head") else {
            assert!(!model.is_head_done, "the head was written");
            return;
        };
        assert!(model.is_head_done, "the head was not written");
        let Verdict::Good(naive) = naive::request_head(&self.out, &head_limits) else {
            panic!("a good head")
        };
        self.check_head(&naive);
        let rest = &self.out[head.input_len()..];
        let terms = RequestSemantics::from_head(&head).expect("what is written is in order");
        assert_eq!(terms.keep_alive, !model.closed_in_time);
        assert_eq!(terms.wants_upgrade, model.has("Upgrade"));
        self.check_body(rest, terms.body);
    }

    fn check_head(&self, head: &naive::Head) {
        let model = &self.model;
        assert_eq!(
            head.start,
            [model.method.as_bytes(), model.target.as_bytes(), b"HTTP/1.1"].map(<[u8]>::to_vec)
        );
        let ours = ["content-length", "transfer-encoding", "connection"];
        let is_ours = |line: &Line| ours.contains(&line.0.to_ascii_lowercase().as_str());
        let others: Vec<&Line> = head.lines.iter().filter(|line| !is_ours(line)).collect();
        assert_eq!(others, model.fields.iter().collect::<Vec<_>>());
        for name in ours {
            assert!(head.values(name).count() <= 1, "{name} once");
        }
        let is_te = |option: &String| option.eq_ignore_ascii_case("TE");
        assert_eq!(head.elements("Connection").iter().any(is_te), model.has("TE"));
        let usually_has_body = ["POST", "PUT", "PATCH"].contains(&model.method.as_str());
        let length = model.length.or((usually_has_body && !model.is_chunked).then_some(0));
        assert_eq!(
            head.elements("Content-Length"),
            length.map(|length| length.to_string()).as_slice()
        );
    }

    fn check_body(&self, rest: &[u8], body: Body) {
        let model = &self.model;
        let mut decoder =
            BodyDecoder::new(body, u64::MAX, &Limits::new()).expect("no limit on the body");
        let (data, consumed) = decode_data(&mut decoder, rest);
        assert_eq!(data, model.body);
        assert_eq!(consumed, rest.len(), "not one octet more than announced");
        assert!(!model.is_done || decoder.is_end(), "not one octet less than announced");
        if body == Body::Chunked {
            let limits =
                ChunkLimits { body: u64::MAX, line: 16, extensions: 0, trailer: 4096, trailers: 1 };
            let (verdict, naive) = naive::chunked(rest, &limits);
            let expected = if model.is_done { Verdict::Good(()) } else { Verdict::Incomplete };
            assert_eq!(verdict, expected);
            assert_eq!((naive.data, naive.trailers), (model.body.clone(), model.trailers.clone()));
        }
    }
}
