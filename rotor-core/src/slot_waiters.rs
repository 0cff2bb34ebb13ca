//! The machines that wait for a free slot, in the order in which they came, and the requests for
//! room ([`crate::room`]), usually for the same purpose.
//!
//! ```text
//!   enqueue()           a slot is free at the end of a turn
//!          └▶ waiting ────────────────────────────────────▶ granted, and woken
//!                │                                            │            │
//!                │ ended                                      │ spawns     │ ended, or was called and did not spawn
//!                ▼                                            ▼            ▼
//!              removed                                 the slot is used   the slot is the next one's
//! ```
//!
//! A machine that does not wait finds a free slot only if there are more free slots than are
//! reserved for the machines that wait and for those with a granted slot. So it gains nothing by
//! spawning earlier in a turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::notifier::Notifier;
use crate::room::{Room, RoomRequest, RoomRequests};
use crate::token::Token;

/// A machine, or a part of one.
type PartId = (Token, u32);

/// The machines that wait for a free slot, and those that were granted one.
#[derive(Default)]
pub(crate) struct SlotWaiters {
    /// How many slots are reserved, for waiting machines and for those with a grant; and, as the
    /// bit [`ROOM_REQUESTED`], whether there are requests for room. Written under the lock, and
    /// read without it, because it is nearly always zero.
    reserved: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order in which they came.
    waiting: BTreeMap<u64, Notifier>,
    /// The place of each of them.
    places: BTreeMap<PartId, u64>,
    /// With the number of each grant.
    granted: BTreeMap<PartId, u64>,
    last_grant: u64,
    /// The machine whose `wakeup` is running, if any slot is reserved.
    in_wakeup: Option<Token>,
    /// Machines whose `wakeup` is running although the loop was taken from their handlers.
    in_detached_wakeup: BTreeSet<Token>,
    last_place: u64,
    room: RoomRequests,
}

/// The bit of `reserved` that says whether there are requests for room.
const ROOM_REQUESTED: usize = 1 << (usize::BITS - 1);

impl SlotWaiters {
    /// Adds a machine to the queue, unless it waits already, or has been granted a slot and not yet
    /// been called for it.
    pub(crate) fn enqueue(&self, waiter: Notifier) {
        let mut state = self.lock();
        let part_id = (waiter.token(), waiter.part());
        // A grant for which the machine has not been called makes waiting superfluous. In the
        // wake-up for the grant, it may wait for another slot, because the granted one goes to the
        // next machine if it is not used.
        let is_in_wakeup = state.in_wakeup == Some(waiter.token())
            || state.in_detached_wakeup.contains(&waiter.token());
        if state.granted.contains_key(&part_id) && !is_in_wakeup {
            return;
        }
        let place = state.last_place + 1;
        if *state.places.entry(part_id).or_insert(place) == place {
            state.last_place = place;
            state.waiting.insert(place, waiter);
        }
        self.publish(&mut state);
    }

    /// Returns whether the machine, or this part of it, would get one of the `free` slots if it
    /// spawned now.
    #[inline]
    pub(crate) fn is_free_for(&self, token: Token, part: u32, free: usize) -> bool {
        let reserved = self.reserved.load(Relaxed) & !ROOM_REQUESTED;
        free > reserved
            || (free > 0 && reserved > 0 && self.lock().granted.contains_key(&(token, part)))
    }

    /// Returns whether one of the `free` slots may be used, by a machine or from outside. A grant
    /// of the machine is used up.
    #[inline]
    pub(crate) fn use_slot(&self, spawner: Option<Token>, free: usize) -> bool {
        if self.reserved.load(Relaxed) == 0 { free > 0 } else { self.use_reserved(spawner, free) }
    }

    #[cold]
    fn use_reserved(&self, spawner: Option<Token>, free: usize) -> bool {
        let mut state = self.lock();
        let granted =
            spawner.and_then(|token| Some(*state.granted.range(parts_of(token)).next()?.0));
        let is_allowed = match granted {
            Some(part_id) => state.granted.remove(&part_id).is_some(),
            None => free > state.reserved(),
        };
        self.publish(&mut state);
        is_allowed
    }

    /// Records that a machine's `wakeup` is about to be called, in which it may ask for another
    /// slot. Returns the number of the last grant: for later ones the machine will be called again.
    #[inline]
    pub(crate) fn begin_wakeup(&self, token: Token) -> u64 {
        if self.reserved.load(Relaxed) > 0 { self.record_wakeup(token) } else { 0 }
    }

