//! The reading half of `h1`: every limit at n − 1, n and n + 1, final errors, response heads, and
//! randomly changed heads; whole, byte by byte and cut. The rules for requests are in
//! `server/rules`.

mod bodies;
mod heads;
mod limits;

use std::fmt::Write;

use rotor_http::h1::{
    Body, BodyDecoder, FieldStorage, HeadReader, Limits, Method, RequestSemantics,
};

/// A server's view of one connection: the input that is not consumed, and the results of the rest.
struct Connection {
    input: Vec<u8>,
    reader: HeadReader,
    body: Option<BodyDecoder>,
    answers: String,
    is_over: bool,
    limits: Limits,
}

impl Connection {
    fn new(limits: Limits) -> Connection {
        let (input, answers) = Default::default();
        Connection { input, reader: HeadReader::new(), body: None, answers, is_over: false, limits }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while !self.is_over && self.step() {}
    }

    /// Reads one head or one piece of a body. Returns whether there may be more.
    fn step(&mut self) -> bool {
        if self.body.is_some() {
            return self.body_step();
        }
        let mut storage = FieldStorage::new();
        let head = match self.reader.read_request(&self.input, &mut storage, &self.limits) {
            Ok(None) => return false,
            Ok(Some(head)) => head,
            Err(error) => return self.refuse(error.status().code()),
        };
        let len = head.input_len();
        let terms = match RequestSemantics::from_head(&head) {
            Ok(terms) => terms,
            Err(error) => return self.refuse(error.status().code()),
        };
        if let Method::Extension(_) = head.method() {
            return self.refuse(501);
        }
        let flags = [
            (!terms.keep_alive, "close "),
            (terms.expects_continue, "continue "),
            (terms.wants_upgrade, "upgrade "),
        ];
        write!(self.answers, "{} {} ", head.method(), head.path()).expect("to a string");
        flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .for_each(|(_, flag)| self.answers.push_str(flag));
        self.is_over = terms.wants_upgrade || head.method() == Method::Connect;
        let (body, keep_alive) = (terms.body, terms.keep_alive);
        self.input.drain(..len);
        self.body = (body != Body::Empty)
            .then(|| BodyDecoder::new(body, u64::MAX, &self.limits).expect("no limit on the body"));
        if self.body.is_none() {
            self.is_over |= !keep_alive;
            self.answers.push_str("| ");
        }
        true
    }

    fn body_step(&mut self) -> bool {
        let Some(body) = &mut self.body else { return false };
        let decoded = match body.decode(&self.input) {
            Ok(decoded) => decoded,
            Err(error) => return self.refuse(error.status().code()),
        };
        let data = String::from_utf8_lossy(&self.input[decoded.skip..decoded.consumed()]);
        self.answers.push_str(&data);
        self.input.drain(..decoded.consumed());
        if decoded.is_end {
            let trailers = self.body.take().map(BodyDecoder::into_trailers).unwrap_or_default();
            trailers
                .iter()
                .for_each(|trailer| write!(self.answers, " {trailer:?}").expect("to a string"));
            self.answers.push_str(" | ");
        }
        decoded.data > 0 || decoded.is_end
    }

    fn refuse(&mut self, status: u16) -> bool {
        write!(self.answers, "{status}").expect("to a string");
        self.is_over = true;
        false
    }

    fn finish(mut self) -> String {
        let is_partial = self.body.is_some() || !self.reader.is_idle();
        if !self.is_over && is_partial {
            self.answers.push_str("...");
        }
        self.answers.trim_end_matches(['|', ' ']).to_owned()
    }
}

/// The server's result for these pieces: each request with its body, then the status with which it
/// refuses the rest, or `...` if it waits.
fn answers<'a>(limits: &Limits, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut connection = Connection::new(limits.clone());
    pieces.into_iter().for_each(|piece| connection.feed(piece));
    connection.finish()
}

/// Runs the input whole, byte by byte, and in two pieces (at every cut if it is short), and
/// requires one result.
fn check(name: &str, limits: &Limits, input: &[u8], expected: &str) {
    assert_eq!(answers(limits, [input]), expected, "{name}, whole: {}", input.escape_ascii());
    let bytes = answers(limits, input.chunks(1));
    assert_eq!(bytes, expected, "{name}, byte by byte: {}", input.escape_ascii());
    let step = input.len() / 300 + 1;
    for cut in (0..input.len()).step_by(step) {
        let (first, second) = input.split_at(cut);
        let cut_answers = answers(limits, [first, second]);
        assert_eq!(cut_answers, expected, "{name}, cut at {cut}: {}", input.escape_ascii());
    }
}

/// A GET with these field lines after `Host`.
fn get(lines: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes()
}

/// A POST with these field lines after `Host`, and the bytes after the head.
fn post(lines: &str, body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n{body}").into_bytes()
}

/// The fast path and the scanner must always agree: valid heads with one to three bytes changed,
/// whole and byte by byte.
#[test]
fn mutated_heads_parse_the_same_however_they_are_split() {
    let seeds: [&[u8]; 5] = [
        b"GET /a?b=c HTTP/1.1\r\nHost: a:80\r\nX-Y: z \t\r\nEmpty:\r\n\r\n",
        b"\r\nPOST http://a/b HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabcGET",
        b"POST / HTTP/1.1\r\nhost:a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\nX: y\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: [::1]\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
        b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: b\r\nConnection: close, upgrade\r\n\r\n",
    ];
    let bytes = b"\0\t\n\r \"#%,/09:;=@AZ[\\]az\x7f\x80\xc3\xa9\xff";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let limits = Limits::new();
    for round in 0..30_000 {
        let mut input = seeds[round % seeds.len()].to_vec();
        for _ in 0..=random(3) {
            let at = random(input.len());
            match random(3) {
                0 => input[at] = bytes[random(bytes.len())],
                1 => input.insert(at, bytes[random(bytes.len())]),
                _ => drop(input.remove(at)),
            }
        }
        let whole = answers(&limits, [input.as_slice()]);
        let bytewise = answers(&limits, input.chunks(1));
        assert_eq!(whole, bytewise, "{}", input.escape_ascii());
        let (first, second) = input.split_at(random(input.len()));
        assert_eq!(whole, answers(&limits, [first, second]), "{}", input.escape_ascii());
    }
}
