//! Many messages from anywhere to one machine, bounded.

use std::fmt;
use std::sync::{Arc, mpsc};

use crate::Notifier;

/// The end of a bounded channel that a machine keeps; each message wakes it.
///
/// Made with its first [`Sender`] by [`Scope::create_mailbox`](crate::Scope::create_mailbox).
pub struct Mailbox<V> {
    receiver: mpsc::Receiver<V>,
}

/// The end of a mailbox that is given away; clones may be sent to other threads.
pub struct Sender<V> {
    shared: Arc<Shared<V>>,
}

/// What the clones of a sender share, so that the last one to go is known.
struct Shared<V> {
    sender: Option<mpsc::SyncSender<V>>,
    notifier: Notifier,
}

/// Why a message was not sent, with the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError<V> {
    /// The mailbox holds as many messages as it may. The caller's to judge: drop it, keep it, or slow down whoever
    /// causes it. Room is made when the machine receives.
    Full(V),
    /// The mailbox or its machine is gone; nothing will ever be received.
    Closed(V),
}

impl<V> SendError<V> {
    /// The message that was not sent.
    pub fn into_message(self) -> V {
        match self {
            SendError::Full(message) | SendError::Closed(message) => message,
        }
    }
}

impl<V> fmt::Display for SendError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendError::Full(_) => "the mailbox is full",
            SendError::Closed(_) => "the machine that owned the mailbox is gone",
        })
    }
}

impl<V: fmt::Debug> std::error::Error for SendError<V> {}

pub(crate) fn mailbox<V>(bound: usize, notifier: Notifier) -> (Sender<V>, Mailbox<V>) {
    let (sender, receiver) = mpsc::sync_channel(bound.max(1));
    (Sender { shared: Arc::new(Shared { sender: Some(sender), notifier }) }, Mailbox { receiver })
}

impl<V> Mailbox<V> {
    /// The oldest message, if there is one.
    ///
    /// Take a bounded number in one event and, if there may be more, wake yourself: [`Scope::notifier`].
    ///
    /// [`Scope::notifier`]: crate::Scope::notifier
    pub fn receive(&mut self) -> Option<V> {
        self.receiver.try_recv().ok()
    }

    /// The oldest message; or, when there is none, whether one may still come.
    ///
    /// # Errors
    ///
    /// [`Empty`](mpsc::TryRecvError::Empty) when there is none now, [`Disconnected`](mpsc::TryRecvError::Disconnected)
    /// when every sender is gone, which wakes the machine as well.
    pub fn try_receive(&mut self) -> Result<V, mpsc::TryRecvError> {
        self.receiver.try_recv()
    }
}

impl<V> Sender<V> {
    /// Sends a message and wakes the machine.
    ///
    /// # Errors
    ///
    /// The message back, when the mailbox is full or its machine is gone.
    pub fn send(&self, message: V) -> Result<(), SendError<V>> {
        let Shared { sender: Some(sender), notifier } = &*self.shared else {
            return Err(SendError::Closed(message));
        };
        if !notifier.is_alive() {
            return Err(SendError::Closed(message));
        }
        sender.try_send(message).map_err(|error| match error {
            mpsc::TrySendError::Full(message) => SendError::Full(message),
            mpsc::TrySendError::Disconnected(message) => SendError::Closed(message),
        })?;
        notifier.wakeup();
        Ok(())
    }

    /// Whether the machine that owned the mailbox is gone.
    pub fn is_closed(&self) -> bool {
        !self.shared.notifier.is_alive()
    }
}

impl<V> Clone for Sender<V> {
    fn clone(&self) -> Sender<V> {
        Sender { shared: self.shared.clone() }
    }
}

impl<V> Drop for Shared<V> {
    fn drop(&mut self) {
        // First the channel, then the wake-up: the machine that looks must find that no sender is left.
        self.sender = None;
        self.notifier.wakeup();
    }
}

impl<V> fmt::Debug for Mailbox<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mailbox")
    }
}

impl<V> fmt::Debug for Sender<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sender(closed: {})", self.is_closed())
    }
}
