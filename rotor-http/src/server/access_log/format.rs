//! `LogFormat`: what a line says about a request.

use std::fmt::Write;

use super::json;
use super::parts::{REFERER, TRACEPARENT, USER_AGENT, date_and_time};
use crate::semantics::calendar::Date;
use crate::server::finished::Finished;

/// The format of a line in an access log. Text from a peer is escaped in all formats: it cannot
/// look like a second line, break out of its quotes, or send control codes to a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum LogFormat {
    /// The common log format: `peer - - [time] "request line" status bytes`. The bytes are those of
    /// the whole response, including its head.
    #[default]
    Common,
    /// The common log format, followed by the fields `Referer` and `User-Agent`, quoted.
    Combined,
    /// A JSON object: `time` (RFC 3339), `peer`, `method`, `target`, `version`, `status`, `bytes`,
    /// `seconds`, `referer`, `user_agent`, `traceparent`. Unknown values are left out.
    Json,
}

impl LogFormat {
    /// Returns the fields of a request that a line shows.
    pub(in crate::server) fn fields(self) -> &'static [&'static str] {
        match self {
            LogFormat::Common => &[],
            LogFormat::Combined => &[REFERER, USER_AGENT],
            LogFormat::Json => &[REFERER, USER_AGENT, TRACEPARENT],
        }
    }

    /// Returns the line of a request.
    pub(super) fn line(self, finished: &Finished<'_>) -> String {
        match self {
            LogFormat::Common => format!("{}\n", common_line(finished)),
            LogFormat::Combined => {
                let mut line = common_line(finished);
                for name in [REFERER, USER_AGENT] {
                    line.push_str(" \"");
                    add_escaped(&mut line, finished.field(name).unwrap_or(b"-"));
                    line.push('"');
                }
                line.push('\n');
                line
            }
            LogFormat::Json => json::line(finished),
        }
    }
}

fn common_line(finished: &Finished<'_>) -> String {
    let mut line = match finished.peer {
        Some(peer) => format!("{} - - ", peer.ip()),
        None => "- - - ".to_owned(),
    };
    add_time(&mut line, finished.unix_seconds);
    line.push_str(" \"");
    match finished.version {
        Some(version) => {
            add_escaped(&mut line, finished.method.as_bytes());
            line.push(' ');
            add_escaped(&mut line, finished.target.as_bytes());
            let _ = write!(line, " {version}");
        }
        // A request that could not be read has no version.
        None => line.push('-'),
    }
    let _ = match finished.status {
        Some(status) => write!(line, "\" {} {}", status.code(), finished.bytes),
        None => write!(line, "\" - {}", finished.bytes),
    };
    line
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Adds the time in the form `[10/Oct/2000:13:55:36 +0000]`.
fn add_time(line: &mut String, unix_seconds: i64) {
    let (Date { year, month, day }, [hour, minute, second]) = date_and_time(unix_seconds);
    let month = MONTHS.get((month - 1) as usize).unwrap_or(&"-");
    let _ = write!(line, "[{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000]");
}

/// Adds text from a peer, escaped: a quote would end the field early, a line end would end the
/// line, and an escape sequence would control the reader's terminal.
fn add_escaped(line: &mut String, text: &[u8]) {
    for byte in text {
        match byte {
            b'"' | b'\\' => line.extend(['\\', *byte as char]),
            b' '..=b'~' => line.push(*byte as char),
            _ => drop(write!(line, "\\x{byte:02x}")),
        }
    }
}
