//! What a server says in clear to a peer with which it cannot even begin, byte by byte.

use std::io::Write;

/// Why a server says no before there is a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alert {
    /// The two ends have nothing in common.
    HandshakeFailure = 40,
    /// The hello cannot be read, or is longer than it may be.
    DecodeError = 50,
    /// There is nothing wrong with the peer.
    InternalError = 80,
    /// There is no certificate for the name (RFC 6066 §3).
    UnrecognizedName = 112,
}

impl Alert {
    /// A fatal alert, as a record (RFC 8446 §6). Before the first message of a server no record is
    /// encrypted.
    pub(crate) fn record(self) -> [u8; 7] {
        [21, 3, 3, 0, 2, 2, self as u8]
    }
}

/// The end of our side of a handshake that takes too long, in clear: a warning, no error (RFC 8446
/// §6.1).
pub(crate) const CLOSE_NOTIFY: [u8; 7] = [21, 3, 3, 0, 2, 1, 0];

const PLAIN_HTTP_TEXT: &str =
    "This port speaks HTTPS. Ask again with https:// in front of the address.\n";

/// The answer to a request in clear: HTTP that every client understands.
pub(crate) fn plain_http_answer() -> Vec<u8> {
    let mut answer = Vec::new();
    let len = PLAIN_HTTP_TEXT.len();
    // A vector takes all.
    let _ = write!(
        answer,
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {len}\r\nConnection: close\r\n\r\n{PLAIN_HTTP_TEXT}"
    );
    answer
}
