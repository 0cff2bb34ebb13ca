//! `CollectedBytes`: the part of a body that has arrived, for a handler that wants it in larger
//! pieces or whole.

use std::ops::Deref;
use std::sync::Arc;

use rotor_stream::{BytesHeld, NoRoom, Share};

/// Bytes of a body, and their share in the memory limit of all bodies.
#[derive(Debug)]
pub(crate) struct CollectedBytes {
    bytes: Vec<u8>,
    /// As large as the capacity of `bytes`.
    share: Share,
}

impl CollectedBytes {
    /// Empty, without memory.
    pub(crate) const EMPTY: CollectedBytes =
        CollectedBytes { bytes: Vec::new(), share: Share::NONE };

    /// Appends bytes. The capacity doubles each time, so that the bytes are seldom copied, but does
    /// not grow beyond `bytes_max`, the number of bytes that may arrive in all. Nothing is allocated
    /// for bytes that are merely announced.
    ///
    /// # Errors
    ///
    /// The bodies together hold as much as they may; nothing was appended.
    pub(crate) fn append(
        &mut self,
        more: &[u8],
        bytes_max: usize,
        total: &Arc<BytesHeld>,
    ) -> Result<(), NoRoom> {
        let needed = self.bytes.len() + more.len();
        if needed > self.bytes.capacity() {
            self.make_room(needed, bytes_max, total)?;
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    fn make_room(
        &mut self,
        needed: usize,
        bytes_max: usize,
        total: &Arc<BytesHeld>,
    ) -> Result<(), NoRoom> {
        // More than `bytes_max` may be needed: the last part of a piece comes in addition to it.
        let twice = needed.max(2 * self.bytes.capacity()).min(bytes_max.max(needed));
        let room = match self.share.set(twice, total) {
            Ok(()) => twice,
            // Near the limit, copying more often is better than refusing.
            Err(NoRoom) => self.share.set(needed, total).map(|()| needed)?,
        };
        // Exactly this much, since it was counted.
        self.bytes.reserve_exact(room - self.bytes.len());
        Ok(())
    }

    /// Removes all bytes, and keeps the capacity for the next ones.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}

impl Deref for CollectedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capacity_doubles_up_to_the_maximum_and_is_counted() {
        let total = BytesHeld::new(10_000);
        let mut collected = CollectedBytes::EMPTY;
        for (more, room) in
            [(0, 0), (10, 10), (1, 20), (9, 20), (1, 40), (19, 40), (1, 50), (9, 50), (5, 55)]
        {
            collected.append(&vec![b'x'; more], 50, &total).expect("there is room");
            assert_eq!(
                (collected.bytes.capacity(), total.bytes()),
                (room, room),
                "after {more} more"
            );
        }
        assert_eq!(&collected[..], [b'x'; 55]);
        collected.clear();
        assert_eq!((collected.len(), total.bytes()), (0, 55));
        drop(collected);
        assert_eq!(total.bytes(), 0);
    }

    #[test]
    fn near_the_limit_only_the_needed_capacity_is_allocated() {
        for (max, lengths) in
            [(100, [60, 40, 0]), (99, [60, 39, 0]), (130, [60, 60, 10]), (60, [60, 0, 0])]
        {
            let total = BytesHeld::new(max);
            let mut collected = CollectedBytes::EMPTY;
            for length in lengths {
                collected.append(&vec![b'x'; length], 1_000, &total).expect("there is room");
            }
            let held = collected.len();
            assert_eq!((held, total.bytes()), (max, max));
            assert_eq!(collected.append(b"x", 1_000, &total), Err(NoRoom));
            assert_eq!((collected.len(), total.bytes()), (held, max), "it is as it was");
            drop(collected);
            assert_eq!(total.bytes(), 0);
        }
    }
}
