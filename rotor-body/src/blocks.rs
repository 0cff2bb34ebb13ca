//! `Blocks`: bytes in several pieces, as they arrived; `BlocksBuilder`: collects them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rotor_stream::Block;

/// Bytes in several pieces, in the memory in which they arrived. Clones share it.
#[derive(Clone, Default)]
pub struct Blocks {
    pieces: Arc<Vec<Piece>>,
}

#[derive(Clone)]
struct Piece {
    /// The total length up to the end of this piece.
    end: u64,
    block: Block,
}

impl Blocks {
    /// Returns the total length in bytes.
    pub fn len(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.end)
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the pieces in order; none of them is empty.
    pub fn iter(&self) -> impl Iterator<Item = &Block> {
        self.pieces.iter().map(|piece| &piece.block)
    }

    /// Returns the part of one piece that begins at `offset`; empty at the end and beyond.
    pub(crate) fn piece_at(&self, offset: u64) -> &[u8] {
        let index = self.pieces.partition_point(|piece| piece.end <= offset);
        let Some(piece) = self.pieces.get(index) else { return &[] };
        // Counted from its end, so that its beginning need not be stored.
        let left = (piece.end - offset) as usize;
        &piece.block[piece.block.len() - left..]
    }

    /// Returns a part, which shares the memory. The range may extend beyond the bytes.
    pub(crate) fn slice(&self, range: Range<u64>) -> Blocks {
        let mut parts = Blocks::default();
        let pieces = Arc::make_mut(&mut parts.pieces);
        let mut end = 0;
        for piece in self.pieces.iter() {
            let begin = piece.end - piece.block.len() as u64;
            let (from, to) = (range.start.max(begin), range.end.min(piece.end));
            if from < to {
                end += to - from;
                let block = piece.block.slice((from - begin) as usize..(to - begin) as usize);
                pieces.push(Piece { end, block });
            }
        }
        parts
    }

    /// Copies all pieces into one vector. If their memory is not shared, each is released as soon
    /// as it has been copied.
    pub(crate) fn gather(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len() as usize);
        match Arc::try_unwrap(self.pieces) {
            Ok(pieces) => {
                pieces.into_iter().for_each(|piece| bytes.extend_from_slice(&piece.block));
            }
            Err(shared) => shared.iter().for_each(|piece| bytes.extend_from_slice(&piece.block)),
        }
        bytes
    }
}

impl FromIterator<Block> for Blocks {
    fn from_iter<I: IntoIterator<Item = Block>>(blocks: I) -> Blocks {
        let mut end = 0;
        let pieces = blocks.into_iter().filter(|block| !block.is_empty()).map(|block| {
            end += block.len() as u64;
            Piece { end, block }
        });
        Blocks { pieces: Arc::new(pieces.collect()) }
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blocks({} bytes in {} pieces)", self.len(), self.pieces.len())
    }
}

/// Pieces of up to this many bytes are copied together. Otherwise each would take more memory than
/// its bytes, and a peer that sends byte by byte would take many times what it has sent.
const COPIED_PIECE_MAX: usize = 2 << 10;

/// The maximum length of pieces that are copied together, in bytes.
const TAIL_BYTES: usize = 16 << 10;

/// Collects blocks.
#[derive(Default)]
pub(crate) struct BlocksBuilder {
    blocks: Vec<Block>,
    /// Short pieces, which follow the blocks.
    tail: Vec<u8>,
    len: usize,
}

impl BlocksBuilder {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, block: Block) {
        self.len += block.len();
        if block.len() > COPIED_PIECE_MAX {
            self.flush_tail();
            self.blocks.push(block);
            return;
        }
        if self.tail.len() + block.len() > TAIL_BYTES {
            self.flush_tail();
        }
        self.tail.extend_from_slice(&block);
    }

    /// Returns the collected blocks, and begins anew.
    pub(crate) fn take(&mut self) -> Vec<Block> {
        self.flush_tail();
        self.len = 0;
        std::mem::take(&mut self.blocks)
    }

    fn flush_tail(&mut self) {
        if !self.tail.is_empty() {
            self.blocks.push(Block::from(std::mem::take(&mut self.tail)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(texts: &[&'static str]) -> Blocks {
        texts.iter().map(|text| Block::from(*text)).collect()
    }

    fn whole(blocks: &Blocks) -> Vec<u8> {
        blocks.iter().flat_map(|block| block.to_vec()).collect()
    }

    #[test]
    fn each_offset_is_found_in_its_piece() {
        for texts in [&["0123456789"][..], &["012", "", "3", "456789"], &["01234", "56789"], &[]] {
            let blocks = blocks(texts);
            let all = whole(&blocks);
            assert_eq!((blocks.len(), blocks.is_empty()), (all.len() as u64, all.is_empty()));
            for offset in 0..all.len() + 2 {
                let at = blocks.piece_at(offset as u64);
                assert_eq!(at.is_empty(), offset >= all.len(), "{texts:?} at {offset}");
                assert!(at.is_empty() || all[offset..].starts_with(at), "{texts:?} at {offset}");
            }
        }
    }

    #[test]
    fn a_slice_has_the_bytes_of_its_range() {
        let blocks = blocks(&["012", "3", "456789"]);
        for from in 0..12 {
            for to in 0..12 {
                let part = blocks.slice(from..to);
                let expected: Vec<u8> = (from..to.min(10)).map(|at| b'0' + at as u8).collect();
                assert_eq!(whole(&part), expected, "{from}..{to}");
                assert_eq!(part.len(), expected.len() as u64, "{from}..{to}");
                assert!(part.iter().all(|block| !block.is_empty()));
            }
        }
    }

    #[test]
    fn short_pieces_are_merged_and_long_ones_are_not_copied() {
        let long = Block::from(vec![b'x'; COPIED_PIECE_MAX + 1]);
        for (lengths, pieces) in [
            (&[1, 1, 1][..], 1),
            (&[COPIED_PIECE_MAX + 1, 1, 1, COPIED_PIECE_MAX + 1, 1], 4),
            (&[COPIED_PIECE_MAX; 8], 1),
            (&[COPIED_PIECE_MAX; 9], 2),
            (&[0, 0], 0),
        ] {
            let mut builder = BlocksBuilder::default();
            lengths.iter().for_each(|len| builder.push(long.slice(..*len)));
            assert_eq!(builder.len(), lengths.iter().sum::<usize>());
            let blocks = builder.take();
            assert_eq!(blocks.len(), pieces, "{lengths:?}");
            assert_eq!(blocks.iter().map(|block| block.len()).sum::<usize>(), lengths.iter().sum());
            let is_shared = |block: &Block| block.as_ptr() == long.as_ptr();
            let longs = lengths.iter().filter(|len| **len > COPIED_PIECE_MAX).count();
            assert_eq!(blocks.iter().filter(|block| is_shared(block)).count(), longs);
            assert!(builder.take().is_empty() && builder.len() == 0);
        }
    }
}
