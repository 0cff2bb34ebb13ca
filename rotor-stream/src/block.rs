//! `Block`: bytes that many outputs can share.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::buf::Buf;
use crate::range::clamp;

/// Bytes that many outputs can share: static, or reference-counted.
///
/// Cloning and slicing copy no bytes. To send the same bytes to many peers, make one block and give
/// each output or outbox a clone. Borrowed bytes that are not static have to be copied first.
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; }
/// use rotor::stream::Block;
///
/// let news = Block::from(format!("{} says: hi\n", "Ann")); // also from a `Vec<u8>` or static bytes
/// let for_another = news.clone();
/// assert_eq!(&for_another[..], b"Ann says: hi\n");
/// let borrowed: &str = &"hi".repeat(2);
/// assert_eq!(&Block::from(borrowed.to_string())[..], b"hihi");
/// ```
#[derive(Clone)]
pub struct Block {
    bytes: Storage,
    start: usize,
    end: usize,
}

#[derive(Clone)]
enum Storage {
    Static(&'static [u8]),
    Slice(Arc<[u8]>),
    Vector(Arc<Vec<u8>>),
    Pooled(Arc<Buf>),
}

/// Bytes that are taken from a buffer take its memory along if they fill at least one part in this
/// many of it; fewer are copied. What waits in an [`Output`](crate::Output) is counted by its
/// bytes, so this is how many times as much memory it may hold.
const TAKEN_FILL_DIVISOR: usize = 2;

impl Block {
    /// Takes the first `count` bytes of a buffer, or all of them if there are fewer, to pass on
    /// received bytes without copying.
    ///
    /// The buffer's memory becomes part of the block, and is given back to the thread with the last
    /// clone or slice of the block. The bytes are copied if they fill less than half of that
    /// memory, so that a block never holds more than twice its size. If the buffer holds more than
    /// `count` bytes, the smaller part is copied.
    pub fn take_from(buf: &mut Buf, count: usize) -> Block {
        let count = count.min(buf.len());
        let left = buf.len() - count;
        // The smaller part is copied. So are a few bytes, which would keep a whole block.
        if count < left || count < buf.capacity() / TAKEN_FILL_DIVISOR {
            let block = Block::from(Arc::<[u8]>::from(&buf[..count]));
            buf.consume(count);
            return block;
        }
        let mut rest = Buf::new();
        if left > 0 {
            rest.extend(&buf[count..]);
        }
        let bytes = std::mem::replace(buf, rest);
        Block { bytes: Storage::Pooled(Arc::new(bytes)), start: 0, end: count }
    }

    /// Removes bytes at the front.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
    }

    /// Returns how much memory the block holds, however little of it is left to be written. Of
    /// shared memory this is the block's share. Static bytes count 0.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.bytes {
            Storage::Static(_) => 0,
            // Bytes shared by a thousand streams count once in total, not a thousand times.
            Storage::Slice(bytes) => bytes.len() / Arc::strong_count(bytes),
            Storage::Vector(bytes) => bytes.capacity() / Arc::strong_count(bytes),
            Storage::Pooled(bytes) => bytes.capacity() / Arc::strong_count(bytes),
        }
    }

    /// Returns a part of the block, which shares its bytes. The range may extend beyond the block.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Block {
        let (from, to) = clamp(range, self.len());
        Block { bytes: self.bytes.clone(), start: self.start + from, end: self.start + to }
    }
}

impl std::ops::Deref for Block {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let all = match &self.bytes {
            Storage::Static(bytes) => bytes,
            Storage::Slice(bytes) => &bytes[..],
            Storage::Vector(bytes) => &bytes[..],
            Storage::Pooled(bytes) => &bytes[..],
        };
        &all[self.start..self.end]
    }
}

impl From<&'static [u8]> for Block {
    fn from(bytes: &'static [u8]) -> Block {
        Block { start: 0, end: bytes.len(), bytes: Storage::Static(bytes) }
    }
}

impl From<&'static str> for Block {
    fn from(text: &'static str) -> Block {
        Block::from(text.as_bytes())
    }
}

impl From<Arc<[u8]>> for Block {
    fn from(bytes: Arc<[u8]>) -> Block {
        Block { start: 0, end: bytes.len(), bytes: Storage::Slice(bytes) }
    }
}

/// Does not copy the bytes.
impl From<Vec<u8>> for Block {
    fn from(bytes: Vec<u8>) -> Block {
        Block { start: 0, end: bytes.len(), bytes: Storage::Vector(Arc::new(bytes)) }
    }
}

/// Does not copy the bytes: for the result of `format!`.
impl From<String> for Block {
    fn from(text: String) -> Block {
        Block::from(text.into_bytes())
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buf::BLOCK_BYTES;

    #[test]
    fn slices_share_the_bytes_of_their_block_and_are_clamped_to_it() {
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

    #[test]
    fn a_vector_or_a_string_becomes_a_block_without_copying() {
        let (bytes, text) = (b"0123456789".to_vec(), "0123456789".to_string());
        for (place, block) in
            [(bytes.as_ptr(), Block::from(bytes)), (text.as_ptr(), Block::from(text))]
        {
            assert_eq!((&block[..], block.as_ptr()), (&b"0123456789"[..], place));
        }
    }

    #[test]
    fn taking_most_of_a_buffer_takes_its_memory_and_taking_less_copies() {
        const LEAST: usize = BLOCK_BYTES / TAKEN_FILL_DIVISOR;
        for (consumed, held, count, is_copied) in [
            (0, 10_000, 10_000, false),
            (3, 10_000, 20_000, false),
            (3, 10_000, LEAST, false),
            (3, 10_000, LEAST - 1, true),
            (0, 2 * LEAST, LEAST, false),
            (0, 2 * LEAST, LEAST - 1, true),
            (0, LEAST, LEAST, false),
            (0, LEAST - 1, LEAST, true),
            (0, 5, 5, true),
            (0, 5, 0, true),
            (0, 70_000, 70_000, false),
            (0, 70_000, 10_000, true),
        ] {
            let bytes: Vec<u8> = (0..consumed + held).map(|at| (at % 251) as u8).collect();
            let mut buf = Buf::new();
            buf.extend(&bytes);
            buf.consume(consumed);
            let place = buf.as_ptr();
            let block = Block::take_from(&mut buf, count);
            let taken = consumed..consumed + count.min(held);
            assert_eq!(&block[..], &bytes[taken.clone()], "{consumed} {held} {count}");
            assert_eq!(&buf[..], &bytes[taken.end..], "{consumed} {held} {count}");
            assert_eq!(block.as_ptr() != place, is_copied, "{consumed} {held} {count}");
        }
    }

    #[test]
    fn buffer_memory_returns_to_the_pool_with_the_last_slice_of_a_block() {
        let mut buf = Buf::new();
        buf.extend(&[b'x'; BLOCK_BYTES]);
        let place = buf.as_ptr();
        let block = Block::take_from(&mut buf, BLOCK_BYTES);
        let part = block.slice(1..);
        drop(block);
        let mut other = Buf::new();
        other.extend(b"y");
        assert_ne!(other.as_ptr(), place);
        assert!(part.iter().all(|byte| *byte == b'x'));
        drop(part);
        let mut again = Buf::new();
        again.extend(b"z");
        assert_eq!(again.as_ptr(), place);
    }
}
