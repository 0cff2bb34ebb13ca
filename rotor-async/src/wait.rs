//! `wait`: a value to the machine, awaited.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use rotor_core::{Future as Value, Lost, Outcome};

use crate::poller;

/// Awaits a value that comes to this machine: of another machine, of a thread, of
/// [`Scope::offload`](rotor_core::Scope::offload).
///
/// Dropping it tells whoever is to set the value that nobody waits.
///
/// The value wakes the machine whose scope made it and, if something else polls this, that as well:
/// a set that polls only whom its wakers name (`FuturesUnordered`, `join_all` of many), the future
/// of another machine, a task of tokio's. Those of a [`Batch`](rotor_core::Batch) wake their machine
/// together.
///
/// The machine that made the value has to live until it comes: whoever sets it later gets it back, and
/// this is [`Lost::Dropped`]. For work that may outlive the machine that wants it done there is
/// [`offload`](crate::offload), whose value is of whoever polls it.
pub fn wait<V>(value: Value<V>) -> Wait<V> {
    Wait { value: Some(value) }
}

/// The future of [`wait`]: the value, or why there will be none.
#[must_use = "dropping it cancels what it waits for"]
pub struct Wait<V> {
    /// Absent once it has ended.
    value: Option<Value<V>>,
}

// Nothing of it is ever borrowed from itself.
impl<V> Unpin for Wait<V> {}

impl<V> Future for Wait<V> {
    type Output = Result<V, Lost>;

    fn poll(mut self: Pin<&mut Wait<V>>, context: &mut Context<'_>) -> Poll<Result<V, Lost>> {
        let Some(value) = self.value.take() else { return Poll::Pending };
        if !poller::hears_of(&value, context.waker()) && value.poll_ready(context).is_pending() {
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
