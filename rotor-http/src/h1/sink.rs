//! `Sink`: where a message writer puts its bytes.

/// An output buffer: takes bytes in order, never fails and never blocks. Bytes that the peer does
/// not read stay in it, within the high-water mark of its owner.
pub trait Sink {
    /// Appends the bytes.
    fn put(&mut self, bytes: &[u8]);

    /// Appends several pieces. A sink that can make room for all of them at once should do so.
    #[inline]
    fn put_all(&mut self, pieces: &[&[u8]]) {
        for piece in pieces {
            self.put(piece);
        }
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn put_all(&mut self, pieces: &[&[u8]]) {
        self.reserve(pieces.iter().map(|piece| piece.len()).sum());
        for piece in pieces {
            self.extend_from_slice(piece);
        }
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        (**self).put(bytes);
    }

    #[inline]
    fn put_all(&mut self, pieces: &[&[u8]]) {
        (**self).put_all(pieces);
    }
}
