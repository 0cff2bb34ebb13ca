//! `Output`: the bytes, blocks and files that wait to be written, in order. `writing` writes them
//! to a socket.

mod writing;

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use crate::block::Block;
use crate::buf::Buf;

/// Blocks of up to this many bytes are copied, which costs less than a segment of their own.
const COPIED_BLOCK_MAX: usize = 512;

/// Bytes between two segments are copied, so that their block of memory is given back, if they fill
/// at most one part in this many of it. So the waiting bytes hold at most twice their size in
/// memory.
const SEGMENT_FILL_DIVISOR: usize = 2;

/// What waits to be written to a stream: bytes, shared blocks of bytes and ranges of files, in the
/// order in which they were added.
///
/// It implements [`io::Write`] and accepts everything. The stream writes it out after the protocol
/// has handled its input. Bytes that a socket does not take at once stay here. All kinds count
/// against [`StreamConfig::output_high_water`](crate::StreamConfig::output_high_water).
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; }
/// use rotor::stream::Output;
/// use std::io::Write;
///
/// # fn main() -> std::io::Result<()> {
/// let mut output = Output::new();
/// write!(output, "{} bottles\n", 99)?;
/// output.push_block(&b"of beer\n"[..])?;
/// assert_eq!(output.len(), 19);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Output {
    /// Written first; usually this is all.
    bytes: Buf,
    /// Written after that; created when something other than bytes is added.
    later: Option<Box<LaterSegments>>,
    end: EndState,
    /// Something that belongs here was lost before it could be added.
    is_incomplete: bool,
}

/// Whether more may be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum EndState {
    #[default]
    Open,
    /// The last byte has been added. Once it is written, the socket must be shut down.
    Requested,
    /// The socket has been shut down.
    ShutDown,
}

/// The segments after the first bytes; never empty.
struct LaterSegments {
    segments: VecDeque<Segment>,
    /// The number of bytes in all segments.
    len: usize,
}

impl LaterSegments {
    fn held_bytes(&self) -> usize {
        let held = self.segments.iter().map(|segment| match segment {
            Segment::Bytes(bytes) => bytes.capacity(),
            Segment::Block(block) => block.held_bytes(),
            Segment::File { .. } => 0,
        });
        held.sum()
    }
}

enum Segment {
    Bytes(Buf),
    Block(Block),
    File { file: Arc<File>, offset: u64, left: usize },
}

impl Output {
    /// Makes an empty output.
    pub fn new() -> Output {
        Output::default()
    }

