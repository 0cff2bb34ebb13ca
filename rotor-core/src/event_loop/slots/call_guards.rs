//! Guards of a machine that is called in place: in its slot, or lifted out of it. If the call panics,
//! the machine is dropped at once.

use std::mem::{self, ManuallyDrop};

use super::slot::Slot;
use crate::event_loop::run_queue::CallState;
use crate::guard::drop_guarded;

/// A machine that was lifted out of its slot, while it is called in place.
pub(in crate::event_loop) struct LiftedCallGuard<'a, M>(&'a mut Option<M>);

impl<'a, M> LiftedCallGuard<'a, M> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn of(lifted: &'a mut Option<M>) -> LiftedCallGuard<'a, M> {
        LiftedCallGuard(lifted)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn machine(&mut self) -> Option<&mut M> {
        self.0.as_mut()
    }

    /// Ends the call without a panic.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn finish(self) {
        mem::forget(self);
    }
}

impl<M> Drop for LiftedCallGuard<'_, M> {
    fn drop(&mut self) {
        drop_lifted(self.0);
    }
}

/// Not inlined, so that calls are small.
#[cold]
#[inline(never)]
fn drop_lifted<M>(lifted: &mut Option<M>) {
    drop_guarded(lifted.take(), PANICKED);
}

const PANICKED: &str = "a machine whose handler had panicked";

/// A machine in its slot while its own code runs. If the code panics, the machine is dropped at
/// once: values in it, such as a port or a held lock, can see the panic only during unwinding. The
/// drop is guarded, because it may panic as well, and a second panic that leaves a drop during
/// unwinding aborts the process.
pub(in crate::event_loop) struct SlotCallGuard<'a, M, F: FnMut(&M)> {
    pub(super) slot: &'a mut Slot<M>,
    /// Called with a machine that has panicked, before it is dropped. Does not panic.
    pub(super) on_panic: F,
}

impl<M, F: FnMut(&M)> SlotCallGuard<'_, M, F> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn machine(&mut self) -> Option<&mut M> {
        match self.slot {
            Slot::Waiting { machine, .. } => Some(machine),
            _ => None,
        }
    }

    /// Ends the call without a panic, and takes the machine out of its slot.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn take(self) -> Option<M> {
        // Without `drop`, which is for panics.
        let mut in_call = ManuallyDrop::new(self);
        let Slot::Waiting { state, .. } = *in_call.slot else { return None };
        mem::replace(in_call.slot, Slot::Running { state }).into_machine()
    }

    /// Ends the call without a panic; the machine stays in its slot. Returns the state of its
    /// calls.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn finish(self) -> CallState {
        let in_call = ManuallyDrop::new(self);
        match *in_call.slot {
            Slot::Waiting { state, .. } => state,
            _ => CallState::default(),
        }
    }
}

impl<M, F: FnMut(&M)> Drop for SlotCallGuard<'_, M, F> {
    fn drop(&mut self) {
        if let Slot::Waiting { machine, .. } = self.slot {
            (self.on_panic)(machine);
        }
        drop_panicked(self.slot);
    }
}

/// Not inlined, so that calls are small.
#[cold]
#[inline(never)]
fn drop_panicked<M>(slot: &mut Slot<M>) {
    // Leaves the slot as if the handler had taken the machine by value.
    let state = slot.state().copied().unwrap_or_default();
    let gone = mem::replace(slot, Slot::Running { state });
    drop_guarded(gone, PANICKED);
}
