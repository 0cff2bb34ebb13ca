//! `FieldSpace`: memory for the fields that are decoded and for those that are encoded, lent by the
//! thread to the connection that is at work.
//!
//! A connection that waits needs none of it: what is decoded is handed over before the next block
//! comes, and what is encoded is in the output.

use std::cell::Cell;

use super::hpack::FieldList;

/// The most octets of a block whose memory is kept; as for lists.
const KEPT_MAX: usize = 4 << 10;

thread_local! {
    /// Without memory before the first use, and while it is lent.
    static KEPT: Cell<FieldSpace> = const { Cell::new(FieldSpace::new()) };
}

/// Room for fields. It works without memory of the thread's, too, and takes its own.
#[derive(Default)]
pub(crate) struct FieldSpace {
    /// The fields that were decoded last.
    pub(crate) list: FieldList,
    /// The block that is being sent.
    pub(crate) block: Vec<u8>,
}

impl FieldSpace {
    /// Without memory.
    pub(crate) const fn new() -> FieldSpace {
        FieldSpace { list: FieldList::new(), block: Vec::new() }
    }

    /// Takes the thread's memory, where it has none.
    #[inline]
    pub(crate) fn borrow(&mut self) {
        if self.held_bytes() == 0
            // While the thread ends there may be none any more.
            && let Ok(kept) = KEPT.try_with(Cell::take)
        {
            *self = kept;
        }
    }

    /// Gives the memory back; nothing of its content is needed any more.
    #[inline]
    pub(crate) fn give_back(&mut self) {
        let mut kept = std::mem::take(self);
        kept.list.clear();
        kept.block.clear();
        if kept.block.capacity() > KEPT_MAX {
            kept.block = Vec::new();
        }
        // It has none while the thread ends: then it is freed.
        let _ = KEPT.try_with(|place| place.set(kept));
    }

    fn held_bytes(&self) -> usize {
        self.list.held_bytes() + self.block.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_at_rest_holds_nothing_and_the_next_has_its_memory() {
        let (mut first, mut second) = (FieldSpace::new(), FieldSpace::new());
        first.borrow();
        first.list.push_named(b"name", 0..0);
        first.block.extend_from_slice(b"block");
        let place = first.block.as_ptr();
        // It is at work: nobody else has it.
        second.borrow();
        assert_eq!(second.held_bytes(), 0);
        first.borrow();
        assert_eq!((first.list.len(), &first.block[..]), (1, &b"block"[..]));
        first.give_back();
        assert_eq!(first.held_bytes(), 0);
        second.borrow();
        assert_eq!((second.block.as_ptr(), second.block.len(), second.list.len()), (place, 0, 0));
    }

    #[test]
    fn much_memory_is_not_kept() {
        let mut space = FieldSpace::new();
        for (len, is_kept) in [(KEPT_MAX, true), (KEPT_MAX + 1, false)] {
            space.block = Vec::with_capacity(len);
            space.give_back();
            space.borrow();
            assert_eq!(space.block.capacity() > 0, is_kept, "{len}");
        }
    }
}
