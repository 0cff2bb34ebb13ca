//! Frees the memory that a burst has left in a queue.
//!
//! A queue keeps the capacity of its greatest length, so one burst would cost that memory forever.
//! The memory is freed when the queue has become empty and its capacity is larger than it usually
//! needs. This costs one comparison when the queue is emptied. A queue that is often so long
//! allocates anew each time, but once for thousands of entries.

use std::collections::VecDeque;

/// What an empty queue may keep: 16 KiB, one block of input. So ten thousand mailboxes that have
/// each had a burst keep at most 160 MB.
const KEPT_BYTES: usize = 16 * 1024;

/// Shrinks a queue if it is empty and has a capacity of more than `KEPT_BYTES`.
#[inline]
pub(crate) fn shrink_empty<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > kept_entries::<T>() {
        queue.shrink_to(kept_entries::<T>());
    }
}

/// Shrinks a vector that is used as a queue, in the same way.
#[inline]
pub(crate) fn shrink_empty_vec<T>(queue: &mut Vec<T>) {
    if queue.is_empty() && queue.capacity() > kept_entries::<T>() {
        queue.shrink_to(kept_entries::<T>());
    }
}

/// Returns how many entries fit into `KEPT_BYTES`.
const fn kept_entries<T>() -> usize {
    KEPT_BYTES / if size_of::<T>() == 0 { 1 } else { size_of::<T>() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_queue_is_shrunk_to_16_kib() {
        let mut queue: VecDeque<u64> = (0..100_000).collect();
        let capacity = queue.capacity();
        shrink_empty(&mut queue);
        assert_eq!(queue.capacity(), capacity);
        queue.clear();
        shrink_empty(&mut queue);
        assert!((2_048..4_096).contains(&queue.capacity()), "{}", queue.capacity());
        let kept = queue.capacity();
        shrink_empty(&mut queue);
        assert_eq!(queue.capacity(), kept, "nothing more is to be freed");
        let mut vector = Vec::with_capacity(100_000);
        vector.push([0u8; 64]);
        vector.clear();
        shrink_empty_vec(&mut vector);
        assert!((256..512).contains(&vector.capacity()), "{}", vector.capacity());
        shrink_empty(&mut VecDeque::from(vec![(); 7]));
    }
}
