//! Making room: the machines that have been idle longest are asked to end, to make room for others.
//!
//! ```text
//!   request ──▶ found before? ──no──▶ walk over the slots, within each turn's budget ──▶ found
//!                  │ yes                                                                  │
//!                  ▼                                                                      ▼
//!               the oldest: still idle since then, and long enough? ──▶ make_room() ──▶ it ends: the asker is woken
//! ```
//!
//! `longest_idle.rs` keeps the result of a walk, and decides whether another walk could find more.

use super::dispatch::{Dispatch, Refs};
use super::longest_idle::{LongestIdle, Walk};
use crate::backend::Backend;
use crate::guard::{guard, log_guarded};
use crate::machine::Machine;
use crate::room::{Idle, Room, RoomRequest};
use crate::time::Time;
use crate::token::Token;

/// The search for machines that make room.
#[derive(Default)]
pub(super) struct RoomSearch {
    longest: LongestIdle,
    /// The walk over the slots that is in progress.
    walk: Option<Walk>,
}

/// The result of asking the machine that was idle longest.
enum AskOutcome {
    Ended,
    /// A call of the machine is pending, or it goes on although it is idle.
    NotNow,
    /// The machine is gone or busy, or has been busy since it was found.
    NoLongerIdle,
}

impl RoomSearch {
    /// Serves requests for room one after the other, within the number of slots that one turn may
    /// look at.
    pub(super) fn serve_requests<M: Machine, B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        dispatch: &mut Dispatch<M>,
    ) {
        let waiters = &refs.environment.waiters;
        let mut budget = refs.config.scan_budget;
        // Those that machines make when they are asked for room wait for the next turn. Otherwise
        // two machines that ask each time could keep the turn from ending.
        for _ in 0..waiters.request_count() {
            let Some(request) = waiters.first_request() else { return };
            if request.requester.is_alive()
                && !self.serve_request(refs, dispatch, request, &mut budget)
            {
                return;
            }
            self.longest.end_request();
            if let Some(request) = waiters.take_request()
                && request.ended_count > 0
            {
                request.requester.wakeup();
            }
        }
    }

    /// Ends as many machines as the request wants, if there are so many. Returns `false` if the
    /// search must go on in the next turn.
    fn serve_request<M: Machine, B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        dispatch: &mut Dispatch<M>,
        request: RoomRequest,
        budget: &mut usize,
    ) -> bool {
        let RoomRequest { room, ended_count: mut made, .. } = request;
        let mut has_walked = false;
        while made < room.machines {
            let now = refs.environment.now();
            if let Some((since, token)) = self.longest.pop_oldest(&room, now) {
                match ask_to_end(refs, dispatch, &room, token, since) {
                    AskOutcome::Ended => {
                        refs.environment.waiters.count_room_made();
                        made += 1;
                    }
                    // If it were forgotten, it would be missed until the next walk, which is not
                    // made as long as no other machine can have become idle long enough.
                    AskOutcome::NotNow => self.longest.postpone(since, token),
                    AskOutcome::NoLongerIdle => {}
                }
                continue;
            }
            if has_walked || !self.longest.may_find_more(&room, now) {
                return true;
            }
            if !self.walk_slots(dispatch, &room, now, budget) {
                return false;
            }
            has_walked = true;
        }
        true
    }

    /// Searches for the machines that are idle longest. Returns `false` if the turn's budget is
    /// used up before all slots were seen.
    fn walk_slots<M: Machine>(
        &mut self,
        dispatch: &Dispatch<M>,
        room: &Room,
        now: Time,
        budget: &mut usize,
    ) -> bool {
        let slots = dispatch.slots();
        // A walk for another listener has passed machines that are wanted now.
        let unfinished = self.walk.take().filter(|walk| walk.listener == room.listener);
        let mut walk = unfinished.unwrap_or_else(|| Walk::new(room.listener, now));
        while walk.next < slots.high_water() {
            if *budget == 0 {
                self.walk = Some(walk);
                return false;
            }
            *budget -= 1;
            if let Some((token, Some(machine))) = slots.at(walk.next)
                && let Some(idle) = query_idle(machine, token)
                && room.is_for(&idle)
                && idle.since <= now
            {
                walk.add(idle.since, token);
            }
            walk.next += 1;
        }
        self.longest.store_walk(walk);
        true
    }
}

/// Asks a machine to end, if it is still idle since the same time, and long enough for the request.
fn ask_to_end<M: Machine, B: Backend>(
    refs: &mut Refs<'_, M, B>,
    dispatch: &mut Dispatch<M>,
    room: &Room,
    token: Token,
    since: Time,
) -> AskOutcome {
    let now = refs.environment.now();
    let idle = match dispatch.slots().at(token.index()) {
        Some((found, Some(machine))) if found == token => query_idle(machine, token),
        _ => None,
    };
    if !idle.is_some_and(|idle| idle.since == since && room.is_met_by(&idle, now)) {
        return AskOutcome::NoLongerIdle;
    }
    // Code that woke it was told that it would be called.
    if dispatch.scheduler().has_pending_call(token) || !dispatch.make_room(refs, token) {
        return AskOutcome::NotNow;
    }
    dispatch.monitor().counters().count_made_room();
    let idle = refs.environment.now() - since;
    log_guarded!(debug, "machine {token} made room, after it had been idle for {idle:?}");
    AskOutcome::Ended
}

/// Calls a machine's `idle`, which returns since when it is idle.
fn query_idle<M: Machine>(machine: &M, token: Token) -> Option<Idle> {
    guard(|| machine.idle()).unwrap_or_else(|panicked| {
        log_guarded!(error, "machine {token}, asked whether it is idle, {panicked}");
        None
    })
}
