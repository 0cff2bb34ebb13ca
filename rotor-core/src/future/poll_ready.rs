//! `Future::poll_ready`, for async code that waits for a future.

use std::task::{Context, Poll};

use super::{Future, State, Waiter};
use crate::notifier::Notifier;

impl<V> Future<V> {
    /// Returns whether setting the value wakes the same part of the same machine as this notifier.
    /// For a job of a [`Batch`](crate::Batch) this is the machine that the whole batch wakes.
    pub fn wakes(&self, notifier: &Notifier) -> bool {
        self.cell.as_ref().is_some_and(|cell| match &cell.waiter {
            Waiter::Machine(own) => own == notifier,
            Waiter::PortCounter(counter) => counter.machine == *notifier,
            Waiter::Thread(_) => false,
        })
    }

    /// Polls the future: returns `Ready` if [`take`](Future::take) would return something other
    /// than the future. Otherwise the task is woken when that is so, in addition to the machine,
    /// and instead of a task that was registered before. This is for async code on any executor,
    /// and for sets of futures within a machine that poll only the futures whose wakers were used.
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
            // The value was set meanwhile.
            _ => return Poll::Ready(()),
        };
        // Dropped without the lock, because the waker may be the last owner of the future.
        drop(before);
        Poll::Pending
    }
}
