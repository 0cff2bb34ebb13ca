//! The two kinds of queue that a turn takes its work from.

use std::collections::VecDeque;

use crate::queue_memory::{shrink_empty, shrink_empty_vec};

/// Items that came together, and are processed from the front until all are done.
pub(super) struct Batch<T> {
    items: Vec<T>,
    done: usize,
}

impl<T: Copy> Batch<T> {
    pub(super) fn new() -> Batch<T> {
        Batch { items: Vec::new(), done: 0 }
    }

    #[inline(always)]
    pub(super) fn is_done(&self) -> bool {
        self.done == self.items.len()
    }

    /// Returns the list to which the next batch, or more of this one, is appended.
    #[inline(always)]
    pub(super) fn items(&mut self) -> &mut Vec<T> {
        if self.is_done() {
            // Only then, because remaining items come before appended ones.
            self.items.clear();
            self.done = 0;
        }
        &mut self.items
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<T> {
        let item = *self.items.get(self.done)?;
        self.done += 1;
        Some(item)
    }

    pub(super) fn capacity(&self) -> usize {
        self.items.capacity()
    }

    pub(super) fn shrink(&mut self) {
        self.items();
        shrink_empty_vec(&mut self.items);
    }
}

/// A queue from which a turn takes only the items that were in it when the turn began.
pub(super) struct Backlog<T> {
    queue: VecDeque<T>,
    /// How many items at the front belong to this turn.
    left: usize,
}

impl<T> Backlog<T> {
    pub(super) fn new() -> Backlog<T> {
        Backlog { queue: VecDeque::new(), left: 0 }
    }

    pub(super) fn begin_turn(&mut self) {
        self.left = self.queue.len();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns whether no items of this turn are left.
    #[inline(always)]
    pub(super) fn is_turn_over(&self) -> bool {
        self.left == 0
    }

    /// Adds an item for the next turn.
    pub(super) fn push(&mut self, item: T) {
        self.queue.push_back(item);
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<T> {
        // Items that were pushed in this turn are not counted in `left`, and stay for the next one.
        self.left = self.left.checked_sub(1)?;
        self.queue.pop_front()
    }

    /// Takes all items, of this turn and the next one.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.queue.drain(..)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.queue.iter()
    }

    pub(super) fn capacity(&self) -> usize {
        self.queue.capacity()
    }

    pub(super) fn shrink(&mut self) {
        shrink_empty(&mut self.queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_delivers_its_items_once_and_is_then_cleared() {
        let mut batch = Batch::new();
        batch.items().extend([1, 2]);
        assert_eq!((batch.next(), batch.is_done()), (Some(1), false));
        batch.items().push(3);
        assert_eq!((batch.next(), batch.next(), batch.next()), (Some(2), Some(3), None));
        assert!(batch.is_done() && batch.items().is_empty());
    }

    #[test]
    fn a_backlog_yields_only_items_from_before_the_turn() {
        let mut backlog = Backlog::new();
        backlog.push(1);
        assert!(backlog.next().is_none());
        backlog.begin_turn();
        backlog.push(2);
        assert_eq!((backlog.next(), backlog.next(), backlog.is_empty()), (Some(1), None, false));
        backlog.push(3);
        assert_eq!(backlog.drain().collect::<Vec<_>>(), [2, 3]);
    }
}
