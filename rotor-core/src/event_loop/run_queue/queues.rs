//! The two kinds of queue that a turn takes its work from.

use std::collections::VecDeque;

use crate::queue_memory::{shrink_empty, shrink_empty_vec};

/// Items that arrived together, and are processed from the front until all are done.
pub(super) struct Arrivals<T> {
    items: Vec<T>,
    done: usize,
}

impl<T: Copy> Arrivals<T> {
    pub(super) fn new() -> Arrivals<T> {
        Arrivals { items: Vec::new(), done: 0 }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_done(&self) -> bool {
        self.done == self.items.len()
    }

    /// Returns the list to which more items are appended.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn items(&mut self) -> &mut Vec<T> {
        if self.is_done() {
            // Only then, because remaining items come before appended ones.
            self.items.clear();
            self.done = 0;
        }
        &mut self.items
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next(&mut self) -> Option<T> {
        let item = *self.items.get(self.done)?;
        self.done += 1;
        Some(item)
    }

    /// Keeps only those of the remaining items for which `keeps` returns `true`.
    pub(super) fn retain(&mut self, mut keeps: impl FnMut(T) -> bool) {
        self.items.drain(..self.done);
        self.done = 0;
        self.items.retain(|item| keeps(*item));
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
    #[cfg_attr(not(debug_assertions), inline(always))]
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
    fn arrivals_are_delivered_once_and_then_cleared() {
        let mut arrivals = Arrivals::new();
        arrivals.items().extend([1, 2]);
        assert_eq!((arrivals.next(), arrivals.is_done()), (Some(1), false));
        arrivals.items().push(3);
        assert_eq!((arrivals.next(), arrivals.next(), arrivals.next()), (Some(2), Some(3), None));
        assert!(arrivals.is_done() && arrivals.items().is_empty());
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