    /// Returns how many bytes wait, including blocks and files.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.later.as_ref().map_or(0, |later| later.len)
    }

    /// Returns whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.later.is_none()
    }

    /// Returns whether the output has been ended by
    /// [`Transport::shutdown_write`](crate::Transport::shutdown_write).
    pub fn is_ended(&self) -> bool {
        self.end != EndState::Open
    }

    /// Adds several pieces of bytes, one after the other, with a single check for room.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` after the output was ended. This is the caller's mistake; nothing is added.
    #[inline(always)]
    pub fn write_pieces(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        self.check_open()?;
        if self.later.is_none() {
            self.bytes.extend_pieces(pieces);
        } else {
            pieces
                .iter()
                .filter(|piece| !piece.is_empty())
                .for_each(|piece| self.append_after_segments(piece));
        }
        Ok(())
    }

    /// Adds `head`, then the first `count` bytes of `input`, and removes these from `input`. It is
    /// for passing on received bytes.
    ///
    /// The bytes are not copied, and their memory becomes the output's, if nothing waits before
    /// them, no bytes follow them in `input`, the bytes consumed before them have left room for the
    /// head, and they fill at least a fourth of their memory. Otherwise they are copied. If `input`
    /// holds fewer bytes, all of them are taken.
    ///
    /// ```
    /// # use rotor_stream::{Buf, Output};
    /// # fn main() -> std::io::Result<()> {
    /// let (mut input, mut output) = (Buf::new(), Output::new());
    /// input.extend(b"5:hello");
    /// input.consume(2);
    /// output.write_from(b"> ", &mut input, 5)?;
    /// assert_eq!((output.front(), input.len()), (&b"> hello"[..], 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `BrokenPipe` after the output was ended. This is the caller's mistake; nothing is added, and
    /// `input` keeps its bytes.
    #[doc(alias = "zero-copy")]
    pub fn write_from(&mut self, head: &[u8], input: &mut Buf, count: usize) -> io::Result<()> {
        self.check_open()?;
        let count = count.min(input.len());
        if count == input.len()
            && self.is_empty()
            && let Some(bytes) = input.take_with_head(head)
        {
            self.bytes = bytes;
            return Ok(());
        }
        self.write_pieces(&[head, &input[..count]])?;
        input.consume(count);
        Ok(())
    }

    /// Adds a shared block without copying it, unless it is very short (up to 512 bytes).
    ///
    /// # Errors
    ///
    /// `BrokenPipe` after the output was ended. This is the caller's mistake; nothing is added.
    #[doc(alias = "zero-copy")]
    pub fn push_block(&mut self, block: impl Into<Block>) -> io::Result<()> {
        let block = block.into();
        if block.len() <= COPIED_BLOCK_MAX {
            return self.write_all(&block);
        }
        self.check_open()?;
        self.push_segment(block.len(), Segment::Block(block));
        Ok(())
    }

    /// Adds `count` bytes of a file, beginning at `offset`. They are read when they are to be sent,
    /// by the kernel itself if it can do that. What the system does not have in its cache is read
    /// from the disk then, and the loop waits for it, for up to
    /// [`write_budget`](crate::StreamConfig::write_budget) bytes in a turn: read files on a slow
    /// disk on another thread ([`Scope::offload`](rotor_core::Scope::offload)), and add blocks.
    ///
    /// The file must still have them then. If it has become shorter, or cannot be read, the stream
    /// is reset, because the peer was promised more; this is logged at warn level, at most every
    /// 10 s.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` after the output was ended; `InvalidInput` if more than `isize::MAX` bytes
    /// would wait. These are the caller's mistakes; nothing is added.
    #[doc(alias = "sendfile")]
    pub fn push_file(&mut self, file: Arc<File>, offset: u64, count: usize) -> io::Result<()> {
        self.check_open()?;
        if self.len().saturating_add(count) > isize::MAX as usize {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "more bytes of a file than an output can hold: give the length of the file",
            ));
        }
        if count > 0 {
            self.push_segment(count, Segment::File { file, offset, left: count });
        }
        Ok(())
    }

    /// Moves at most `count` bytes from the front to the end of `other`, and returns how many were
    /// moved. It is for layers that collect what their streams write in separate outputs and send
    /// it in frames.
    ///
    /// Bytes are copied. Blocks and files are divided without touching their content.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` after `other` was ended; `InvalidInput` if more than `isize::MAX` bytes would
    /// wait in it. These are the caller's mistakes. Bytes moved before the error stay in `other`.
    #[doc(alias = "splice")]
    pub fn move_to(&mut self, other: &mut Output, count: usize) -> io::Result<usize> {
        other.check_open()?;
        let before = self.len();
        let mut left = count.min(before);
        while left > 0 {
            let moved = self.copy_front_to(other, left)?;
            self.consume(moved);
            left -= moved;
        }
        Ok(before - self.len())
    }

    /// Copies at most `most` bytes of the first segment to `other`, and returns how many. They are
    /// not removed here.
    fn copy_front_to(&self, other: &mut Output, most: usize) -> io::Result<usize> {
        let front = match &self.later {
            Some(later) if self.bytes.is_empty() => later.segments.front(),
            _ => None,
        };
        let Some(front) = front else {
            let bytes = &self.bytes[..self.bytes.len().min(most)];
            other.write_all(bytes)?;
            return Ok(bytes.len());
        };
        let count = front.len().min(most);
        match front {
            Segment::Bytes(bytes) => other.write_all(&bytes[..count])?,
            Segment::Block(block) => other.push_block(block.slice(..count))?,
            Segment::File { file, offset, .. } => other.push_file(file.clone(), *offset, count)?,
        }
        Ok(count)
    }

    /// Returns the bytes that will be written first, as far as they are contiguous; empty if a
    /// block or a file comes first. It is for layers that look at what their streams have written.
    #[inline]
    pub fn front(&self) -> &[u8] {
        match self.later.as_ref().and_then(|later| later.segments.front()) {
            Some(Segment::Bytes(bytes)) if self.bytes.is_empty() => bytes,
            _ => &self.bytes,
        }
    }

    /// Removes at most `count` bytes from the front, after a layer has processed them.
    pub fn discard(&mut self, count: usize) {
        self.consume(count.min(self.len()));
    }

    /// Returns how much memory the output holds, in bytes. Of a shared block it counts this
    /// output's share, so a block in a thousand outputs counts once in total. Static bytes and
    /// files do not count.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.later.as_ref().map_or(0, |later| later.held_bytes())
    }

    /// Gives the first block of memory back if at most half of it is filled; the remaining bytes
    /// are copied, once. It is for layers with many streams that each hold a little output and
    /// together hold much.
    #[doc(alias = "shrink_to_fit")]
    pub fn shrink(&mut self) {
        self.bytes.shrink_if_sparse(2);
    }

    /// Removes the bytes added last, so that at most `len` bytes wait: for a protocol that takes
    /// back what it has written in this call.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.remove_range(len..);
        let Some(later) = &mut self.later else { return };
        let mut left = len - self.bytes.len();
        later.len = left.min(later.len);
        later.segments.retain_mut(|segment| {
            let keeps = left.min(segment.len());
            segment.truncate(keeps);
            left -= keeps;
            keeps > 0
        });
        if later.segments.is_empty() {
            self.later = None;
        }
    }

    /// Discards everything that waits, including an end, which would follow a gap.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.later = None;
        if self.end == EndState::Requested {
            self.end = EndState::Open;
        }
    }

    pub(crate) fn end_state(&self) -> EndState {
        self.end
    }

    pub(crate) fn set_end_state(&mut self, end: EndState) {
        self.end = end;
    }

    /// Notes that something that belongs here was lost, so that the connection is reset when its
    /// protocol fails, even if nothing waits.
    #[cold]
    pub(crate) fn set_incomplete(&mut self) {
        self.is_incomplete = true;
    }

    pub(crate) fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// Removes written bytes from the front.
    fn consume(&mut self, mut count: usize) {
        // A vectored write takes the first bytes first.
        let of_bytes = count.min(self.bytes.len());
        self.bytes.consume(of_bytes);
        count -= of_bytes;
        let Some(later) = &mut self.later else { return };
        later.len -= count.min(later.len);
        while let Some(front) = later.segments.front_mut() {
            let len = front.len();
            if count < len {
                front.consume(count);
                break;
            }
            count -= len;
            later.segments.pop_front();
        }
        // If only bytes are left, no list is needed.
        if later.segments.len() == 1
            && self.bytes.is_empty()
            && let Some(Segment::Bytes(bytes)) = later.segments.front_mut()
        {
            self.bytes = std::mem::take(bytes);
            later.segments.clear();
        }
        if later.segments.is_empty() {
            self.later = None;
        }
    }

    fn push_segment(&mut self, len: usize, segment: Segment) {
        let later = self
            .later
            .get_or_insert_with(|| Box::new(LaterSegments { segments: VecDeque::new(), len: 0 }));
        // Nothing more will be added to the bytes before it. A few bytes between two segments must
        // not hold a whole block.
        if let Some(Segment::Bytes(bytes)) = later.segments.back_mut() {
            bytes.shrink_if_sparse(SEGMENT_FILL_DIVISOR);
        }
        later.len = later.len.saturating_add(len);
        later.segments.push_back(segment);
    }

    #[inline]
    fn check_open(&self) -> io::Result<()> {
        match self.end {
            EndState::Open => Ok(()),
            _ => Err(ended_error()),
        }
    }

    #[cold]
    fn append_after_segments(&mut self, bytes: &[u8]) {
        let Some(later) = &mut self.later else { return };
        later.len += bytes.len();
        match later.segments.back_mut() {
            Some(Segment::Bytes(buf)) => buf.extend(bytes),
            _ => {
                let mut buf = Buf::new();
                buf.extend(bytes);
                later.segments.push_back(Segment::Bytes(buf));
            }
        }
    }
}

