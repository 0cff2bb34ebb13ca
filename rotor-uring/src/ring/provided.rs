//! `ProvidedBuffers`: the buffers that the kernel fills, and the ring through which it gets them.

use std::io;
use std::mem::size_of;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::{IoUring, types::BufRingEntry};

use super::region::Region;
use crate::buffer_table::{BufferTable, Piece};
use crate::inbox::Lender;

/// The only buffer group of a ring.
pub(super) const GROUP: u16 = 0;
/// `IOU_PBUF_RING_INC` (io_uring_register_buf_ring(3)): a receive uses as much of a buffer as it
/// needs, and the next one goes on after that.
const INCREMENTAL: u16 = 2;

/// The buffers that the kernel fills.
///
/// The kernel reads the entries of the ring between its head and the tail that we publish, and
/// writes into the buffers that they name. It writes into a buffer only after the bytes that it has
/// reported as filled, and no more once it has reported that the buffer is done. So, by the
/// [`BufferTable`], the owner of a [`Piece`] has its bytes exclusively.
pub(super) struct ProvidedBuffers {
    entries: Region,
    memory: Region,
    buffer_table: BufferTable,
    count: u16,
    buffer_bytes: u32,
    /// The position after the last entry.
    tail: u16,
    /// The last tail that was published.
    published: u16,
    /// The kernel may use parts of a buffer.
    is_incremental: bool,
}

impl ProvidedBuffers {
    pub(super) fn new(count: u16, buffer_bytes: u32) -> io::Result<ProvidedBuffers> {
        let bytes = usize::from(count) * buffer_bytes as usize;
        Ok(ProvidedBuffers {
            entries: Region::new(usize::from(count) * size_of::<BufRingEntry>())?,
            memory: Region::new(bytes)?,
            buffer_table: BufferTable::new(count, buffer_bytes),
            count,
            buffer_bytes,
            tail: 0,
            published: 0,
            is_incremental: false,
        })
    }

    /// Registers the ring and gives all buffers to the kernel, to be used in parts if the kernel
    /// can do that.
    pub(super) fn register(&mut self, ring: &IoUring) -> io::Result<()> {
        let entries = self.entries.address(0).map_or(0, |start| start.as_ptr() as u64);
        let register = |flags| {
            // SAFETY: the entries are mapped, page-aligned, and stay until the kernel is done with
            // the ring: `Ring::drop` ensures that.
            unsafe {
                ring.submitter().register_buf_ring_with_flags(entries, self.count, GROUP, flags)
            }
        };
        match register(INCREMENTAL) {
            // Before Linux 6.12.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => register(0)?,
            other => {
                other?;
                self.is_incremental = true;
            }
        }
        for buffer in 0..self.count {
            self.enqueue(buffer);
        }
        self.publish();
        Ok(())
    }

    /// Puts a buffer that nobody reads into the next entry. The kernel sees it once the tail is
    /// published.
    fn enqueue(&mut self, buffer: u16) {
        let at = usize::from(self.tail & (self.count - 1)) * size_of::<BufRingEntry>();
        let memory = self.memory.address(usize::from(buffer) * self.buffer_bytes as usize);
        let (Some(entry), Some(memory)) = (self.entries.address(at), memory) else { return };
        // SAFETY: the entry is in the mapping and aligned, as entries have 16 bytes and the mapping
        // begins a page. The kernel does not read it: there are as many entries as buffers, and
        // this entry's buffer is with us, so the position is behind the tail. The last two bytes of
        // the first entry, which hold the tail, are not written by these calls.
        let entry = unsafe { entry.cast::<BufRingEntry>().as_mut() };
        entry.set_addr(memory.as_ptr() as u64);
        entry.set_len(self.buffer_bytes);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Publishes the new entries to the kernel.
    #[inline]
    pub(super) fn publish(&mut self) {
        if self.published != self.tail
            && let Some(entries) = self.entries.address(0)
        {
            // SAFETY: the first entry is mapped and initialised (at least with zeros). Its last two
            // bytes are the tail, aligned, and written by us alone; the kernel reads them, so the
            // store is atomic, and releases what was written to the entries before.
            unsafe {
                let tail = BufRingEntry::tail(entries.as_ptr().cast()).cast::<AtomicU16>();
                (*tail).store(self.tail, Ordering::Release);
            }
            self.published = self.tail;
        }
    }

    /// Takes the bytes that a completion has reported.
    ///
    /// If it has reported none, no part of an incrementally filled buffer was used, so the kernel
    /// goes on with that buffer, though some versions do not say so (Linux 6.12 to 6.19, if a read
    /// meets the end of a file; axboe/liburing#1545, #1553). If the buffer were given a second
    /// time, it would be filled from two places.
    pub(super) fn take(&mut self, buffer: u16, len: u32, has_more: bool) -> Option<Piece> {
        self.buffer_table.take(buffer, len, has_more || self.is_incremental && len == 0)
    }
}

impl Lender for ProvidedBuffers {
    #[inline]
    fn bytes(&self, piece: &Piece) -> &[u8] {
        let (start, range) = (piece.buffer() * self.buffer_bytes as usize, piece.range());
        // SAFETY: the kernel has filled these bytes and reported that, and writes to them again
        // only after the piece, which is borrowed here, was given back, and its buffer with it.
        unsafe { self.memory.slice(start + range.start, start + range.end) }
    }

    fn release(&mut self, piece: Piece) {
        if let Some(buffer) = self.buffer_table.release(piece) {
            self.enqueue(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incremental_buffer_is_not_requeued_after_an_empty_completion() {
        for (is_incremental, len, is_given) in
            [(true, 0, 0), (true, 1, 1), (false, 0, 1), (false, 1, 1)]
        {
            let mut provided = ProvidedBuffers::new(2, 256).expect("there is memory");
            provided.is_incremental = is_incremental;
            let piece = provided.take(0, len, false).expect("it is with the kernel");
            provided.release(piece);
            assert_eq!(provided.tail, is_given, "{is_incremental} {len}");
        }
    }
}
