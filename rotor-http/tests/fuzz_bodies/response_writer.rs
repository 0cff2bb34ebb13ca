//! Any sequence of calls to the writer of responses: the wire has exactly what was accepted, a
//! refused call changes nothing, and a finished response is read back complete.

use rotor_http::h1::{
    Body, BodyDecoder, DateCache, Ending, FieldStorage, HeadReader, Limits, MessageError, Method,
    ReplyTo, ResponseSemantics, ResponseState, Sink, Status, Version,
};

use super::body::decode_data;
use super::input::{HeadLimits, Input};
use super::naive::{self, ChunkLimits, Line, Verdict};

/// The maximum of calls for one input, since the reader accepts this number of fields.
const CALLS_MAX: usize = 100;

/// The request, and what has been accepted so far.
struct Model {
    reply: ReplyTo,
    method: Method<'static>,
    status: Option<u16>,
    reason: Option<String>,
    fields: Vec<Line>,
    length: Option<u64>,
    is_chunked: bool,
    is_head_done: bool,
    closed_in_time: bool,
    /// Bytes of the body that were accepted, sent or not.
    body_len: u64,
    sent: Vec<u8>,
    trailers: Vec<Line>,
    is_done: bool,
}

struct Run {
    state: ResponseState,
    out: Vec<u8>,
    model: Model,
}

/// The request that is answered, then calls.
pub(super) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let reply = choose_reply(&mut input);
    let method = match (reply.is_head, reply.is_connect) {
        (true, _) => Method::Head,
        (_, true) => Method::Connect,
        _ => Method::Get,
    };
    let model = Model {
        reply,
        method,
        status: None,
        reason: None,
        fields: Vec::new(),
        length: None,
        is_chunked: false,
        is_head_done: false,
        closed_in_time: false,
        body_len: 0,
        sent: Vec::new(),
        trailers: Vec::new(),
        is_done: false,
    };
    let mut run = Run { state: ResponseState::new(reply), out: Vec::new(), model };
    for _ in 0..CALLS_MAX {
        if input.is_empty() {
            break;
        }
        run.call(&mut input);
    }
    run.check();
}

fn choose_reply(input: &mut Input<'_>) -> ReplyTo {
    let choice = input.byte();
    let bit = |at: u8| choice >> at & 1 == 1;
    let version = if bit(0) { Version::Http10 } else { Version::Http11 };
    ReplyTo {
        version,
        is_head: bit(1),
        is_connect: bit(2) && !bit(1),
        wants_upgrade: bit(3) && version == Version::Http11,
        keep_alive: !bit(4),
    }
}

/// Statuses with special rules, and others without.
fn choose_status(input: &mut Input<'_>) -> Status {
    let code = match input.byte() % 16 {
        0 => 200,
        1 => 404,
        2 => 204,
        3 => 205,
        4 => 304,
        5 => 101,
        6 => 100,
        7 => 103,
        8 => 426,
        9 => 206,
        _ => input.short() % 900 + 100,
    };
    Status::new(code as u16).expect("three digits")
}

const NAMES: [&str; 18] = [
    "A",
    "Content-Type",
    "content-length",
    "Transfer-Encoding",
    "Connection",
    "Upgrade",
    "Date",
    "server",
    "Keep-Alive",
    "Proxy-Connection",
    "Trailer",
    "X-Forwarded-For",
    "X-Sum",
    "Host",
    "",
    "a b",
    "A:",
    "A\r\nB",
];

fn choose_field(input: &mut Input<'_>) -> (String, Vec<u8>) {
    let choice = usize::from(input.byte());
    let name = NAMES.get(choice).map_or_else(|| input.text(), ToString::to_string);
    (name, input.bytes().to_vec())
}

fn choose_fields(input: &mut Input<'_>) -> Vec<(String, Vec<u8>)> {
    (0..input.byte() % 4).map(|_| choose_field(input)).collect()
}

fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection"]
        .contains(&name.as_str())
}

