//! `Mailbox`: a bounded channel of messages from anywhere to one machine.

mod errors;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError};

pub use self::errors::{ReceiveError, SendError};
use crate::coordination::wait_queue::WaitQueue;
use crate::future::{self, Future, OnCancel, Port, Waiter};
use crate::guard::drop_guarded;
use crate::notifier::Notifier;
use crate::queue_memory::shrink_empty;
use crate::scope::Scope;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use crate::sync::{Mutex, MutexGuard, thread};
use crate::waiter_queue::WaiterQueue;

/// The receiving end of a bounded channel, owned by a machine. Each message wakes the machine.
///
/// [`Scope::create_mailbox`](crate::Scope::create_mailbox) creates it, together with its first
/// [`Sender`].
#[doc(alias = "channel")]
#[doc(alias = "mpsc")]
#[doc(alias = "Receiver")]
#[doc(alias = "backpressure")]
pub struct Mailbox<V> {
    queue: Arc<Queue<V>>,
}

/// The sending end of a mailbox. It can be cloned and sent to other threads.
#[doc(alias = "channel")]
#[doc(alias = "mpsc")]
pub struct Sender<V> {
    shared: Arc<Shared<V>>,
}

/// The part that the clones of a sender share, so that the drop of the last clone is noticed.
struct Shared<V> {
    queue: Arc<Queue<V>>,
    notifier: Notifier,
}

/// The messages that wait, under a lock that is held only for a push or a pop. A lock-free channel
/// of the standard library took longer for one message at a time, and allocated room for all
/// messages from the start.
struct Queue<V> {
    state: Mutex<QueueState<V>>,
    /// How many messages wait; can be read without the lock.
    count: AtomicUsize,
    /// Whether the mailbox still exists. Changed only under the lock.
    has_receiver: AtomicBool,
    bound: usize,
}

struct QueueState<V> {
    messages: VecDeque<V>,
    /// Whether a sender still exists.
    has_sender: bool,
    /// The senders that wait for room; allocated when the first one waits.
    room: Option<Box<RoomQueue<V>>>,
}

impl<V> Queue<V> {
    fn lock(&self) -> MutexGuard<'_, QueueState<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn mailbox<V>(bound: usize, notifier: Notifier) -> (Sender<V>, Mailbox<V>) {
    let queue = Arc::new(Queue {
        state: Mutex::new(QueueState { messages: VecDeque::new(), has_sender: true, room: None }),
        count: AtomicUsize::new(0),
        has_receiver: AtomicBool::new(true),
        // A mailbox without capacity would refuse every message.
        bound: bound.max(1),
    });
    (Sender { shared: Arc::new(Shared { queue: queue.clone(), notifier }) }, Mailbox { queue })
}

impl<V> Mailbox<V> {
    /// Takes the oldest message. Returns `None` if no message waits.
    ///
    /// Take a bounded number of messages in one event. If more may be left, wake the machine again
    /// through [`Scope::notifier`].
    ///
    /// [`Scope::notifier`]: crate::Scope::notifier
    pub fn receive(&mut self) -> Option<V> {
        // A message that is added meanwhile wakes the machine afterwards.
        if self.is_empty() {
            return None;
        }
        let mut state = self.queue.lock();
        let message = state.messages.pop_front();
        shrink_empty(&mut state.messages);
        self.queue.count.store(state.messages.len(), Release);
        if let Some(first) = state.reserve_next(self.queue.bound) {
            drop(state);
            self.queue.give_room(first);
        }
        message
    }

    /// Takes the oldest message. If there is none, the error says whether one may still come.
    ///
    /// # Errors
    ///
    /// [`Empty`](ReceiveError::Empty) if no message waits now; [`Closed`](ReceiveError::Closed) if,
    /// in addition, every sender is gone. The drop of the last sender wakes the machine.
    pub fn try_receive(&mut self) -> Result<V, ReceiveError> {
        if let Some(message) = self.receive() {
            return Ok(message);
        }
        let state = self.queue.lock();
        // In between, the last sender may have sent a message and gone.
        match state.messages.is_empty() {
            true if !state.has_sender => Err(ReceiveError::Closed),
            _ => Err(ReceiveError::Empty),
        }
    }

    /// Returns how many messages wait, which is at most the capacity of the mailbox. More may be
    /// sent meanwhile.
    pub fn len(&self) -> usize {
        self.queue.count.load(Acquire)
    }

