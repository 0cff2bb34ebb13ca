//! RESP, version 2, as pure code: what Redis is asked and what it answers.
//!
//! Source: the Redis serialization protocol specification (redis.io, "RESP").

use std::fmt;

/// The longest string, in bytes, and the most elements of an array that are taken. Redis allows 512 MiB; a client that
/// keeps whole replies in memory should not.
pub(crate) const LENGTH_MAX: usize = 1024 * 1024;

/// How deep arrays may lie in arrays.
const DEPTH_MAX: u32 = 8;

/// How long the first line of a reply may be, in bytes with its end.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// What the server answers.
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

/// What a look at the input has come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Parsed {
    /// A reply, and how many bytes it took.
    Reply(Reply, usize),
    /// At least so many bytes in all are needed.
    Needs(usize),
    /// The server does not speak this protocol, or beyond the limits.
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

/// Looks for a reply at the beginning of the input.
pub(crate) fn parse(input: &[u8]) -> Parsed {
    parse_at(input, 0, DEPTH_MAX)
}

fn parse_at(input: &[u8], start: usize, depth: u32) -> Parsed {
    let rest = &input[start..];
    let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
        return if rest.len() >= LINE_BYTES_MAX {
            Parsed::Malformed("a line without end")
        } else {
            Parsed::Needs(input.len() + 1)
        };
    };
    let after = start + end + 2;
    let Some((kind, line)) = rest[..end].split_first() else { return Parsed::Malformed("an empty line") };
    let Ok(line) = std::str::from_utf8(line) else { return Parsed::Malformed("a line that is no text") };
    match kind {
        b'+' => Parsed::Reply(Reply::Simple(line.into()), after),
        b'-' => Parsed::Reply(Reply::Error(line.into()), after),
        b':' => match line.parse() {
            Ok(number) => Parsed::Reply(Reply::Integer(number), after),
            Err(_) => Parsed::Malformed("a number that is none"),
        },
        b'$' | b'*' if line == "-1" => Parsed::Reply(Reply::Null, after),
        b'$' => match length(line) {
            Some(length) => parse_bulk(input, after, length),
            None => Parsed::Malformed("a length that is none, or too large"),
        },
        b'*' => match length(line) {
            Some(count) if depth > 0 => parse_array(input, after, count, depth - 1),
            Some(_) => Parsed::Malformed("arrays too deep"),
            None => Parsed::Malformed("a count that is none, or too large"),
        },
        _ => Parsed::Malformed("a reply of an unknown kind"),
    }
}

fn length(line: &str) -> Option<usize> {
    line.parse().ok().filter(|length| *length <= LENGTH_MAX && !line.starts_with('+'))
}

fn parse_bulk(input: &[u8], start: usize, length: usize) -> Parsed {
    let end = start + length;
    match input.get(end..end + 2) {
        None => Parsed::Needs(end + 2),
        Some(b"\r\n") => Parsed::Reply(Reply::Bulk(input[start..end].to_vec()), end + 2),
        Some(_) => Parsed::Malformed("a string longer than it says"),
    }
}

fn parse_array(input: &[u8], start: usize, count: usize, depth: u32) -> Parsed {
    let mut elements = Vec::new();
    let mut at = start;
    for _ in 0..count {
        match parse_at(input, at, depth) {
            Parsed::Reply(reply, end) => {
                elements.push(reply);
                at = end;
            }
            other => return other,
        }
    }
    Parsed::Reply(Reply::Array(elements), at)
}

/// As `redis-cli` shows it, on one line.
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
