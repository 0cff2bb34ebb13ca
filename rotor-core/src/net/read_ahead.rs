//! `ReadAhead`: bytes that a wrapping socket has read beyond its handshake.

use std::fmt;

/// Bytes that a wrapping socket has read from its inner socket during the handshake, although they
/// belong to the protocol. The wrapper returns them from its reads before it reads the inner socket
/// again.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::net::ReadAhead;
///
/// let mut ahead = ReadAhead::new(b"220 ready\r\n".to_vec());
/// let mut room = [0; 4];
/// let read = ahead.take(|mut left| std::io::Read::read(&mut left, &mut room).expect("a slice"));
/// assert_eq!((read, &room), (Some(4), b"220 "));
/// assert_eq!(ahead.take(|left| left.len()), Some(7));
/// assert!(!ahead.is_empty(), "the last read was none of the inner socket's");
/// assert_eq!(ahead.take(|_| 0), None); // now the inner socket is read
/// assert!(ahead.is_empty());
/// ```
#[derive(Default)]
pub struct ReadAhead {
    /// `None` once a read has found that nothing is left.
    unread: Option<Unread>,
}

struct Unread {
    bytes: Vec<u8>,
    taken: usize,
}

impl ReadAhead {
    /// Wraps the bytes that were read beyond the handshake, which may be none.
    pub fn new(bytes: Vec<u8>) -> ReadAhead {
        ReadAhead { unread: (!bytes.is_empty()).then_some(Unread { bytes, taken: 0 }) }
    }

    /// Returns whether the last read, if there was one, has read the inner socket. As long as this
    /// is false, [`holds_input`](super::StreamSocket::holds_input) is true for the wrapper, and
    /// [`short_read_drains`](super::StreamSocket::short_read_drains) false: a read that got the
    /// last of these bytes says nothing about the inner socket.
    pub fn is_empty(&self) -> bool {
        self.unread.is_none()
    }

    /// Passes the bytes that are left to `put`, which returns how many it took. Returns `None`,
    /// without calling `put`, if the inner socket must be read instead.
    #[inline]
    pub fn take(&mut self, put: impl FnOnce(&[u8]) -> usize) -> Option<usize> {
        let unread = self.unread.as_mut()?;
        let left = &unread.bytes[unread.taken..];
        if left.is_empty() {
            self.unread = None;
            return None;
        }
        let count = put(left);
        unread.taken += count;
        if unread.taken == unread.bytes.len() {
            *unread = Unread { bytes: Vec::new(), taken: 0 };
        }
        Some(count)
    }

    /// Returns how many bytes of memory this holds, for
    /// [`StreamSocket::held_bytes`](super::StreamSocket::held_bytes).
    pub fn held_bytes(&self) -> usize {
        self.unread.as_ref().map_or(0, |unread| unread.bytes.capacity())
    }
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.unread.as_ref().map_or(0, |unread| unread.bytes.len() - unread.taken);
        write!(f, "ReadAhead({left} bytes)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_returned_once_before_the_inner_socket_is_read() {
        let mut ahead = ReadAhead::new(b"abcde".to_vec());
        let mut take = |len: usize| {
            let mut taken = Vec::new();
            let count = ahead.take(|left| {
                taken.extend(left.iter().take(len));
                taken.len()
            });
            count.map(|count| (count, taken))
        };
        assert_eq!(take(0), Some((0, vec![])));
        assert_eq!(take(3), Some((3, b"abc".to_vec())));
        assert_eq!(take(3), Some((2, b"de".to_vec())));
        assert!(!ahead.is_empty() && ahead.held_bytes() == 0);
        assert_eq!(ahead.take(|_| panic!("nothing is left")), None);
        assert!(ahead.is_empty());
    }

    #[test]
    fn no_bytes_are_empty_from_the_beginning() {
        assert!(ReadAhead::new(Vec::new()).is_empty());
    }
}
