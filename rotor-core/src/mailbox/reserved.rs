//! Senders that wait for room: one line, first come, first served.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::{Queue, SendError, Sender, Shared};
use crate::coordination::wait_line::WaitLine;
use crate::future::{Future, Leave, Port};
use crate::scope::Scope;

/// Room for one message in a mailbox, kept for whom it was given to
/// ([`Sender::wake_on_room`]).
///
/// Dropping it leaves the room to the next one.
#[doc(alias = "OwnedPermit")]
#[must_use = "room that is dropped is the next one's"]
pub struct Reserved<V> {
    /// Absent when there is no room to leave.
    shared: Option<Arc<Shared<V>>>,
}

/// Who waits for room, and how much of it is kept for whom it was given to.
pub(super) struct RoomLine<V> {
    line: WaitLine<Waiting<V>>,
    reserved: usize,
}

/// A sender that waits: it is one of those that the mailbox has.
pub(super) struct Waiting<V> {
    port: Port<Reserved<V>>,
    shared: Arc<Shared<V>>,
}

impl<V> super::Waiting<V> {
    /// Room that no message takes, and that is kept.
    #[inline]
    pub(super) fn reserved(&self) -> usize {
        self.room.as_ref().map_or(0, |room| room.reserved)
    }

    /// Keeps room for the first who waits, if there is any.
    #[inline]
    pub(super) fn reserve_next(&mut self, bound: usize) -> Option<Waiting<V>> {
        let room = self.room.as_mut()?;
        if self.messages.len() + room.reserved >= bound {
            return None;
        }
        let first = room.line.next()?;
        room.reserved += 1;
        Some(first)
    }
}

impl<V> RoomLine<V> {
    /// Empties the line; to be dropped without the lock.
    pub(super) fn take_all(&mut self) -> Vec<Waiting<V>> {
        self.line.take_all().collect()
    }
}

impl<V> Queue<V> {
    /// Gives the room that is kept to whom it is kept for, or to the next one if he is gone.
    #[cold]
    pub(super) fn give_room(&self, first: Waiting<V>) {
        let mut next = Some(first);
        while let Some(Waiting { port, shared }) = next {
            let Err(mut gone) = port.set(Reserved { shared: Some(shared) }) else { return };
            let shared = gone.shared.take();
            next = self.free_and_reserve_next();
            // Without the lock, which the last sender takes as it goes.
            drop(shared);
        }
    }

    fn free_and_reserve_next(&self) -> Option<Waiting<V>> {
        let mut waiting = self.lock();
        if let Some(room) = &mut waiting.room {
            room.reserved -= 1;
        }
        waiting.reserve_next(self.bound)
    }
}

impl<V: Send + 'static> Sender<V> {
    /// Waits for room for one message: the machine is woken when there is some, also when there is
    /// at once, and has it for itself. Who came first is served first, and while anybody waits,
    /// [`send`](Sender::send) finds the mailbox full.
    ///
    /// The future says [`Lost::Dropped`](crate::Lost::Dropped) when the mailbox is gone. Dropping it
    /// leaves the line.
    ///
    /// ```
    /// use rotor_core::{Future, Outcome, Reserved, Scope, SendError, Sender};
    ///
    /// enum Line {
    ///     Sent,
    ///     Waits(String, Future<Reserved<String>>),
    /// }
    ///
    /// fn send<C>(line: String, log: &Sender<String>, scope: &Scope<'_, C>) -> Line {
    ///     match log.send(line) {
    ///         Err(SendError::Full(line)) => Line::Waits(line, log.wake_on_room(scope)),
    ///         _ => Line::Sent,
    ///     }
    /// }
    ///
    /// fn wakeup(line: String, room: Future<Reserved<String>>) -> Line {
    ///     match room.take() {
    ///         Outcome::Value(room) => {
    ///             let _gone = room.send(line);
    ///             Line::Sent
    ///         }
    ///         Outcome::Pending(room) => Line::Waits(line, room),
    ///         Outcome::Lost(_) => Line::Sent,
    ///     }
    /// }
    /// ```
    #[doc(alias = "reserve")]
    #[doc(alias = "backpressure")]
    pub fn wake_on_room<C>(&self, scope: &Scope<'_, C>) -> Future<Reserved<V>> {
        let (port, future) = scope.create_future();
        let Shared { queue, notifier } = &*self.shared;
        let mut waiting = queue.lock();
        if !queue.is_received.load(Relaxed) || !notifier.is_alive() {
            drop(waiting);
            drop(port);
            return future;
        }
        let bound = queue.bound;
        let room = waiting
            .room
            .get_or_insert_with(|| Box::new(RoomLine { line: WaitLine::default(), reserved: 0 }));
        port.leave_on_cancel(queue.clone(), room.line.next_place());
        room.line.join(Waiting { port, shared: self.shared.clone() });
        let first = waiting.reserve_next(bound);
        drop(waiting);
        if let Some(first) = first {
            queue.give_room(first);
        }
        future
    }
}

impl<V: Send> Leave for Queue<V> {
    fn leave(&self, place: u64) {
        let gone = self.lock().room.as_mut().and_then(|room| room.line.leave(place));
        drop(gone);
    }
}

impl<V> Reserved<V> {
    /// Sends a message into the room and wakes the machine.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`], with the message, when the mailbox or its machine is gone.
    pub fn send(mut self, message: V) -> Result<(), SendError<V>> {
        let Some(shared) = self.shared.take() else { return Err(SendError::Closed(message)) };
        let Shared { queue, notifier } = &*shared;
        {
            let mut waiting = queue.lock();
            if let Some(room) = &mut waiting.room {
                room.reserved -= 1;
            }
            if !queue.is_received.load(Relaxed) || !notifier.is_alive() {
                return Err(SendError::Closed(message));
            }
            waiting.messages.push_back(message);
            queue.count.store(waiting.messages.len(), Release);
        }
        notifier.wakeup();
        Ok(())
    }
}

impl<V> Drop for Reserved<V> {
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        if let Some(next) = shared.queue.free_and_reserve_next() {
            shared.queue.give_room(next);
        }
    }
}

impl<V> fmt::Debug for Reserved<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reserved")
    }
}
