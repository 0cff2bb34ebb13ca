//! `Incoming`: bytes from the socket inside that were not decoded yet.

use std::io::{self, ErrorKind};

use rotor_core::net::StreamSocket;
use rotor_stream::Buf;
use rotor_stream::buf::BLOCK_BYTES;

/// The least room offered to a read, in bytes.
const READ_BYTES_MIN: usize = 4 * 1024;

/// The room offered to a read where the one before was filled, in bytes: three whole records and
/// most of a fourth. A record of full length does not fit into one block.
const READ_BYTES_LARGE: usize = 4 * BLOCK_BYTES;

/// Records, or parts of them; and what the last read said of the socket.
#[derive(Default)]
pub(crate) struct Incoming {
    pub(crate) bytes: Buf,
    /// The last read got fewer bytes than it was asked for, and nobody has asked since for what it
    /// brought.
    was_short: bool,
    /// It got all that it was asked for.
    was_filled: bool,
}

impl Incoming {
    /// Of a socket that nobody has read from, and that is not yet registered: that will report
    /// whatever has come.
    pub(crate) fn unread() -> Incoming {
        Incoming { was_short: true, ..Incoming::default() }
    }

    /// Reads once from the socket inside. Returns how many bytes came; 0 at its end.
    ///
    /// # Errors
    ///
    /// What the socket says. What waits meanwhile holds no more memory than it needs.
    #[inline]
    pub(crate) fn fill<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<usize> {
        let room = if self.was_filled { READ_BYTES_LARGE } else { READ_BYTES_MIN };
        match self.bytes.read_from_socket(inner, room) {
            Ok(filled) => {
                self.was_filled = filled.count == filled.asked;
                self.was_short = !self.was_filled;
                Ok(filled.count)
            }
            Err(error) => {
                (self.was_filled, self.was_short) = (false, false);
                self.bytes.shrink();
                Err(error)
            }
        }
    }

    /// Reads once for a handshake, unless the read before has emptied the socket: then it waits for
    /// an event. What may lie behind those bytes without one, an end, is for the caller of the
    /// handshake to ask for
    /// ([`handshake_has_drained`](StreamSocket::handshake_has_drained)). Returns how many bytes came.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` at the end; what the socket says.
    pub(crate) fn fill_unless_drained<S: StreamSocket>(
        &mut self,
        inner: &mut S,
    ) -> io::Result<usize> {
        if self.has_drained(inner) {
            self.settle();
            return Err(ErrorKind::WouldBlock.into());
        }
        match self.fill(inner)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }

    /// A read of what was brought long ago says nothing of the socket: more may have come since, of
    /// which the event has been told already.
    #[inline]
    pub(crate) fn forget_short(&mut self) {
        self.was_short = false;
    }

    /// Where that read has emptied the socket, no other one follows that would give back the room
    /// behind a few bytes of a record.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.was_short {
            self.bytes.shrink();
        }
    }

    /// Whether that read has emptied the socket, as far as the socket can tell.
    #[inline]
    pub(crate) fn has_drained<S: StreamSocket>(&self, inner: &S) -> bool {
        self.was_short && inner.short_read_drains()
    }

    /// Whether a record is there in one piece: there is something to be decoded.
    pub(crate) fn has_record(&self) -> bool {
        has_record(&self.bytes)
    }

    /// Whether what comes first is a whole record of a handshake in clear. Before a second hello
    /// there may be one that means nothing (RFC 8446 §D.4).
    pub(crate) fn has_plain_handshake(&self) -> bool {
        const CHANGE_CIPHER_SPEC: &[u8] = &[20, 3, 3, 0, 1, 1];
        let bytes = &self.bytes[..];
        let bytes = bytes.strip_prefix(CHANGE_CIPHER_SPEC).unwrap_or(bytes);
        bytes.first() == Some(&22) && has_record(bytes)
    }
}

fn has_record(bytes: &[u8]) -> bool {
    match bytes {
        [_, _, _, high, low, rest @ ..] => {
            rest.len() >= usize::from(u16::from_be_bytes([*high, *low]))
        }
        _ => false,
    }
}
