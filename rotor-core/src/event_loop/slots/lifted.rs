//! `Lifted`: a machine out of its slot, on its way to a handler and back.

use std::mem::{self, ManuallyDrop};

use super::slot::Slot;
use crate::event_loop::run_queue::CallState;
use crate::guard::drop_guarded;

/// A machine that was lifted, or none. Not the whole slot: from there it would be copied once more.
pub(in crate::event_loop) type Lifted<M> = Option<M>;

/// A machine that was lifted, while it is called where it is. Should that panic, it is dropped at
/// once, as [`InCall`] says.
pub(in crate::event_loop) struct LiftedInCall<'a, M>(&'a mut Lifted<M>);

impl<'a, M> LiftedInCall<'a, M> {
    #[inline(always)]
    pub(in crate::event_loop) fn of(lifted: &'a mut Lifted<M>) -> LiftedInCall<'a, M> {
        LiftedInCall(lifted)
    }

    #[inline(always)]
    pub(in crate::event_loop) fn machine(&mut self) -> Option<&mut M> {
        self.0.as_mut()
    }

    /// It has not panicked.
    #[inline(always)]
    pub(in crate::event_loop) fn let_go(self) {
        mem::forget(self);
    }
}

impl<M> Drop for LiftedInCall<'_, M> {
    fn drop(&mut self) {
        drop_lifted(self.0);
    }
}

/// Not inlined, so that calls are.
#[cold]
#[inline(never)]
fn drop_lifted<M>(lifted: &mut Lifted<M>) {
    drop_guarded(lifted.take(), GONE);
}

const GONE: &str = "a machine whose handler had panicked";

impl<M> Slot<M> {
    #[inline(always)]
    pub(super) fn into_machine(self) -> Option<M> {
        match self {
            Slot::Waiting { machine, .. } => Some(machine),
            _ => None,
        }
    }
}

/// A machine in its slot, while code of its own runs. If that panics, it is dropped at once: what
/// it holds, a port or what a lock gave it, is told of the panic only while that unwinds. It is
/// dropped under a guard: its drop may panic as well, and a second panic that gets out of a drop
/// while the first unwinds ends the process.
pub(in crate::event_loop) struct InCall<'a, M, F: FnMut(&M)> {
    pub(super) slot: &'a mut Slot<M>,
    /// Is shown a machine that has panicked, before it is dropped. Does not panic.
    pub(super) panics: F,
}

impl<M, F: FnMut(&M)> InCall<'_, M, F> {
    #[inline(always)]
    pub(in crate::event_loop) fn machine(&mut self) -> Option<&mut M> {
        match self.slot {
            Slot::Waiting { machine, .. } => Some(machine),
            _ => None,
        }
    }

    /// It has not panicked, and is wanted by value.
    #[inline(always)]
    pub(in crate::event_loop) fn take(self) -> Option<M> {
        // Not by way of `drop`, which is for panics.
        let mut in_call = ManuallyDrop::new(self);
        let Slot::Waiting { state, .. } = *in_call.slot else { return None };
        mem::replace(in_call.slot, Slot::Running { state }).into_machine()
    }

    /// It has not panicked: the machine stays where it is. Returns what is known of its calls.
    #[inline(always)]
    pub(in crate::event_loop) fn let_go(self) -> CallState {
        let in_call = ManuallyDrop::new(self);
        match *in_call.slot {
            Slot::Waiting { state, .. } => state,
            _ => CallState::default(),
        }
    }
}

impl<M, F: FnMut(&M)> Drop for InCall<'_, M, F> {
    fn drop(&mut self) {
        if let Slot::Waiting { machine, .. } = self.slot {
            (self.panics)(machine);
        }
        drop_panicked(self.slot);
    }
}

/// Not inlined, so that calls are.
#[cold]
#[inline(never)]
fn drop_panicked<M>(slot: &mut Slot<M>) {
    // In its slot it is gone as one that its handler had by value.
    let state = match slot {
        Slot::Waiting { state, .. } => *state,
        _ => CallState::default(),
    };
    let gone = mem::replace(slot, Slot::Running { state });
    drop_guarded(gone, GONE);
}
