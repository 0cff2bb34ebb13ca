//! `WaitQueue`: a queue, first come, first served, which a waiter can leave at any time.

use std::collections::VecDeque;

use crate::future::Port;
use crate::queue_memory::shrink_empty;
use crate::waiter_queue::WaiterQueue;
use std::sync::Weak;

/// A queue of waiters. Their places are numbers that only grow.
pub(crate) struct WaitQueue<W> {
    /// In the order of the places. A waiter that has left is a gap; gaps are removed when there are
    /// many.
    places: VecDeque<(u64, Option<W>)>,
    last: u64,
    gaps: usize,
}

impl<W> Default for WaitQueue<W> {
    fn default() -> WaitQueue<W> {
        WaitQueue { places: VecDeque::new(), last: 0, gaps: 0 }
    }
}

impl<W> WaitQueue<W> {
    /// Returns the place of the next waiter that joins.
    pub(crate) fn next_place(&self) -> u64 {
        self.last + 1
    }

    /// Appends `waiter` and returns its place.
    pub(crate) fn push(&mut self, waiter: W) -> u64 {
        self.last += 1;
        self.places.push_back((self.last, Some(waiter)));
        self.last
    }

    /// Takes the first waiter.
    pub(crate) fn pop(&mut self) -> Option<W> {
        loop {
            let (_, waiter) = self.places.pop_front()?;
            shrink_empty(&mut self.places);
            match waiter {
                Some(waiter) => return Some(waiter),
                None => self.gaps -= 1,
            }
        }
    }

    /// Removes the waiter with that place, if it is still there.
    pub(crate) fn remove(&mut self, place: u64) -> Option<W> {
        let index = self.places.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        let waiter = self.places[index].1.take()?;
        self.gaps += 1;
        // Gaps are removed when there are more of them than waiters. Until then they cost no more
        // memory than those, and each waiter is moved once, on average.
        if self.gaps * 2 > self.places.len() {
            self.places.retain(|(_, waiter)| waiter.is_some());
            self.gaps = 0;
            shrink_empty(&mut self.places);
        }
        Some(waiter)
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.gaps
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes all waiters.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = W> + use<W> {
        self.gaps = 0;
        std::mem::take(&mut self.places).into_iter().filter_map(|(_, waiter)| waiter)
    }
}

impl<V> WaitQueue<Port<V>> {
    /// Appends the port of a future. When the future is dropped, `queue` is called to remove it.
    pub(crate) fn push_port(&mut self, port: Port<V>, queue: Weak<dyn WaiterQueue>) {
        port.leave_queue_on_cancel(queue, self.next_place());
        self.push(port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_served_in_order_and_removed_ones_are_skipped() {
        let mut queue = WaitQueue::default();
        let places: Vec<u64> = ["a", "b", "c", "d"].map(|name| queue.push(name)).to_vec();
        assert_eq!(queue.remove(places[1]), Some("b"));
        assert_eq!((queue.remove(places[1]), queue.remove(99)), (None, None), "he is gone");
        assert_eq!(queue.len(), 3);
        assert_eq!((queue.pop(), queue.pop()), (Some("a"), Some("c")));
        assert_eq!(queue.remove(places[0]), None, "he was served");
        assert_eq!(queue.take_all().collect::<Vec<_>>(), ["d"]);
        assert!(queue.is_empty() && queue.pop().is_none());
        assert!(queue.push("e") > places[3], "a place is one person's");
    }

    #[test]
    fn gaps_take_no_more_memory_than_waiters() {
        let mut queue = WaitQueue::default();
        let first = queue.push(0);
        let mut last = queue.push(1);
        for number in 2..10_000 {
            let next = queue.push(number);
            assert!(queue.remove(last).is_some());
            last = next;
            assert!(queue.places.len() <= 5, "{} places for two", queue.places.len());
        }
        assert_eq!((queue.remove(first), queue.remove(last)), (Some(0), Some(9_999)));
        assert_eq!((queue.len(), queue.places.len()), (0, 0));
    }

    #[test]
    fn the_queue_agrees_with_a_plain_list() {
        let (mut queue, mut list) = (WaitQueue::default(), Vec::<u64>::new());
        let mut random = 1u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = (random >> 33) as usize;
            match pick % 5 {
                0 | 1 => {
                    let place = queue.push(queue.last + 1);
                    list.push(place);
                }
                2 => {
                    let expected = (!list.is_empty()).then(|| list.remove(0));
                    assert_eq!(queue.pop(), expected);
                }
                _ if list.is_empty() => {}
                _ => {
                    let place = list.remove(pick / 5 % list.len());
                    assert_eq!(queue.remove(place), Some(place));
                }
            }
            assert_eq!(queue.len(), list.len());
            assert!(queue.gaps <= queue.places.len());
        }
        assert_eq!(queue.take_all().collect::<Vec<_>>(), list);
    }
}
