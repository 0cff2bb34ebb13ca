//! The strict reading of all the bytes that a client sends on one connection: which requests there
//! are, how each must be answered, and how the connection ends. It needs the whole input and copies
//! everything.

use rotor_http::h1::{Body, Version};

use super::super::input::HeadLimits;
use super::super::naive::{self, ChunkLimits, Head, Verdict};
use super::handler::{BIG, Kind};

/// The limits of the connection.
pub(super) struct ServerLimits {
    pub(super) head: HeadLimits,
    pub(super) chunks: ChunkLimits,
    pub(super) buffered: u64,
    pub(super) drained: u64,
    pub(super) requests: u64,
}

#[derive(Debug)]
pub(super) struct Reference {
    /// Method and target of each request that a handler gets.
    pub(super) heads: Vec<String>,
    /// The end of each of them whose body is complete.
    pub(super) ends: Vec<usize>,
    pub(super) answers: Vec<Expected>,
    pub(super) ending: Ending,
    /// The request that is refused for its body expects a 100 first.
    pub(super) may_continue: bool,
}

/// One answer.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) is_head: bool,
    /// An interim answer may come first.
    pub(super) may_continue: bool,
    pub(super) is_switch: bool,
    pub(super) body: Vec<u8>,
}

/// How a connection ends if the client shuts down its side after these bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Silently, or with an error: the beginning of a head may already be invalid.
    HeadCut,
    /// With exactly one error.
    Refused,
    /// With the last answer, whatever bytes follow.
    Closed,
    /// In another protocol, which gets the bytes from here on.
    Switched(usize),
}

/// The result of reading a body.
enum Outcome {
    /// It is complete and has this many encoded bytes.
    Whole(Vec<u8>, usize),
    /// It is too large, malformed or cut short.
    Broken,
}

/// Reads all that a client sends.
pub(super) fn read(input: &[u8], limits: &ServerLimits) -> Reference {
    let (heads, ends, answers) = Default::default();
    let mut reference =
        Reference { heads, ends, answers, ending: Ending::HeadCut, may_continue: false };
    let mut at = 0;
    loop {
        let head = match naive::request_head(&input[at..], &limits.head) {
            Verdict::Incomplete => return reference,
            Verdict::Bad => return reference.end(Ending::Refused),
            Verdict::Good(head) => head,
        };
        at += head.len;
        match reference.request(&head, &input[at..], limits) {
            Ok(len) => {
                at += len;
                reference.ends.push(at);
            }
            Err(Ending::Switched(len)) => return reference.end(Ending::Switched(at + len)),
            Err(ending) => return reference.end(ending),
        }
    }
}

const METHODS: [&[u8]; 7] = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH"];

impl Reference {
    fn end(mut self, ending: Ending) -> Reference {
        self.ending = ending;
        self
    }

    /// Reads one request. Returns the length of its body, or how it ends the connection.
    fn request(
        &mut self,
        head: &Head,
        rest: &[u8],
        limits: &ServerLimits,
    ) -> Result<usize, Ending> {
        let [method, text, _] = &head.start;
        let target = naive::target(method, text).ok_or(Ending::Refused)?;
        let terms = naive::terms(head).ok_or(Ending::Refused)?;
        if !METHODS.contains(&method.as_slice()) {
            return Err(Ending::Refused);
        }
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        self.heads.push(format!("{} {}", shown(method), shown(text)));
        let kind = Kind::of(&target.path);
        let is_ignored = matches!(kind, Kind::Ignoring | Kind::Big);
        let body_max = if matches!(kind, Kind::Buffered | Kind::Switching) {
            limits.buffered
        } else {
            u64::MAX
        };
        let outcome = body(terms.body, rest, &ChunkLimits { body: body_max, ..limits.chunks });
        let mut text = format!("{} {} ", shown(method), target.path).into_bytes();
        match (&outcome, kind) {
            (_, Kind::Big) => text = vec![b'b'; BIG],
            (_, Kind::Ignoring) => {}
            (Outcome::Whole(data, _), _) => text.extend_from_slice(data),
            (Outcome::Broken, _) => {
                self.may_continue = terms.expects_continue;
                return Err(Ending::Refused);
            }
        }
        let is_switch = kind == Kind::Switching && terms.wants_upgrade;
        self.answers.push(Expected {
            is_head: method == b"HEAD",
            may_continue: terms.expects_continue && !is_ignored,
            is_switch,
            body: if is_switch { Vec::new() } else { text },
        });
        let is_until_close = matches!(kind, Kind::Big | Kind::Progressive)
            && head.version == Version::Http10
            && method != b"HEAD";
        let is_last = !naive::persists(head)
            || self.heads.len() as u64 >= limits.requests
            || is_until_close
            || (is_ignored && terms.expects_continue);
        let is_too_long = |data: &[u8]| is_ignored && data.len() as u64 > limits.drained;
        match outcome {
            Outcome::Whole(_, len) if is_switch => Err(Ending::Switched(len)),
            Outcome::Whole(data, len) if !is_last && !is_too_long(&data) => Ok(len),
            _ => Err(Ending::Closed),
        }
    }
}

/// Decodes the body at the beginning of these bytes.
fn body(body: Body, rest: &[u8], limits: &ChunkLimits) -> Outcome {
    match body {
        Body::Empty => Outcome::Whole(Vec::new(), 0),
        Body::Length(length) if length > limits.body || length > rest.len() as u64 => {
            Outcome::Broken
        }
        Body::Length(length) => Outcome::Whole(rest[..length as usize].to_vec(), length as usize),
        Body::Chunked => match naive::chunked(rest, limits) {
            (Verdict::Good(()), decoded) => Outcome::Whole(decoded.data, decoded.consumed),
            _ => Outcome::Broken,
        },
        // A request never has this framing.
        Body::UntilClose => Outcome::Broken,
    }
}
