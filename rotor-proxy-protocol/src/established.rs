//! `Established`: the header of an open connection, and the bytes that were read beyond it.

use rotor_stream::PeerPlace;

use crate::header::ProxyHeader;

pub(crate) struct Established {
    /// `None` if no header was awaited, or one was sent.
    pub(crate) header: Option<ProxyHeader>,
    /// The bytes that were read with the header; `None` once a read has found that none are left.
    read_ahead: Option<ReadAhead>,
    /// The connection counts for its peer as long as this lives.
    _place: Option<PeerPlace>,
}

struct ReadAhead {
    bytes: Vec<u8>,
    taken: usize,
}

impl Established {
    pub(crate) fn new(
        header: Option<ProxyHeader>,
        read_ahead: Vec<u8>,
        place: Option<PeerPlace>,
    ) -> Established {
        let read_ahead =
            (!read_ahead.is_empty()).then_some(ReadAhead { bytes: read_ahead, taken: 0 });
        Established { header, read_ahead, _place: place }
    }

    /// Returns whether there is nothing to keep.
    pub(crate) fn is_empty(&self) -> bool {
        self.header.is_none() && self.read_ahead.is_none() && self._place.is_none()
    }

    pub(crate) fn has_read_ahead(&self) -> bool {
        self.read_ahead.is_some()
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.read_ahead.as_ref().map_or(0, |read_ahead| read_ahead.bytes.capacity())
    }

    /// Passes the bytes that were read beyond the header to `put`, which returns how many it took.
    /// Returns `None` if the socket must be read instead. After the last byte, `has_read_ahead`
    /// stays true until the next call, so that a read that ends with this byte is not taken as one
    /// that has emptied the socket.
    pub(crate) fn take(&mut self, put: impl FnOnce(&[u8]) -> usize) -> Option<usize> {
        let read_ahead = self.read_ahead.as_mut()?;
        let left = &read_ahead.bytes[read_ahead.taken..];
        if left.is_empty() {
            self.read_ahead = None;
            return None;
        }
        let len = put(left);
        read_ahead.taken += len;
        if read_ahead.taken == read_ahead.bytes.len() {
            *read_ahead = ReadAhead { bytes: Vec::new(), taken: 0 };
        }
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_ahead_are_returned_once_before_those_of_the_socket() {
        let mut established = Established::new(None, b"abcde".to_vec(), None);
        let mut take = |len: usize| {
            let mut taken = Vec::new();
            let count = established.take(|left| {
                taken.extend(left.iter().take(len));
                taken.len()
            });
            count.map(|count| (count, taken))
        };
        assert_eq!(take(0), Some((0, vec![])));
        assert_eq!(take(3), Some((3, b"abc".to_vec())));
        assert_eq!(take(3), Some((2, b"de".to_vec())));
        assert!(established.has_read_ahead(), "the last read was none of the socket's");
        assert_eq!(established.take(|_| panic!("nothing is left")), None);
        assert!(established.is_empty() && established.held_bytes() == 0);
    }
}
