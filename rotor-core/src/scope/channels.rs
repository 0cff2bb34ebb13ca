//! What a handler makes with its scope: channels to its machine, and values that outlive it.

use std::any::Any;
use std::sync::Arc;

use super::{NoContext, Scope};
use crate::future::{self, OnCancel, Waiter};
use crate::future::{Future, Port};
use crate::guard::{guard, log_guarded};
use crate::mailbox;
use crate::mailbox::{Mailbox, Sender};
use crate::notifier::Notifier;
use crate::return_on_drop::{AnyEndQueue, EndFunction, EndQueue, ReturnOnDrop};

impl<C> Scope<'_, C> {
    /// Makes a one-shot channel to this machine. Pass the port on, and keep the future.
    pub fn create_future<V>(&self) -> (Port<V>, Future<V>) {
        future::channel(Waiter::Machine(self.notifier()), OnCancel::Nobody)
    }

    /// Makes a one-shot channel to this machine that reports cancellation: if the future is dropped
    /// before the value is set, `on_cancel` is woken and [`Port::is_cancelled`] returns `true`.
    pub fn create_cancellable_future<V>(&self, on_cancel: Notifier) -> (Port<V>, Future<V>) {
        future::channel(Waiter::Machine(self.notifier()), OnCancel::Machine(on_cancel))
    }

    /// Makes a channel for messages to this machine. It holds at most `bound` messages (at least
    /// 1), and each message wakes the machine.
    ///
    /// The channel's memory grows with the number of messages that wait.
    pub fn create_mailbox<V>(&self, bound: usize) -> (Sender<V>, Mailbox<V>) {
        mailbox::mailbox(bound, self.notifier())
    }
}

impl<C: 'static> Scope<'_, C> {
    /// Keeps `value` until the owner of the returned [`ReturnOnDrop`] ends, in whatever way, even
    /// by a panic. Then `end` is called with the context and the value.
    ///
    /// This is for what must be undone in the context: members of a room, counts, a last will.
    /// [`ReturnOnDrop`] says when `end` is called, and when it is not. It costs one allocation at
    /// the end, and nothing if it is not used.
    ///
    /// In an early scope, which has no context, `end` gets a [`NoContext`] as soon as the owner is
    /// dropped.
    #[doc(alias = "on_drop")]
    #[doc(alias = "finally")]
    pub fn at_end<V: Send + 'static>(&self, value: V, end: fn(&mut C, V)) -> ReturnOnDrop<V, C> {
        let queue = self.environment.end_queue().or_else(immediate_queue);
        ReturnOnDrop::new(value, end, queue.expect("scopes without a queue have no context"))
    }
}

/// Returns the queue for scopes without a context, if `C` is [`NoContext`].
#[cold]
fn immediate_queue<C: 'static>() -> Option<AnyEndQueue<C>> {
    let queue: AnyEndQueue<NoContext> = Arc::new(ImmediateQueue);
    (&queue as &dyn Any).downcast_ref().cloned()
}

/// A queue that calls each function at once.
struct ImmediateQueue;

impl EndQueue<NoContext> for ImmediateQueue {
    fn push(&self, end: EndFunction<NoContext>) -> Result<(), EndFunction<NoContext>> {
        if let Err(panicked) = guard(|| end(&mut NoContext)) {
            log_guarded!(error, "the function of a `ReturnOnDrop` {panicked}");
        }
        Ok(())
    }
}