    #[cold]
    fn record_wakeup(&self, token: Token) -> u64 {
        let mut state = self.lock();
        state.in_wakeup = Some(token);
        state.last_grant
    }

    /// Records that the loop was taken from the machine's handler, which goes on. If this is
    /// `wakeup`, it may still ask for another slot.
    pub(crate) fn detach_wakeup(&self, token: Token) {
        if self.has_any() {
            let mut state = self.lock();
            if state.in_wakeup.take_if(|in_wakeup| *in_wakeup == token).is_some() {
                state.in_detached_wakeup.insert(token);
            }
        }
    }

    /// Withdraws the grants of a machine's parts that were called and did not use them: of part 0,
    /// the machine itself, if it was called as a whole, and of `parts`. A grant after `last` was
    /// made while the handler blocked, and stays.
    #[inline]
    pub(crate) fn end_wakeup(&self, token: Token, whole: bool, parts: &[u32], last: u64) {
        if self.reserved.load(Relaxed) > 0 {
            self.revoke_grants(token, whole, parts, last);
        }
    }

    #[cold]
    fn revoke_grants(&self, token: Token, whole: bool, parts: &[u32], last: u64) {
        let mut state = self.lock();
        state.in_wakeup = None;
        state.in_detached_wakeup.remove(&token);
        for part in whole.then_some(0).iter().chain(parts) {
            let part_id = (token, *part);
            if state.granted.get(&part_id).is_some_and(|number| *number <= last) {
                state.granted.remove(&part_id);
            }
        }
        self.publish(&mut state);
    }

    /// Removes a machine that has ended, with all its parts.
    #[inline]
    pub(crate) fn remove(&self, token: Token) {
        if self.reserved.load(Relaxed) > 0 {
            self.remove_parts_of(token);
        }
    }

    #[cold]
    fn remove_parts_of(&self, token: Token) {
        let mut state = self.lock();
        state.in_detached_wakeup.remove(&token);
        while let Some((&part_id, &place)) = state.places.range(parts_of(token)).next() {
            state.places.remove(&part_id);
            state.waiting.remove(&place);
        }
        while let Some((&part_id, _)) = state.granted.range(parts_of(token)).next() {
            state.granted.remove(&part_id);
        }
        self.publish(&mut state);
    }

    /// Adds a request for room, unless the machine, or this part of it, has one already.
    pub(crate) fn ask_for_room(&self, requester: Notifier, room: Room) {
        let mut state = self.lock();
        state.room.add(requester, room);
        self.publish(&mut state);
    }

    /// Returns how many requests for room wait.
    pub(crate) fn request_count(&self) -> usize {
        self.lock().room.len()
    }

    /// Returns the oldest request for room.
    pub(crate) fn first_request(&self) -> Option<RoomRequest> {
        self.lock().room.first().cloned()
    }

    /// Records that a machine has made room for the oldest request.
    pub(crate) fn count_room_made(&self) {
        if let Some(first) = self.lock().room.first() {
            first.ended_count += 1;
        }
    }

    /// Removes the oldest request.
    pub(crate) fn take_request(&self) -> Option<RoomRequest> {
        let mut state = self.lock();
        let first = state.room.remove_first();
        self.publish(&mut state);
        first
    }

    /// Returns whether any machine waits for a slot, has a grant, or has requested room.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.reserved.load(Relaxed) != 0
    }

    /// Grants the `free` slots that are not granted yet to the first machines in the queue, and
    /// wakes these.
    pub(crate) fn grant(&self, free: usize) {
        let mut state = self.lock();
        // No handler is running.
        state.in_wakeup = None;
        while state.granted.len() < free
            && let Some((_, waiter)) = state.waiting.pop_first()
        {
            let part_id = (waiter.token(), waiter.part());
            state.places.remove(&part_id);
            // A machine that has ended gets no grant.
            if waiter.wakeup() {
                state.last_grant += 1;
                let number = state.last_grant;
                state.granted.insert(part_id, number);
            }
        }
        self.publish(&mut state);
    }

    /// Returns whether `grant` would wake a machine, or room must be made.
    #[inline]
    pub(crate) fn is_due(&self, free: usize) -> bool {
        self.reserved.load(Relaxed) > 0 && {
            let state = self.lock();
            !state.room.is_empty() || state.granted.len() < free && !state.waiting.is_empty()
        }
    }

    /// Returns the machines with a grant for one of the `free` slots, or a description of what is
    /// wrong.
    pub(crate) fn check(&self, free: usize) -> Result<Vec<Token>, String> {
        let state = self.lock();
        if self.reserved.load(Relaxed) != state.encode_reserved()
            || state.waiting.len() != state.places.len()
        {
            return Err(format!("{} wait, in {} places", state.waiting.len(), state.places.len()));
        }
        if state.granted.len() > free {
            return Err(format!("{} slots were granted, and {free} are free", state.granted.len()));
        }
        Ok(state.granted.keys().map(|(token, _)| *token).collect())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, state: &mut State) {
        if state.reserved() == 0 {
            // No grants are left that they could have been called for.
            state.in_detached_wakeup.clear();
        }
        self.reserved.store(state.encode_reserved(), Relaxed);
    }
}

