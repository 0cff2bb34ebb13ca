//! Many messages from anywhere to one machine, bounded.

mod reserved;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError};

pub use self::reserved::Reserved;
use self::reserved::RoomLine;
use crate::guard::drop_guarded;
use crate::notifier::Notifier;
use crate::queue_memory::give_back;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use crate::sync::{Mutex, MutexGuard};

/// The end of a bounded channel that a machine keeps; each message wakes it.
///
/// Made with its first [`Sender`] by [`Scope::create_mailbox`](crate::Scope::create_mailbox).
#[doc(alias = "channel")]
#[doc(alias = "mpsc")]
#[doc(alias = "Receiver")]
#[doc(alias = "backpressure")]
pub struct Mailbox<V> {
    queue: Arc<Queue<V>>,
}

/// The end of a mailbox that is given away; clones may be sent to other threads.
#[doc(alias = "channel")]
#[doc(alias = "mpsc")]
pub struct Sender<V> {
    shared: Arc<Shared<V>>,
}

/// What the clones of a sender share, so that the last one to go is known.
struct Shared<V> {
    queue: Arc<Queue<V>>,
    notifier: Notifier,
}

/// The messages that wait. A lock that is held for a push or a pop: a lock-free channel of the
/// standard library took longer for one message at a time, and room for all of them from the start.
struct Queue<V> {
    waiting: Mutex<Waiting<V>>,
    /// How many messages wait, as a look without the lock sees it.
    count: AtomicUsize,
    /// Whether the mailbox is there. Changed under the lock only.
    is_received: AtomicBool,
    bound: usize,
}

struct Waiting<V> {
    messages: VecDeque<V>,
    /// Whether a sender is there.
    is_sent: bool,
    /// Senders that wait for room, once one has.
    room: Option<Box<RoomLine<V>>>,
}

impl<V> Queue<V> {
    fn lock(&self) -> MutexGuard<'_, Waiting<V>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a message was not sent, with the message.
#[doc(alias = "backpressure")]
#[doc(alias = "TrySendError")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError<V> {
    /// The mailbox holds as many messages as it may. The caller's to judge: drop it, keep it, or
    /// slow down whoever causes it. Room is made when the machine receives:
    /// [`Sender::wake_on_room`] waits for it.
    Full(V),
    /// The mailbox or its machine is gone; nothing will ever be received.
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

/// Why there is no message. Nobody's fault, and nothing has changed.
#[doc(alias = "TryRecvError")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveError {
    /// None waits; the next one wakes the machine.
    Empty,
    /// None waits and none will come: every sender is gone.
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

pub(crate) fn mailbox<V>(bound: usize, notifier: Notifier) -> (Sender<V>, Mailbox<V>) {
    let queue = Arc::new(Queue {
        waiting: Mutex::new(Waiting { messages: VecDeque::new(), is_sent: true, room: None }),
        count: AtomicUsize::new(0),
        is_received: AtomicBool::new(true),
        // One that holds nothing would refuse every message.
        bound: bound.max(1),
    });
    (Sender { shared: Arc::new(Shared { queue: queue.clone(), notifier }) }, Mailbox { queue })
}

impl<V> Mailbox<V> {
    /// Takes the oldest message, if there is one.
    ///
    /// Take a bounded number in one event and, if there may be more, wake yourself:
    /// [`Scope::notifier`].
    ///
    /// [`Scope::notifier`]: crate::Scope::notifier
    pub fn receive(&mut self) -> Option<V> {
        // A message that is added meanwhile wakes the machine afterwards.
        if self.queue.count.load(Acquire) == 0 {
            return None;
        }
        let mut waiting = self.queue.lock();
        let message = waiting.messages.pop_front();
        give_back(&mut waiting.messages);
        self.queue.count.store(waiting.messages.len(), Release);
        if let Some(first) = waiting.reserve_next(self.queue.bound) {
            drop(waiting);
            self.queue.give_room(first);
        }
        message
    }

    /// Takes the oldest message; when there is none, says whether one may still come.
    ///
    /// # Errors
    ///
    /// [`Empty`](ReceiveError::Empty) when there is none now, [`Closed`](ReceiveError::Closed) when
    /// every sender is gone, which wakes the machine as well.
    pub fn try_receive(&mut self) -> Result<V, ReceiveError> {
        if let Some(message) = self.receive() {
            return Ok(message);
        }
        let waiting = self.queue.lock();
        // Between the two looks the last sender may have sent and gone.
        match waiting.messages.is_empty() {
            true if !waiting.is_sent => Err(ReceiveError::Closed),
            _ => Err(ReceiveError::Empty),
        }
    }
}

impl<V> Sender<V> {
    /// Sends a message and wakes the machine.
    ///
    /// # Errors
    ///
    /// The message back, when the mailbox is full or its machine is gone.
    pub fn send(&self, message: V) -> Result<(), SendError<V>> {
        let Shared { queue, notifier } = &*self.shared;
        // A mailbox may outlive its machine, in the context say; nobody would be woken to receive.
        if !notifier.is_alive() {
            return Err(SendError::Closed(message));
        }
        {
            let mut waiting = queue.lock();
            // Under the lock, or the message could be added behind the mailbox's drop, and stay
            // there.
            if !queue.is_received.load(Relaxed) {
                return Err(SendError::Closed(message));
            }
            if waiting.messages.len() + waiting.reserved() >= queue.bound {
                return Err(SendError::Full(message));
            }
            waiting.messages.push_back(message);
            queue.count.store(waiting.messages.len(), Release);
        }
        // Without the lock: the machine may be called at once, on another thread, and want it.
        notifier.wakeup();
        Ok(())
    }

    /// Returns whether the mailbox or its machine is gone: nothing that is sent will be received.
    pub fn is_closed(&self) -> bool {
        let Shared { queue, notifier } = &*self.shared;
        !notifier.is_alive() || !queue.is_received.load(Acquire)
    }
}

impl<V> Clone for Sender<V> {
    fn clone(&self) -> Sender<V> {
        Sender { shared: self.shared.clone() }
    }
}

impl<V> Drop for Shared<V> {
    fn drop(&mut self) {
        // First the note, then the wake-up: the machine that looks must find that no sender is
        // left.
        self.queue.lock().is_sent = false;
        self.notifier.wakeup();
    }
}

impl<V> Drop for Mailbox<V> {
    fn drop(&mut self) {
        let (left, _senders) = {
            let mut waiting = self.queue.lock();
            self.queue.is_received.store(false, Release);
            self.queue.count.store(0, Release);
            let senders = waiting.room.as_mut().map(|room| room.take_all());
            (std::mem::take(&mut waiting.messages), senders)
        };
        // Without the lock: a message may do anything when it is dropped, also send, or panic.
        left.into_iter()
            .for_each(|message| drop_guarded(message, "a message that nobody received"));
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