    /// Returns whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<V> Sender<V> {
    /// Sends a message and wakes the machine.
    ///
    /// # Errors
    ///
    /// Returns [`SendError`], with the message, if the mailbox is full, or if the mailbox or its
    /// machine is gone.
    pub fn send(&self, message: V) -> Result<(), SendError<V>> {
        let Shared { queue, notifier } = &*self.shared;
        // A mailbox may outlive its machine, for example in the context; then nobody would be woken
        // to receive.
        if !notifier.is_alive() {
            queue.reject_waiting_senders();
            return Err(SendError::Closed(message));
        }
        {
            let mut state = queue.lock();
            // Checked under the lock: otherwise the message could be added after the mailbox was
            // dropped, and stay there.
            if !queue.has_receiver.load(Relaxed) {
                return Err(SendError::Closed(message));
            }
            if state.messages.len() + state.reserved() >= queue.bound {
                return Err(SendError::Full(message));
            }
            state.messages.push_back(message);
            queue.count.store(state.messages.len(), Release);
        }
        // Without the lock: the machine may be called at once on another thread, and need the lock.
        notifier.wakeup();
        Ok(())
    }

    /// Returns whether the mailbox or its machine is gone, so that no further message will be
    /// received.
    pub fn is_closed(&self) -> bool {
        let Shared { queue, notifier } = &*self.shared;
        !notifier.is_alive() || !queue.has_receiver.load(Acquire)
    }
}

impl<V> Clone for Sender<V> {
    fn clone(&self) -> Sender<V> {
        Sender { shared: self.shared.clone() }
    }
}

impl<V> Drop for Shared<V> {
    fn drop(&mut self) {
        // Before the wake-up: the woken machine must find that no sender is left.
        self.queue.lock().has_sender = false;
        self.notifier.wakeup();
    }
}

impl<V> Drop for Mailbox<V> {
    fn drop(&mut self) {
        let (left, _senders) = {
            let mut state = self.queue.lock();
            self.queue.has_receiver.store(false, Release);
            self.queue.count.store(0, Release);
            let senders = state.room.as_mut().map(|room| room.take_all());
            (std::mem::take(&mut state.messages), senders)
        };
        // Without the lock: dropping a message may run any code, which may even send or panic.
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

/// Room for one message in a mailbox, reserved for the owner of this value. It comes from
/// [`Sender::wake_on_room`].
///
/// Dropping it gives the room to the next sender in line.
#[doc(alias = "OwnedPermit")]
#[must_use = "dropping it gives the room to the next sender in line"]
pub struct Reserved<V> {
    /// `None` if there is no room to pass on.
    shared: Option<Arc<Shared<V>>>,
}

/// The senders that wait for room, and how much room is reserved for senders that have waited.
struct RoomQueue<V> {
    waiters: WaitQueue<WaitingSender<V>>,
    reserved: usize,
}

/// A sender that waits for room. While it waits, it counts as one of the mailbox's senders.
struct WaitingSender<V> {
    port: Port<Reserved<V>>,
    shared: Arc<Shared<V>>,
}

impl<V> QueueState<V> {
    /// Returns how much room is reserved and not yet taken by a message.
    #[inline]
    fn reserved(&self) -> usize {
        self.room.as_ref().map_or(0, |room| room.reserved)
    }

    /// Reserves room for the first waiting sender, if there is room and a sender waits.
    #[inline]
    fn reserve_next(&mut self, bound: usize) -> Option<WaitingSender<V>> {
        let room = self.room.as_mut()?;
        if self.messages.len() + room.reserved >= bound {
            return None;
        }
        let first = room.waiters.pop()?;
        room.reserved += 1;
        Some(first)
    }
}

impl<V> RoomQueue<V> {
    /// Empties the line. Drop the result without holding the lock.
    fn take_all(&mut self) -> Vec<WaitingSender<V>> {
        self.waiters.take_all().collect()
    }
}

impl<V> Queue<V> {
    /// Gives reserved room to `first`, or to the next waiting sender if `first` is gone.
    #[cold]
    fn give_room(&self, first: WaitingSender<V>) {
        let mut next = Some(first);
        while let Some(WaitingSender { port, shared }) = next {
            let Err(mut undelivered) = port.set(Reserved { shared: Some(shared) }) else { return };
            let shared = undelivered.shared.take();
            next = self.free_and_reserve_next();
            // Without the lock, because dropping the last sender takes it.
            drop(shared);
        }
    }

    /// Tells the waiting senders that nobody receives any more. The end of the machine does not do
    /// this if the mailbox is owned by something else.
    #[cold]
    fn reject_waiting_senders(&self) {
        let senders = self.lock().room.as_mut().map(|room| room.take_all());
        // Without the lock, because dropping the last sender takes it.
        drop(senders);
    }

    fn free_and_reserve_next(&self) -> Option<WaitingSender<V>> {
        let mut state = self.lock();
        if let Some(room) = &mut state.room {
            room.reserved -= 1;
        }
        state.reserve_next(self.bound)
    }
}

impl<V: Send + 'static> Sender<V> {
    /// Waits in line for room for one message.
    ///
    /// The machine is woken when there is room, also if there is room at once, and that room is
    /// reserved for it. Senders are served in the order in which they came. While any sender waits,
    /// [`send`](Sender::send) returns `Full`.
    ///
    /// The future resolves to [`FutureError::Dropped`](crate::FutureError::Dropped) when the
    /// mailbox is gone. If a mailbox outlives its machine, for example in the context, this is
    /// noticed only when someone next sends or asks for room. Dropping the future leaves the line.
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use rotor::{Future, Outcome, Reserved, Scope, SendError, Sender};
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
        self.request_room(Waiter::Machine(scope.notifier()))
    }

