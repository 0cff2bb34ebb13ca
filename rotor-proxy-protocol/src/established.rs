//! `Opened`: the header of an open connection, and the bytes that were read beyond it.

use rotor_stream::PeerPlace;

use crate::header::ProxyHeader;

pub(crate) struct Opened {
    /// `None` if no header was awaited, or one was sent.
    pub(crate) header: Option<ProxyHeader>,
    /// The bytes that were read with the header; `None` once a read has found that none are left.
    ahead: Option<Ahead>,
    /// The connection counts for its peer as long as this lives.
    _place: Option<PeerPlace>,
}

struct Ahead {
    bytes: Vec<u8>,
    taken: usize,
}

impl Opened {
    pub(crate) fn new(
        header: Option<ProxyHeader>,
        ahead: Vec<u8>,
        place: Option<PeerPlace>,
    ) -> Opened {
        let ahead = (!ahead.is_empty()).then_some(Ahead { bytes: ahead, taken: 0 });
        Opened { header, ahead, _place: place }
    }

    /// Returns whether there is nothing to keep.
    pub(crate) fn is_empty(&self) -> bool {
        self.header.is_none() && self.ahead.is_none() && self._place.is_none()
    }

    pub(crate) fn has_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.ahead.as_ref().map_or(0, |ahead| ahead.bytes.capacity())
    }

    /// Passes the bytes that were read beyond the header to `put`, which returns how many it took.
    /// Returns `None` if the socket must be read instead. After the last byte, `has_ahead` stays
    /// true until the next call, so that a read that ends with this byte is not taken as one that
    /// has emptied the socket.
    pub(crate) fn take(&mut self, put: impl FnOnce(&[u8]) -> usize) -> Option<usize> {
        let ahead = self.ahead.as_mut()?;
        let left = &ahead.bytes[ahead.taken..];
        if left.is_empty() {
            self.ahead = None;
            return None;
        }
        let len = put(left);
        ahead.taken += len;
        if ahead.taken == ahead.bytes.len() {
            *ahead = Ahead { bytes: Vec::new(), taken: 0 };
        }
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_ahead_is_handed_out_once_and_the_socket_is_read_behind_it() {
        let mut opened = Opened::new(None, b"abcde".to_vec(), None);
        let mut take = |len: usize| {
            let mut taken = Vec::new();
            let count = opened.take(|left| {
                taken.extend(left.iter().take(len));
                taken.len()
            });
            count.map(|count| (count, taken))
        };
        assert_eq!(take(0), Some((0, vec![])));
        assert_eq!(take(3), Some((3, b"abc".to_vec())));
        assert_eq!(take(3), Some((2, b"de".to_vec())));
        assert!(opened.has_ahead(), "the last read was none of the socket's");
        assert_eq!(opened.take(|_| panic!("nothing is left")), None);
        assert!(opened.is_empty() && opened.held_bytes() == 0);
    }
}
