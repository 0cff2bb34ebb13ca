//! `Body`: the whole body of a message, in memory or in a file.

use std::fs::File;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use rotor_stream::Block;

use crate::blocks::Blocks;
use crate::body_file::BodyFile;

/// A whole body, in memory or in a file. Clones and slices share it; its memory, or its file, is
/// released with the last of them. If an output still sends a file of a spool at that time, the
/// file stays open, and counts among the spool's files, until it has been sent and the spool opens
/// or drops another file.
///
/// A body may be sent to other threads and read by several at a time. Reading one that is in a file
/// blocks, so use [`Scope::offload`](rotor_core::Scope::offload) for that.
///
/// ```
/// # mod rotor { pub use rotor_body as body; }
/// use rotor::body::Body;
///
/// let body = Body::from(b"0123456789".to_vec());
/// let part = body.slice(3..6);
/// assert_eq!(part.len(), 3);
/// assert_eq!(part.as_slice(), Some(&b"345"[..]));
/// ```
#[derive(Debug, Clone, Default)]
#[doc(alias = "body image")]
#[doc(alias = "payload")]
#[non_exhaustive]
pub enum Body {
    /// An empty body.
    #[default]
    Empty,
    /// In memory, contiguous.
    Block(Block),
    /// In memory, in the pieces in which it arrived.
    Blocks(Blocks),
    /// In a file.
    File(BodyFile),
}

impl Body {
    /// Makes a body from a range of a file. If the file does not have all of the range when it is
    /// read, reading fails.
    pub fn from_file(file: Arc<File>, range: std::ops::Range<u64>) -> Body {
        if range.is_empty() {
            return Body::Empty;
        }
        Body::File(BodyFile::from_file(file, range))
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Block(block) => block.len() as u64,
            Body::Blocks(blocks) => blocks.len(),
            Body::File(file) => file.len(),
        }
    }

    /// Returns whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the body is in memory, so that reading it never blocks.
    pub fn is_in_memory(&self) -> bool {
        !matches!(self, Body::File(_))
    }

    /// Returns all the bytes, if they are in memory and contiguous.
    pub fn as_slice(&self) -> Option<&[u8]> {
        match self {
            Body::Empty => Some(&[]),
            Body::Block(block) => Some(block),
            Body::Blocks(_) | Body::File(_) => None,
        }
    }

    /// Returns the pieces of a body in memory; none for a file.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let (one, many) = match self {
            Body::Block(block) => (Some(block), None),
            Body::Blocks(blocks) => (None, Some(blocks.iter())),
            Body::Empty | Body::File(_) => (None, None),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// Makes a contiguous block of a body in memory, which copies it once unless it is contiguous
    /// already. If the memory of the pieces is not shared, each is released as soon as it has been
    /// copied.
    ///
    /// # Errors
    ///
    /// The unchanged body, if it is longer than `max` bytes or in a file. Read a file with
    /// [`reader`](Body::reader), on another thread.
    pub fn gather(self, max: usize) -> Result<Block, Body> {
        if self.len() > max as u64 {
            return Err(self);
        }
        match self {
            Body::Empty => Ok(Block::from(&b""[..])),
            Body::Block(block) => Ok(block),
            Body::Blocks(blocks) => Ok(Block::from(blocks.gather())),
            Body::File(_) => Err(self),
        }
    }

    /// Reads into `into`, beginning at `offset`, like pread(2). Returns the number of bytes: 0 at
    /// the end and beyond it, and perhaps fewer than there is room for.
    ///
    /// # Errors
    ///
    /// Only for a file: the system's error, and `UnexpectedEof` if the file has become shorter than
    /// the body.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || offset >= self.len() {
            return Ok(0);
        }
        match self {
            Body::File(file) => file.read_at(offset, into),
            _ => {
                let from = self.memory_at(offset);
                let count = from.len().min(into.len());
                into[..count].copy_from_slice(&from[..count]);
                Ok(count)
            }
        }
    }

    /// Returns the piece of a body in memory that begins at `offset`.
    pub(crate) fn memory_at(&self, offset: u64) -> &[u8] {
        match self {
            Body::Block(block) => block.get(offset as usize..).unwrap_or(&[]),
            Body::Blocks(blocks) => blocks.piece_at(offset),
            Body::Empty | Body::File(_) => &[],
        }
    }

    /// Returns a part of the body, which shares its memory or its file. The range may extend beyond
    /// the body.
    pub fn slice(&self, range: impl RangeBounds<u64>) -> Body {
        let from = match range.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before.saturating_add(1),
        };
        let to = match range.end_bound() {
            Bound::Unbounded => self.len(),
            Bound::Included(last) => last.saturating_add(1).min(self.len()),
            Bound::Excluded(to) => (*to).min(self.len()),
        };
        if from >= to {
            return Body::Empty;
        }
        match self {
            Body::Empty => Body::Empty,
            // Both are within the length.
            Body::Block(block) => Body::Block(block.slice(from as usize..to as usize)),
            Body::Blocks(blocks) => Body::from(blocks.slice(from..to)),
            Body::File(file) => Body::File(file.slice(from..to)),
        }
    }
}

impl From<Blocks> for Body {
    fn from(blocks: Blocks) -> Body {
        let mut iter = blocks.iter();
        match (iter.next().cloned(), iter.next()) {
            (None, _) => Body::Empty,
            (Some(only), None) => Body::Block(only),
            (Some(_), Some(_)) => {
                drop(iter);
                Body::Blocks(blocks)
            }
        }
    }
}

impl From<Block> for Body {
    fn from(block: Block) -> Body {
        if block.is_empty() { Body::Empty } else { Body::Block(block) }
    }
}

/// Does not copy the bytes.
impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::from(Block::from(bytes))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body::from(text.into_bytes())
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::from(Block::from(text))
    }
}

impl From<&'static [u8]> for Body {
    fn from(bytes: &'static [u8]) -> Body {
        Body::from(Block::from(bytes))
    }
}

impl From<Arc<[u8]>> for Body {
    fn from(bytes: Arc<[u8]>) -> Body {
        Body::from(Block::from(bytes))
    }
}

impl FromIterator<Block> for Body {
    fn from_iter<I: IntoIterator<Item = Block>>(blocks: I) -> Body {
        Body::from(Blocks::from_iter(blocks))
    }
}

impl From<BodyFile> for Body {
    fn from(file: BodyFile) -> Body {
        if file.is_empty() { Body::Empty } else { Body::File(file) }
    }
}

#[cfg(test)]
mod tests;
