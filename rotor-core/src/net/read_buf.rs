//! `ReadBuf`: memory into which a socket reads, without access to its old content.

use std::fmt;
#[cfg(unix)]
use std::io::{self, Read};
#[cfg(unix)]
use std::os::fd::BorrowedFd;

#[cfg(unix)]
use socket2::SockRef;

/// Memory into which a socket reads
/// ([`StreamSocket::read_unseen`](super::StreamSocket::read_unseen)).
///
/// Its old content, perhaps the bytes of another connection, cannot be read through it. The number
/// of filled bytes counts what was actually put into it; it is not a number that a socket returns.
/// So the memory need not be zeroed first, and each byte is copied once.
///
/// The count is stored by the owner of the memory. If a socket replaces this value by another
/// buffer, nothing counts as filled in this one.
pub struct ReadBuf<'a> {
    memory: &'a mut [u8],
    filled: &'a mut usize,
}

impl<'a> ReadBuf<'a> {
    /// Makes an empty buffer of this memory. `filled` is set to 0, and then counts how many bytes
    /// at the front of the memory were read into it.
    pub fn new(memory: &'a mut [u8], filled: &'a mut usize) -> ReadBuf<'a> {
        *filled = 0;
        ReadBuf { memory, filled }
    }

    /// Returns how many bytes at the front are filled.
    #[inline]
    pub fn filled(&self) -> usize {
        *self.filled
    }

    /// Returns how many more bytes fit.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.memory.len() - *self.filled
    }

    /// Appends as many of the bytes as fit. Returns how many.
    #[inline]
    pub fn put_slice(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.remaining());
        self.memory[*self.filled..][..count].copy_from_slice(&bytes[..count]);
        *self.filled += count;
        count
    }

    /// Receives once from a non-blocking socket, at most as many bytes as fit (recv(2)). Returns
    /// how many bytes were received: 0 at the end of the stream, or if the buffer is full.
    ///
    /// # Errors
    ///
    /// The system's error: [`WouldBlock`](io::ErrorKind::WouldBlock) if there is nothing to
    /// receive. Nothing was put into the buffer.
    #[cfg(unix)]
    pub fn recv(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let socket = SockRef::from(&socket);
        let count = (&*socket).read(&mut self.memory[*self.filled..])?;
        *self.filled += count;
        Ok(count)
    }
}

/// Prints how full the buffer is, but none of its content.
impl fmt::Debug for ReadBuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadBuf({} of {} bytes)", self.filled, self.memory.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn put_slice_appends_only_what_fits() {
        let (mut memory, mut filled) = (*b"__________", 9);
        let mut buf = ReadBuf::new(&mut memory, &mut filled);
        assert_eq!((buf.put_slice(b"0123"), buf.put_slice(b""), buf.filled()), (4, 0, 4));
        assert_eq!((buf.put_slice(b"45"), buf.remaining()), (2, 4));
        assert_eq!(format!("{buf:?}"), "ReadBuf(6 of 10 bytes)");
        assert_eq!(&memory, b"012345____");
        let mut buf = ReadBuf::new(&mut memory[..5], &mut filled);
        assert_eq!((buf.put_slice(b"abcdefg"), buf.put_slice(b"h"), buf.remaining()), (5, 0, 0));
        assert_eq!(&memory, b"abcde5____");
    }

    #[test]
    fn replacing_the_buffer_leaves_the_original_unchanged() {
        let (mut memory, mut filled) = (*b"secret", 0);
        let (mut others, mut count) = (*b"0123456789", 0);
        let mut buf = ReadBuf::new(&mut memory, &mut filled);
        buf.put_slice(b"a");
        buf = ReadBuf::new(&mut others, &mut count);
        assert_eq!(buf.put_slice(b"0123456789"), 10);
        assert_eq!((filled, &memory), (1, b"aecret"));
    }

    #[cfg(unix)]
    #[test]
    fn recv_appends_from_the_socket_only_what_fits() {
        use std::io::Write;
        use std::os::fd::AsFd;
        use std::os::unix::net::UnixStream;

        let (own, mut peer) = UnixStream::pair().expect("there are descriptors");
        own.set_nonblocking(true).expect("it can be");
        let (mut memory, mut filled) = (*b"__________", 9);
        let mut buf = ReadBuf::new(&mut memory[..8], &mut filled);
        buf.put_slice(b"ab");
        let nothing = buf.recv(own.as_fd()).map_err(|error| error.kind());
        assert_eq!((nothing, buf.filled()), (Err(io::ErrorKind::WouldBlock), 2));
        peer.write_all(b"0123456789").expect("it fits");
        drop(peer);
        assert_eq!(buf.recv(own.as_fd()).expect("there is something"), 6);
        assert_eq!((buf.filled(), buf.remaining()), (8, 0));
        assert_eq!(&memory, b"ab012345__");
        let mut buf = ReadBuf::new(&mut memory, &mut filled);
        assert_eq!(buf.recv(own.as_fd()).expect("the rest is there"), 4);
        assert_eq!(buf.recv(own.as_fd()).expect("it has ended"), 0);
        assert_eq!(&memory, b"67892345__");
    }
}
