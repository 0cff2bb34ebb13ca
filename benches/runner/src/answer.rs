//! Checks answers to the hello request. Every answer of a run is checked, so the usual case, an answer that is the same
//! as the one before but for its date, must be about as cheap as comparing bytes.

use std::fmt;
use std::ops::Range;

/// The body that every hello server sends.
pub const BODY: &[u8] = b"Hello, World!";

/// The longest head taken from a server, in bytes: far more than a hello server sends, and an end to one that never
/// ends its head.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// What is wrong with an answer, and how it begins.
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

/// Checks the answers of one server. The first is read with care and remembered; those that follow are compared.
#[derive(Debug, Default)]
pub struct Checker {
    model: Vec<u8>,
    /// The value of the model's `Date`, the only part that may differ; empty if there is none.
    date: Range<usize>,
}

impl Checker {
    /// Checks the answer at the beginning of `bytes`: its length, or `None` if it is not complete yet.
    ///
    /// # Errors
    /// When it cannot become a right answer any more.
    pub fn check(&mut self, bytes: &[u8]) -> Result<Option<usize>, WrongAnswer> {
        if self.is_like_model(bytes) {
            return Ok(Some(self.model.len()));
        }
        let Some(length) = read_answer(bytes)? else { return Ok(None) };
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

/// Reads an answer line by line: its length, or `None` if it is not complete yet.
fn read_answer(bytes: &[u8]) -> Result<Option<usize>, WrongAnswer> {
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
    if length != Some(BODY.len()) {
        return Err(WrongAnswer::new("its Content-Length is missing or not 13", bytes));
    }
    let body = &bytes[head_end + 4..];
    let known = body.len().min(BODY.len());
    if body[..known] != BODY[..known] {
        return Err(WrongAnswer::new("its body is not 'Hello, World!'", bytes));
    }
    Ok((known == BODY.len()).then_some(head_end + 4 + BODY.len()))
}

/// The value of a field line if it has this name, which is given in lower case.
fn field_value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    line[..colon].eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
}

/// Where the value of `Date` lies in an answer; empty at its beginning if there is none.
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
    use super::Checker;

    fn answer(date: &str) -> Vec<u8> {
        let head = format!("HTTP/1.1 200 OK\r\nDate: {date}\r\ncontent-length:13\r\n\r\n");
        [head.as_bytes(), super::BODY].concat()
    }

    #[test]
    fn an_answer_is_complete_with_its_last_byte_and_not_before() {
        let answer = answer("Thu, 01 Jan 1970 00:00:00 GMT");
        for length in 0..answer.len() {
            assert_eq!(Checker::default().check(&answer[..length]), Ok(None), "{length} bytes");
        }
        assert_eq!(Checker::default().check(&answer), Ok(Some(answer.len())));
    }

    #[test]
    fn only_the_date_may_differ_from_the_answer_before() {
        let mut checker = Checker::default();
        let first = answer("Thu, 01 Jan 1970 00:00:00 GMT");
        checker.check(&first).expect("right");
        assert_eq!(&first[checker.date.clone()], b"Thu, 01 Jan 1970 00:00:00 GMT");
        let second = [answer("Thu, 01 Jan 1970 00:00:01 GMT"), first.clone()].concat();
        assert!(checker.is_like_model(&second));
        assert_eq!(checker.check(&second), Ok(Some(first.len())));
        let mut wrong = first.clone();
        *wrong.last_mut().expect("not empty") = b'?';
        assert!(checker.check(&wrong).is_err());
    }

    #[test]
    fn a_right_answer_of_another_shape_is_taken() {
        let mut checker = Checker::default();
        checker.check(&answer("Thu, 01 Jan 1970 00:00:00 GMT")).expect("right");
        let other = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";
        assert_eq!(checker.check(other), Ok(Some(other.len())));
        assert_eq!(checker.check(other), Ok(Some(other.len())));
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
            assert!(Checker::default().check(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        let endless = vec![b'a'; super::HEAD_BYTES_MAX + 1];
        assert!(Checker::default().check(&endless).is_err());
    }
}
