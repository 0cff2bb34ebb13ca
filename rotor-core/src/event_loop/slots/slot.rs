//! `Slot`: the place of one machine.

use crate::event_loop::run_queue::CallState;

/// The state of one slot.
pub(in crate::event_loop) enum Slot<M> {
    /// The slot is free; `next` is the next free slot, or `NONE`.
    Vacant { next: u32 },
    /// The machine waits for an event.
    Waiting { state: CallState, machine: M },
    /// The machine is in its handler, or is being made.
    Running { state: CallState },
    /// The machine is gone, but a wake-up of it is still in the list.
    Ended,
}

/// No slot.
pub(super) const NONE: u32 = u32::MAX;
