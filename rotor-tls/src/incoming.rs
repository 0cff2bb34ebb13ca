//! `Incoming`: bytes from the inner socket that were not decoded yet.

use std::io::{self, ErrorKind};

use rotor_core::net::StreamSocket;
use rotor_stream::Buf;
use rotor_stream::buf::BLOCK_BYTES;

/// The minimum room for a read, in bytes.
const READ_BYTES_MIN: usize = 4 * 1024;

/// The room for a read, in bytes, if the previous read filled its room: three whole records and
/// most of a fourth. A record of full length does not fit into one block.
const READ_BYTES_LARGE: usize = 4 * BLOCK_BYTES;

/// Records, or parts of them; and what the last read showed about the socket.
#[derive(Default)]
pub(crate) struct Incoming {
    pub(crate) bytes: Buf,
    /// Whether the last read returned fewer bytes than requested, and its result was not
    /// invalidated since.
    was_short: bool,
    /// Whether the last read returned all the bytes that it requested.
    was_filled: bool,
}

impl Incoming {
    /// Makes an empty buffer for a socket that was never read and is not yet registered;
    /// registering it will report any input.
    pub(crate) fn for_unread_socket() -> Incoming {
        Incoming { was_short: true, ..Incoming::default() }
    }

    /// Reads once from the inner socket. Returns the number of bytes; 0 at its end.
    ///
    /// # Errors
    ///
    /// The socket's error. Bytes that wait meanwhile hold no more memory than they need.
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

    /// Reads once for a handshake, unless the previous read has emptied the socket; then it waits
    /// for an event. An end of the stream may follow those bytes without an event; the caller of
    /// the handshake must check for that
    /// ([`handshake_has_drained`](StreamSocket::handshake_has_drained)). Returns the number of
    /// bytes.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` at the end of the stream; the socket's error.
    pub(crate) fn fill_unless_drained<S: StreamSocket>(
        &mut self,
        inner: &mut S,
    ) -> io::Result<usize> {
        if self.has_drained(inner) {
            self.shrink_if_drained();
            return Err(ErrorKind::WouldBlock.into());
        }
        match self.fill(inner)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }

    /// Forgets that the last read was short. If that read was long ago, more may have arrived
    /// since, and its event may have been reported already.
    #[inline]
    pub(crate) fn invalidate_short_read(&mut self) {
        self.was_short = false;
    }

    /// Gives back the room behind a partial record if the last read has emptied the socket, because
    /// no further read would do that.
    #[inline]
    pub(crate) fn shrink_if_drained(&mut self) {
        if self.was_short {
            self.bytes.shrink();
        }
    }

    /// Returns whether the last read has emptied the socket, as far as the socket can tell.
    #[inline]
    pub(crate) fn has_drained<S: StreamSocket>(&self, inner: &S) -> bool {
        self.was_short && inner.short_read_drains()
    }

    /// Returns whether a complete record is there to be decoded.
    pub(crate) fn has_record(&self) -> bool {
        has_record(&self.bytes)
    }

    /// Returns whether a complete, unencrypted handshake record comes first. A meaningless record
    /// may precede a second hello (RFC 8446 §D.4).
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
