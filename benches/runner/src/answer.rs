//! Checks responses. Every head is checked, and every body to its last byte, so the usual case, a
//! response that differs from the previous one only by its date, must be about as cheap as
//! comparing bytes. For large bodies even that is expensive: the load generator would be busier
//! than the server that it measures. So one in [`LARGE_COMPARED`] of those is compared, and for the
//! others only the length is checked.

use std::fmt;
use std::ops::Range;

/// The body that every hello server sends.
pub const BODY: &[u8] = b"Hello, World!";

/// The longest head that is accepted, in bytes: far more than a hello server sends. It stops a
/// server that never ends its head.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Bodies longer than this many bytes are large.
const LARGE_BYTES: usize = 64 * 1024;

/// One in this many large bodies is compared.
pub const LARGE_COMPARED: u32 = 16;

/// What is wrong with a response, and its beginning.
#[derive(Debug, PartialEq, Eq)]
pub struct WrongAnswer {
    what: &'static str,
    excerpt: String,
}

impl WrongAnswer {
    fn new(what: &'static str, bytes: &[u8]) -> WrongAnswer {
        const EXCERPT_BYTES: usize = 200;
        let excerpt = bytes[..bytes.len().min(EXCERPT_BYTES)].escape_ascii().to_string();
        WrongAnswer { what, excerpt }
    }
}

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wrong answer: {}: \"{}\"", self.what, self.excerpt)
    }
}

impl std::error::Error for WrongAnswer {}

/// What the responses of one server must be. The head of the first one is parsed carefully and
/// stored; those of the others are compared with it.
#[derive(Debug)]
pub struct Checker {
    body: Vec<u8>,
    model: Vec<u8>,
    /// The value of the model's `Date`, the only part that may differ; empty if there is none.
    date: Range<usize>,
    /// How many large bodies are skipped before the next one is compared.
    large_left: u32,
}

impl Default for Checker {
    fn default() -> Checker {
        Checker::new(BODY.to_vec())
    }
}

impl Checker {
    /// Makes a checker for responses with this body, which must not be empty.
    pub fn new(body: Vec<u8>) -> Checker {
        Checker { body, model: Vec::new(), date: 0..0, large_left: 0 }
    }

    /// Returns whether the body that begins now should be compared.
    fn compares_next(&mut self) -> bool {
        if self.body.len() <= LARGE_BYTES {
            return true;
        }
        let is_due = self.large_left == 0;
        self.large_left = if is_due { LARGE_COMPARED } else { self.large_left } - 1;
        is_due
    }

    /// Returns the length of the head at the beginning of `bytes`, or `None` if it is not complete
    /// yet.
    fn check_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, WrongAnswer> {
        if self.is_like_model(bytes) {
            return Ok(Some(self.model.len()));
        }
        let Some(length) = read_head(bytes, self.body.len())? else { return Ok(None) };
        self.model = bytes[..length].to_vec();
        self.date = date_value(&self.model);
        Ok(Some(length))
    }

    fn is_like_model(&self, bytes: &[u8]) -> bool {
        !self.model.is_empty()
            && bytes.len() >= self.model.len()
            && bytes[..self.date.start] == self.model[..self.date.start]
            && bytes[self.date.end..self.model.len()] == self.model[self.date.end..]
    }
}

/// The responses of one connection, which may arrive in any pieces.
#[derive(Debug, Default)]
pub struct Answers {
    /// The beginning of a head whose end has not arrived yet.
    head: Vec<u8>,
    /// How many bytes of a body have not arrived yet.
    body_left: usize,
    /// Whether only the length of the current body is checked.
    is_skipped: bool,
}

