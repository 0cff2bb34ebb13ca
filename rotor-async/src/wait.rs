//! `wait`: awaits a value that is sent to the machine.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use rotor_core::{Future as Value, FutureError, Outcome};

use crate::poller;

/// Awaits a value that is sent to this machine: by another machine, by a thread, or by
/// [`Scope::offload`](rotor_core::Scope::offload).
///
/// If it is dropped, the sender of the value learns that nobody waits.
///
/// The value wakes the machine whose scope created it. If something else polls this future, the
/// value wakes that as well: a set that polls only futures whose waker was called
/// (`FuturesUnordered`, `join_all` of many), the future of another machine, or a task on tokio. The
/// values of a [`Batch`](rotor_core::Batch) wake their machine together.
///
/// The machine that created the value has to live until the value arrives. If it does not, the
/// sender gets the value back, and this future returns [`FutureError::Dropped`]. For work that may
/// outlive the machine that requested it, use [`offload`](crate::offload), whose value belongs to
/// the future that polls it.
pub fn wait<V>(value: Value<V>) -> Wait<V> {
    Wait { value: Some(value) }
}

/// The future of [`wait`]: the value, or why there is none.
#[must_use = "dropping it cancels what it waits for"]
pub struct Wait<V> {
    /// `None` once it has ended.
    value: Option<Value<V>>,
}

// It is never pinned structurally.
impl<V> Unpin for Wait<V> {}

impl<V> Future for Wait<V> {
    type Output = Result<V, FutureError>;

    fn poll(
        mut self: Pin<&mut Wait<V>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<V, FutureError>> {
        let Some(value) = self.value.take() else { return Poll::Pending };
        if !poller::is_woken_with_current_poll(&value, context.waker())
            && value.poll_ready(context).is_pending()
        {
            self.value = Some(value);
            return Poll::Pending;
        }
        match value.take() {
            Outcome::Pending(value) => {
                self.value = Some(value);
                Poll::Pending
            }
            Outcome::Value(value) => Poll::Ready(Ok(value)),
            Outcome::Lost(lost) => Poll::Ready(Err(lost)),
        }
    }
}

impl<V> fmt::Debug for Wait<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("is_ended", &self.value.is_none()).finish()
    }
}
