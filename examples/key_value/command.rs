//! The commands, parsed from a line.

use std::time::Duration;

/// The longest key, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 250;

/// The longest value, in bytes.
pub(crate) const VALUE_BYTES_MAX: usize = 8 * 1_024;

/// The longest line, in bytes including its end: a `SET` with the longest key and value.
pub(crate) const LINE_BYTES_MAX: usize =
    "SET ".len() + KEY_BYTES_MAX + " ".len() + VALUE_BYTES_MAX + "\r\n".len();

/// The longest time until a pair expires, in seconds: ten years.
pub(crate) const TTL_SECONDS_MAX: u64 = 10 * 365 * 86_400;

/// A command, which refers to the line from which it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command<'a> {
    Set {
        key: &'a [u8],
        value: &'a [u8],
    },
    Get(&'a [u8]),
    Delete(&'a [u8]),
    Increment(&'a [u8]),
    Expire {
        key: &'a [u8],
        after: Duration,
    },
    /// Lists the keys with this prefix.
    Keys(&'a [u8]),
    Quit,
}

impl Command<'_> {
    /// Parses a line without its end. Words are separated by one space; a value is the rest of the
    /// line, including spaces.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words for the client.
    pub(crate) fn parse(line: &[u8]) -> Result<Command<'_>, &'static str> {
        let (word, rest) = split(line);
        match (&word.to_ascii_uppercase()[..], rest) {
            (b"SET", Some(rest)) => {
                let (name, value) = split(rest);
                let value = value.ok_or(ARGUMENTS)?;
                if value.len() > VALUE_BYTES_MAX {
                    return Err("the value is too long");
                }
                Ok(Command::Set { key: key(name)?, value })
            }
            (b"GET", Some(rest)) => Ok(Command::Get(key(rest)?)),
            (b"DEL", Some(rest)) => Ok(Command::Delete(key(rest)?)),
            (b"INCR", Some(rest)) => Ok(Command::Increment(key(rest)?)),
            (b"TTL", Some(rest)) => {
                let (name, seconds) = split(rest);
                let after = seconds_of(seconds.ok_or(ARGUMENTS)?)
                    .ok_or("seconds are not a number, or too many")?;
                Ok(Command::Expire { key: key(name)?, after })
            }
            (b"KEYS", None | Some(b"")) => Ok(Command::Keys(b"")),
            (b"KEYS", Some(rest)) => Ok(Command::Keys(key(rest)?)),
            (b"QUIT", None) => Ok(Command::Quit),
            (b"SET" | b"GET" | b"DEL" | b"INCR" | b"TTL" | b"QUIT", _) => Err(ARGUMENTS),
            _ => Err("an unknown command"),
        }
    }
}

const ARGUMENTS: &str = "a wrong number of arguments";

fn split(line: &[u8]) -> (&[u8], Option<&[u8]>) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(space) => (&line[..space], Some(&line[space + 1..])),
        None => (line, None),
    }
}

/// Parses a key, or the beginning of one. It may contain any bytes except spaces and control
/// characters, which would make a listing unreadable.
fn key(word: &[u8]) -> Result<&[u8], &'static str> {
    match word {
        [] => Err("the key is empty"),
        _ if word.len() > KEY_BYTES_MAX => Err("the key is too long"),
        _ if word.contains(&b' ') => Err(ARGUMENTS),
        _ if word.iter().any(u8::is_ascii_control) => Err("the key has control characters"),
        _ => Ok(word),
    }
}

fn seconds_of(word: &[u8]) -> Option<Duration> {
    let seconds = std::str::from_utf8(word).ok()?.parse().ok()?;
    (seconds <= TTL_SECONDS_MAX).then(|| Duration::from_secs(seconds))
}
