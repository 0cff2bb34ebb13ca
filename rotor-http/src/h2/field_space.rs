//! `FieldSpace`: memory for decoded and encoded fields, which the thread lends to the connection
//! that is at work.
//!
//! A connection that waits needs none: decoded fields are handed over before the next block
//! arrives, and encoded ones are in the output.

use std::cell::Cell;

use super::hpack::FieldList;

/// The largest block, in bytes, whose memory is kept; the same as for lists.
const RETAINED_BYTES_MAX: usize = 4 << 10;

thread_local! {
    /// Empty before the first use, and while it is lent.
    static RETAINED: Cell<FieldSpace> = const { Cell::new(FieldSpace::new()) };
}

/// Room for fields. If the thread has no memory to lend, it allocates its own.
#[derive(Default)]
pub(crate) struct FieldSpace {
    /// The fields that were decoded last.
    pub(crate) list: FieldList,
    /// The block that is being sent.
    pub(crate) block: Vec<u8>,
}

impl FieldSpace {
    /// Creates an empty space, without memory.
    pub(crate) const fn new() -> FieldSpace {
        FieldSpace { list: FieldList::new(), block: Vec::new() }
    }

    /// Takes the thread's memory, unless the space has some already.
    #[inline]
    pub(crate) fn acquire(&mut self) {
        if self.held_bytes() == 0
            // While the thread ends, it may have no memory any more.
            && let Ok(space) = RETAINED.try_with(Cell::take)
        {
            *self = space;
        }
    }

    /// Gives the memory back; its content is not needed any more.
    #[inline]
    pub(crate) fn release(&mut self) {
        let mut space = std::mem::take(self);
        space.list.clear();
        space.block.clear();
        if space.block.capacity() > RETAINED_BYTES_MAX {
            space.block = Vec::new();
        }
        // While the thread ends there is no place for it, and it is freed.
        let _ = RETAINED.try_with(|place| place.set(space));
    }

    fn held_bytes(&self) -> usize {
        self.list.held_bytes() + self.block.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_space_is_empty_and_the_next_user_gets_its_memory() {
        let (mut first, mut second) = (FieldSpace::new(), FieldSpace::new());
        first.acquire();
        first.list.push_named(b"name", 0..0);
        first.block.extend_from_slice(b"block");
        let place = first.block.as_ptr();
        // The first one is in use, so the second does not get its memory.
        second.acquire();
        assert_eq!(second.held_bytes(), 0);
        first.acquire();
        assert_eq!((first.list.len(), &first.block[..]), (1, &b"block"[..]));
        first.release();
        assert_eq!(first.held_bytes(), 0);
        second.acquire();
        assert_eq!((second.block.as_ptr(), second.block.len(), second.list.len()), (place, 0, 0));
    }

    #[test]
    fn large_memory_is_not_retained() {
        let mut space = FieldSpace::new();
        for (len, is_retained) in [(RETAINED_BYTES_MAX, true), (RETAINED_BYTES_MAX + 1, false)] {
            space.block = Vec::with_capacity(len);
            space.release();
            space.acquire();
            assert_eq!(space.block.capacity() > 0, is_retained, "{len}");
        }
    }
}
