//! Making room: the machines that have been idle longest are asked to end, for those that ask for it.
//!
//! ```text
//!   request ──▶ found before? ──no──▶ walk over the slots, within each turn's budget ──▶ found
//!                  │ yes                                                                  │
//!                  ▼                                                                      ▼
//!               the oldest: still idle since then, and long enough? ──▶ make_room() ──▶ it ends: the asker is woken
//! ```
//!
//! A walk keeps as many as [`FOUND_MAX`] of the oldest, so that a flood of requests costs one walk for so many of them. What is
//! not among them became idle later than they; so the oldest of them is the oldest of all, as long as any is left.

use std::collections::BinaryHeap;

use super::rest::{Lent, Rest};
use crate::backend::Backend;
use crate::guard::{guard, log_guarded};
use crate::room::{Idle, Room, RoomRequest};
use crate::scope::Woken;
use crate::{Event, Machine, Time, Token};

/// The most machines that one walk finds. 1,024: with as many slots as a loop has by default, 64 are looked at for each. 16 KiB,
/// as long as some are left.
const FOUND_MAX: usize = 1_024;

/// What is known of machines that are idle.
#[derive(Default)]
pub(super) struct RoomMaker {
    /// Since when they are idle, the oldest last.
    found: Vec<(Time, Token)>,
    /// Whose connections were looked for, if not all machines.
    listener: Option<Token>,
    /// When the last walk over all slots began, if it has found all that are idle. Who is not among those found has become
    /// idle since then.
    complete_since: Option<Time>,
    walk: Option<Walk>,
}

/// A walk over the slots that is under way.
struct Walk {
    next: u32,
    began: Time,
    listener: Option<Token>,
    /// The oldest of those that were seen, the youngest of them on top.
    oldest: BinaryHeap<(Time, Token)>,
    /// There were more than it may keep.
    is_truncated: bool,
}

/// What a walk has come to.
enum Walked {
    Everywhere,
    /// The turn's budget is spent.
    SoFar,
}

impl Walk {
    fn new(listener: Option<Token>, now: Time) -> Walk {
        Walk { next: 0, began: now, listener, oldest: BinaryHeap::new(), is_truncated: false }
    }

    fn note(&mut self, since: Time, token: Token) {
        self.oldest.push((since, token));
        if self.oldest.len() > FOUND_MAX {
            self.oldest.pop();
            self.is_truncated = true;
        }
    }
}

impl RoomMaker {
    fn take_walk(&mut self, walk: Walk) {
        self.listener = walk.listener;
        self.complete_since = (!walk.is_truncated).then_some(walk.began);
        self.found = walk.oldest.into_sorted_vec();
        self.found.reverse();
    }

    /// Whether a walk for this could find what was not found before.
    fn may_find(&self, room: &Room, now: Time) -> bool {
        let Some(since) = self.complete_since else { return true };
        self.listener != room.listener || since + room.idle_min <= now
    }

    /// The one that is idle longest, if that is long enough.
    fn pop_oldest(&mut self, room: &Room, now: Time) -> Option<(Time, Token)> {
        if self.listener != room.listener {
            self.found = Vec::new();
            self.complete_since = None;
        }
        let (since, _) = *self.found.last()?;
        if now - since < room.idle_min {
            return None;
        }
        let oldest = self.found.pop();
        if self.found.is_empty() {
            self.found = Vec::new();
        }
        oldest
    }
}

impl<M: Machine, B: Backend> Rest<M, B> {
    /// Has machines make room for those that ask for it, one after the other, as far as one turn may look at slots for them.
    pub(super) fn make_room(&mut self, lent: &mut Lent<'_, M::Context>) {
        let waiters = &lent.environment.waiters;
        let mut budget = self.config.scan_budget;
        while let Some(request) = waiters.first_request() {
            if request.asker.is_alive() && !self.answer_request(lent, request, &mut budget) {
                return;
            }
            if let Some(request) = waiters.take_request()
                && request.made > 0
            {
                request.asker.wakeup();
            }
        }
    }

    /// Ends as many machines as the request wants, as far as there are any. Answers false where the search is to go on in the
    /// next turn.
    fn answer_request(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        request: RoomRequest,
        budget: &mut usize,
    ) -> bool {
        let RoomRequest { room, mut made, .. } = request;
        let mut has_walked = false;
        while made < room.machines {
            let now = lent.environment.now();
            if let Some((since, token)) = self.room.pop_oldest(&room, now) {
                let is_left = |idle: Idle| idle.since == since && room.is_left_by(&idle, now);
                if self.idle(token).is_some_and(is_left) && self.end_idle(lent, token, since) {
                    lent.environment.waiters.note_room_made();
                    made += 1;
                }
                continue;
            }
            if has_walked || !self.room.may_find(&room, now) {
                return true;
            }
            match self.walk(&room, now, budget) {
                Walked::Everywhere => has_walked = true,
                Walked::SoFar => return false,
            }
        }
        true
    }

    /// Looks for the machines that are idle longest.
    fn walk(&mut self, room: &Room, now: Time, budget: &mut usize) -> Walked {
        let begun = self.room.walk.take().filter(|walk| walk.listener == room.listener);
        let mut walk = begun.unwrap_or_else(|| Walk::new(room.listener, now));
        while walk.next < self.slab.high_water() {
            if *budget == 0 {
                self.room.walk = Some(walk);
                return Walked::SoFar;
            }
            *budget -= 1;
            if let Some((token, Some(machine))) = self.slab.at(walk.next)
                && let Some(idle) = idle_of(machine, token)
                && room.is_of(&idle)
                && idle.since <= now
            {
                walk.note(idle.since, token);
            }
            walk.next += 1;
        }
        self.room.take_walk(walk);
        Walked::Everywhere
    }

    /// Whether a machine is idle, with no call owed to it.
    fn idle(&mut self, token: Token) -> Option<Idle> {
        if self.slab.gathered(token).is_none_or(|gathered| gathered.is_owed()) {
            return None;
        }
        match self.slab.at(token.index()) {
            Some((_, Some(machine))) => idle_of(machine, token),
            _ => None,
        }
    }

    /// Asks a machine to end; whether it did.
    fn end_idle(&mut self, lent: &mut Lent<'_, M::Context>, token: Token, since: Time) -> bool {
        let lifted = self.slab.lift(token, Self::HELD);
        self.note_time_at_times(lent.environment);
        self.call(lent, token, lifted, Event::MakeRoom, Woken::default());
        if self.queue.is_alive(token) {
            return false;
        }
        self.counters.made_room();
        let idle = lent.environment.now() - since;
        log_guarded!(debug, "machine {token} made room, after it had been idle for {idle:?}");
        true
    }
}

/// Asks a machine since when it is idle.
fn idle_of<M: Machine>(machine: &M, token: Token) -> Option<Idle> {
    guard(|| machine.idle()).unwrap_or_else(|panicked| {
        log_guarded!(error, "machine {token}, asked whether it is idle, {panicked}");
        None
    })
}