impl State {
    fn reserved(&self) -> usize {
        self.waiting.len() + self.granted.len()
    }

    fn encode_reserved(&self) -> usize {
        self.reserved() | if self.room.is_empty() { 0 } else { ROOM_REQUESTED }
    }
}

fn parts_of(token: Token) -> std::ops::RangeInclusive<PartId> {
    (token, 0)..=(token, u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::NoWaker;
    use crate::wake_queue::WakeQueue;

    /// Three machines, and the queue that wakes them.
    fn three_machines() -> (Arc<WakeQueue>, [Notifier; 3]) {
        let wakes = Arc::new(WakeQueue::new(3, Arc::new(NoWaker)).expect("memory").0);
        let notifier = |index| Notifier::new(wakes.clone(), Token::new(index, 0), 0);
        let machines = [0, 1, 2].map(notifier);
        (wakes, machines)
    }

    fn is_free_for(waiters: &SlotWaiters, machine: &Notifier, free: usize) -> bool {
        waiters.is_free_for(machine.token(), machine.part(), free)
    }

    #[test]
    fn a_granted_slot_is_free_only_for_the_first_waiter() {
        let (wakes, [a, b, new]) = three_machines();
        let waiters = SlotWaiters::default();
        waiters.enqueue(a.clone());
        waiters.enqueue(b.clone());
        waiters.enqueue(a.clone());
        assert!(!is_free_for(&waiters, &new, 2), "before it is granted as well");
        assert!(is_free_for(&waiters, &new, 3), "there are more than are promised");
        assert!(waiters.is_due(1) && !waiters.is_due(0));
        waiters.grant(1);
        assert!(!waiters.is_due(1), "it is granted once");
        assert!(wakes.is_woken(0) && !wakes.is_woken(1));
        for (machine, is_free) in [(&a, true), (&b, false), (&new, false)] {
            assert_eq!(is_free_for(&waiters, machine, 1), is_free);
        }
        assert!(!waiters.use_slot(Some(new.token()), 1) && !waiters.use_slot(None, 1));
        assert!(waiters.use_slot(Some(a.token()), 1), "it is used");
        assert!(!is_free_for(&waiters, &a, 1) && waiters.is_due(1), "the next one is the other's");
    }

    #[test]
    fn an_unused_grant_goes_to_the_next_waiter() {
        let (_wakes, [a, b, _]) = three_machines();
        let waiters = SlotWaiters::default();
        waiters.enqueue(a.clone());
        waiters.enqueue(b.clone());
        let before = waiters.begin_wakeup(a.token());
        waiters.grant(1);
        waiters.end_wakeup(a.token(), true, &[], before);
        let last = waiters.begin_wakeup(a.token());
        waiters.end_wakeup(a.token(), false, &[7], last);
        assert!(is_free_for(&waiters, &a, 1), "it was not called for this grant");
        waiters.end_wakeup(a.token(), true, &[], last);
        waiters.grant(1);
        assert!(is_free_for(&waiters, &b, 1));
        waiters.remove(b.token());
        assert_eq!(waiters.check(1), Ok(vec![]));
        assert!(waiters.use_slot(None, 1), "nobody was promised any");
    }

    #[test]
    fn an_ended_machine_loses_its_place_and_its_grant() {
        let (_wakes, [a, b, new]) = three_machines();
        let waiters = SlotWaiters::default();
        waiters.enqueue(a.clone());
        waiters.enqueue(b.clone());
        waiters.remove(a.token());
        waiters.remove(b.token());
        assert!(is_free_for(&waiters, &new, 1) && !waiters.is_due(1));
        waiters.enqueue(a.clone());
        waiters.grant(1);
        waiters.remove(a.token());
        assert!(waiters.use_slot(Some(new.token()), 1));
    }
}
