//! Slots, as a handler sees them: whether one is free, and what to do if none is.

use std::sync::atomic::Ordering::Relaxed;

use super::Scope;
use crate::room::Room;

impl<C> Scope<'_, C> {
    /// Returns whether a machine that is spawned now would find a slot: either one that is free and
    /// not reserved for machines that [wait for one](Scope::wake_on_free_slot), or the one that
    /// this machine has waited for.
    ///
    /// A listener calls this before it accepts, so that it never holds a connection for which there
    /// is no slot.
    pub fn has_free_slot(&self) -> bool {
        let free = self.environment.free_slots.load(Relaxed);
        self.environment.waiters.is_free_for(self.token, self.part, free)
    }

    /// Wakes this machine once when a slot is free, first come, first served. Further calls before
    /// that change nothing.
    ///
    /// The slot is reserved for this machine until it has answered that
    /// [`wakeup`](crate::Machine::wakeup); no other machine can spawn into it meanwhile. If the
    /// machine has not used it by then, or ends, the slot goes to the next machine in the queue.
    pub fn wake_on_free_slot(&self) {
        self.environment.waiters.enqueue(self.notifier());
    }

    /// Asks machines that are [idle](crate::Machine::idle) to end, starting with those that have
    /// been idle longest. This is for a machine that cannot go on because slots or descriptors are
    /// short, and that knows that a peer is waiting for it.
    ///
    /// The idle machines end in this turn; if there are more slots than a turn may look at
    /// ([`Config::scan_budget`](crate::Config::scan_budget)), in a later one. This machine is woken
    /// when the request is finished and at least one machine has ended. If none has been idle long
    /// enough, the request is dropped and this machine is not woken: make a new request after a
    /// pause. Further calls while the request is pending change nothing.
    ///
    /// The slot of a machine that ended goes to machines that [wait for
    /// one](Scope::wake_on_free_slot), so the machine that asks for room must also wait for a slot.
    pub fn ask_for_room(&self, room: Room) {
        self.environment.waiters.ask_for_room(self.notifier(), room);
    }
}
