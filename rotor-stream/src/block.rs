//! `Block`: bytes that many outputs can share.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Bytes that many outputs can share: static, or counted.
///
/// Cloning and slicing copy no bytes.
#[derive(Clone)]
pub struct Block {
    bytes: Shared,
    start: usize,
    end: usize,
}

#[derive(Clone)]
enum Shared {
    Static(&'static [u8]),
    Counted(Arc<[u8]>),
}

impl Block {
    /// Removes bytes at the front.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
    }

    /// A part of the block, sharing its bytes. What lies outside of it is left out.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Block {
        let (from, to) = clamp(range, self.len());
        Block { bytes: self.bytes.clone(), start: self.start + from, end: self.start + to }
    }
}

impl std::ops::Deref for Block {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let all = match &self.bytes {
            Shared::Static(bytes) => bytes,
            Shared::Counted(bytes) => &bytes[..],
        };
        &all[self.start..self.end]
    }
}

impl From<&'static [u8]> for Block {
    fn from(bytes: &'static [u8]) -> Block {
        Block { start: 0, end: bytes.len(), bytes: Shared::Static(bytes) }
    }
}

impl From<&'static str> for Block {
    fn from(text: &'static str) -> Block {
        Block::from(text.as_bytes())
    }
}

impl From<Arc<[u8]>> for Block {
    fn from(bytes: Arc<[u8]>) -> Block {
        Block { start: 0, end: bytes.len(), bytes: Shared::Counted(bytes) }
    }
}

impl From<Vec<u8>> for Block {
    fn from(bytes: Vec<u8>) -> Block {
        Block::from(Arc::<[u8]>::from(bytes))
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes)", self.len())
    }
}

/// Where a range begins and ends among `len` elements; nowhere, if it is outside of them or the wrong way round.
pub(crate) fn clamp(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    let from = match range.start_bound() {
        Bound::Included(&at) => at,
        Bound::Excluded(&at) => at.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let to = match range.end_bound() {
        Bound::Included(&at) => at.saturating_add(1),
        Bound::Excluded(&at) => at,
        Bound::Unbounded => len,
    };
    let to = to.min(len);
    (from.min(to), to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_share_their_bytes_and_stay_within_them() {
        let block = Block::from(Arc::<[u8]>::from(&b"0123456789"[..]));
        let cases: [(Block, &[u8]); 6] = [
            (block.slice(..), b"0123456789"),
            (block.slice(2..5), b"234"),
            (block.slice(2..=5).slice(1..), b"345"),
            (block.slice(8..20), b"89"),
            (block.slice(20..30), b""),
            (block.slice(5..5), b""),
        ];
        for (slice, expected) in cases {
            assert_eq!(&slice[..], expected);
            assert!(expected.is_empty() || block.as_ptr_range().contains(&slice.as_ptr()));
        }
    }
}
