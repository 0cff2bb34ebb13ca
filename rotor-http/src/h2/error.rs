//! What goes wrong on a connection of HTTP/2, and how far it reaches.

use std::fmt;

/// Why a stream or a connection ends, as both sides say it (RFC 9113 §7). A code that is not known
/// counts as `InternalError`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ErrorCode {
    /// Nothing is wrong: a graceful end.
    NoError = 0x0,
    /// The peer broke the protocol.
    ProtocolError = 0x1,
    /// This side failed.
    InternalError = 0x2,
    /// The peer sent more than its window.
    FlowControlError = 0x3,
    /// The peer did not acknowledge the settings in time.
    SettingsTimeout = 0x4,
    /// A frame came for a stream that is closed.
    StreamClosed = 0x5,
    /// A frame has a size that it cannot have.
    FrameSizeError = 0x6,
    /// The request was not looked at: it may be made again.
    RefusedStream = 0x7,
    /// Nobody wants the stream any more.
    Cancel = 0x8,
    /// The field compression is out of step: nothing more can be read.
    CompressionError = 0x9,
    /// The tunnel of a CONNECT was cut.
    ConnectError = 0xa,
    /// The peer behaves as if to wear us down.
    EnhanceYourCalm = 0xb,
    /// The encryption does not suffice.
    InadequateSecurity = 0xc,
    /// The request has to be made over HTTP/1.1.
    Http11Required = 0xd,
}

impl ErrorCode {
    /// The code as it stands in frames.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

/// What a peer did wrong, and how much of the connection that costs (RFC 9113 §5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// The connection ends: GOAWAY with this code, and why, for the log.
    Connection(ErrorCode, &'static str),
    /// The stream ends: RST_STREAM with this code. The others go on.
    Stream(u32, ErrorCode),
}

impl Violation {
    /// A breach of the protocol that costs the connection.
    pub(crate) const fn protocol(why: &'static str) -> Violation {
        Violation::Connection(ErrorCode::ProtocolError, why)
    }

    /// A frame of the wrong size.
    pub(crate) const fn size(why: &'static str) -> Violation {
        Violation::Connection(ErrorCode::FrameSizeError, why)
    }

    /// What no honest peer does so often.
    pub(crate) const fn flood(why: &'static str) -> Violation {
        Violation::Connection(ErrorCode::EnhanceYourCalm, why)
    }

    /// Whether it is that.
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

    /// The code with which a violation ends the connection; none where there is no violation.
    pub(in crate::h2) fn code(of: Result<impl Sized, Violation>) -> Option<ErrorCode> {
        match of {
            Err(Violation::Connection(code, _)) => Some(code),
            Err(Violation::Stream(..)) => panic!("the connection is to end"),
            Ok(_) => None,
        }
    }
}
