//! RESP version 2, as pure code: commands to Redis and its answers.
//!
//! Source: the Redis serialization protocol specification (redis.io, "RESP").

use std::fmt;

/// The longest string, in bytes, and the maximum number of elements of an array. Redis allows 512
/// MiB; a client that keeps whole replies in memory should not.
pub(crate) const LENGTH_MAX: usize = 1024 * 1024;

/// The maximum depth of nested arrays.
const DEPTH_MAX: usize = 8;

/// The maximum length of a whole reply, in bytes: two of the longest strings. The elements of an
/// array are in memory, even those that were already taken out of the input.
pub(crate) const REPLY_BYTES_MAX: usize = 2 * LENGTH_MAX;

/// The maximum length of the first line of a reply, in bytes including its end.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// An answer of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    /// A string or an array that does not exist.
    Null,
    Array(Vec<Reply>),
}

/// The result of parsing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Parsed {
    Reply(Reply),
    /// At least this many unread bytes are needed.
    Needs(usize),
    /// The server does not speak this protocol, or exceeds the limits. Nothing can be read after
    /// that.
    Malformed(&'static str),
}

/// Parses replies, however they are split. Complete elements of an array are taken out of the input
/// at once, and no line is searched twice, so the cost of a reply is proportional to its length,
/// however slowly it arrives.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Arrays that have begun and not ended, the outermost first.
    open: Vec<OpenArray>,
    /// How many bytes of the current reply were taken.
    taken: usize,
    /// How many of the unread bytes are known not to contain the end of a line.
    searched: usize,
}

#[derive(Debug)]
struct OpenArray {
    elements: Vec<Reply>,
    /// How many elements are still to come.
    left: usize,
}

/// The element at the beginning of the input, and its length in bytes.
enum Element {
    Whole(Reply, usize),
    Array(usize, usize),
    Needs(usize),
    Malformed(&'static str),
}

/// Writes a command as an array of strings.
pub(crate) fn write_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

impl Reader {
    /// Continues to parse `input`. Returns how many bytes of it were processed, which the caller
    /// must remove, and the result.
    pub(crate) fn read(&mut self, input: &[u8]) -> (usize, Parsed) {
        let mut at = 0;
        loop {
            let (reply, len) = match self.element(&input[at..]) {
                Element::Whole(reply, len) => (Some(reply), len),
                Element::Array(0, len) => (Some(Reply::Array(Vec::new())), len),
                Element::Array(_, _) if self.open.len() >= DEPTH_MAX => {
                    return (at, Parsed::Malformed("arrays too deep"));
                }
                Element::Array(left, len) => {
                    self.open.push(OpenArray { elements: Vec::new(), left });
                    (None, len)
                }
                Element::Needs(bytes) if self.taken + bytes > REPLY_BYTES_MAX => {
                    return (at, Parsed::Malformed("a reply that is too long"));
                }
                Element::Needs(bytes) => return (at, Parsed::Needs(bytes)),
                Element::Malformed(what) => return (at, Parsed::Malformed(what)),
            };
            at += len;
            self.taken += len;
            if self.taken > REPLY_BYTES_MAX {
                return (at, Parsed::Malformed("a reply that is too long"));
            }
            if let Some(reply) = reply.and_then(|reply| self.place(reply)) {
                self.taken = 0;
                return (at, Parsed::Reply(reply));
            }
        }
    }

    /// Puts a reply into the array to which it belongs. Returns the outermost reply that is
    /// complete with it.
    fn place(&mut self, mut reply: Reply) -> Option<Reply> {
        while let Some(mut array) = self.open.pop() {
            array.elements.push(reply);
            array.left -= 1;
            if array.left > 0 {
                self.open.push(array);
                return None;
            }
            reply = Reply::Array(array.elements);
        }
        Some(reply)
    }

    fn element(&mut self, input: &[u8]) -> Element {
        let Some(end) = self.line_end(input) else {
            return if input.len() >= LINE_BYTES_MAX {
                Element::Malformed("a line without end")
            } else {
                Element::Needs(input.len() + 1)
            };
        };
        let after = end + 2;
        let Some((kind, line)) = input[..end].split_first() else {
            return Element::Malformed("an empty line");
        };
        let Ok(line) = std::str::from_utf8(line) else {
            return Element::Malformed("a line that is no text");
        };
        match kind {
            b'+' => Element::Whole(Reply::Simple(line.into()), after),
            b'-' => Element::Whole(Reply::Error(line.into()), after),
            b':' => match line.parse() {
                Ok(number) => Element::Whole(Reply::Integer(number), after),
                Err(_) => Element::Malformed("a number that is none"),
            },
            b'$' | b'*' if line == "-1" => Element::Whole(Reply::Null, after),
            b'$' => match length(line) {
                Some(length) => bulk(input, after, length),
                None => Element::Malformed("a length that is none, or too large"),
            },
            b'*' => match length(line) {
                Some(count) => Element::Array(count, after),
                None => Element::Malformed("a count that is none, or too large"),
            },
            _ => Element::Malformed("a reply of an unknown kind"),
        }
    }

    /// Returns where the first line ends; continues the search where it stopped.
    fn line_end(&mut self, input: &[u8]) -> Option<usize> {
        let new = input.get(self.searched..)?;
        let found = new.windows(2).position(|pair| pair == b"\r\n");
        let end = found.map(|place| self.searched + place);
        // The last byte may be the first half of a line end.
        self.searched = if end.is_some() { 0 } else { input.len().saturating_sub(1) };
        end
    }
}

fn length(line: &str) -> Option<usize> {
    line.parse().ok().filter(|length| *length <= LENGTH_MAX && !line.starts_with('+'))
}

fn bulk(input: &[u8], start: usize, length: usize) -> Element {
    let end = start + length;
    match input.get(end..end + 2) {
        None => Element::Needs(end + 2),
        Some(b"\r\n") => Element::Whole(Reply::Bulk(input[start..end].to_vec()), end + 2),
        Some(_) => Element::Malformed("a string longer than it says"),
    }
}

/// Prints a reply as `redis-cli` does, on one line.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Simple(text) => f.write_str(text),
            Reply::Error(text) => write!(f, "(error) {text}"),
            Reply::Integer(number) => write!(f, "(integer) {number}"),
            Reply::Bulk(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Reply::Null => f.write_str("(nil)"),
            Reply::Array(elements) => {
                f.write_str("[")?;
                for (index, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}
