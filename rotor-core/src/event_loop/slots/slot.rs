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

impl<M> Slot<M> {
    /// Returns the state of the calls of the machine that has this slot.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn state(&self) -> Option<&CallState> {
        match self {
            Slot::Waiting { state, .. } | Slot::Running { state } => Some(state),
            Slot::Vacant { .. } | Slot::Ended => None,
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn state_mut(&mut self) -> Option<&mut CallState> {
        match self {
            Slot::Waiting { state, .. } | Slot::Running { state } => Some(state),
            Slot::Vacant { .. } | Slot::Ended => None,
        }
    }

    /// Returns the machine, if it is in its slot.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn machine(&self) -> Option<&M> {
        match self {
            Slot::Waiting { machine, .. } => Some(machine),
            _ => None,
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn into_machine(self) -> Option<M> {
        match self {
            Slot::Waiting { machine, .. } => Some(machine),
            _ => None,
        }
    }
}

/// No slot.
pub(super) const NONE: u32 = u32::MAX;
