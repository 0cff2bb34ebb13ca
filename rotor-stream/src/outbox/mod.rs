//! `Outbox`: messages from other machines to the peer of a connection.

mod config;
mod creation;
mod queue;
mod shared;
mod with_outbox;

use std::fmt;
use std::sync::Arc;

use rotor_core::{Notifier, Scope};

pub use self::config::{OutboxConfig, OutboxCounters, OutboxFull};
use self::queue::PushResult;
use self::shared::Shared;
pub use self::with_outbox::{HasOutbox, WithOutbox};
use crate::block::Block;

/// The messages that others send to the peer of one connection.
///
/// The protocol owns the outbox and runs in a [`WithOutbox`], which writes the messages to the
/// output. Others use its [senders](Outbox::sender). Without a `WithOutbox`, messages would wait
/// forever; the log says so when the outbox is dropped.
///
/// The number of messages and bytes is limited ([`OutboxConfig`]). Each message is sent whole, in
/// the order of sending, between two calls of the protocol. When the protocol ends, its outbox
/// closes. After [`Intent::done`](crate::Intent::done) the waiting messages are sent before the
/// connection ends. After [`Intent::error`](crate::Intent::error) they are dropped, and the
/// connection is reset, so that the peer does not assume that it has all of them. The outbox also
/// closes after [`Transport::shutdown_write`](crate::Transport::shutdown_write), and waiting
/// messages are then dropped.
pub struct Outbox {
    shared: Arc<Shared>,
}

/// Sends messages to the peer of a connection, from any machine or thread. Clones send to the same
/// peer.
///
/// The messages of one sender arrive in the order in which it sent them.
#[derive(Clone)]
pub struct OutboxSender {
    shared: Arc<Shared>,
}

/// Why a message was not accepted; contains the message.
#[derive(Debug)]
#[non_exhaustive]
pub enum OutboxError {
    /// There is no room: the peer is slow, or too much is sent. With [`OutboxFull::End`] this ends
    /// the connection.
    Full(Block),
    /// The message is longer than the outbox may hold ([`OutboxConfig::bytes_max`]): the caller's
    /// mistake.
    TooLong(Block),
    /// The connection has ended, or is about to.
    Closed(Block),
}

impl Outbox {
    /// Makes an empty outbox for the machine to which the scope belongs.
    pub fn new<C>(config: OutboxConfig, scope: &Scope<'_, C>) -> Outbox {
        let notifier = scope.notifier();
        let shared = Arc::new(Shared::new(config, notifier));
        if creation::report_created(&shared) {
            shared.with(|queue, _| queue.has_consumer = true);
        }
        Outbox { shared }
    }

    /// Returns a sender, with which others send messages.
    pub fn sender(&self) -> OutboxSender {
        OutboxSender { shared: self.shared.clone() }
    }
}

impl OutboxSender {
    /// Sends a message to the peer, after the waiting ones, and wakes the protocol if necessary.
    ///
    /// To send the same message to many peers, make one [`Block`] and send a clone to each.
    ///
    /// # Errors
    ///
    /// The message, and why it was not accepted. Nothing has changed then, except that with
    /// [`OutboxFull::End`] the connection ends.
    pub fn send(&self, message: impl Into<Block>) -> Result<(), OutboxError> {
        // Not under the lock, because converting the message is the caller's code.
        let message = message.into();
        let pushed = self.shared.with(|queue, config| queue.push(message, config));
        match pushed {
            PushResult::Queued => Ok(()),
            PushResult::First => {
                // A machine that is gone has closed its outbox, or will.
                self.shared.notifier.wakeup();
                Ok(())
            }
            PushResult::Full(message) => Err(OutboxError::Full(message)),
            PushResult::TooLong(message) => Err(OutboxError::TooLong(message)),
            PushResult::Closed(message) => Err(OutboxError::Closed(message)),
            PushResult::EndsConnection(message) => {
                self.shared.notifier.wakeup();
                self.shared.notify_room_waiters();
                Err(OutboxError::Full(message))
            }
        }
    }

    /// Wakes a machine once half of the outbox is free and the longest refused message fits, or the
    /// outbox is closed. It is for senders whose message was refused. Returns `false`, and does not
    /// wake the machine, if that is already the case. Each call wakes once; a machine that calls it
    /// several times before that is woken once.
    pub fn wake_when_room(&self, notifier: &Notifier) -> bool {
        self.shared.with(|queue, config| queue.wait_for_room(notifier, config))
    }

    /// Returns how many messages wait; none once the connection has ended.
    pub fn len(&self) -> usize {
        self.shared.with(|queue, _| queue.len())
    }

    /// Returns whether no message waits. Messages that are already in the output do not count.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes of the waiting messages.
    pub fn bytes(&self) -> usize {
        self.shared.with(|queue, _| queue.bytes())
    }

    /// Returns whether the outbox is still open, regardless of whether there is room.
    pub fn is_open(&self) -> bool {
        self.shared.with(|queue, _| !queue.is_closed && !queue.is_peer_too_slow)
    }

    /// Returns the token of the connection's machine.
    pub fn token(&self) -> rotor_core::Token {
        self.shared.notifier.token()
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let is_unconsumed = self.shared.with(|queue, _| {
            queue.is_closed = true;
            !queue.has_consumer && queue.len() > 0
        });
        if is_unconsumed {
            let token = self.shared.notifier.token();
            log::warn!(
                "machine {token} has an outbox that nobody sends from: run its protocol in a `WithOutbox`"
            );
        }
        self.shared.notify_room_waiters();
    }
}

impl OutboxError {
    /// Returns the message that was not accepted.
    pub fn into_message(self) -> Block {
        match self {
            OutboxError::Full(message)
            | OutboxError::TooLong(message)
            | OutboxError::Closed(message) => message,
        }
    }
}

impl fmt::Display for OutboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutboxError::Full(_) => "the outbox is full (OutboxConfig)",
            OutboxError::TooLong(_) => {
                "the message is longer than an outbox holds (OutboxConfig::bytes_max)"
            }
            OutboxError::Closed(_) => "the connection has ended",
        })
    }
}

impl std::error::Error for OutboxError {}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sender().fmt(f)
    }
}

impl fmt::Debug for OutboxSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outbox({} messages, {} bytes)", self.len(), self.bytes())
    }
}
