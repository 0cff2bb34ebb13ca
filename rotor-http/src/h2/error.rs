//! `ErrorCode` and `Violation`: errors of HTTP/2, and whether they end a stream or the connection.

use std::fmt;

/// Why a stream or a connection ends, as both sides report it (RFC 9113 §7). An unknown code counts
/// as `InternalError`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ErrorCode {
    /// No error: a graceful end.
    NoError = 0x0,
    /// The peer violated the protocol.
    ProtocolError = 0x1,
    /// This side failed.
    InternalError = 0x2,
    /// The peer sent more than its window allows.
    FlowControlError = 0x3,
    /// The peer did not acknowledge the settings in time.
    SettingsTimeout = 0x4,
    /// A frame arrived for a stream that is closed.
    StreamClosed = 0x5,
    /// A frame has an invalid size.
    FrameSizeError = 0x6,
    /// The request was not processed, so it may be made again.
    RefusedStream = 0x7,
    /// The stream is not needed any more.
    Cancel = 0x8,
    /// The state of the field compression is out of step, so nothing more can be read.
    CompressionError = 0x9,
    /// The connection at the other end of a CONNECT's tunnel was reset or closed abnormally.
    ConnectError = 0xa,
    /// The peer causes excessive load.
    EnhanceYourCalm = 0xb,
    /// The encryption is insufficient.
    InadequateSecurity = 0xc,
    /// The request must be made over HTTP/1.1.
    Http11Required = 0xd,
}

impl ErrorCode {
    const ALL: [ErrorCode; 14] = [
        ErrorCode::NoError,
        ErrorCode::ProtocolError,
        ErrorCode::InternalError,
        ErrorCode::FlowControlError,
        ErrorCode::SettingsTimeout,
        ErrorCode::StreamClosed,
        ErrorCode::FrameSizeError,
        ErrorCode::RefusedStream,
        ErrorCode::Cancel,
        ErrorCode::CompressionError,
        ErrorCode::ConnectError,
        ErrorCode::EnhanceYourCalm,
        ErrorCode::InadequateSecurity,
        ErrorCode::Http11Required,
    ];

    /// Returns the code as a number, as in frames.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

/// Why a peer ends the connection, according to its GOAWAY, for the log.
pub(crate) struct GoAwayReason<'a> {
    pub(crate) code: u32,
    pub(crate) text: &'a [u8],
}

impl fmt::Display for GoAwayReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Longer texts are cut off. `too_many_pings` has 14 bytes.
        const SHOWN_MAX: usize = 100;
        match ErrorCode::ALL.get(self.code as usize) {
            Some(code) => write!(f, "{code:?}")?,
            None => write!(f, "code {}", self.code)?,
        }
        let text = &self.text[..self.text.len().min(SHOWN_MAX)];
        if text.is_empty() { Ok(()) } else { write!(f, ", \"{}\"", text.escape_ascii()) }
    }
}

/// A violation of the protocol by the peer, and whether it ends the stream or the connection
/// (RFC 9113 §5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// The connection ends: GOAWAY with this code, and the reason for the log.
    Connection(ErrorCode, &'static str),
    /// The stream ends: RST_STREAM with this code. The others continue.
    Stream(u32, ErrorCode),
}

impl Violation {
    /// Creates a PROTOCOL_ERROR that ends the connection.
    pub(crate) const fn protocol(why: &'static str) -> Violation {
        Violation::Connection(ErrorCode::ProtocolError, why)
    }

    /// Creates the error for a frame of an invalid size.
    pub(crate) const fn size(why: &'static str) -> Violation {
        Violation::Connection(ErrorCode::FrameSizeError, why)
    }

    /// Creates the error for a flood: frames that no honest peer sends so often.
    pub(crate) const fn flood(why: &'static str) -> Violation {
        Violation::Connection(ErrorCode::EnhanceYourCalm, why)
    }

    /// Returns what the peer has violated.
    pub(crate) const fn why(&self) -> &'static str {
        match self {
            Violation::Connection(_, why) => why,
            Violation::Stream(_, ErrorCode::FlowControlError) => "a stream beyond its window",
            Violation::Stream(_, ErrorCode::FrameSizeError) => "a frame of an invalid size",
            Violation::Stream(..) => "a frame that its stream cannot have",
        }
    }

    /// Returns whether this is a flood.
    pub(crate) const fn is_flood(&self) -> bool {
        matches!(self, Violation::Connection(ErrorCode::EnhanceYourCalm, _))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Connection(code, why) => write!(f, "{why} ({code:?})"),
            Violation::Stream(stream, code) => write!(f, "stream {stream}: {code:?}"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn a_goaway_is_shown_with_the_name_of_its_code_and_its_text() {
        for (number, code) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(code.number() as usize, number);
        }
        let long = "x".repeat(101);
        for (code, text, shown) in [
            (0, "", "NoError"),
            (11, "too_many_pings", "EnhanceYourCalm, \"too_many_pings\""),
            (13, "\n\"", "Http11Required, \"\\n\\\"\""),
            (14, &long, &format!("code 14, \"{}\"", &long[1..])),
        ] {
            assert_eq!(GoAwayReason { code, text: text.as_bytes() }.to_string(), shown);
        }
    }

    /// The code with which a violation ends the connection; `None` without a violation.
    pub(in crate::h2) fn code(of: Result<impl Sized, Violation>) -> Option<ErrorCode> {
        match of {
            Err(Violation::Connection(code, _)) => Some(code),
            Err(Violation::Stream(..)) => panic!("the connection is to end"),
            Ok(_) => None,
        }
    }
}
