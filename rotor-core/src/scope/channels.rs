//! Values, messages and requests to a machine, and work for other threads: what a handler makes by
//! its scope and gives away.

use super::Scope;
use crate::future::{self, OnCancel, Waiter};
use crate::future::{Future, Port};
use crate::mailbox::{Mailbox, Sender};
use crate::notifier::Notifier;
use crate::offload::OffloadFull;
use crate::{mailbox, offload};

impl<C> Scope<'_, C> {
    /// A one-shot value to this machine: the port is given away, the future kept.
    pub fn create_future<V>(&self) -> (Port<V>, Future<V>) {
        future::pair(Waiter::Machine(self.notifier()), OnCancel::Nobody)
    }

    /// A one-shot value to this machine whose cancellation is heard: when the future is dropped
    /// before the value was set, `on_cancel` is woken and finds [`Port::is_cancelled`].
    pub fn create_cancellable_future<V>(&self, on_cancel: Notifier) -> (Port<V>, Future<V>) {
        future::pair(Waiter::Machine(self.notifier()), OnCancel::Machine(on_cancel))
    }

    /// A channel of messages to this machine, holding at most `bound` of them (at least 1), each of
    /// which wakes it.
    ///
    /// Its memory grows with the messages that wait.
    pub fn create_mailbox<V>(&self, bound: usize) -> (Sender<V>, Mailbox<V>) {
        mailbox::mailbox(bound, self.notifier())
    }

    /// Has another thread run `work`, and wakes this machine when it is done; then [`Future::take`]
    /// gives the result, or [`Lost::Panicked`](crate::Lost::Panicked), or
    /// [`Lost::Dropped`](crate::Lost::Dropped) when the pool ended first. On a simulated loop it
    /// takes virtual time instead.
    ///
    /// Dropping the future before a thread got to it cancels the job; later, and when this machine
    /// has ended, the result is dropped. [`Stats::unclaimed`](crate::Stats::unclaimed) counts both.
    ///
    /// ```
    /// # use rotor_core::{Future, OffloadFull, Scope};
    /// fn checksum<C>(bytes: Vec<u8>, scope: &Scope<'_, C>) -> Option<Future<u64>> {
    ///     let work = move || bytes.iter().fold(0, |sum, byte| sum * 31 % 1_000_007 + u64::from(*byte));
    ///     scope.offload(work).ok()
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The closure back, when as many jobs wait as the pool takes:
    /// [`Config::offload_pool`](crate::Config::offload_pool).
    pub fn offload<T, F>(&self, work: F) -> Result<Future<T>, OffloadFull<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let mut state = Err(OffloadFull(work));
        self.backend().offload(&mut || {
            // No port before the pool takes the job: one that is dropped wakes its machine.
            let (port, future) = self.create_future();
            match std::mem::replace(&mut state, Ok(future)) {
                Err(OffloadFull(work)) => {
                    offload::job(work, port, self.environment.unclaimed.clone())
                }
                // A backend that calls `make` twice gets a job that does nothing.
                Ok(_) => Box::new(|| {}),
            }
        });
        state
    }
}
