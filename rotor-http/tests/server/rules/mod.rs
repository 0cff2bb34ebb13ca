//! The rules of HTTP/1.1 that independent suites check, numbered 1 to 53. Each is tested on the
//! parser alone, where that decides, on a whole server on a scripted socket (`rules_kept`) and on
//! the sockets of every loop (`sockets`). The bytes are sent whole, one by one, and (not on real
//! sockets) cut at every point. Where the specification allows two answers, the row states ours.

mod bodies;
mod connections;
mod heads;

use crate::probe::request;

pub(crate) struct Rule {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) input: Vec<u8>,
    pub(crate) expected: String,
    /// Whether the parser alone decides.
    pub(crate) is_pure: bool,
}

fn rule(
    number: u32,
    name: &'static str,
    input: impl AsRef<[u8]>,
    expected: impl Into<String>,
) -> Rule {
    Rule { number, name, input: input.as_ref().to_vec(), expected: expected.into(), is_pure: true }
}

/// A rule for whole servers, since it depends on a handler.
fn server_rule(
    number: u32,
    name: &'static str,
    input: impl AsRef<[u8]>,
    expected: impl Into<String>,
) -> Rule {
    Rule { is_pure: false, ..rule(number, name, input, expected) }
}

/// A request line with a `Host`.
pub(crate) fn start(line: &str) -> Vec<u8> {
    format!("{line}\r\nHost: a\r\n\r\n").into_bytes()
}

/// A GET with these field lines after `Host`.
pub(crate) fn fields(lines: &str) -> Vec<u8> {
    request("GET /", &format!("{lines}\r\n"), "")
}

fn posted(lines: &str, body: &str) -> Vec<u8> {
    request("POST /", &format!("{lines}\r\n"), body)
}

const BAD: &str = "400 close";

pub(crate) fn all() -> Vec<Rule> {
    [
        heads::start_lines(),
        heads::targets(),
        heads::versions(),
        heads::field_lines(),
        heads::hosts(),
        bodies::lengths(),
        bodies::codings(),
        bodies::chunks(),
        connections::connections(),
        connections::responses(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
