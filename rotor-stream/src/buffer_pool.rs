//! The blocks of memory that a thread keeps for its next buffers.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::{self, ManuallyDrop};

/// The size of a block of memory, in bytes. The read of a request seldom fills it, and a socket
/// seldom has more at once.
pub const BLOCK_BYTES: usize = 16 * 1024;

/// The maximum number of blocks that a thread keeps: 1 MiB in total, enough for as many streams as
/// are at work *at the same time*, in the same turn. If there is none, a stream allocates one.
const POOLED_BLOCKS_MAX: usize = 64;

/// The size of the largest block that is kept, in bytes. Longer messages are rare, and allocate
/// their memory.
const LARGE_BYTES_MAX: usize = 256 * 1024;

/// The maximum size, in bytes, of all the larger blocks that a thread keeps: 2 MiB.
const POOLED_LARGE_BYTES_MAX: usize = 2 * 1024 * 1024;

thread_local! {
    /// Every byte of a pooled block has been written at some time, so a block can be passed to the
    /// kernel as it is. It holds data of another connection, so no other reader may get it.
    ///
    /// A thread-local without a destructor is accessed without checking whether the thread ends;
    /// [`PoolCleanup`] drops the blocks.
    static STANDARD: ManuallyDrop<StandardBlocks> =
        const { ManuallyDrop::new(StandardBlocks::closed()) };
}

thread_local! {
    static POOL_CLEANUP: PoolCleanup = const { PoolCleanup };
}

thread_local! {
    static LARGE: RefCell<LargeBlocks> = const { RefCell::new(LargeBlocks::new()) };
}

thread_local! {
    /// Absent before the first use, and while it is in use.
    static SCRATCH: Cell<Option<Scratch>> = const { Cell::new(None) };
}

type StandardBlock = Box<[u8; BLOCK_BYTES]>;

/// The blocks of the usual size that a thread keeps. The block returned last is taken first,
/// because it is most likely in a cache.
///
/// Cells instead of a vector in a `RefCell`, because two blocks are taken and returned for each
/// request.
struct StandardBlocks {
    /// [`CLOSED`] before the first block is returned, and when the thread ends.
    len: Cell<usize>,
    blocks: [Cell<Option<StandardBlock>>; POOLED_BLOCKS_MAX],
}

/// The length of a pool that has no blocks and accepts none.
const CLOSED: usize = usize::MAX;

impl StandardBlocks {
    const fn closed() -> StandardBlocks {
        let blocks = [const { Cell::new(None) }; POOLED_BLOCKS_MAX];
        StandardBlocks { len: Cell::new(CLOSED), blocks }
    }

    #[inline(always)]
    fn take(&self) -> Option<StandardBlock> {
        // If the pool is empty or closed, there is no such index.
        let last = self.len.get().wrapping_sub(1);
        let block = self.blocks.get(last)?.take();
        self.len.set(last);
        block
    }

    #[inline(always)]
    fn put(&self, block: StandardBlock) {
        let len = self.len.get();
        match self.blocks.get(len) {
            Some(place) => {
                self.len.set(len + 1);
                // The place was empty; dropping its old value would check that.
                mem::forget(place.replace(Some(block)));
            }
            None => self.put_slow(block),
        }
    }

    /// Opens the pool; or frees the block, if the pool is full or the thread ends.
    #[cold]
    #[inline(never)]
    fn put_slow(&self, block: StandardBlock) {
        if self.len.get() == CLOSED && POOL_CLEANUP.try_with(|_| ()).is_ok() {
            self.len.set(0);
            self.put(block);
        }
    }
}

/// Frees the blocks of a thread that ends.
struct PoolCleanup;

impl Drop for PoolCleanup {
    fn drop(&mut self) {
        let _ = STANDARD.try_with(|pool| {
            while pool.take().is_some() {}
            pool.len.set(CLOSED);
        });
    }
}

/// The larger blocks that a thread keeps. The block returned last is taken first here, too.
struct LargeBlocks {
    blocks: Vec<Box<[u8]>>,
    /// The size of all of them, in bytes.
    bytes: usize,
}

impl LargeBlocks {
    const fn new() -> LargeBlocks {
        LargeBlocks { blocks: Vec::new(), bytes: 0 }
    }

    fn take(&mut self, size: usize) -> Option<Box<[u8]>> {
        let place = self.blocks.iter().rposition(|block| block.len() == size)?;
        self.bytes -= size;
        Some(self.blocks.remove(place))
    }

    fn put(&mut self, block: Box<[u8]>) {
        if self.bytes + block.len() <= POOLED_LARGE_BYTES_MAX {
            self.bytes += block.len();
            self.blocks.push(block);
        }
    }
}

/// Returns a block of this thread's pool, if it has one and the block is large enough.
#[inline(always)]
pub(crate) fn take_pooled_block(bytes: usize) -> Option<Box<[u8]>> {
    if bytes > BLOCK_BYTES {
        return None;
    }
    let block = STANDARD.try_with(|pool| pool.take()).ok().flatten()?;
    Some(block)
}

/// Returns a block for this many bytes: one of this thread's pool, if there is one of that size.
pub(crate) fn take_block(bytes: usize) -> Box<[u8]> {
    match take_pooled_block(bytes) {
        Some(block) => block,
        None if bytes > BLOCK_BYTES => take_large(bytes),
        None => new_block(BLOCK_BYTES),
    }
}

#[cold]
fn take_large(bytes: usize) -> Box<[u8]> {
    let size = large_size(bytes);
    take_pooled_large(size).unwrap_or_else(|| new_block(size))
}

