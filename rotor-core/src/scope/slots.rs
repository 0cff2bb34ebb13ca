//! Slots, seen from a handler: whether one is free, and what to do where none is.

use std::sync::atomic::Ordering::Relaxed;

use super::Scope;
use crate::room::Room;

impl<C> Scope<'_, C> {
    /// Returns whether a machine spawned now would find a slot: one that is free and not promised
    /// to those who [wait for one](Scope::wake_on_free_slot), or the one that this machine has
    /// waited for.
    ///
    /// A listener asks before it accepts, so that it never holds a connection that has no place.
    pub fn has_free_slot(&self) -> bool {
        let free = self.environment.free_slots.load(Relaxed);
        self.environment.waiters.is_free_for(self.token, self.part, free)
    }

    /// Wakes this machine once when a slot is free, in the order in which machines asked. Asking
    /// again before that changes nothing.
    ///
    /// The slot is reserved for this machine until that [`wakeup`](crate::Machine::wakeup) has been
    /// answered: nobody else can spawn into it meanwhile. If the machine has not used it by then,
    /// or ends, the slot goes to the next one in line.
    pub fn wake_on_free_slot(&self) {
        self.environment.waiters.wait_in_line(self.notifier());
    }

    /// Asks machines that are [idle](crate::Machine::idle) to end, those that have been idle
    /// longest first. For a machine that cannot go on because slots or descriptors are short, and
    /// that knows that somebody is waiting for it.
    ///
    /// They end in this turn or, if there are more slots than a turn may look at
    /// ([`Config::scan_budget`](crate::Config::scan_budget)), in a later one. This machine is woken
    /// when the request has been answered and at least one machine has ended. If none has been idle
    /// long enough, the request is forgotten and nobody is woken: ask again after a pause. Asking
    /// again before that changes nothing.
    ///
    /// The slot of a machine that ended is for those who [wait for one](Scope::wake_on_free_slot),
    /// so whoever wants it must wait for one too.
    pub fn ask_for_room(&self, room: Room) {
        self.environment.waiters.ask_for_room(self.notifier(), room);
    }
}
