//! `Buf`: bytes that came in or will go out, in memory that is borrowed from the thread while the
//! buffer is not empty.
//!
//! The reasons for a type of our own are in `doc/decisions/0002-buffers.md`.

mod reading;

use std::fmt;
use std::io::{self, Write};
use std::ops::{Deref, DerefMut, RangeBounds};

pub use self::reading::Filled;
pub use crate::buffer_pool::BLOCK_BYTES;
use crate::buffer_pool::{return_block, take_block, take_pooled_block};
use crate::range::clamp;

/// A block is given back, and its bytes moved to smaller memory, if they fill at most one part in
/// this many of it.
const SHRINK_FILL_DIVISOR: usize = 8;

/// Bytes are passed on in the memory in which they arrived if they fill at least one part in this
/// many of it. A read of a message that fills a block has room for four.
const FORWARD_FILL_DIVISOR: usize = 4;

/// A vector takes the memory of its bytes along if they fill at least one part in this many of it.
const VECTOR_FILL_DIVISOR: usize = 2;

/// A queue of bytes, appended at the end and consumed at the front.
///
/// It derefs to the unread bytes as a slice, so it has all methods of slices: `len`, `is_empty`,
/// indexing, searching. **An empty buffer holds no memory.** The first bytes borrow a block from
/// the thread, and consuming the last byte gives the block back. So a waiting connection costs no
/// memory, and a busy one does not allocate.
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; }
/// use rotor::stream::Buf;
/// use std::io::Write;
///
/// # fn main() -> std::io::Result<()> {
/// let mut buf = Buf::new();
/// write!(buf, "GET /{}", 7)?;
/// assert_eq!(&buf[..4], b"GET ");
/// buf.consume(4);
/// assert_eq!(&buf[..], b"/7");
/// buf.consume(2);
/// assert_eq!(buf.capacity(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[doc(alias = "buffer pool")]
pub struct Buf {
    /// All of it has been written at some time, by some owner of the block. The unread bytes are
    /// those from `start` to `end`, and `start < end` unless the buffer is empty.
    memory: Box<[u8]>,
    start: usize,
    end: usize,
}

/// Room after the bytes of a [`Buf`], filled with zeros. It derefs to a slice. Bytes written into
/// it are lost unless they are [committed](LentRoom::commit).
#[derive(Debug)]
#[must_use = "what is written into it counts once it is committed"]
pub struct LentRoom<'a> {
    buf: &'a mut Buf,
    len: usize,
}

impl LentRoom<'_> {
    /// Appends the first `count` bytes of the room to the buffer, or all of them if there are
    /// fewer.
    pub fn commit(self, count: usize) {
        self.buf.end += count.min(self.len);
    }
}

impl Deref for LentRoom<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.buf.memory[self.buf.end..self.buf.end + self.len]
    }
}

impl DerefMut for LentRoom<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buf.memory[self.buf.end..self.buf.end + self.len]
    }
}

/// Gives the memory back if the buffer is still empty.
impl Drop for LentRoom<'_> {
    fn drop(&mut self) {
        if self.buf.is_empty() {
            self.buf.clear();
        }
    }
}

impl Buf {
    /// Makes an empty buffer, which holds no memory.
    pub fn new() -> Buf {
        Buf::default()
    }

    /// Returns the number of unread bytes.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns whether there are no unread bytes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns how much memory the buffer holds, in bytes; 0 if it is empty.
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Removes at most `count` bytes from the front.
    pub fn consume(&mut self, count: usize) {
        if count >= self.len() {
            self.clear();
        } else {
            self.start += count;
        }
    }