fn is_field(name: &str, value: &[u8]) -> bool {
    naive::is_token(name.as_bytes()) && naive::is_value(value)
}

impl Model {
    fn is_in_fields(&self) -> bool {
        self.status.is_some() && !self.is_head_done
    }

    fn is_in_body(&self) -> bool {
        self.is_head_done && !self.is_done
    }

    fn is_tunnel(&self) -> bool {
        self.reply.is_connect && self.status.is_some_and(|code| (200..300).contains(&code))
    }

    fn is_bodiless(&self) -> bool {
        self.status.is_some_and(|code| code < 200 || code == 204 || code == 304) || self.is_tunnel()
    }

    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.0.eq_ignore_ascii_case(name))
    }

    fn is_length_declared(&self) -> bool {
        self.length.is_some() || self.is_chunked
    }

    fn can_start(&self, status: Status) -> bool {
        let code = status.code();
        self.status.is_none() && (code >= 200 || (code == 101 && self.reply.wants_upgrade))
    }

    fn can_add_length(&self, length: u64) -> bool {
        let is_allowed = !self.is_bodiless() || (self.status == Some(304) && !self.is_tunnel());
        self.is_in_fields()
            && !self.is_length_declared()
            && is_allowed
            && (length == 0 || self.status != Some(205))
    }

    fn can_end_head(&self, server: Option<&str>) -> bool {
        let is_upgrade_missing = matches!(self.status, Some(101 | 426)) && !self.has("Upgrade");
        let is_length_missing =
            !self.is_length_declared() && !self.is_bodiless() && self.status != Some(205);
        let is_server_good =
            self.has("Server") || server.is_none_or(|text| naive::is_value(text.as_bytes()));
        self.is_in_fields() && !is_upgrade_missing && !is_length_missing && is_server_good
    }

    fn can_write(&self, len: u64) -> bool {
        let room = match self.length {
            _ if self.is_bodiless() || self.status == Some(205) => 0,
            Some(length) => length - self.body_len,
            None => u64::MAX,
        };
        self.is_in_body() && len <= room
    }

    fn sends(&self) -> bool {
        !self.reply.is_head && !self.is_bodiless()
    }

    fn can_end(&self) -> bool {
        let is_short = self.length.is_some_and(|length| self.body_len < length);
        self.is_in_body() && !(is_short && self.sends())
    }
}

impl Run {
    /// Makes one call and checks that it is accepted if the model says so.
    fn expect(
        &mut self,
        is_good: bool,
        call: impl FnOnce(&mut ResponseState, &mut Vec<u8>) -> Result<(), MessageError>,
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
        match input.byte() % 12 {
            0 => {
                let status = choose_status(input);
                if self.expect(self.model.can_start(status), |state, out| state.status(out, status))
                {
                    self.model.status = Some(status.code());
                }
            }
            1 => {
                let (status, reason) = (choose_status(input), input.text());
                let is_good = self.model.can_start(status) && naive::is_value(reason.as_bytes());
                if self.expect(is_good, |state, out| state.status_with_reason(out, status, &reason))
                {
                    self.model.status = Some(status.code());
                    self.model.reason = Some(reason);
                }
            }
            2 => self.interim(input),
            3 | 4 => {
                let (name, value) = choose_field(input);
                let is_good =
                    self.model.is_in_fields() && is_field(&name, &value) && !is_reserved(&name);
                if self.expect(is_good, |state, out| state.add_header(out, &name, &value)) {
                    self.model.fields.push(naive::as_read((name, value)));
                }
            }
            5 => {
                let length = if input.flag() { input.long() } else { u64::from(input.byte()) };
                if self.expect(self.model.can_add_length(length), |state, out| {
                    state.add_length(out, length)
                }) {
                    self.model.length = Some(length);
                }
            }
            6 => {
                let is_good = self.model.is_in_fields()
                    && !self.model.is_length_declared()
                    && !self.model.is_bodiless()
                    && self.model.status != Some(205);
                self.model.is_chunked |= self.expect(is_good, |state, out| state.add_chunked(out));
            }
            7 => {
                self.state.close();
                self.model.closed_in_time |= !self.model.is_head_done;
            }
            8 => {
                let date = input.flag().then(|| DateCache::new(784_111_777));
                let server = input.flag().then(|| input.text());
                let is_good = self.model.can_end_head(server.as_deref());
                self.model.is_head_done |= self.expect(is_good, |state, out| {
                    state.done_headers(out, date.as_ref(), server.as_deref())
                });
            }
            9 => self.body(input),
            10 => {
                self.model.is_done |=
                    self.expect(self.model.can_end(), |state, out| state.done(out));
            }
            _ => self.done_with_trailers(input),
        }
    }

