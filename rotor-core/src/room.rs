//! Room: requests that idle machines end, and the type by which a machine reports that it is idle.
//!
//! ```text
//!   no slot, no descriptor ──ask_for_room()──▶ requests ──end of the turn──▶ the machines idle longest ──make_room()──▶ end
//!            ▲                                                                                                           │
//!            └──────────────────────────────────────── wakeup() ◀────────────────────────────────────────────────────────┘
//! ```
//!
//! The loop's side, the search, is in `event_loop/room_search.rs`.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::notifier::Notifier;
use crate::time::Time;
use crate::token::Token;

/// A machine's report that it could end now without loss to anybody, and since when.
/// [`Machine::idle`](crate::Machine::idle) returns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    pub(crate) since: Time,
    pub(crate) listener: Option<Token>,
}

impl Idle {
    /// Reports that the machine has been idle since `time`.
    pub fn since(time: Time) -> Idle {
        Idle { since: time, listener: None }
    }

    /// Adds that the machine is a connection that this listener has accepted. The end of such a
    /// machine makes room [for that listener](Room::of_listener).
    pub fn accepted_by(mut self, listener: Token) -> Idle {
        self.listener = Some(listener);
        self
    }
}

/// A request by [`Scope::ask_for_room`](crate::Scope::ask_for_room): how many idle machines should
/// end, and which of them may.
#[derive(Clone, Debug)]
#[must_use]
pub struct Room {
    pub(crate) machines: usize,
    pub(crate) idle_min: Duration,
    pub(crate) listener: Option<Token>,
}

impl Room {
    /// Makes a request that one machine end, whichever it is.
    pub fn new() -> Room {
        Room { machines: 1, idle_min: Duration::from_secs(2), listener: None }
    }

    /// Sets how many machines end for this request, at most. Default 1, which is also the minimum.
    pub fn machines(mut self, machines: usize) -> Room {
        self.machines = machines.max(1);
        self
    }

    /// Sets how long a machine must have been idle. Default 2 s, because an active peer usually
    /// comes back sooner. With `Duration::MAX` no machine ends.
    pub fn idle_min(mut self, time: Duration) -> Room {
        self.idle_min = time;
        self
    }

    /// Restricts the request to connections of this listener ([`Idle::accepted_by`]): for a
    /// listener that has reached a limit of its own.
    pub fn of_listener(mut self, listener: Token) -> Room {
        self.listener = Some(listener);
        self
    }

    /// Returns whether a machine that reports `idle` may end for this request.
    pub(crate) fn is_met_by(&self, idle: &Idle, now: Time) -> bool {
        self.is_for(idle) && idle.since <= now && now - idle.since >= self.idle_min
    }

    pub(crate) fn is_for(&self, idle: &Idle) -> bool {
        self.listener.is_none() || self.listener == idle.listener
    }
}

impl Default for Room {
    fn default() -> Room {
        Room::new()
    }
}

/// The requests, in the order in which they were made. They are kept next to the queue for free
/// slots, so that a turn has only one place to check.
#[derive(Default)]
pub(crate) struct RoomRequests {
    requests: VecDeque<RoomRequest>,
    /// The machines, or parts of machines, that have a request in the queue.
    requesters: BTreeSet<(Token, u32)>,
}

#[derive(Clone)]
pub(crate) struct RoomRequest {
    pub(crate) requester: Notifier,
    pub(crate) room: Room,
    /// How many machines have ended for it so far.
    pub(crate) ended_count: usize,
}

impl RoomRequests {
    /// Adds a request, unless the same machine, or the same part of it, already has one.
    pub(crate) fn add(&mut self, requester: Notifier, room: Room) {
        if self.requesters.insert((requester.token(), requester.part())) {
            self.requests.push_back(RoomRequest { requester, room, ended_count: 0 });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns the oldest request.
    pub(crate) fn first(&mut self) -> Option<&mut RoomRequest> {
        self.requests.front_mut()
    }

    /// Removes the oldest request, which has been fulfilled or given up.
    pub(crate) fn remove_first(&mut self) -> Option<RoomRequest> {
        let first = self.requests.pop_front()?;
        self.requesters.remove(&(first.requester.token(), first.requester.part()));
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_request_matches_by_idle_time_and_listener() {
        let second = Duration::from_secs(1);
        let (now, of, other) = (Time::ZERO + 10 * second, Token::new(1, 0), Token::new(2, 0));
        let idle = |seconds: u32| Idle::since(now - seconds * second);
        let cases = [
            (Room::new(), idle(2), true),
            (Room::new(), idle(1), false),
            (Room::new(), idle(2).accepted_by(of), true),
            (Room::new().idle_min(Duration::ZERO), idle(0), true),
            (Room::new().idle_min(Duration::MAX), idle(10), false),
            (Room::new().idle_min(Duration::ZERO), Idle::since(Time::NEVER), false),
            (Room::new().of_listener(of), idle(2), false),
            (Room::new().of_listener(of), idle(2).accepted_by(other), false),
            (Room::new().of_listener(of), idle(2).accepted_by(of), true),
        ];
        for (room, idle, is_met) in cases {
            assert_eq!(room.is_met_by(&idle, now), is_met, "{room:?} {idle:?}");
        }
    }
}