/// Rounds to one of few sizes, so that a returned block fits later requests.
pub(crate) fn large_size(bytes: usize) -> usize {
    bytes.checked_next_power_of_two().unwrap_or(bytes)
}

/// Returns a large block of this size, if the thread has one.
pub(crate) fn take_pooled_large(size: usize) -> Option<Box<[u8]>> {
    LARGE.try_with(|pool| pool.borrow_mut().take(size)).ok().flatten()
}

#[cold]
fn new_block(bytes: usize) -> Box<[u8]> {
    vec![0; bytes].into_boxed_slice()
}

/// Keeps a block for later buffers of this thread, if there is room for one of that size.
#[inline]
pub(crate) fn return_block(memory: Box<[u8]>) {
    match StandardBlock::try_from(memory) {
        Ok(block) => {
            // On some systems the pool is gone when a thread ends: then the block is freed.
            let _ = STANDARD.try_with(|pool| pool.put(block));
        }
        Err(memory) if memory.is_empty() => {}
        Err(memory) => return_unusual_block(memory),
    }
}

#[cold]
#[inline(never)]
fn return_unusual_block(memory: Box<[u8]>) {
    // Small blocks are left to the allocator, and the largest are too rare to be kept. If a buffer
    // is dropped while the thread ends, the pool is gone and the memory is freed.
    if (BLOCK_BYTES..=LARGE_BYTES_MAX).contains(&memory.len()) {
        let _ = LARGE.try_with(|pool| pool.borrow_mut().put(memory));
    }
}

/// Zeroed memory to read into: [`BLOCK_BYTES`], and a few more that are never lent.
pub(crate) struct Scratch(Box<[u8]>);

/// How many bytes after the claimed ones are checked: a reader that decrypts in place, for example,
/// leaves a tag of 16 bytes there.
const GUARD_BYTES: usize = 16;

impl Scratch {
    #[cold]
    fn new() -> Scratch {
        Scratch(new_block(BLOCK_BYTES + GUARD_BYTES))
    }

    /// Returns the zeroed memory that may be lent to a reader.
    #[inline]
    pub(crate) fn memory(&mut self) -> &mut [u8] {
        &mut self.0[..BLOCK_BYTES]
    }

    /// Zeroes the bytes that a reader says it has written. Everything is zeroed if the reader has
    /// visibly written more, or has failed, in which case it is unknown what it has written.
    #[inline]
    pub(crate) fn clean(&mut self, read: &io::Result<usize>) {
        let claimed = match read {
            Ok(count) => *count,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => 0,
                _ => return self.wipe(),
            },
        };
        self.0[..claimed].fill(0);
        if self.0[claimed..][..GUARD_BYTES] != [0; GUARD_BYTES] {
            self.wipe();
        }
    }

    #[cold]
    fn wipe(&mut self) {
        self.0.fill(0);
    }
}

/// Lends the scratch of this thread to `f`, which must clean it.
///
/// If a reader uses a scratch itself, it finds none and gets a new one. If it panics, the scratch
/// is lost.
#[inline]
pub(crate) fn with_scratch<V>(f: impl FnOnce(&mut Scratch) -> V) -> V {
    // It may be gone while the thread ends.
    let kept = SCRATCH.try_with(Cell::take).ok().flatten();
    let mut scratch = kept.unwrap_or_else(Scratch::new);
    let value = f(&mut scratch);
    let _ = SCRATCH.try_with(|place| place.set(Some(scratch)));
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large_bytes() -> usize {
        LARGE.with(|pool| {
            let pool = pool.borrow();
            assert_eq!(pool.bytes, pool.blocks.iter().map(|block| block.len()).sum::<usize>());
            pool.bytes
        })
    }

    #[test]
    fn returned_blocks_are_reused_by_the_thread_up_to_a_limit() {
        let first = take_block(1);
        let place = first.as_ptr();
        return_block(first);
        let second = take_block(BLOCK_BYTES);
        assert_eq!((second.as_ptr(), second.len()), (place, BLOCK_BYTES));
        let many: Vec<Box<[u8]>> = (0..POOLED_BLOCKS_MAX + 10).map(|_| take_block(1)).collect();
        many.into_iter().for_each(return_block);
        assert_eq!(STANDARD.with(|pool| pool.len.get()), POOLED_BLOCKS_MAX);
    }

    #[test]
    fn large_blocks_are_pooled_up_to_a_byte_limit_except_the_largest() {
        let large: Vec<Box<[u8]>> = (0..40).map(|_| take_block(40_000)).collect();
        assert!(large.iter().all(|block| block.len() == 65_536));
        large.into_iter().for_each(return_block);
        assert_eq!(large_bytes(), POOLED_LARGE_BYTES_MAX);
        let again = take_block(33_000);
        assert_eq!(again.len(), 65_536);
        assert_eq!(large_bytes(), POOLED_LARGE_BYTES_MAX - 65_536);
        return_block(take_block(LARGE_BYTES_MAX + 1));
        assert_eq!(large_bytes(), POOLED_LARGE_BYTES_MAX - 65_536);
        return_block(again);
        assert_eq!(large_bytes(), POOLED_LARGE_BYTES_MAX);
        assert_eq!(take_block(LARGE_BYTES_MAX).len(), LARGE_BYTES_MAX);
    }

    #[test]
    fn the_last_returned_large_block_is_reused_first() {
        let (first, last) = (take_block(40_000), take_block(40_000));
        let place = last.as_ptr();
        return_block(first);
        return_block(last);
        let again = take_block(40_000);
        assert_eq!(again.as_ptr(), place);
    }
}
