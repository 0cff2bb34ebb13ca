//! The errors of sending to a mailbox and of receiving from it.

use std::fmt;

/// The error of a message that was not sent. It returns the message.
#[doc(alias = "backpressure")]
#[doc(alias = "TrySendError")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError<V> {
    /// The mailbox is full. The caller decides what to do: drop the message, keep it, or slow down
    /// its source. There is room again when the machine receives;
    /// [`Sender::wake_on_room`](crate::Sender::wake_on_room) waits for that.
    Full(V),
    /// The mailbox or its machine is gone; no message will ever be received.
    Closed(V),
}

impl<V> SendError<V> {
    /// Returns the message that was not sent.
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

/// The reason why there is no message. This is not a failure, and nothing has changed.
#[doc(alias = "TryRecvError")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveError {
    /// No message waits. The next one wakes the machine.
    Empty,
    /// No message waits and none will come: every sender is gone.
    Closed,
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReceiveError::Empty => "there is no message",
            ReceiveError::Closed => "there is no message, and every sender is gone",
        })
    }
}

impl std::error::Error for ReceiveError {}
