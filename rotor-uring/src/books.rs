//! `Books`: how much of each provided buffer the kernel has filled, and how many pieces of it are
//! still in use.

use std::ops::Range;

/// Received bytes: a range of one buffer. The owner of a piece has that range exclusively until the
/// piece is given back, so a piece cannot be copied.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    buffer: u16,
    from: u32,
    to: u32,
}

/// The state of all buffers of a ring.
pub(crate) struct Books {
    buffers: Vec<Book>,
    size: u32,
}

/// ```text
///            a completion                 its last one
///  with the kernel ─────────▶ with both ───────────────▶ being read
///        ▲                                                   │ the last piece comes back
///        └───────────────────────────────────────────────────┘
/// ```
#[derive(Clone, Default)]
struct Book {
    /// How many bytes the kernel has filled.
    filled: u32,
    /// The pieces that were not given back yet.
    pieces: u32,
    /// The kernel will not write to it any more.
    is_done: bool,
}

impl Piece {
    /// Returns how many bytes are left in it.
    pub(crate) fn len(&self) -> usize {
        (self.to - self.from) as usize
    }

    /// Returns the number of its buffer.
    #[inline]
    pub(crate) fn buffer(&self) -> usize {
        usize::from(self.buffer)
    }

    /// Returns where it is in its buffer.
    #[inline]
    pub(crate) fn range(&self) -> Range<usize> {
        self.from as usize..self.to as usize
    }

    /// Skips the first `count` bytes, or all if there are fewer.
    pub(crate) fn advance(&mut self, count: usize) {
        self.from = self.from.saturating_add(u32::try_from(count).unwrap_or(u32::MAX)).min(self.to);
    }
}

impl Books {
    /// Creates the state of that many buffers of `size` bytes, all with the kernel.
    pub(crate) fn new(buffers: u16, size: u32) -> Books {
        Books { buffers: vec![Book::default(); usize::from(buffers)], size }
    }

    /// Records that the kernel has put `len` bytes into a buffer, and whether it goes on filling
    /// it. Returns `None` if that is impossible: there is no such buffer, or it holds fewer bytes.
    pub(crate) fn take(&mut self, buffer: u16, len: u32, goes_on: bool) -> Option<Piece> {
        let book = self.buffers.get_mut(usize::from(buffer)).filter(|book| !book.is_done)?;
        let from = book.filled;
        let to = from.checked_add(len).filter(|to| *to <= self.size)?;
        book.filled = to;
        book.pieces += 1;
        book.is_done = !goes_on;
        Some(Piece { buffer, from, to })
    }

    /// Takes a piece back. Returns the number of its buffer if that can be given to the kernel now.
    pub(crate) fn give_back(&mut self, piece: Piece) -> Option<u16> {
        let book = self.buffers.get_mut(usize::from(piece.buffer))?;
        book.pieces -= 1;
        if book.pieces > 0 || !book.is_done {
            return None;
        }
        *book = Book::default();
        Some(piece.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(piece: &Piece) -> (u16, u32, u32) {
        (piece.buffer, piece.from, piece.to)
    }

    #[test]
    fn a_buffer_that_is_taken_whole_goes_back_with_its_piece() {
        let mut books = Books::new(2, 100);
        let piece = books.take(1, 40, false).expect("it is with the kernel");
        assert_eq!(range(&piece), (1, 0, 40));
        assert_eq!(books.take(1, 1, false), None, "it is not with the kernel");
        assert_eq!(books.give_back(piece), Some(1));
        assert!(books.take(1, 100, false).is_some());
    }

    #[test]
    fn a_buffer_that_is_filled_bit_by_bit_goes_back_when_it_is_full_and_nobody_reads_in_it() {
        let mut books = Books::new(1, 100);
        let first = books.take(0, 30, true).expect("there is room");
        assert_eq!(books.give_back(first), None, "the kernel goes on to fill it");
        let second = books.take(0, 30, true).expect("there is room");
        let third = books.take(0, 40, false).expect("there is room");
        assert_eq!((range(&second), range(&third)), ((0, 30, 60), (0, 60, 100)));
        assert_eq!(books.give_back(third), None, "somebody reads in it");
        assert_eq!(books.give_back(second), Some(0));
        assert_eq!(books.take(0, 1, true).map(|piece| range(&piece)), Some((0, 0, 1)));
    }

    #[test]
    fn what_no_kernel_says_is_nothing() {
        for (buffer, len, is_right) in
            [(0, 100, true), (0, 101, false), (1, 1, false), (0, u32::MAX, false), (0, 0, true)]
        {
            assert_eq!(Books::new(1, 100).take(buffer, len, false).is_some(), is_right);
        }
        let mut books = Books::new(1, 100);
        let _first = books.take(0, 99, true);
        assert_eq!(books.take(0, 2, true), None);
        assert!(books.take(0, 1, true).is_some());
    }

    #[test]
    fn a_piece_is_used_up_from_its_beginning_and_no_further_than_its_end() {
        let mut piece = Piece { buffer: 0, from: 10, to: 15 };
        for (count, left) in [(0, 5), (2, 3), (3, 0), (1, 0), (usize::MAX, 0)] {
            piece.advance(count);
            assert_eq!(piece.len(), left);
        }
    }
}
