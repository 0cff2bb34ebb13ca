//! Values, messages and requests to a machine: what a handler makes by its scope and gives away.

use super::Scope;
use crate::future::{self, OnCancel, Waiter};
use crate::future::{Future, Port};
use crate::mailbox;
use crate::mailbox::{Mailbox, Sender};
use crate::notifier::Notifier;

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
}
