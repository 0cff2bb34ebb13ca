//! `BufferTable`: how much of each provided buffer the kernel has filled, and how many pieces of it
//! are still in use.

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
pub(crate) struct BufferTable {
    buffers: Vec<BufferState>,
    size: u32,
}

/// ```text
///            a completion                 its last one
///  with the kernel ─────────▶ with both ───────────────▶ being read
///        ▲                                                   │ the last piece comes back
///        └───────────────────────────────────────────────────┘
/// ```
#[derive(Clone, Default)]
struct BufferState {
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

impl BufferTable {
    /// Creates the state of that many buffers of `size` bytes, all with the kernel.
    pub(crate) fn new(buffers: u16, size: u32) -> BufferTable {
        BufferTable { buffers: vec![BufferState::default(); usize::from(buffers)], size }
    }

    /// Records that the kernel has put `len` bytes into a buffer, and whether it goes on filling
    /// it. Returns `None` if that is impossible: there is no such buffer, or it holds fewer bytes.
    pub(crate) fn take(&mut self, buffer: u16, len: u32, has_more: bool) -> Option<Piece> {
        let state = self.buffers.get_mut(usize::from(buffer)).filter(|state| !state.is_done)?;
        let from = state.filled;
        let to = from.checked_add(len).filter(|to| *to <= self.size)?;
        state.filled = to;
        state.pieces += 1;
        state.is_done = !has_more;
        Some(Piece { buffer, from, to })
    }

    /// Takes a piece back. Returns the number of its buffer if that can be given to the kernel now.
    pub(crate) fn release(&mut self, piece: Piece) -> Option<u16> {
        let state = self.buffers.get_mut(usize::from(piece.buffer))?;
        state.pieces -= 1;
        if state.pieces > 0 || !state.is_done {
            return None;
        }
        *state = BufferState::default();
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
    fn a_buffer_used_in_one_piece_returns_with_it() {
        let mut table = BufferTable::new(2, 100);
        let piece = table.take(1, 40, false).expect("it is with the kernel");
        assert_eq!(range(&piece), (1, 0, 40));
        assert_eq!(table.take(1, 1, false), None, "it is not with the kernel");
        assert_eq!(table.release(piece), Some(1));
        assert!(table.take(1, 100, false).is_some());
    }

    #[test]
    fn a_buffer_used_in_parts_returns_with_its_last_piece() {
        let mut table = BufferTable::new(1, 100);
        let first = table.take(0, 30, true).expect("there is room");
        assert_eq!(table.release(first), None, "the kernel goes on to fill it");
        let second = table.take(0, 30, true).expect("there is room");
        let third = table.take(0, 40, false).expect("there is room");
        assert_eq!((range(&second), range(&third)), ((0, 30, 60), (0, 60, 100)));
        assert_eq!(table.release(third), None, "somebody reads in it");
        assert_eq!(table.release(second), Some(0));
        assert_eq!(table.take(0, 1, true).map(|piece| range(&piece)), Some((0, 0, 1)));
    }

    #[test]
    fn impossible_completions_are_rejected() {
        for (buffer, len, is_right) in
            [(0, 100, true), (0, 101, false), (1, 1, false), (0, u32::MAX, false), (0, 0, true)]
        {
            assert_eq!(BufferTable::new(1, 100).take(buffer, len, false).is_some(), is_right);
        }
        let mut table = BufferTable::new(1, 100);
        let _first = table.take(0, 99, true);
        assert_eq!(table.take(0, 2, true), None);
        assert!(table.take(0, 1, true).is_some());
    }

    #[test]
    fn a_piece_advances_no_further_than_its_end() {
        let mut piece = Piece { buffer: 0, from: 10, to: 15 };
        for (count, left) in [(0, 5), (2, 3), (3, 0), (1, 0), (usize::MAX, 0)] {
            piece.advance(count);
            assert_eq!(piece.len(), left);
        }
    }
}
