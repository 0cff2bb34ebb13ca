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
//! What a walk has found, and when another one could find more, is `longest_idle.rs`.

use super::dispatch::{Dispatch, Refs};
use super::longest_idle::{LongestIdle, Walk, Walked};
use crate::backend::Backend;
use crate::guard::{guard, log_guarded};
use crate::machine::Machine;
use crate::room::{Idle, Room, RoomRequest};
use crate::time::Time;
use crate::token::Token;

impl LongestIdle {
    /// Has machines make room for those that ask for it, one after the other, as far as one turn
    /// may look at slots for them.
    pub(super) fn serve<M: Machine, B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        dispatch: &mut Dispatch<M>,
    ) {
        let waiters = &refs.environment.waiters;
        let mut budget = refs.config.scan_budget;
        while let Some(request) = waiters.first_request() {
            if request.asker.is_alive() && !self.serve_one(refs, dispatch, request, &mut budget) {
                return;
            }
            if let Some(request) = waiters.take_request()
                && request.made > 0
            {
                request.asker.wakeup();
            }
        }
    }

    /// Ends as many machines as the request wants, as far as there are any. Returns false where the
    /// search is to go on in the next turn.
    fn serve_one<M: Machine, B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        dispatch: &mut Dispatch<M>,
        request: RoomRequest,
        budget: &mut usize,
    ) -> bool {
        let RoomRequest { room, mut made, .. } = request;
        let mut has_walked = false;
        while made < room.machines {
            let now = refs.environment.now();
            if let Some((since, token)) = self.pop_oldest(&room, now) {
                let is_left = |idle: Idle| idle.since == since && room.is_left_by(&idle, now);
                if idle(dispatch, token).is_some_and(is_left)
                    && end_idle(refs, dispatch, token, since)
                {
                    refs.environment.waiters.note_room_made();
                    made += 1;
                }
                continue;
            }
            if has_walked || !self.may_find(&room, now) {
                return true;
            }
            match self.walk(dispatch, &room, now, budget) {
                Walked::Everywhere => has_walked = true,
                Walked::SoFar => return false,
            }
        }
        true
    }

    /// Looks for the machines that are idle longest.
    fn walk<M: Machine>(
        &mut self,
        dispatch: &Dispatch<M>,
        room: &Room,
        now: Time,
        budget: &mut usize,
    ) -> Walked {
        let slots = dispatch.slots();
        let begun = self.walk.take().filter(|walk| walk.listener == room.listener);
        let mut walk = begun.unwrap_or_else(|| Walk::new(room.listener, now));
        while walk.next < slots.high_water() {
            if *budget == 0 {
                self.walk = Some(walk);
                return Walked::SoFar;
            }
            *budget -= 1;
            if let Some((token, Some(machine))) = slots.at(walk.next)
                && let Some(idle) = idle_of(machine, token)
                && room.is_of(&idle)
                && idle.since <= now
            {
                walk.note(idle.since, token);
            }
            walk.next += 1;
        }
        self.take_walk(walk);
        Walked::Everywhere
    }
}

/// Whether a machine is idle, with no call pending for it and no wake-up on its way: who woke it
/// was told that it would hear.
fn idle<M: Machine>(dispatch: &mut Dispatch<M>, token: Token) -> Option<Idle> {
    if dispatch.scheduler().is_call_pending(token) {
        return None;
    }
    match dispatch.slots().at(token.index()) {
        Some((found, Some(machine))) if found == token => idle_of(machine, token),
        _ => None,
    }
}

/// Asks a machine to end. Returns whether it did.
fn end_idle<M: Machine, B: Backend>(
    refs: &mut Refs<'_, M, B>,
    dispatch: &mut Dispatch<M>,
    token: Token,
    since: Time,
) -> bool {
    if !dispatch.make_room(refs, token) {
        return false;
    }
    dispatch.counters().made_room();
    let idle = refs.environment.now() - since;
    log_guarded!(debug, "machine {token} made room, after it had been idle for {idle:?}");
    true
}

/// Asks a machine since when it is idle.
fn idle_of<M: Machine>(machine: &M, token: Token) -> Option<Idle> {
    guard(|| machine.idle()).unwrap_or_else(|panicked| {
        log_guarded!(error, "machine {token}, asked whether it is idle, {panicked}");
        None
    })
}
