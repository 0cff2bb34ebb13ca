//! The machines that wait for a free slot, in the order in which they came, and the requests for
//! room ([`crate::room`]), usually for the same purpose.
//!
//! ```text
//!   wait_in_line()      a slot is free at the end of a turn
//!          └▶ in line ────────────────────────────────────▶ granted, and woken
//!                │                                            │            │
//!                │ ended                                      │ spawns     │ ended, or was called and did not spawn
//!                ▼                                            ▼            ▼
//!              out of it                               the slot is used   the slot is the next one's
//! ```
//!
//! A machine that is not in line finds a free slot only if there are more free slots than are
//! promised to the machines in line and to those with a granted slot. So it gains nothing by
//! spawning earlier in a turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::notifier::Notifier;
use crate::room::{Room, RoomRequest, RoomRequests};
use crate::token::Token;

/// A machine, or a part of one.
type Name = (Token, u32);

/// The machines that wait for a free slot, and those that were granted one.
#[derive(Default)]
pub(crate) struct SlotWaiters {
    /// How many slots are promised, to machines in line and to those with a grant; and, as the bit
    /// [`ROOM`], whether there are requests for room. Written under the lock, and read without it,
    /// because it is nearly always zero.
    promised: AtomicUsize,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// In the order in which they came.
    waiting: BTreeMap<u64, Notifier>,
    /// The place of each of them.
    places: BTreeMap<Name, u64>,
    granted: BTreeSet<Name>,
    /// The machine whose `wakeup` is running, if any slot is promised.
    called: Option<Token>,
    /// Machines whose `wakeup` is running although the loop was taken from their handlers.
    called_and_left: BTreeSet<Token>,
    last_place: u64,
    room: RoomRequests,
}

/// The bit of `promised` that says whether there are requests for room.
const ROOM: usize = 1 << (usize::BITS - 1);

impl SlotWaiters {
    /// Puts a machine in line, unless it is in line already, or has been granted a slot and not yet
    /// been called for it.
    pub(crate) fn wait_in_line(&self, waiter: Notifier) {
        let mut line = self.lock();
        let name = (waiter.token(), waiter.part());
        // A grant for which the machine has not been called makes waiting superfluous. In the
        // wake-up for the grant, it may wait for another slot, because the granted one goes to the
        // next machine if it is not used.
        let is_called =
            line.called == Some(waiter.token()) || line.called_and_left.contains(&waiter.token());
        if line.granted.contains(&name) && !is_called {
            return;
        }
        let place = line.last_place + 1;
        if *line.places.entry(name).or_insert(place) == place {
            line.last_place = place;
            line.waiting.insert(place, waiter);
        }
        self.publish(&mut line);
    }

    /// Returns whether the machine, or this part of it, would get one of the `free` slots if it
    /// spawned now.
    #[inline]
    pub(crate) fn is_free_for(&self, token: Token, part: u32, free: usize) -> bool {
        let promised = self.promised.load(Relaxed) & !ROOM;
        free > promised
            || (free > 0 && promised > 0 && self.lock().granted.contains(&(token, part)))
    }

    /// Returns whether one of the `free` slots may be used, by a machine or from outside. A grant
    /// of the machine is used up.
    #[inline]
    pub(crate) fn use_slot(&self, spawner: Option<Token>, free: usize) -> bool {
        if self.promised.load(Relaxed) == 0 { free > 0 } else { self.use_promised(spawner, free) }
    }

    #[cold]
    fn use_promised(&self, spawner: Option<Token>, free: usize) -> bool {
        let mut line = self.lock();
        let granted = spawner.and_then(|token| line.granted.range(all_of(token)).next().copied());
        let may = match granted {
            Some(name) => line.granted.remove(&name),
            None => free > line.promised(),
        };
        self.publish(&mut line);
        may
    }

    /// Notes that a machine's `wakeup` is about to be called, in which it may ask for another slot.
    #[inline]
    pub(crate) fn begin_wakeup(&self, token: Token) {
        if self.promised.load(Relaxed) > 0 {
            self.note_called(token);
        }
    }

    #[cold]
    fn note_called(&self, token: Token) {
        self.lock().called = Some(token);
    }

    /// Notes that the loop was taken from the machine's handler, which goes on. If this is
    /// `wakeup`, it may still ask for another slot.
    pub(crate) fn leave_called(&self, token: Token) {
        if self.are_any() {
            let mut line = self.lock();
            if line.called.take_if(|called| *called == token).is_some() {
                line.called_and_left.insert(token);
            }
        }
    }

    /// Withdraws the grants of a machine's parts that were called and did not use them: of part 0,
    /// the machine itself, if it was called as a whole, and of `parts`.
    #[inline]
    pub(crate) fn end_wakeup(&self, token: Token, whole: bool, parts: &[u32]) {
        if self.promised.load(Relaxed) > 0 {
            self.take_back(token, whole, parts);
        }
    }

    #[cold]
    fn take_back(&self, token: Token, whole: bool, parts: &[u32]) {
        let mut line = self.lock();
        line.called = None;
        line.called_and_left.remove(&token);
        for part in whole.then_some(0).iter().chain(parts) {
            line.granted.remove(&(token, *part));
        }
        self.publish(&mut line);
    }

    /// Removes a machine that has ended, with all its parts.
    #[inline]
    pub(crate) fn remove(&self, token: Token) {
        if self.promised.load(Relaxed) > 0 {
            self.remove_all_of(token);
        }
    }

