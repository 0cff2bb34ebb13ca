//! The end of a future, for async code that waits for it.

use std::task::{Context, Poll};

use super::{Future, State, Waiter};
use crate::notifier::Notifier;

impl<V> Future<V> {
    /// Returns whether the value wakes what this notifier wakes: the same part of the same machine.
    /// That of a job of a [`Batch`](crate::Batch) does so together with the others.
    pub fn wakes(&self, notifier: &Notifier) -> bool {
        self.cell.as_ref().is_some_and(|cell| match &cell.waiter {
            Waiter::Machine(own) => own == notifier,
            Waiter::Together(together) => together.machine == *notifier,
            Waiter::Thread(_) => false,
        })
    }

    /// Returns whether [`take`](Future::take) would return something other than the future; if not,
    /// the task is woken when it would, beside the machine, and instead of whatever task was to be
    /// before. For async code on any executor, and for sets of futures within a machine, which poll
    /// only whom its own waker names.
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use std::future::poll_fn;
    ///
    /// use rotor::{Future, Outcome};
    ///
    /// async fn value_of<V>(future: Future<V>) -> Option<V> {
    ///     poll_fn(|context| future.poll_ready(context)).await;
    ///     match future.take() {
    ///         Outcome::Value(value) => Some(value),
    ///         Outcome::Lost(_) | Outcome::Pending(_) => None,
    ///     }
    /// }
    /// ```
    #[doc(alias = "async")]
    pub fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let Some(cell) = &self.cell else { return Poll::Pending };
        match &cell.lock().state {
            State::Pending(Some(waker)) if waker.will_wake(context.waker()) => {
                return Poll::Pending;
            }
            State::Pending(_) => {}
            _ => return Poll::Ready(()),
        }
        let waker = context.waker().clone();
        let before = match &mut cell.lock().state {
            State::Pending(before) => before.replace(waker),
            // It has come meanwhile.
            _ => return Poll::Ready(()),
        };
        // Without the lock: a waker may be the last that owns the future.
        drop(before);
        Poll::Pending
    }
}
