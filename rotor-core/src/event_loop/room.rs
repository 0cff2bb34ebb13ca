//! Making room: the machines that have been idle longest are asked to end, for those that ask for
//! it.
//!
//! ```text
//!   request ──▶ found before? ──no──▶ walk over the slots, within each turn's budget ──▶ found
//!                  │ yes                                                                  │
//!                  ▼                                                                      ▼
//!               the oldest: still idle since then, and long enough? ──▶ make_room() ──▶ it ends: the asker is woken
//! ```
//!
//! What a walk has found, and when another one could find more, is `room_maker.rs`.

use super::rest::{Lent, Rest};
use super::room_maker::{Walk, Walked};
use crate::backend::Backend;
use crate::guard::{guard, log_guarded};
use crate::room::{Idle, Room, RoomRequest};
use crate::scope::Woken;
use crate::{Event, Machine, Time, Token};

impl<M: Machine, B: Backend> Rest<M, B> {
    /// Has machines make room for those that ask for it, one after the other, as far as one turn
    /// may look at slots for them.
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

    /// Ends as many machines as the request wants, as far as there are any. Answers false where the
    /// search is to go on in the next turn.
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

    /// Whether a machine is idle, with no call owed to it and no wake-up on its way: who woke it
    /// was told that it would hear.
    fn idle(&mut self, token: Token) -> Option<Idle> {
        let is_woken = self.queue.is_woken(token.index());
        if is_woken || self.slab.gathered(token).is_none_or(|gathered| gathered.is_owed()) {
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
