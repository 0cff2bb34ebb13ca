//! `Berth`: where the rest of a loop lies while a handler runs.

use std::cell::{RefCell, RefMut};
use std::ops::DerefMut;
use std::sync::{Arc, PoisonError};

use super::baton::Rest;
use crate::backend::Backend;
use crate::machine::Machine;
use crate::scope::{HandOver, Lent};
use crate::sync::{Mutex, MutexGuard};

/// What lies there.
type Place<M, B> = Option<Box<Rest<M, B>>>;

/// Where the rest of a loop is, on the thread that runs it. It is locked for the loop's own work,
/// and free while a handler runs.
pub(in crate::event_loop) trait Berth<M: Machine, B: Backend>: Sized {
    type Guard<'a>: DerefMut<Target = Place<M, B>>
    where
        Self: 'a;

    /// Others may take it from there.
    const IS_OPEN: bool;

    fn empty() -> Self;

    fn lock(&self) -> Self::Guard<'_>;

    /// How a handler has the context.
    fn lent<'a>(
        context: &'a mut Option<Box<M::Context>>,
        hand: &'a dyn HandOver<M::Context>,
    ) -> Lent<'a, M::Context>;

    /// Where others may take it from.
    fn open(&self) -> Option<&Arc<OpenPlace<M, B>>>;
}

/// Of a loop that is handed over: only the handler itself gives it away, and the context with it.
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

/// A place that the watchdog looks into as well.
pub(in crate::event_loop) struct OpenPlace<M: Machine, B: Backend>(Mutex<Place<M, B>>);

impl<M: Machine, B: Backend> OpenPlace<M, B> {
    /// Unless the loop is at work there.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Place<M, B>>> {
        // Nobody panics with the lock but the loop, whose guard catches that.
        match self.0.try_lock() {
            Ok(place) => Some(place),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// Of a loop that is taken from a handler that is stuck: each thread has a context of its own,
/// which is another handle to the same things.
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