impl Answers {
    /// Processes the next bytes. Returns how many responses they complete.
    ///
    /// # Errors
    ///
    /// The bytes are not what they should be. The connection cannot be checked any further.
    pub fn take(&mut self, mut bytes: &[u8], checker: &mut Checker) -> Result<usize, WrongAnswer> {
        let mut complete = 0;
        while !bytes.is_empty() {
            if self.body_left == 0 {
                let Some(length) = self.take_head(bytes, checker)? else { break };
                bytes = &bytes[length..];
                self.body_left = checker.body.len();
                self.is_skipped = !checker.compares_next();
            }
            let piece = &bytes[..self.body_left.min(bytes.len())];
            let expected = &checker.body[checker.body.len() - self.body_left..];
            if !self.is_skipped && *piece != expected[..piece.len()] {
                return Err(WrongAnswer::new("its body is not what was asked for", piece));
            }
            bytes = &bytes[piece.len()..];
            self.body_left -= piece.len();
            complete += usize::from(self.body_left == 0);
        }
        Ok(complete)
    }

    /// Returns how many of the next bytes need not be checked.
    pub fn skippable(&self) -> usize {
        if self.is_skipped { self.body_left } else { 0 }
    }

    /// Notes that this many of the [`skippable`](Answers::skippable) bytes have arrived. Returns
    /// how many responses that completes.
    pub fn skip(&mut self, count: usize) -> usize {
        self.body_left -= count.min(self.body_left);
        usize::from(self.body_left == 0)
    }

    /// Returns whether a response has begun and is not complete.
    pub fn is_within_answer(&self) -> bool {
        self.body_left > 0 || !self.head.is_empty()
    }

    /// Returns how many of the next bytes belong to a head, or `None` if all do and it has no end
    /// yet.
    fn take_head(
        &mut self,
        bytes: &[u8],
        checker: &mut Checker,
    ) -> Result<Option<usize>, WrongAnswer> {
        if self.head.is_empty() {
            let length = checker.check_head(bytes)?;
            if length.is_none() {
                self.head.extend_from_slice(bytes);
            }
            return Ok(length);
        }
        let known = self.head.len();
        self.head.extend_from_slice(bytes);
        let length = checker.check_head(&self.head)?;
        if length.is_some() {
            self.head.clear();
        }
        // Without these bytes it had no end, so it ends within them.
        Ok(length.map(|length| length - known))
    }
}

/// Parses a head line by line. Returns its length, or `None` if it is not complete yet.
fn read_head(bytes: &[u8], body_bytes: usize) -> Result<Option<usize>, WrongAnswer> {
    let Some(head_end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(WrongAnswer::new("its head has no end", bytes));
        }
        return Ok(None);
    };
    let mut lines = bytes[..head_end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let status_line = lines.next().unwrap_or_default();
    if !status_line.starts_with(b"HTTP/1.1 200") {
        return Err(WrongAnswer::new("its status is not 200", bytes));
    }
    let length = lines
        .filter_map(|line| field_value(line, b"content-length"))
        .map(|value| str::from_utf8(value).ok()?.parse::<usize>().ok())
        .next()
        .flatten();
    if length != Some(body_bytes) {
        return Err(WrongAnswer::new(
            "its Content-Length is missing or not that of the body",
            bytes,
        ));
    }
    Ok(Some(head_end + 4))
}

/// Returns the value of a field line if it has this name, which is given in lower case.
fn field_value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    line[..colon].eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
}

/// Returns where the value of `Date` is in a response; an empty range at its beginning if there is
/// none.
fn date_value(answer: &[u8]) -> Range<usize> {
    let mut start = 0;
    for line in answer.split_inclusive(|byte| *byte == b'\n') {
        if let Some(value) = field_value(line, b"date") {
            let value_start = start + line.trim_ascii_end().len() - value.len();
            return value_start..value_start + value.len();
        }
        start += line.len();
    }
    0..0
}

#[cfg(test)]
mod tests {
    use super::{Answers, BODY, Checker, WrongAnswer};

    fn answer(date: &str) -> Vec<u8> {
        let head = format!("HTTP/1.1 200 OK\r\nDate: {date}\r\ncontent-length:13\r\n\r\n");
        [head.as_bytes(), BODY].concat()
    }

    fn take(bytes: &[u8]) -> Result<usize, WrongAnswer> {
        Answers::default().take(bytes, &mut Checker::default())
    }

