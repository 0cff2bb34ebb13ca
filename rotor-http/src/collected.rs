//! `Collected`: the part of a body that has arrived, for a handler that wants it in larger pieces
//! or whole.

use std::ops::Deref;
use std::sync::Arc;

use rotor_stream::{BytesHeld, NoRoom, Share};

/// Bytes of a body, and their share in the memory limit of all bodies.
#[derive(Debug)]
pub(crate) struct Collected {
    octets: Vec<u8>,
    /// As large as the capacity of `octets`.
    share: Share,
}

impl Collected {
    /// Empty, without memory.
    pub(crate) const NOTHING: Collected = Collected { octets: Vec::new(), share: Share::NONE };

    /// Appends bytes. The capacity doubles each time, so that the bytes are seldom copied, but does
    /// not grow beyond `most`, the number of bytes that may arrive in all. Nothing is allocated for
    /// bytes that are merely announced.
    ///
    /// # Errors
    ///
    /// The bodies together hold as much as they may; nothing was appended.
    pub(crate) fn append(
        &mut self,
        more: &[u8],
        most: usize,
        total: &Arc<BytesHeld>,
    ) -> Result<(), NoRoom> {
        let needed = self.octets.len() + more.len();
        if needed > self.octets.capacity() {
            self.make_room(needed, most, total)?;
        }
        self.octets.extend_from_slice(more);
        Ok(())
    }

    fn make_room(
        &mut self,
        needed: usize,
        most: usize,
        total: &Arc<BytesHeld>,
    ) -> Result<(), NoRoom> {
        // More than `most` may be needed: the last part of a piece comes in addition to it.
        let twice = needed.max(2 * self.octets.capacity()).min(most.max(needed));
        let room = match self.share.set(twice, total) {
            Ok(()) => twice,
            // Near the limit, copying more often is better than refusing.
            Err(NoRoom) => self.share.set(needed, total).map(|()| needed)?,
        };
        // Exactly this much, since it was counted.
        self.octets.reserve_exact(room - self.octets.len());
        Ok(())
    }

    /// Removes all bytes, and keeps the capacity for the next ones.
    pub(crate) fn clear(&mut self) {
        self.octets.clear();
    }
}

impl Deref for Collected {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_doubles_up_to_what_may_come_and_the_total_knows_all_of_it() {
        let total = BytesHeld::new(10_000);
        let mut collected = Collected::NOTHING;
        for (more, room) in
            [(0, 0), (10, 10), (1, 20), (9, 20), (1, 40), (19, 40), (1, 50), (9, 50), (5, 55)]
        {
            collected.append(&vec![b'x'; more], 50, &total).expect("there is room");
            assert_eq!(
                (collected.octets.capacity(), total.bytes()),
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
    fn where_the_total_is_nearly_spent_no_more_is_taken_than_is_needed_and_then_nothing() {
        for (max, lengths) in
            [(100, [60, 40, 0]), (99, [60, 39, 0]), (130, [60, 60, 10]), (60, [60, 0, 0])]
        {
            let total = BytesHeld::new(max);
            let mut collected = Collected::NOTHING;
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