#[cold]
fn ended_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::BrokenPipe,
        "the output of this stream was ended by shutdown_write",
    )
}

impl Write for Output {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// # Errors
    ///
    /// `BrokenPipe` after the output was ended. This is the caller's mistake; nothing is added.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check_open()?;
        if self.later.is_none() {
            self.bytes.extend(bytes);
        } else if !bytes.is_empty() {
            // No segment may be empty: writing it would look like a socket that takes nothing.
            self.append_after_segments(bytes);
        }
        Ok(())
    }

    /// Does nothing: the stream writes after the protocol has returned.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments = self.later.as_ref().map_or(0, |later| later.segments.len());
        write!(f, "Output({} bytes, {segments} segments)", self.len())
    }
}

impl Segment {
    fn len(&self) -> usize {
        match self {
            Segment::Bytes(bytes) => bytes.len(),
            Segment::Block(block) => block.len(),
            Segment::File { left, .. } => *left,
        }
    }

    /// Keeps at most `len` bytes.
    fn truncate(&mut self, len: usize) {
        match self {
            Segment::Bytes(bytes) => bytes.remove_range(len..),
            Segment::Block(block) => *block = block.slice(..len),
            Segment::File { left, .. } => *left = len.min(*left),
        }
    }

    /// Removes `count` bytes, which must be fewer than there are.
    fn consume(&mut self, count: usize) {
        match self {
            Segment::Bytes(bytes) => bytes.consume(count),
            Segment::Block(block) => block.consume(count),
            Segment::File { offset, left, .. } => {
                // Saturates: beyond the end of any file, and never back at its beginning.
                *offset = offset.saturating_add(count as u64);
                *left -= count;
            }
        }
    }
}

#[cfg(test)]
mod tests;