    /// Sends a message from a thread that runs no loop. If there is no room, the thread blocks
    /// until there is, in the same line as callers of [`wake_on_room`](Sender::wake_on_room).
    ///
    /// The thread blocks for as long as the machine does not receive, so use it only on threads for
    /// which nobody waits. On the thread of the machine's own loop it would block forever. This
    /// includes handlers, and closures from handlers that the loop itself runs: jobs in a
    /// simulation, jobs under [`WhenFull::RunOldestHere`](crate::WhenFull::RunOldestHere), and
    /// [sections](Scope::blocking) in a loop that is not handed over. Two loops that wait for each
    /// other in this way would also block forever.
    ///
    /// ```
    /// # use rotor_core::Sender;
    /// use std::io::{self, BufRead};
    ///
    /// /// Reads no faster than the machine receives.
    /// fn read(lines: impl BufRead, machine: &Sender<String>) -> io::Result<()> {
    ///     for line in lines.lines() {
    ///         if machine.send_from_thread(line?).is_err() {
    ///             break; // it is gone
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`SendError::Closed`], with the message, if the mailbox or its machine is gone: at
    /// once, or while the thread waits, when the mailbox is dropped. If the mailbox outlives its
    /// machine, because it is in the context, the next call that sends finds out; a thread that is
    /// waiting already waits on until then, or until the mailbox is dropped.
    #[doc(alias = "blocking_send")]
    pub fn send_from_thread(&self, message: V) -> Result<(), SendError<V>> {
        let message = match self.send(message) {
            Err(SendError::Full(message)) => message,
            other => return other,
        };
        match self.request_room(Waiter::Thread(thread::current())).wait() {
            Ok(room) => room.send(message),
            Err(_gone) => Err(SendError::Closed(message)),
        }
    }

    /// Adds `waiter` to the queue for room.
    fn request_room(&self, waiter: Waiter) -> Future<Reserved<V>> {
        let (port, future) = future::channel(waiter, OnCancel::Nobody);
        let Shared { queue, notifier } = &*self.shared;
        let mut state = queue.lock();
        if !queue.has_receiver.load(Relaxed) || !notifier.is_alive() {
            drop(state);
            queue.reject_waiting_senders();
            drop(port);
            return future;
        }
        let bound = queue.bound;
        let room = state.room.get_or_insert_with(|| {
            Box::new(RoomQueue { waiters: WaitQueue::default(), reserved: 0 })
        });
        port.leave_queue_on_cancel(Arc::downgrade(queue) as _, room.waiters.next_place());
        room.waiters.push(WaitingSender { port, shared: self.shared.clone() });
        let first = state.reserve_next(bound);
        drop(state);
        if let Some(first) = first {
            queue.give_room(first);
        }
        future
    }
}

impl<V: Send> WaiterQueue for Queue<V> {
    fn remove(&self, place: u64) {
        let removed = self.lock().room.as_mut().and_then(|room| room.waiters.remove(place));
        drop(removed);
    }
}

impl<V> Reserved<V> {
    /// Sends a message into the reserved room and wakes the machine.
    ///
    /// # Errors
    ///
    /// Returns [`SendError::Closed`], with the message, if the mailbox or its machine is gone.
    pub fn send(mut self, message: V) -> Result<(), SendError<V>> {
        let Some(shared) = self.shared.take() else { return Err(SendError::Closed(message)) };
        let Shared { queue, notifier } = &*shared;
        {
            let mut state = queue.lock();
            if let Some(room) = &mut state.room {
                room.reserved -= 1;
            }
            if !queue.has_receiver.load(Relaxed) || !notifier.is_alive() {
                drop(state);
                queue.reject_waiting_senders();
                return Err(SendError::Closed(message));
            }
            state.messages.push_back(message);
            queue.count.store(state.messages.len(), Release);
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
