//! `BufferPool`: the blocks of memory that a thread keeps for its next buffers.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::{self, ManuallyDrop};

/// The size of a block of memory, in bytes: a read of a request seldom fills it, and a socket
/// seldom has more at once.
pub const BLOCK_BYTES: usize = 16 * 1024;

/// The most blocks kept by a thread: 1 MiB of them, for as many streams at work *at the same
/// time*, in the same turn. A stream that finds none allocates one.
const POOLED_BLOCKS_MAX: usize = 64;

/// The largest block that is kept, in bytes. A longer message is rare, and pays for
/// its memory itself.
const LARGE_BYTES_MAX: usize = 256 * 1024;

/// The most bytes of blocks above the usual size kept by a thread: 2 MiB.
const POOLED_LARGE_BYTES_MAX: usize = 2 * 1024 * 1024;

thread_local! {
    /// Every byte of a pooled block was written at some time, so a block can be lent to the kernel
    /// as it is. What is in it is another connection's, so nobody else is lent it to read into.
    ///
    /// What has nothing to drop is reached without a look at whether the thread ends;
    /// [`OpenPool`] drops the blocks.
    static USUAL: ManuallyDrop<UsualBlocks> = const { ManuallyDrop::new(UsualBlocks::closed()) };
}

thread_local! {
    static OPEN_POOL: OpenPool = const { OpenPool };
}

thread_local! {
    static LARGE: RefCell<LargeBlocks> = const { RefCell::new(LargeBlocks::new()) };
}

thread_local! {
    /// Absent before the first use, and during one.
    static SCRATCH: Cell<Option<Scratch>> = const { Cell::new(None) };
}

type UsualBlock = Box<[u8; BLOCK_BYTES]>;

/// The blocks of the usual size that a thread keeps. The one that came last goes first: it is the
/// likeliest to be in a cache.
///
/// Cells, and not a vector behind a `RefCell`: two blocks are lent and given back for each request.
struct UsualBlocks {
    /// [`CLOSED`] before the first block is given back, and as the thread ends.
    len: Cell<usize>,
    blocks: [Cell<Option<UsualBlock>>; POOLED_BLOCKS_MAX],
}

/// The length of a pool that neither has blocks nor takes any.
const CLOSED: usize = usize::MAX;

impl UsualBlocks {
    const fn closed() -> UsualBlocks {
        let blocks = [const { Cell::new(None) }; POOLED_BLOCKS_MAX];
        UsualBlocks { len: Cell::new(CLOSED), blocks }
    }

    #[inline(always)]
    fn take(&self) -> Option<UsualBlock> {
        // Of none there is no place, nor of a closed pool.
        let last = self.len.get().wrapping_sub(1);
        let block = self.blocks.get(last)?.take();
        self.len.set(last);
        block
    }

    #[inline(always)]
    fn keep(&self, block: UsualBlock) {
        let len = self.len.get();
        match self.blocks.get(len) {
            Some(place) => {
                self.len.set(len + 1);
                // Nothing was there: to drop it would be to look whether there was.
                mem::forget(place.replace(Some(block)));
            }
            None => self.keep_rarer(block),
        }
    }

    /// Opens the pool; or frees the block, if the pool is full or the thread ends.
    #[cold]
    #[inline(never)]
    fn keep_rarer(&self, block: UsualBlock) {
        if self.len.get() == CLOSED && OPEN_POOL.try_with(|_| ()).is_ok() {
            self.len.set(0);
            self.keep(block);
        }
    }
}

/// Frees the blocks of a thread that ends.
struct OpenPool;

impl Drop for OpenPool {
    fn drop(&mut self) {
        let _ = USUAL.try_with(|pool| {
            while pool.take().is_some() {}
            pool.len.set(CLOSED);
        });
    }
}

/// The larger blocks that a thread keeps, of which the one that came last goes first, too.
struct LargeBlocks {
    blocks: Vec<Box<[u8]>>,
    /// The bytes of all of them.
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

    fn keep(&mut self, block: Box<[u8]>) {
        if self.bytes + block.len() <= POOLED_LARGE_BYTES_MAX {
            self.bytes += block.len();
            self.blocks.push(block);
        }
    }
}

/// A block of this thread's pool, if it has one, and that is enough for so many bytes.
#[inline(always)]
pub(crate) fn pooled_block(bytes: usize) -> Option<Box<[u8]>> {
    if bytes > BLOCK_BYTES {
        return None;
    }
    let block = USUAL.try_with(|pool| pool.take()).ok().flatten()?;
    Some(block)
}

/// A block for that many bytes: one of this thread's pool, if there is one of that size.
pub(crate) fn take_block(bytes: usize) -> Box<[u8]> {
    match pooled_block(bytes) {
        Some(block) => block,
        None if bytes > BLOCK_BYTES => take_large(bytes),
        None => new_block(BLOCK_BYTES),
    }
}