    #[cold]
    fn remove_all_of(&self, token: Token) {
        let mut line = self.lock();
        line.called_and_left.remove(&token);
        while let Some((&name, &place)) = line.places.range(all_of(token)).next() {
            line.places.remove(&name);
            line.waiting.remove(&place);
        }
        while let Some(&name) = line.granted.range(all_of(token)).next() {
            line.granted.remove(&name);
        }
        self.publish(&mut line);
    }

    /// Adds a request for room, unless the machine, or this part of it, has one already.
    pub(crate) fn ask_for_room(&self, asker: Notifier, room: Room) {
        let mut line = self.lock();
        line.room.add(asker, room);
        self.publish(&mut line);
    }

    /// Returns the oldest request for room.
    pub(crate) fn first_request(&self) -> Option<RoomRequest> {
        self.lock().room.first().cloned()
    }

    /// Notes that a machine has made room for the oldest request.
    pub(crate) fn note_room_made(&self) {
        if let Some(first) = self.lock().room.first() {
            first.made += 1;
        }
    }

    /// Removes the oldest request.
    pub(crate) fn take_request(&self) -> Option<RoomRequest> {
        let mut line = self.lock();
        let first = line.room.remove_first();
        self.publish(&mut line);
        first
    }

    /// Returns whether any machine waits for a slot, has a grant, or has requested room.
    #[inline]
    pub(crate) fn are_any(&self) -> bool {
        self.promised.load(Relaxed) != 0
    }

    /// Grants the `free` slots that are not granted yet to the first machines in line, and wakes
    /// these.
    pub(crate) fn grant(&self, free: usize) {
        let mut line = self.lock();
        // No handler is running.
        line.called = None;
        while line.granted.len() < free
            && let Some((_, waiter)) = line.waiting.pop_first()
        {
            let name = (waiter.token(), waiter.part());
            line.places.remove(&name);
            // A machine that is gone gets no grant.
            if waiter.wakeup() {
                line.granted.insert(name);
            }
        }
        self.publish(&mut line);
    }

    /// Returns whether `grant` would wake a machine, or room must be made.
    #[inline]
    pub(crate) fn is_due(&self, free: usize) -> bool {
        self.promised.load(Relaxed) > 0 && {
            let line = self.lock();
            !line.room.is_empty() || line.granted.len() < free && !line.waiting.is_empty()
        }
    }

    /// Returns the machines with a grant for one of the `free` slots, or a description of what is
    /// wrong.
    pub(crate) fn check(&self, free: usize) -> Result<Vec<Token>, String> {
        let line = self.lock();
        if self.promised.load(Relaxed) != line.promised_and_room()
            || line.waiting.len() != line.places.len()
        {
            return Err(format!("{} wait, in {} places", line.waiting.len(), line.places.len()));
        }
        if line.granted.len() > free {
            return Err(format!("{} slots were granted, and {free} are free", line.granted.len()));
        }
        Ok(line.granted.iter().map(|(token, _)| *token).collect())
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, line: &mut Line) {
        if line.promised() == 0 {
            // No grants are left that they could have been called for.
            line.called_and_left.clear();
        }
        self.promised.store(line.promised_and_room(), Relaxed);
    }
}

impl Line {
    fn promised(&self) -> usize {
        self.waiting.len() + self.granted.len()
    }

    fn promised_and_room(&self) -> usize {
        self.promised() | if self.room.is_empty() { 0 } else { ROOM }
    }
}

fn all_of(token: Token) -> std::ops::RangeInclusive<Name> {
    (token, 0)..=(token, u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::NoWaker;
    use crate::wake_queue::WakeQueue;

    /// Three machines, and the queue that they are woken by.
    fn three() -> (Arc<WakeQueue>, [Notifier; 3]) {
        let wakes = Arc::new(WakeQueue::new(3, Arc::new(NoWaker)).expect("memory").0);
        let notifier = |index| Notifier::new(wakes.clone(), Token::new(index, 0), 0);
        let machines = [0, 1, 2].map(notifier);
        (wakes, machines)
    }

    fn is_free_for(waiters: &SlotWaiters, machine: &Notifier, free: usize) -> bool {
        waiters.is_free_for(machine.token(), machine.part(), free)
    }

    #[test]
    fn a_slot_is_free_for_the_first_in_line_and_for_nobody_else() {
        let (wakes, [a, b, new]) = three();
        let waiters = SlotWaiters::default();
        waiters.wait_in_line(a.clone());
        waiters.wait_in_line(b.clone());
        waiters.wait_in_line(a.clone());
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
    fn what_is_not_used_is_the_next_ones() {
        let (_wakes, [a, b, _]) = three();
        let waiters = SlotWaiters::default();
        waiters.wait_in_line(a.clone());
        waiters.wait_in_line(b.clone());
        waiters.grant(1);
        waiters.end_wakeup(a.token(), false, &[7]);
        assert!(is_free_for(&waiters, &a, 1), "another part of it was called");
        waiters.end_wakeup(a.token(), true, &[]);
        waiters.grant(1);
        assert!(is_free_for(&waiters, &b, 1));
        waiters.remove(b.token());
        assert_eq!(waiters.check(1), Ok(vec![]));
        assert!(waiters.use_slot(None, 1), "nobody was promised any");
    }

    #[test]
    fn who_has_ended_is_promised_nothing() {
        let (_wakes, [a, b, new]) = three();
        let waiters = SlotWaiters::default();
        waiters.wait_in_line(a.clone());
        waiters.wait_in_line(b.clone());
        waiters.remove(a.token());
        waiters.remove(b.token());
        assert!(is_free_for(&waiters, &new, 1) && !waiters.is_due(1));
        waiters.wait_in_line(a.clone());
        waiters.grant(1);
        waiters.remove(a.token());
        assert!(waiters.use_slot(Some(new.token()), 1));
    }
}
