//! `Body`: all of a message's body, wherever it is.

use std::fs::File;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use rotor_stream::Block;

use crate::blocks::Blocks;
use crate::body_file::BodyFile;

/// All of a body, in memory or in a file. Clones and parts share it; its memory, or its file, goes
/// with the last of them. A file of a spool that an output still sends then counts among the spool's
/// files, and stays open, until another of them is made or dropped after it was sent.
///
/// It may be sent to other threads and read by several at a time. Reading one that is in a file
/// blocks: that is work for [`Scope::offload`](rotor_core::Scope::offload).
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
    /// Nothing.
    #[default]
    Empty,
    /// In memory, in one piece.
    Block(Block),
    /// In memory, as it came.
    Blocks(Blocks),
    /// In a file.
    File(BodyFile),
}

impl Body {
    /// A part of a file: what lies outside of it when it is read is missing then, and reading says
    /// so.
    pub fn from_file(file: Arc<File>, range: std::ops::Range<u64>) -> Body {
        if range.is_empty() {
            return Body::Empty;
        }
        Body::File(BodyFile::of_file(file, range))
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Block(block) => block.len() as u64,
            Body::Blocks(blocks) => blocks.len(),
            Body::File(file) => file.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether reading it never blocks.
    pub fn is_in_memory(&self) -> bool {
        !matches!(self, Body::File(_))
    }

    /// All of its bytes, where they are in memory and in one piece.
    pub fn as_slice(&self) -> Option<&[u8]> {
        match self {
            Body::Empty => Some(&[]),
            Body::Block(block) => Some(block),
            Body::Blocks(_) | Body::File(_) => None,
        }
    }

    /// Its pieces, where they are in memory; of a file, none.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let (one, many) = match self {
            Body::Block(block) => (Some(block), None),
            Body::Blocks(blocks) => (None, Some(blocks.iter())),
            Body::Empty | Body::File(_) => (None, None),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// Makes one piece of it: copies it once, unless it is in one already. The memory of what was
    /// copied is given back as the copying goes on, where nobody shares it.
    ///
    /// # Errors
    ///
    /// The body as it was, when it is longer than `max` bytes, or in a file: read that by
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

    /// Reads from `offset` on into `into`, as pread(2) does, and returns how many bytes that were:
    /// none at the end and beyond it, and perhaps fewer than there is room for.
    ///
    /// # Errors
    ///
    /// Only of a file: what the system says, and `UnexpectedEof` where it has become shorter than
    /// it was said to be.
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

    /// Where its bytes are in memory, the piece of them that begins at `offset`.
    pub(crate) fn memory_at(&self, offset: u64) -> &[u8] {
        match self {
            Body::Block(block) => block.get(offset as usize..).unwrap_or(&[]),
            Body::Blocks(blocks) => blocks.at(offset),
            Body::Empty | Body::File(_) => &[],
        }
    }

    /// A part of it, which shares its memory or its file. What lies outside is left out.
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
            // Both are within its length.
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

/// The bytes stay where they are.
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
