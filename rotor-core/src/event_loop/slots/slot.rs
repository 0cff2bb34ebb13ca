//! `Slot`: the place of one machine, and what is in it.

use crate::event_loop::run_queue::CallState;

/// What is in the place of one machine.
pub(in crate::event_loop) enum Slot<M> {
    /// Free; `next` is the next free slot, or `NONE`.
    Vacant { next: u32 },
    /// The machine waits for an event.
    Waiting { state: CallState, machine: M },
    /// The machine is with its handler, or being made.
    Running { state: CallState },
    /// The machine is gone, but a wake-up of it is still in the list.
    Ended,
}

/// No slot.
pub(super) const NONE: u32 = u32::MAX;