#[cold]
fn take_large(bytes: usize) -> Box<[u8]> {
    let size = large_size(bytes);
    pooled_large(size).unwrap_or_else(|| new_block(size))
}

/// Few sizes, so that one that comes back fits the next that is wanted.
pub(crate) fn large_size(bytes: usize) -> usize {
    bytes.checked_next_power_of_two().unwrap_or(bytes)
}

/// A large block of this size, if the thread has one.
pub(crate) fn pooled_large(size: usize) -> Option<Box<[u8]>> {
    LARGE.try_with(|pool| pool.borrow_mut().take(size)).ok().flatten()
}

#[cold]
fn new_block(bytes: usize) -> Box<[u8]> {
    vec![0; bytes].into_boxed_slice()
}

/// Keeps a block for the next buffer of this thread, if there is room for one of that size.
#[inline]
pub(crate) fn give_back(memory: Box<[u8]>) {
    match UsualBlock::try_from(memory) {
        Ok(block) => {
            // Some systems have no pool any more as a thread ends: then the block is freed.
            let _ = USUAL.try_with(|pool| pool.keep(block));
        }
        Err(memory) if memory.is_empty() => {}
        Err(memory) => give_back_unusual(memory),
    }
}

#[cold]
#[inline(never)]
fn give_back_unusual(memory: Box<[u8]>) {
    // Small ones are the allocator's business; the largest are too rare to be kept for anybody. A
    // buffer that is dropped while the thread ends finds no pool any more: the memory is freed.
    if (BLOCK_BYTES..=LARGE_BYTES_MAX).contains(&memory.len()) {
        let _ = LARGE.try_with(|pool| pool.borrow_mut().keep(memory));
    }
}

/// Zeros to read into: [`BLOCK_BYTES`] of them, and a few that nobody is lent.
pub(crate) struct Scratch(Box<[u8]>);

/// How many bytes behind what a reader claims are looked at: whoever decrypts in place, say, leaves
/// a tag there, of 16 bytes.
const WATCHED_BYTES: usize = 16;

impl Scratch {
    #[cold]
    fn new() -> Scratch {
        Scratch(new_block(BLOCK_BYTES + WATCHED_BYTES))
    }

    /// What a reader may be lent: zeros.
    #[inline]
    pub(crate) fn lent(&mut self) -> &mut [u8] {
        &mut self.0[..BLOCK_BYTES]
    }

    /// Makes zero again what was written, by what the reader says. One that is seen to have written
    /// more has all of it wiped, and so has one that has failed, of which nobody knows what it has
    /// written.
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
        if self.0[claimed..][..WATCHED_BYTES] != [0; WATCHED_BYTES] {
            self.wipe();
        }
    }

    #[cold]
    fn wipe(&mut self) {
        self.0.fill(0);
    }
}

/// Lends the scratch of this thread. Whoever is lent it cleans it.
///
/// A reader that reads by a scratch itself finds none, and gets one of its own. One that panics
/// takes it with it.
#[inline]
pub(crate) fn with_scratch<V>(f: impl FnOnce(&mut Scratch) -> V) -> V {
    // While the thread ends there may be none any more.
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
    fn blocks_go_back_to_the_thread_and_are_used_again() {
        let first = take_block(1);
        let place = first.as_ptr();
        give_back(first);
        let second = take_block(BLOCK_BYTES);
        assert_eq!((second.as_ptr(), second.len()), (place, BLOCK_BYTES));
        let many: Vec<Box<[u8]>> = (0..POOLED_BLOCKS_MAX + 10).map(|_| take_block(1)).collect();
        many.into_iter().for_each(give_back);
        assert_eq!(USUAL.with(|pool| pool.len.get()), POOLED_BLOCKS_MAX);
    }

    #[test]
    fn large_blocks_are_used_again_up_to_so_many_bytes_and_the_largest_are_not_kept() {
        let large: Vec<Box<[u8]>> = (0..40).map(|_| take_block(40_000)).collect();
        assert!(large.iter().all(|block| block.len() == 65_536));
        large.into_iter().for_each(give_back);
        assert_eq!(large_bytes(), POOLED_LARGE_BYTES_MAX);
        let again = take_block(33_000);
        assert_eq!(again.len(), 65_536);
        assert_eq!(large_bytes(), POOLED_LARGE_BYTES_MAX - 65_536);
        give_back(take_block(LARGE_BYTES_MAX + 1));
        assert_eq!(large_bytes(), POOLED_LARGE_BYTES_MAX - 65_536);
        give_back(again);
        assert_eq!(large_bytes(), POOLED_LARGE_BYTES_MAX);
        assert_eq!(take_block(LARGE_BYTES_MAX).len(), LARGE_BYTES_MAX);
    }

    #[test]
    fn the_large_block_that_came_last_goes_first() {
        let (first, last) = (take_block(40_000), take_block(40_000));
        let place = last.as_ptr();
        give_back(first);
        give_back(last);
        let again = take_block(40_000);
        assert_eq!(again.as_ptr(), place);
    }
}
