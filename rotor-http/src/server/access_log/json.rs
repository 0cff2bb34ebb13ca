//! A line of an access log as an object of JSON (RFC 8259).

use std::fmt::Write;

use super::parts::{REFERER, TRACEPARENT, USER_AGENT, date_and_time};
use crate::semantics::calendar::Date;
use crate::server::finished::Finished;

pub(super) fn line(finished: &Finished<'_>) -> String {
    let (Date { year, month, day }, [hour, minute, second]) = date_and_time(finished.unix_seconds);
    let mut line =
        format!("{{\"time\":\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z\"");
    if let Some(peer) = finished.peer {
        let _ = write!(line, ",\"peer\":\"{}\"", peer.ip());
    }
    if let Some(version) = finished.version {
        add_text(&mut line, "method", finished.method.as_bytes());
        add_text(&mut line, "target", finished.target.as_bytes());
        let _ = write!(line, ",\"version\":\"{version}\"");
    }
    if let Some(status) = finished.status {
        let _ = write!(line, ",\"status\":{}", status.code());
    }
    let (bytes, seconds) = (finished.bytes, finished.time.as_secs_f64());
    let _ = write!(line, ",\"bytes\":{bytes},\"seconds\":{seconds}");
    for (key, name) in
        [("referer", REFERER), ("user_agent", USER_AGENT), ("traceparent", TRACEPARENT)]
    {
        if let Some(value) = finished.field(name) {
            add_text(&mut line, key, value);
        }
    }
    line.push_str("}\n");
    line
}

/// Adds text that a peer has sent. A byte that is not ASCII is written as the code point of that
/// number (`\u00e4`), because the encoding of the text is unknown.
fn add_text(line: &mut String, key: &str, text: &[u8]) {
    let _ = write!(line, ",\"{key}\":\"");
    for byte in text {
        match byte {
            b'"' | b'\\' => line.extend(['\\', *byte as char]),
            b' '..=b'~' => line.push(*byte as char),
            _ => drop(write!(line, "\\u{byte:04x}")),
        }
    }
    line.push('"');
}
