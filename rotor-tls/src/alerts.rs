//! The unencrypted messages of a server to a peer with which no handshake is possible, byte by
//! byte.

use std::io::Write;

/// Why a server refuses a client before there is a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alert {
    /// The two ends have nothing in common.
    HandshakeFailure = 40,
    /// The hello cannot be read, or is too long.
    DecodeError = 50,
    /// The fault is not the peer's.
    InternalError = 80,
    /// There is no certificate for the name (RFC 6066 §3).
    UnrecognizedName = 112,
}

impl Alert {
    /// Returns a fatal alert as a record (RFC 8446 §6). Records before a server's first message are
    /// not encrypted.
    pub(crate) fn record(self) -> [u8; 7] {
        [21, 3, 3, 0, 2, 2, self as u8]
    }
}

/// The unencrypted end of our side when a handshake takes too long: a warning, not an error (RFC
/// 8446 §6.1).
pub(crate) const CLOSE_NOTIFY: [u8; 7] = [21, 3, 3, 0, 2, 1, 0];

const PLAIN_HTTP_TEXT: &str =
    "This port speaks HTTPS. Ask again with https:// in front of the address.\n";

/// Returns the answer to an unencrypted request: an HTTP response that every client understands.
pub(crate) fn plain_http_answer() -> Vec<u8> {
    let mut answer = Vec::new();
    let len = PLAIN_HTTP_TEXT.len();
    // Writing to a vector does not fail.
    let _ = write!(
        answer,
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {len}\r\nConnection: close\r\n\r\n{PLAIN_HTTP_TEXT}"
    );
    answer
}