    fn interim(&mut self, input: &mut Input<'_>) {
        let (status, fields) = (choose_status(input), choose_fields(input));
        let is_good = status.code() < 200
            && status.code() != 101
            && self.model.status.is_none()
            && self.model.reply.version == Version::Http11
            && fields.iter().all(|(name, value)| is_field(name, value) && !is_reserved(name));
        let fields: Vec<(&str, &[u8])> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        self.expect(is_good, |state, out| state.interim(out, status, &fields));
    }

    fn body(&mut self, input: &mut Input<'_>) {
        let is_pushed = input.flag();
        let bytes = input.bytes();
        let len = bytes.len() as u64;
        let is_good = self.model.can_write(len);
        let mut was_pushed = false;
        let is_good = self.expect(is_good, |state, out| match is_pushed {
            false => state.write_body(out, bytes),
            true => state.write_body_with(out, len, |out| {
                was_pushed = true;
                out.put(bytes);
            }),
        });
        assert!(!was_pushed || (is_good && self.model.sends()), "nothing is pushed in vain");
        if is_good {
            self.model.body_len += len;
            if self.model.sends() {
                self.model.sent.extend_from_slice(bytes);
            }
        }
    }

    fn done_with_trailers(&mut self, input: &mut Input<'_>) {
        let fields = choose_fields(input);
        // The rules for trailer fields are not modelled completely: this covers the names in
        // `NAMES` and names of one byte, and the test skips all others.
        let is_allowed = |name: &str| {
            let known = ["trailer", "host", "date", "upgrade", "content-type", "x-forwarded-for"];
            !is_reserved(name) && !known.contains(&name.to_ascii_lowercase().as_str())
        };
        if fields.iter().any(|(name, _)| name.len() > 1 && !NAMES.contains(&name.as_str())) {
            return;
        }
        let are_good = fields.iter().all(|(name, value)| is_field(name, value) && is_allowed(name));
        let is_good = self.model.is_in_body() && self.model.is_chunked && are_good;
        let lines: Vec<(&str, &[u8])> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        if self.expect(is_good, |state, out| state.done_with_trailers(out, &lines)) {
            self.model.is_done = true;
            self.model.trailers = fields.into_iter().map(naive::as_read).collect();
        }
    }

    /// Reads the output back, as the client that sent the request.
    fn check(&self) {
        let model = &self.model;
        let ending = self.state.ending();
        let is_ended = !matches!(ending, Ending::Unstarted | Ending::Unfinished);
        assert_eq!(is_ended, model.is_done);
        assert_eq!(self.state.is_head_done(), model.is_head_done);
        assert_eq!(self.state.final_status().map(Status::code), model.status);
        let limits =
            HeadLimits { head: 1 << 20, field: 1 << 20, fields: 256, target: 0, empty_lines: 0 };
        let mut at = 0;
        loop {
            let rest = &self.out[at..];
            if rest.is_empty() {
                assert!(model.status.is_none(), "the final answer was written");
                return;
            }
            let mut storage = FieldStorage::new();
            let limits_of_reader = limits.limits();
            let read = HeadReader::new().read_response(rest, &mut storage, &limits_of_reader);
            let Some(head) = read.expect("a good head") else {
                assert!(
                    model.status.is_some() && !model.is_head_done,
                    "only the last head is incomplete"
                );
                return;
            };
            let terms =
                ResponseSemantics::from_head(&head, model.method, model.reply.wants_upgrade)
                    .expect("good terms");
            let Verdict::Good(naive) = naive::response_head(rest, &limits) else {
                panic!("a good head")
            };
            at += head.input_len();
            if terms.is_interim {
                assert!(
                    naive
                        .values("Content-Length")
                        .chain(naive.values("Transfer-Encoding"))
                        .next()
                        .is_none()
                );
                continue;
            }
            assert!(model.is_head_done);
            self.check_head(&naive, &terms, ending);
            self.check_body(&self.out[at..], &terms);
            return;
        }
    }