    #[test]
    fn answers_are_counted_however_the_bytes_are_split() {
        let two =
            [answer("Thu, 01 Jan 1970 00:00:00 GMT"), answer("Thu, 01 Jan 1970 00:00:01 GMT")]
                .concat();
        for first in 0..=two.len() {
            for second in first..=two.len() {
                let (mut answers, mut checker) = (Answers::default(), Checker::default());
                let pieces = [&two[..first], &two[first..second], &two[second..]];
                let counts = pieces.map(|piece| answers.take(piece, &mut checker).expect("right"));
                assert_eq!(counts.iter().sum::<usize>(), 2, "split at {first} and {second}");
                assert!(!answers.is_within_answer(), "split at {first} and {second}");
            }
        }
    }

    #[test]
    fn an_answer_is_complete_with_its_last_byte_and_not_before() {
        let answer = answer("Thu, 01 Jan 1970 00:00:00 GMT");
        for length in 1..answer.len() {
            let (mut answers, mut checker) = (Answers::default(), Checker::default());
            assert_eq!(answers.take(&answer[..length], &mut checker), Ok(0), "{length} bytes");
            assert!(answers.is_within_answer(), "{length} bytes");
        }
        assert_eq!(take(&answer), Ok(1));
    }

    #[test]
    fn only_the_date_may_differ_from_the_head_before() {
        let mut checker = Checker::default();
        let first = answer("Thu, 01 Jan 1970 00:00:00 GMT");
        Answers::default().take(&first, &mut checker).expect("right");
        assert_eq!(&first[checker.date.clone()], b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert!(checker.is_like_model(&answer("Thu, 01 Jan 1970 00:00:01 GMT")));
        let mut wrong = first.clone();
        *wrong.last_mut().expect("not empty") = b'?';
        assert!(Answers::default().take(&wrong, &mut checker).is_err());
    }

    #[test]
    fn a_correct_answer_of_another_shape_is_accepted() {
        let (mut answers, mut checker) = (Answers::default(), Checker::default());
        answers.take(&answer("Thu, 01 Jan 1970 00:00:00 GMT"), &mut checker).expect("right");
        let other = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";
        assert_eq!(answers.take(other, &mut checker), Ok(1));
        assert_eq!(answers.take(other, &mut checker), Ok(1));
    }

    #[test]
    fn a_large_body_is_compared_to_its_last_byte() {
        let body: Vec<u8> = (b'a'..=b'z').cycle().take(100_000).collect();
        let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".to_vec();
        bytes.extend_from_slice(&body);
        let check = |bytes: &[u8]| {
            let (mut answers, mut checker) = (Answers::default(), Checker::new(body.clone()));
            bytes
                .chunks(997)
                .map(|piece| answers.take(piece, &mut checker))
                .sum::<Result<usize, _>>()
        };
        assert_eq!(check(&bytes), Ok(1));
        *bytes.last_mut().expect("not empty") ^= 1;
        assert!(check(&bytes).is_err());
    }

    #[test]
    fn large_bodies_are_all_counted_and_compared_by_sample() {
        let body: Vec<u8> = (b'a'..=b'z').cycle().take(100_000).collect();
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
        let (mut answers, mut checker) = (Answers::default(), Checker::new(body.clone()));
        for round in 0..40 {
            assert_eq!(answers.take(head, &mut checker), Ok(0));
            let is_compared = round % 16 == 0;
            assert_eq!(answers.skippable(), if is_compared { 0 } else { body.len() }, "{round}");
            if is_compared {
                assert_eq!(answers.take(&body, &mut checker), Ok(1));
            } else {
                assert_eq!(answers.skip(99_999), 0);
                assert!(answers.is_within_answer());
                assert_eq!(answers.skip(1), 1);
            }
            assert!(!answers.is_within_answer(), "{round}");
        }
    }

    #[test]
    fn wrong_answers_are_refused() {
        for wrong in [
            "HTTP/1.1 404 Not Found\r\nContent-Length: 13\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, Moon",
            "\r\n\r\n",
        ] {
            assert!(take(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        let endless = vec![b'a'; super::HEAD_BYTES_MAX + 1];
        assert!(take(&endless).is_err());
    }
}
