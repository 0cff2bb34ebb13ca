//! `LongestIdle`: the machines that have been idle longest, as far as a walk over the slots has
//! found them.
//!
//! A walk keeps at most [`FOUND_MAX`] of the oldest, so that a flood of requests costs one walk for
//! that many requests. Machines that are not among those found became idle later. So the oldest of
//! those found is the oldest of all, as long as any is left.

use std::collections::BinaryHeap;

use crate::room::Room;
use crate::time::Time;
use crate::token::Token;

/// The maximum number of machines that one walk finds. With 1,024 and the default number of slots,
/// a walk looks at 64 slots for each. This takes 16 KiB, as long as any are left.
const FOUND_MAX: usize = 1_024;

/// The maximum number of machines that are put off from one request to the next.
const POSTPONED_MAX: usize = 64;

/// The idle machines that are known, and their order.
#[derive(Default)]
pub(super) struct LongestIdle {
    /// The machines with the time since when they are idle; the oldest is last.
    found: Vec<(Time, Token)>,
    /// Machines that were taken from `found` and must be looked at again for the next request; the
    /// oldest is first.
    postponed: Vec<(Time, Token)>,
    /// The listener whose connections were searched, if not all machines were.
    listener: Option<Token>,
    /// When the last walk over all slots began, if it has found all idle machines. A machine that
    /// it has not found has become idle since then.
    complete_since: Option<Time>,
}

/// A walk over the slots that is in progress.
pub(super) struct Walk {
    /// The next slot to look at.
    pub(super) next: u32,
    began: Time,
    pub(super) listener: Option<Token>,
    /// The oldest machines that were seen; the youngest of them is on top.
    oldest: BinaryHeap<(Time, Token)>,
    /// Whether there were more than a walk keeps.
    is_truncated: bool,
}

impl Walk {
    pub(super) fn new(listener: Option<Token>, now: Time) -> Walk {
        Walk { next: 0, began: now, listener, oldest: BinaryHeap::new(), is_truncated: false }
    }

    pub(super) fn add(&mut self, since: Time, token: Token) {
        self.oldest.push((since, token));
        if self.oldest.len() > FOUND_MAX {
            self.oldest.pop();
            self.is_truncated = true;
        }
    }
}

impl LongestIdle {
    /// Takes the result of a walk over all slots.
    pub(super) fn store_walk(&mut self, walk: Walk) {
        self.listener = walk.listener;
        // The walk has found those as well.
        self.postponed = Vec::new();
        self.complete_since = (!walk.is_truncated).then_some(walk.began);
        self.found = walk.oldest.into_sorted_vec();
        self.found.reverse();
    }

    /// Returns whether a walk for this request could find machines that were not found before.
    pub(super) fn may_find_more(&self, room: &Room, now: Time) -> bool {
        if self.listener != room.listener {
            return true;
        }
        // The machines that were not found are younger than those found, and even the oldest of
        // these is too young.
        if !self.found.is_empty() {
            return false;
        }
        self.complete_since.is_none_or(|since| since + room.idle_min <= now)
    }

    /// Returns the machine that has been idle longest, if that is long enough.
    pub(super) fn pop_oldest(&mut self, room: &Room, now: Time) -> Option<(Time, Token)> {
        // Found for another listener: older machines of this one may not be among them.
        if self.listener != room.listener {
            self.found = Vec::new();
            self.postponed = Vec::new();
            self.complete_since = None;
        }
        let (since, _) = *self.found.last()?;
        if now - since < room.idle_min {
            return None;
        }
        let oldest = self.found.pop();
        // Frees the memory: requests for room are rare, and many loops have none.
        if self.found.is_empty() {
            self.found = Vec::new();
        }
        oldest
    }

    /// Keeps a machine that was popped, and is still idle since the same time, for the next
    /// request.
    pub(super) fn postpone(&mut self, since: Time, token: Token) {
        // Limited because each request looks at all of these once more. The next walk finds the
        // others.
        if self.postponed.len() < POSTPONED_MAX {
            self.postponed.push((since, token));
        }
    }

    /// Ends a request: machines that were put off are in line again for the next one.
    pub(super) fn end_request(&mut self) {
        // They were popped, oldest first, before those that are left.
        self.found.extend(self.postponed.drain(..).rev());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn token(index: u32) -> Token {
        Token::new(index, 0)
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    /// The result of a walk that began at `began`, over machines that are idle since these seconds.
    fn found(began: u64, since: impl IntoIterator<Item = u64>) -> LongestIdle {
        let mut walk = Walk::new(None, at(began));
        for (index, since) in (0..).zip(since) {
            walk.add(at(since), token(index));
        }
        let mut longest = LongestIdle::default();
        longest.store_walk(walk);
        longest
    }

    fn room() -> Room {
        Room::new().idle_min(Duration::from_secs(2))
    }

    #[test]
    fn the_oldest_machines_come_first_if_they_are_idle_long_enough() {
        let mut longest = found(9, [5, 3, 8, 4]);
        let mut indices = Vec::new();
        while let Some((_, token)) = longest.pop_oldest(&room(), at(7)) {
            indices.push(token.index());
        }
        assert_eq!(indices, [1, 3, 0], "the one idle since 8 is too young at 7");
        assert!(longest.pop_oldest(&room(), at(10)).is_some());
        assert!(longest.pop_oldest(&room(), at(99)).is_none(), "there are no more");
    }

    #[test]
    fn a_walk_keeps_only_the_oldest_machines() {
        let count = FOUND_MAX as u64 + 100;
        let mut longest = found(count, (0..count).rev());
        for since in 0..FOUND_MAX as u64 {
            assert_eq!(
                longest.pop_oldest(&room(), at(2 * count)).map(|(time, _)| time),
                Some(at(since))
            );
        }
        assert!(longest.pop_oldest(&room(), at(2 * count)).is_none());
        assert!(
            longest.may_find_more(&room(), at(2 * count)),
            "there were more than it could keep"
        );
    }

    /// Otherwise a peer that keeps more machines busy than a walk can store would cause a walk over
    /// all slots in each turn.
    #[test]
    fn a_truncated_walk_is_not_repeated_while_its_machines_are_too_young() {
        let count = FOUND_MAX as u64 + 100;
        let mut longest = found(count, (0..count).map(|index| 1_000_000 + index));
        let now = at(1_000_001);
        assert!(longest.pop_oldest(&room(), now).is_none(), "it is idle for a second");
        assert!(!longest.may_find_more(&room(), now));
        assert!(longest.pop_oldest(&room(), at(1_000_002)).is_some(), "and now for two");
    }

    /// A machine that was not idle when the walk began cannot be old enough until the minimum time
    /// has passed since then.
    #[test]
    fn a_complete_walk_is_not_repeated_before_another_machine_is_due() {
        let mut longest = found(9, [5]);
        assert!(longest.pop_oldest(&room(), at(10)).is_some());
        assert!(!longest.may_find_more(&room(), at(10)));
        assert!(longest.may_find_more(&room(), at(11)));
        assert!(LongestIdle::default().may_find_more(&room(), at(0)), "none has looked yet");
    }
}
