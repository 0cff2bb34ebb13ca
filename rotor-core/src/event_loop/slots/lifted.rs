//! `Lifted`: a machine out of its slot, on its way to a handler and back.

use std::mem::{self, ManuallyDrop};

use super::slot::Slot;
use crate::event_loop::run_queue::CallState;
use crate::guard::drop_guarded;

/// The whole `Slot::Waiting`, moved out of the slab. To take the machine out of it would be a copy
/// more, and so would a type around it.
pub(in crate::event_loop) type Lifted<M> = Slot<M>;

impl<M> Lifted<M> {
    /// A machine that was lifted before, on its way to another handler.
    pub(in crate::event_loop) fn of(machine: M) -> Lifted<M> {
        // What is known of its calls is in its slot.
        Slot::Waiting { state: CallState::default(), machine }
    }

    /// A place for one.
    pub(in crate::event_loop) fn nothing() -> Lifted<M> {
        Slot::Ended
    }

    /// Whether there was no machine to be lifted.
    #[inline(always)]
    pub(in crate::event_loop) fn is_none(&self) -> bool {
        !matches!(self, Slot::Waiting { .. })
    }

    /// Lends the machine to its handlers.
    #[inline(always)]
    pub(in crate::event_loop) fn in_hand(&mut self) -> InHand<'_, M> {
        InHand(self)
    }

    /// Takes it from where it is, which has none afterwards.
    #[inline(always)]
    pub(in crate::event_loop) fn take(&mut self) -> Lifted<M> {
        mem::replace(self, Slot::Ended)
    }

    #[inline(always)]
    pub(in crate::event_loop) fn into_machine(self) -> Option<M> {
        match self {
            Slot::Waiting { machine, .. } => Some(machine),
            _ => None,
        }
    }
}

/// A machine that was lifted, or is in its slot, while code of its own runs. If that panics, it is
/// dropped at once: what it holds, a port or what a lock gave it, is told of the panic only while
/// that unwinds. It is dropped under a guard: its drop may panic as well, and a second panic that
/// gets out of a drop while the first unwinds ends the process.
pub(in crate::event_loop) struct InHand<'a, M>(pub(super) &'a mut Slot<M>);

impl<M> InHand<'_, M> {
    #[inline(always)]
    pub(in crate::event_loop) fn machine(&mut self) -> Option<&mut M> {
        match self.0 {
            Slot::Waiting { machine, .. } => Some(machine),
            _ => None,
        }
    }

    /// It has not panicked, and is wanted by value.
    #[inline(always)]
    pub(in crate::event_loop) fn take(self) -> Option<M> {
        // Not by way of `drop`, which is for panics.
        let mut in_hand = ManuallyDrop::new(self);
        let Slot::Waiting { state, .. } = *in_hand.0 else { return None };
        mem::replace(in_hand.0, Slot::Running { state }).into_machine()
    }

    /// It has not panicked: the machine stays where it is.
    #[inline(always)]
    pub(in crate::event_loop) fn let_go(self) {
        mem::forget(self);
    }
}

impl<M> Drop for InHand<'_, M> {
    fn drop(&mut self) {
        // In its slot it is gone as one that its handler had by value.
        let state = match self.0 {
            Slot::Waiting { state, .. } => *state,
            _ => CallState::default(),
        };
        let gone = Slot::Running { state };
        drop_guarded(mem::replace(self.0, gone), "a machine whose handler had panicked");
    }
}
