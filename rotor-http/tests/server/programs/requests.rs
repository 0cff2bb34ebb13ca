//! Random requests, and what their programs must lead to.

use std::fmt;

use rotor_http::Status;

use super::Random;
use super::program::{received, written_by};

/// A request with its program.
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) steps: String,
    pub(super) body: Vec<u8>,
    pub(super) is_length_announced: bool,
    pub(super) has_trailers: bool,
    /// It waits for `100 Continue`.
    pub(super) expects: bool,
}

/// What a peer must get.
pub(super) struct Outcome {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) has_trailers: bool,
    /// The program fails after it has begun its response: the response is cut off, unless nothing
    /// of it was sent. A response whose bytes were all sent is whole nevertheless.
    pub(super) may_be_cut: bool,
}

const WAITS: [&str; 8] = ["z", "v", "u", "t", "x", "i", "a", ""];

impl Request {
    pub(super) fn random(random: &mut Random) -> Request {
        let mut steps = String::new();
        let add = |steps: &mut String, most: usize, choice: &[&str], random: &mut Random| {
            (0..random.below(most)).for_each(|_| *steps += random.one_of(choice));
        };
        add(&mut steps, 3, &WAITS, random);
        let mirrors = random.one_in(5);
        if mirrors {
            steps += "s9";
        } else if random.below(3) > 0 {
            let stored = if cfg!(feature = "body") { "4" } else { "1" };
            steps += random.one_of(&["1", "2", "3", stored, "5", "6", "7", "8"]);
        }
        // No interim response and no field for all responses after the status.
        add(&mut steps, 3, if mirrors { &WAITS[..5] } else { &WAITS }, random);
        match random.below(10) {
            _ if mirrors => steps += random.one_of(&["d", "D", "wD", "fWfd"]),
            0..3 => steps += "r",
            3..8 => {
                let is_chunked = random.one_in(2);
                steps += if is_chunked { "s" } else { "n" };
                add(&mut steps, 12, &["w", "W", "k", "f", "f", "z", "v", "u", "t", "x"], random);
                steps += if is_chunked && random.one_in(2) { "D" } else { "d" };
            }
            _ => {
                let ends = ["ed", "F", "G", "p", ".", "swF", "sWfWp", "swz.", "nwzF", "rp"];
                steps += random.one_of(&ends);
            }
        }
        let method = random.one_of(&["GET", "POST", "POST", "POST", "HEAD"]);
        let has_body = method == "POST" && !random.one_in(5);
        let length = random.one_of(&[0, 1, 5, 999, 1_000, 20_000, 70_000]);
        Request {
            method,
            steps,
            body: (0..if has_body { length } else { 0 }).map(|at| (at % 251) as u8).collect(),
            is_length_announced: random.one_in(2),
            has_trailers: has_body && random.one_in(4),
            expects: has_body && random.one_in(4),
        }
    }

    pub(super) fn has_body(&self) -> bool {
        !self.body.is_empty() || self.has_trailers
    }

    pub(super) fn is_received(&self) -> bool {
        self.steps.bytes().any(|step| step.is_ascii_digit())
    }

    pub(super) fn outcome(&self) -> Outcome {
        let (mut status, mut body, mut has_trailers) = (500, Vec::new(), false);
        let (mut is_begun, mut is_done, mut sum) = (false, false, "");
        for step in self.steps.bytes() {
            match step {
                b'2' | b'3' | b'5'..=b'8' if self.has_trailers => sum = "2",
                b'9' => body.extend_from_slice(&self.body),
                b's' | b'n' => (status, is_begun) = (200, true),
                b'e' => (status, is_begun) = (204, true),
                b'd' => is_done = true,
                b'D' => (is_done, has_trailers) = (true, true),
                b'r' => {
                    let content = if self.is_received() { &self.body[..] } else { b"" };
                    body = received(content, sum).into_bytes();
                    (status, is_begun, is_done) = (200, true, true);
                }
                b'F' | b'G' | b'p' | b'.' => {
                    status = match step {
                        b'F' => 503,
                        b'G' => 502,
                        _ => 500,
                    };
                    let reason = Status::new(status).expect("a status").reason();
                    body = format!("{status} {reason}\n").into_bytes();
                    (is_done, has_trailers) = (false, false);
                }
                _ => body.extend(vec![step; written_by(step)]),
            }
        }
        if self.method == "HEAD" {
            (body, has_trailers) = (Vec::new(), false);
        }
        Outcome { status, body, has_trailers, may_be_cut: is_begun && !is_done }
    }

    /// The head and the body in HTTP/1.1.
    pub(super) fn on_http1(&self, random: &mut Random) -> (Vec<u8>, Vec<u8>) {
        let Request { method, steps, body, .. } = self;
        let is_chunked = self.has_trailers || (!self.is_length_announced && !body.is_empty());
        let framing = match is_chunked {
            true => "Transfer-Encoding: chunked\r\n".to_owned(),
            false if body.is_empty() => String::new(),
            false => format!("Content-Length: {}\r\n", body.len()),
        };
        let expects = if self.expects { "Expect: 100-continue\r\n" } else { "" };
        let head = format!("{method} /{steps} HTTP/1.1\r\nHost: a\r\n{framing}{expects}\r\n");
        if !is_chunked {
            return (head.into_bytes(), body.clone());
        }
        let most = random.one_of(&[7, 1_000, 30_000, 100_000]).max(body.len() / 100);
        let mut chunks = Vec::new();
        for chunk in body.chunks(most) {
            let size = format!("{:x}\r\n", chunk.len());
            chunks.extend([size.as_bytes(), chunk, b"\r\n"].concat());
        }
        let trailers: &[u8] = if self.has_trailers { b"X-Sum: 2\r\n" } else { b"" };
        chunks.extend([b"0\r\n", trailers, b"\r\n"].concat());
        (head.into_bytes(), chunks)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { method, steps, body, .. } = self;
        write!(f, "{method} /{steps}, body of {}", body.len())?;
        let facts = [
            (self.is_length_announced, "length"),
            (self.has_trailers, "trailers"),
            (self.expects, "expects"),
        ];
        facts.iter().filter(|(is, _)| *is).try_for_each(|(_, fact)| write!(f, ", {fact}"))
    }
}
