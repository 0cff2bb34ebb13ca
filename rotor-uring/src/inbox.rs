//! `Inbox`: the unread data of a stream.

use std::collections::VecDeque;

use rotor_core::net::ReadBuf;

use crate::buffer_table::Piece;

/// Pieces of provided buffers; and after a turn, a copy of what is left of them, because a stream
/// that does not read must not keep a buffer from all others.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Usually the only one.
    first: Option<Piece>,
    overflow: Option<Box<Overflow>>,
}

/// What only few streams have.
#[derive(Default)]
struct Overflow {
    /// Data from before all pieces.
    copied: VecDeque<u8>,
    /// The pieces after the first one.
    pieces: VecDeque<Piece>,
}

/// Gives access to the bytes of a piece, and takes the piece back.
pub(crate) trait Lender {
    fn bytes(&self, piece: &Piece) -> &[u8];
    fn release(&mut self, piece: Piece);
}

impl Inbox {
    pub(crate) fn push(&mut self, piece: Piece) {
        match self.first {
            None => self.first = Some(piece),
            Some(_) => self.overflow.get_or_insert_default().pieces.push_back(piece),
        }
    }

    /// Returns how many bytes are unread.
    pub(crate) fn len(&self) -> usize {
        let first = self.first.as_ref().map_or(0, Piece::len);
        let Some(overflow) = &self.overflow else { return first };
        first + overflow.copied.len() + overflow.pieces.iter().map(Piece::len).sum::<usize>()
    }

    /// Returns how much memory that takes, in bytes. The next copy adds what is in buffers yet.
    pub(crate) fn held_bytes(&self) -> usize {
        let copied = self.overflow.as_ref().map(|overflow| &overflow.copied);
        self.len() + copied.map_or(0, |copied| copied.capacity() - copied.len())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.overflow.is_none()
    }

    /// Copies into `buf` what it has room for.
    pub(crate) fn read(&mut self, buf: &mut ReadBuf<'_>, lender: &mut impl Lender) {
        self.read_copied(buf);
        while buf.remaining() > 0
            && let Some(piece) = &mut self.first
        {
            let count = buf.put_slice(lender.bytes(piece));
            piece.advance(count);
            if piece.len() == 0 {
                self.release_first(lender);
            }
        }
    }

    #[inline]
    fn read_copied(&mut self, buf: &mut ReadBuf<'_>) {
        let Some(overflow) = &mut self.overflow else { return };
        let (front, back) = overflow.copied.as_slices();
        let count = buf.put_slice(front) + buf.put_slice(back);
        overflow.copied.drain(..count);
        self.drop_empty_overflow();
    }

    fn release_first(&mut self, lender: &mut impl Lender) {
        let next = self.overflow.as_mut().and_then(|overflow| overflow.pieces.pop_front());
        if let Some(piece) = std::mem::replace(&mut self.first, next) {
            lender.release(piece);
        }
        self.drop_empty_overflow();
    }

    fn drop_empty_overflow(&mut self) {
        if self
            .overflow
            .as_ref()
            .is_some_and(|overflow| overflow.copied.is_empty() && overflow.pieces.is_empty())
        {
            self.overflow = None;
        }
    }

    /// Copies what is unread, so that all buffers are given back. Returns how many bytes were
    /// copied.
    pub(crate) fn copy_out(&mut self, lender: &mut impl Lender) -> usize {
        let mut count = 0;
        while let Some(piece) = &self.first {
            let bytes = lender.bytes(piece);
            count += bytes.len();
            self.overflow.get_or_insert_default().copied.extend(bytes);
            self.release_first(lender);
        }
        count
    }

    /// Discards what is unread.
    pub(crate) fn clear(&mut self, lender: &mut impl Lender) {
        while self.first.is_some() {
            self.release_first(lender);
        }
        self.overflow = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer_table::BufferTable;

    /// One buffer, with a count of how often it was handed back.
    struct OneBuffer {
        table: BufferTable,
        bytes: Vec<u8>,
        handed_back: usize,
    }

    impl Lender for OneBuffer {
        fn bytes(&self, piece: &Piece) -> &[u8] {
            &self.bytes[piece.range()]
        }
        fn release(&mut self, piece: Piece) {
            self.handed_back += usize::from(self.table.release(piece).is_some());
        }
    }

    /// An inbox that holds the text in pieces of these lengths.
    fn inbox(text: &str, lengths: &[usize]) -> (Inbox, OneBuffer) {
        let mut table = BufferTable::new(1, text.len() as u32);
        let mut inbox = Inbox::default();
        let mut left = text.len();
        for len in lengths {
            left -= len;
            inbox.push(table.take(0, *len as u32, left > 0).expect("there is room"));
        }
        (inbox, OneBuffer { table, bytes: text.as_bytes().to_vec(), handed_back: 0 })
    }

    fn read(inbox: &mut Inbox, buffer: &mut [u8], lender: &mut OneBuffer) -> usize {
        let mut count = 0;
        let mut buf = ReadBuf::new(buffer, &mut count);
        inbox.read(&mut buf, lender);
        count
    }

    fn read_all(inbox: &mut Inbox, lender: &mut OneBuffer, chunk: usize) -> String {
        let mut all = Vec::new();
        let mut buffer = vec![0; chunk];
        loop {
            let count = read(inbox, &mut buffer, lender);
            all.extend_from_slice(&buffer[..count]);
            if count == 0 {
                return String::from_utf8(all).expect("it is text");
            }
        }
    }

    #[test]
    fn bytes_are_read_in_order_in_pieces_of_any_size() {
        let text = "0123456789";
        for lengths in [&[10][..], &[1, 9], &[9, 1], &[3, 3, 4], &[1, 1, 1, 1, 1, 5]] {
            for chunk in 1..=11 {
                for kept_after in 0..=10 {
                    let (mut inbox, mut lender) = inbox(text, lengths);
                    let mut head = vec![0; kept_after];
                    assert_eq!(read(&mut inbox, &mut head, &mut lender), kept_after);
                    assert_eq!(inbox.len(), 10 - kept_after);
                    assert_eq!(inbox.copy_out(&mut lender), 10 - kept_after);
                    assert_eq!(lender.handed_back, 1, "all buffers are back");
                    let rest = read_all(&mut inbox, &mut lender, chunk);
                    assert_eq!(String::from_utf8_lossy(&head) + &*rest, text);
                    assert!(inbox.is_empty());
                }
                let (mut inbox, mut lender) = inbox(text, lengths);
                assert_eq!(read_all(&mut inbox, &mut lender, chunk), text);
                assert_eq!((lender.handed_back, inbox.is_empty()), (1, true));
            }
        }
    }

    #[test]
    fn cleared_pieces_are_released() {
        for lengths in [&[10][..], &[3, 3, 4]] {
            let (mut inbox, mut lender) = inbox("0123456789", lengths);
            inbox.clear(&mut lender);
            assert_eq!((lender.handed_back, inbox.is_empty()), (1, true));
        }
    }

    #[test]
    fn copied_bytes_come_before_later_pieces() {
        let (mut inbox, mut lender) = inbox("0123456789", &[4]);
        inbox.copy_out(&mut lender);
        inbox.push(lender.table.take(0, 6, false).expect("there is room"));
        assert_eq!(read_all(&mut inbox, &mut lender, 3), "0123456789");
    }
}
