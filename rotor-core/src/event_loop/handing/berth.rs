//! `Berth`: the place of the rest of a loop while a handler runs.

use std::cell::{RefCell, RefMut};
use std::ops::DerefMut;
use std::sync::{Arc, PoisonError};

use super::baton::Rest;
use crate::backend::Backend;
use crate::machine::Machine;
use crate::scope::{HandOver, Lent};
use crate::sync::{Mutex, MutexGuard};

/// The contents of the place.
type Place<M, B> = Option<Box<Rest<M, B>>>;

/// The place of the rest of a loop, on the thread that runs it. It is locked while the loop itself
/// works, and unlocked while a handler runs.
pub(in crate::event_loop) trait Berth<M: Machine, B: Backend>: Sized {
    type Guard<'a>: DerefMut<Target = Place<M, B>>
    where
        Self: 'a;

    /// Whether other threads may take the rest from there.
    const IS_OPEN: bool;

    fn empty() -> Self;

    fn lock(&self) -> Self::Guard<'_>;

    /// Lends the context to a handler.
    fn lent<'a>(
        context: &'a mut Option<Box<M::Context>>,
        hand: &'a dyn HandOver<M::Context>,
    ) -> Lent<'a, M::Context>;

    /// Returns the place from which other threads may take the rest.
    fn open(&self) -> Option<&Arc<OpenPlace<M, B>>>;
}

/// The berth of a loop that is only handed over: only the handler itself gives it away, together
/// with the context.
pub(in crate::event_loop) struct Own<M: Machine, B: Backend>(RefCell<Place<M, B>>);

impl<M: Machine, B: Backend> Berth<M, B> for Own<M, B> {
    type Guard<'a>
        = RefMut<'a, Place<M, B>>
    where
        Self: 'a;

    const IS_OPEN: bool = false;

    fn empty() -> Self {
        Own(RefCell::new(None))
    }

    #[inline(always)]
    fn lock(&self) -> RefMut<'_, Place<M, B>> {
        self.0.borrow_mut()
    }

    #[inline(always)]
    fn lent<'a>(
        context: &'a mut Option<Box<M::Context>>,
        hand: &'a dyn HandOver<M::Context>,
    ) -> Lent<'a, M::Context> {
        Lent::handed(context, hand)
    }

    fn open(&self) -> Option<&Arc<OpenPlace<M, B>>> {
        None
    }
}

/// A place that the watchdog can access as well.
pub(in crate::event_loop) struct OpenPlace<M: Machine, B: Backend>(Mutex<Place<M, B>>);

impl<M: Machine, B: Backend> OpenPlace<M, B> {
    /// Locks the place, unless the loop itself is at work.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Place<M, B>>> {
        // Only the loop panics while it holds the lock, and its guard catches that.
        match self.0.try_lock() {
            Ok(place) => Some(place),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// The berth of a loop that can be taken from a stuck handler: each thread has a context of its
/// own, which is another handle to the same data.
pub(in crate::event_loop) struct Open<M: Machine, B: Backend>(Arc<OpenPlace<M, B>>);

impl<M: Machine, B: Backend> Berth<M, B> for Open<M, B> {
    type Guard<'a>
        = MutexGuard<'a, Place<M, B>>
    where
        Self: 'a;

    const IS_OPEN: bool = true;

    fn empty() -> Self {
        Open(Arc::new(OpenPlace(Mutex::new(None))))
    }

    #[inline(always)]
    fn lock(&self) -> MutexGuard<'_, Place<M, B>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn lent<'a>(
        context: &'a mut Option<Box<M::Context>>,
        hand: &'a dyn HandOver<M::Context>,
    ) -> Lent<'a, M::Context> {
        Lent::shared(context, hand)
    }

    fn open(&self) -> Option<&Arc<OpenPlace<M, B>>> {
        Some(&self.0)
    }
}
