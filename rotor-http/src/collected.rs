//! `Collected`: what has come of a body that its handler wants in larger parts, or whole.

use std::ops::Deref;
use std::sync::Arc;

use rotor_stream::{BytesHeld, NoRoom, Share};

/// Octets of a body, and what they hold of the total of all bodies.
#[derive(Debug)]
pub(crate) struct Collected {
    octets: Vec<u8>,
    /// As much as the octets have room for.
    share: Share,
}

impl Collected {
    /// Nothing, without memory.
    pub(crate) const NOTHING: Collected = Collected { octets: Vec::new(), share: Share::NONE };

    /// Appends what has come. Room is made for twice as much each time, so that it is copied
    /// seldom, but for no more than `most`, which is what may come in all, and for none of what is
    /// merely announced.
    ///
    /// # Errors
    ///
    /// The bodies hold as much as they may; nothing was appended.
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
        // What is needed may be more than `most`: the last part of a piece comes on top of it.
        let twice = needed.max(2 * self.octets.capacity()).min(most.max(needed));
        let room = match self.share.set(twice, total) {
            Ok(()) => twice,
            // Near the limit, to copy more often is better than to refuse.
            Err(NoRoom) => self.share.set(needed, total).map(|()| needed)?,
        };
        // Exactly, since that is what was counted.
        self.octets.reserve_exact(room - self.octets.len());
        Ok(())
    }

    /// Removes all octets, and keeps the room for the next.
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