    /// Removes all bytes.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        return_block(std::mem::take(&mut self.memory));
    }

    /// Appends bytes.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.memory.len() - self.end < bytes.len() {
            self.make_room(bytes.len());
        }
        self.memory[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Appends several pieces of bytes, one after the other, with a single check for room.
    #[inline(always)]
    pub fn extend_pieces(&mut self, pieces: &[&[u8]]) {
        let len = pieces.iter().map(|piece| piece.len()).sum();
        if self.memory.len() - self.end < len {
            self.make_room(len);
        }
        let mut room = &mut self.memory[self.end..];
        for piece in pieces {
            let (place, rest) = room.split_at_mut(piece.len());
            place.copy_from_slice(piece);
            room = rest;
        }
        self.end += len;
    }

    /// Lends room for `bytes` bytes after the last one, to be written in place, for example by
    /// encrypting or decoding.
    ///
    /// The room is filled with zeros first, since its memory may have belonged to another
    /// connection. This takes about 10 ns per kilobyte. [`extend`](Buf::extend) is cheaper for
    /// bytes that exist already, and [`read_from`](Buf::read_from) for bytes from a socket.
    ///
    /// ```
    /// # use rotor_stream::Buf;
    /// let mut buf = Buf::new();
    /// let mut room = buf.room(100);
    /// room[..3].copy_from_slice(b"abc");
    /// room.commit(3);
    /// assert_eq!(&buf[..], b"abc");
    /// ```
    #[doc(alias = "spare_capacity_mut")]
    #[doc(alias = "chunk_mut")]
    pub fn room(&mut self, bytes: usize) -> LentRoom<'_> {
        if self.memory.len() - self.end < bytes {
            self.make_room(bytes);
        }
        self.memory[self.end..self.end + bytes].fill(0);
        LentRoom { buf: self, len: bytes }
    }

    /// Removes a range of bytes. The range may extend beyond the buffer. Bytes after it are moved
    /// to the front; removing at the front or at the end moves nothing.
    pub fn remove_range(&mut self, range: impl RangeBounds<usize>) {
        let (from, to) = clamp(range, self.len());
        if from == to {
            return;
        }
        if from == 0 {
            return self.consume(to);
        }
        self.memory.copy_within(self.start + to..self.end, self.start + from);
        self.end -= to - from;
    }

    /// Takes all bytes together with their memory, and puts `head` before them, into the room that
    /// consumed bytes have left. Returns `None` and changes nothing if copying is better: that room
    /// is too small, or the bytes fill less than a fourth of the memory.
    pub(crate) fn take_with_head(&mut self, head: &[u8]) -> Option<Buf> {
        let start = self.start.checked_sub(head.len())?;
        if self.len() < self.memory.len() / FORWARD_FILL_DIVISOR {
            return None;
        }
        self.memory[start..self.start].copy_from_slice(head);
        self.start = start;
        Some(std::mem::take(self))
    }

    /// Returns the bytes as a vector. Its memory is that of the buffer, except in two cases, in
    /// which the bytes are copied: if the buffer's first bytes have been consumed, or if the bytes
    /// fill less than half of the memory, so that a vector never holds more than twice its size.
    pub fn into_vec(mut self) -> Vec<u8> {
        // A vector's first byte must be at the beginning of its allocation.
        if self.start > 0 || self.len() < self.memory.len() / VECTOR_FILL_DIVISOR {
            return self.to_vec();
        }
        let len = self.end;
        let mut bytes = std::mem::take(&mut self.memory).into_vec();
        bytes.truncate(len);
        bytes
    }

    /// Gives the block back if it holds only a few bytes, which are moved to smaller memory: a
    /// connection that waits for the rest of a line then keeps the line, not a block. A stream does
    /// this with its own buffers. Call it for other buffers that hold bytes while they wait.
    #[doc(alias = "shrink_to_fit")]
    pub fn shrink(&mut self) {
        self.shrink_if_sparse(SHRINK_FILL_DIVISOR);
    }

    /// Gives the block back if at most one part in `divisor` of it is filled.
    pub(crate) fn shrink_if_sparse(&mut self, divisor: usize) {
        let len = self.len();
        let is_sparse = len <= self.memory.len() / divisor;
        // Memory that was shrunk is not shrunk again. Otherwise the bytes would be copied whenever
        // a few of them are consumed.
        if len == 0 || !is_sparse || self.memory.len() < BLOCK_BYTES {
            return;
        }
        // 64: the unit in which streams count what they hold.
        let mut small = vec![0; len.next_power_of_two().max(64)].into_boxed_slice();
        small[..len].copy_from_slice(self);
        return_block(std::mem::replace(&mut self.memory, small));
        self.start = 0;
        self.end = len;
    }

    /// Makes room for `count` bytes after the last one.
    #[inline(always)]
    fn make_room(&mut self, count: usize) {
        // The usual case: the buffer is empty, and the thread has a block.
        if self.memory.is_empty()
            && let Some(block) = take_pooled_block(count)
        {
            self.memory = block;
            return;
        }
        self.make_room_slow(count);
    }

    #[cold]
    #[inline(never)]
    fn make_room_slow(&mut self, count: usize) {
        if self.memory.is_empty() {
            self.memory = take_block(count);
            return;
        }
        let len = self.len();
        let needed = len.saturating_add(count);
        // Bytes are moved to the front only if at least as many were consumed. So each byte is
        // moved once on average, in whatever portions the bytes are read.
        if needed <= self.memory.len() && self.start >= len {
            self.memory.copy_within(self.start..self.end, 0);
        } else {
            // Twice as much as before, so that a long message is copied only a few times.
            let mut memory = take_block(needed.max(self.memory.len().saturating_mul(2)));
            memory[..len].copy_from_slice(self);
            return_block(std::mem::replace(&mut self.memory, memory));
        }
        self.start = 0;
        self.end = len;
    }
}

impl Deref for Buf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }
}

impl DerefMut for Buf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.end]
    }
}

impl AsRef<[u8]> for Buf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Appends all bytes, and never fails.
impl Write for Buf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend(bytes);
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Buf {
    fn drop(&mut self) {
        self.clear();
    }
}

impl From<Buf> for Vec<u8> {
    fn from(buf: Buf) -> Vec<u8> {
        buf.into_vec()
    }
}

impl fmt::Debug for Buf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buf({} bytes in {})", self.len(), self.capacity())
    }
}

#[cfg(test)]
mod tests;
