//! `StateCell`: the place of a loop's state while a handler runs.

use std::cell::{RefCell, RefMut};
use std::ops::DerefMut;
use std::sync::{Arc, PoisonError};

use super::baton::LoopState;
use crate::backend::Backend;
use crate::machine::Machine;
use crate::scope::{ContextRef, LoopHolder};
use crate::sync::{Mutex, MutexGuard};

/// The contents of a cell.
type Contents<M, B> = Option<Box<LoopState<M, B>>>;

/// The place of a loop's state, on the thread that runs it. It is locked while the loop itself
/// works, and unlocked while a handler runs.
pub(in crate::event_loop) trait StateCell<M: Machine, B: Backend>:
    Sized
{
    type Guard<'a>: DerefMut<Target = Contents<M, B>>
    where
        Self: 'a;

    /// Whether other threads may take the state from there.
    const IS_SHARED: bool;

    fn empty() -> Self;

    fn lock(&self) -> Self::Guard<'_>;

    /// Lends the context to a handler.
    fn lend_context<'a>(
        context: &'a mut Option<Box<M::Context>>,
        hand_over: &'a dyn LoopHolder<M::Context>,
    ) -> ContextRef<'a, M::Context>;

    /// Returns the place from which other threads may take the state.
    fn shared(&self) -> Option<&Arc<SharedState<M, B>>>;
}

/// The state cell of a loop that is only handed over: only the handler itself gives it away,
/// together with the context.
pub(in crate::event_loop) struct LocalCell<M: Machine, B: Backend>(RefCell<Contents<M, B>>);

impl<M: Machine, B: Backend> StateCell<M, B> for LocalCell<M, B> {
    type Guard<'a>
        = RefMut<'a, Contents<M, B>>
    where
        Self: 'a;

    const IS_SHARED: bool = false;

    fn empty() -> Self {
        LocalCell(RefCell::new(None))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn lock(&self) -> RefMut<'_, Contents<M, B>> {
        self.0.borrow_mut()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn lend_context<'a>(
        context: &'a mut Option<Box<M::Context>>,
        hand_over: &'a dyn LoopHolder<M::Context>,
    ) -> ContextRef<'a, M::Context> {
        ContextRef::movable(context, hand_over)
    }

    fn shared(&self) -> Option<&Arc<SharedState<M, B>>> {
        None
    }
}

/// A place that the watchdog can access as well.
pub(in crate::event_loop) struct SharedState<M: Machine, B: Backend>(Mutex<Contents<M, B>>);

impl<M: Machine, B: Backend> SharedState<M, B> {
    /// Locks the place, unless the loop itself is at work.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Contents<M, B>>> {
        // Only the loop panics while it holds the lock, and its guard catches that.
        match self.0.try_lock() {
            Ok(place) => Some(place),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// The state cell of a loop that can be taken from a stuck handler: each thread has a context of its
/// own, which is another handle to the same data.
pub(in crate::event_loop) struct SharedCell<M: Machine, B: Backend>(Arc<SharedState<M, B>>);

impl<M: Machine, B: Backend> StateCell<M, B> for SharedCell<M, B> {
    type Guard<'a>
        = MutexGuard<'a, Contents<M, B>>
    where
        Self: 'a;

    const IS_SHARED: bool = true;

    fn empty() -> Self {
        SharedCell(Arc::new(SharedState(Mutex::new(None))))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn lock(&self) -> MutexGuard<'_, Contents<M, B>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn lend_context<'a>(
        context: &'a mut Option<Box<M::Context>>,
        hand_over: &'a dyn LoopHolder<M::Context>,
    ) -> ContextRef<'a, M::Context> {
        ContextRef::shared(context, hand_over)
    }

    fn shared(&self) -> Option<&Arc<SharedState<M, B>>> {
        Some(&self.0)
    }
}
