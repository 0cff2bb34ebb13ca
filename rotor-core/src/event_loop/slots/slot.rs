//! `Slot`: the place of one machine.

use crate::event_loop::run_queue::CallState;

/// The state of one slot.
pub(in crate::event_loop) enum Slot<M> {
    /// The slot is free; `next` is the next free slot, or `NONE`.
    Vacant { next: u32 },
    /// The machine is in its slot: it waits for an event, or is being called here.
    Waiting { state: CallState, machine: M },
    /// A handler has taken the machine, or it is being made.
    Running { state: CallState },
    /// The machine is gone, but a wake-up of it is still in the list.
    Ended,
}

/// No slot.
pub(super) const NONE: u32 = u32::MAX;
