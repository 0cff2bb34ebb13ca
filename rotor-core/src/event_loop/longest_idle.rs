//! `LongestIdle`: who has been idle longest, as far as a walk over the slots has found.
//!
//! A walk keeps as many as [`FOUND_MAX`] of the oldest, so that a flood of requests costs one walk
//! for so many of them. What is not among them became idle later than they; so the oldest of them
//! is the oldest of all, as long as any is left.

use std::collections::BinaryHeap;

use crate::room::Room;
use crate::time::Time;
use crate::token::Token;

/// The most machines that one walk finds. 1,024: with as many slots as a loop has by default, 64
/// are looked at for each. 16 KiB, as long as some are left.
const FOUND_MAX: usize = 1_024;

/// The most machines that are put off from one request to the next.
const PUT_OFF_MAX: usize = 64;

/// What is known of machines that are idle, and which of them is next.
#[derive(Default)]
pub(super) struct LongestIdle {
    /// Since when they are idle, the oldest last.
    found: Vec<(Time, Token)>,
    /// Taken from those, and to be looked at again by the next request: the oldest first.
    put_off: Vec<(Time, Token)>,
    /// Whose connections were looked for, if not all machines.
    listener: Option<Token>,
    /// When the last walk over all slots began, if it has found all that are idle. Who is not among
    /// those found has become idle since then.
    complete_since: Option<Time>,
}

/// A walk over the slots that is under way.
pub(super) struct Walk {
    /// The slot to be looked at next.
    pub(super) next: u32,
    began: Time,
    pub(super) listener: Option<Token>,
    /// The oldest of those that were seen, the youngest of them on top.
    oldest: BinaryHeap<(Time, Token)>,
    /// There were more than it may keep.
    is_truncated: bool,
}

impl Walk {
    pub(super) fn new(listener: Option<Token>, now: Time) -> Walk {
        Walk { next: 0, began: now, listener, oldest: BinaryHeap::new(), is_truncated: false }
    }

    pub(super) fn note(&mut self, since: Time, token: Token) {
        self.oldest.push((since, token));
        if self.oldest.len() > FOUND_MAX {
            self.oldest.pop();
            self.is_truncated = true;
        }
    }
}

impl LongestIdle {
    /// Takes what a walk over all slots has found.
    pub(super) fn take_walk(&mut self, walk: Walk) {
        self.listener = walk.listener;
        // It has found those as well.
        self.put_off = Vec::new();
        self.complete_since = (!walk.is_truncated).then_some(walk.began);
        self.found = walk.oldest.into_sorted_vec();
        self.found.reverse();
    }

    /// Whether a walk for this could find what was not found before.
    pub(super) fn may_find(&self, room: &Room, now: Time) -> bool {
        if self.listener != room.listener {
            return true;
        }
        // Who is not among those found is younger than they are, and the oldest of them is too
        // young.
        if !self.found.is_empty() {
            return false;
        }
        self.complete_since.is_none_or(|since| since + room.idle_min <= now)
    }

    /// The one that is idle longest, if that is long enough.
    pub(super) fn pop_oldest(&mut self, room: &Room, now: Time) -> Option<(Time, Token)> {
        // Found for another listener: an older one may not be among them.
        if self.listener != room.listener {
            self.found = Vec::new();
            self.put_off = Vec::new();
            self.complete_since = None;
        }
        let (since, _) = *self.found.last()?;
        if now - since < room.idle_min {
            return None;
        }
        let oldest = self.found.pop();
        // Its memory is given back: room is seldom wanted, and not by every loop.
        if self.found.is_empty() {
            self.found = Vec::new();
        }
        oldest
    }

    /// Keeps one that was popped, and is as idle as before, for the next request.
    pub(super) fn put_off(&mut self, since: Time, token: Token) {
        // The next walk finds the others: each request looks at all of these once more.
        if self.put_off.len() < PUT_OFF_MAX {
            self.put_off.push((since, token));
        }
    }

    /// A request is answered: those that were put off are in line again, for the next.
    pub(super) fn end_request(&mut self) {
        // They were popped, oldest first, before what is left.
        self.found.extend(self.put_off.drain(..).rev());
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

    /// What a walk that began at `began` leaves, over machines that are idle since so many seconds.
    fn found(began: u64, since: impl IntoIterator<Item = u64>) -> LongestIdle {
        let mut walk = Walk::new(None, at(began));
        for (index, since) in (0..).zip(since) {
            walk.note(at(since), token(index));
        }
        let mut longest = LongestIdle::default();
        longest.take_walk(walk);
        longest
    }

    fn room() -> Room {
        Room::new().idle_min(Duration::from_secs(2))
    }

    #[test]
    fn the_oldest_come_first_and_only_those_that_are_old_enough() {
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
    fn a_walk_keeps_the_oldest_however_many_there_are() {
        let count = FOUND_MAX as u64 + 100;
        let mut longest = found(count, (0..count).rev());
        for since in 0..FOUND_MAX as u64 {
            assert_eq!(
                longest.pop_oldest(&room(), at(2 * count)).map(|(time, _)| time),
                Some(at(since))
            );
        }
        assert!(longest.pop_oldest(&room(), at(2 * count)).is_none());
        assert!(longest.may_find(&room(), at(2 * count)), "there were more than it could keep");
    }

    /// Else a peer that keeps more than a walk can find busy would have all slots looked at in each
    /// turn.
    #[test]
    fn a_walk_that_found_only_young_ones_is_not_repeated_whatever_it_left_out() {
        let count = FOUND_MAX as u64 + 100;
        let mut longest = found(count, (0..count).map(|index| 1_000_000 + index));
        let now = at(1_000_001);
        assert!(longest.pop_oldest(&room(), now).is_none(), "it is idle for a second");
        assert!(!longest.may_find(&room(), now));
        assert!(longest.pop_oldest(&room(), at(1_000_002)).is_some(), "and now for two");
    }

    /// Who was not idle when the walk began cannot be old enough before the least time has passed
    /// since.
    #[test]
    fn a_walk_that_found_all_is_not_repeated_before_another_can_be_old_enough() {
        let mut longest = found(9, [5]);
        assert!(longest.pop_oldest(&room(), at(10)).is_some());
        assert!(!longest.may_find(&room(), at(10)));
        assert!(longest.may_find(&room(), at(11)));
        assert!(LongestIdle::default().may_find(&room(), at(0)), "none has looked yet");
    }
}