    fn check_head(&self, head: &naive::Head, terms: &ResponseSemantics, ending: Ending) {
        let model = &self.model;
        let status = Status::new(model.status.expect("a status")).expect("three digits");
        assert_eq!(head.start[1], status.code().to_string().as_bytes());
        assert_eq!(head.start[2], model.reason.as_deref().unwrap_or(status.reason()).as_bytes());
        let ours = ["Content-Length", "Transfer-Encoding", "Connection", "Date", "Server"];
        let is_ours = |line: &&Line| {
            ours.iter().any(|name| name.eq_ignore_ascii_case(&line.0)) && !model.has(&line.0)
        };
        let others: Vec<&Line> = head.lines.iter().filter(|line| !is_ours(line)).collect();
        assert_eq!(others, model.fields.iter().collect::<Vec<_>>());
        for name in ours {
            assert!(head.values(name).count() <= 1 || model.has(name), "{name} once");
        }
        let framing =
            (head.values("Content-Length").count(), head.values("Transfer-Encoding").count());
        let is_silent = status.code() < 200 || status.code() == 204 || model.is_tunnel();
        assert!(framing != (1, 1) && (framing == (0, 0) || !is_silent), "{framing:?} on {status}");
        if let Some(length) = model.length {
            assert_eq!(head.elements("Content-Length"), [length.to_string()]);
        }
        let options = head.elements("Connection");
        assert_eq!(options.contains(&"upgrade".to_owned()), model.has("Upgrade"));
        match ending {
            Ending::KeepAlive if model.reply.version == Version::Http10 => {
                assert!(options.contains(&"keep-alive".to_owned()));
            }
            Ending::KeepAlive => assert!(terms.keep_alive),
            Ending::Switch => assert!(status.code() == 101 || model.is_tunnel()),
            Ending::Close | Ending::Unstarted | Ending::Unfinished => {}
        }
        if ending == Ending::Close && (model.closed_in_time || !model.reply.keep_alive) {
            assert!(!terms.keep_alive, "the peer is told");
        }
        assert!(
            terms.body != Body::UntilClose || ending != Ending::KeepAlive,
            "the end is to be seen"
        );
    }

    fn check_body(&self, rest: &[u8], terms: &ResponseSemantics) {
        let model = &self.model;
        let mut decoder =
            BodyDecoder::new(terms.body, u64::MAX, &Limits::new()).expect("no limit on the body");
        let (data, consumed) = decode_data(&mut decoder, rest);
        assert_eq!(data, model.sent);
        assert_eq!(consumed, rest.len(), "not one octet more than announced");
        if model.is_done {
            assert_eq!(decoder.finish(), Ok(()), "not one octet less than announced");
        }
        if terms.body != Body::Chunked {
            return;
        }
        let limits =
            ChunkLimits { body: u64::MAX, line: 16, extensions: 0, trailer: 4096, trailers: 32 };
        let (verdict, naive) = naive::chunked(rest, &limits);
        assert_eq!(naive.data, model.sent);
        if model.is_done {
            assert_eq!((verdict, naive.consumed), (Verdict::Good(()), rest.len()));
            assert_eq!(naive.trailers, model.trailers);
        } else {
            assert_eq!(verdict, Verdict::Incomplete);
        }
    }
}
