//! A one-shot channel to a machine. `Port` is its sender, which can be used anywhere, and `Future`
//! its receiver.
//!
//! Neither is related to `std::future::Future`: there is no executor, and nothing is polled. The
//! machine is woken when the value has been set.

mod cancellation;
mod poll_cancelled;
mod poll_ready;
mod waiter;

use std::fmt;
use std::sync::{PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

pub(crate) use self::cancellation::{Cancellations, OnCancel};
pub(crate) use self::waiter::{PortCounter, Waiter};
use crate::notifier::Notifier;
use crate::sync::{self, Mutex, MutexGuard, thread};
use crate::waiter_queue::WaiterQueue;

/// The receiver of a one-shot channel, which a machine keeps. Not related to
/// [`std::future::Future`].
///
/// It is made together with its [`Port`] by [`Scope::create_future`](crate::Scope::create_future).
/// When the value is set, or the port is dropped without a value, the machine is woken; then
/// [`take`](Future::take) returns the outcome. Dropping the future tells the owner of the port that
/// the value is not wanted any more ([`Port::is_cancelled`]). If the future outlives its machine,
/// it does not get a value that is set after the machine's end.
///
/// If you need both, refer to the trait of async code by its path:
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Future, Outcome};
///
/// fn is_there(future: Future<u32>) -> bool {
///     matches!(future.take(), Outcome::Value(_))
/// }
///
/// fn later(value: u32) -> impl std::future::Future<Output = u32> {
///     async move { value }
/// }
/// ```
#[doc(alias = "oneshot")]
#[doc(alias = "Receiver")]
#[doc(alias = "promise")]
#[must_use = "dropping a future cancels what it waits for"]
pub struct Future<V> {
    /// `None` only while the future is being dropped or taken.
    cell: Option<sync::Arc<Cell<V>>>,
}

/// The sender of a one-shot channel, which is given to another machine or another thread.
///
/// Setting the value wakes the machine that made the channel. Dropping the port without a value
/// wakes that machine too; the future then returns [`FutureError::Dropped`], or
/// [`FutureError::Panicked`] if the port was dropped by a panic.
#[doc(alias = "oneshot")]
#[doc(alias = "Sender")]
#[doc(alias = "promise")]
#[must_use = "dropping a port tells the machine that waits that there will be no value"]
pub struct Port<V> {
    /// `None` only while the port is being dropped or set.
    cell: Option<sync::Arc<Cell<V>>>,
}

/// The state of a future, as [`Future::take`] returns it.
#[doc(alias = "Poll")]
#[derive(Debug)]
pub enum Outcome<V> {
    /// There is no value yet. This is the future, to be kept.
    Pending(Future<V>),
    /// The value.
    Value(V),
    /// There will be no value.
    Lost(FutureError),
}

/// Why there will be no value.
#[doc(alias = "Lost")]
#[doc(alias = "RecvError")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FutureError {
    /// The port was dropped without a value.
    Dropped,
    /// The port was dropped while its thread panicked.
    Panicked,
    /// The time limit passed before the job began
    /// ([`JobBuilder::begin_before`](crate::JobBuilder::begin_before)) or before a permit was free
    /// ([`Permits::ask_until`](crate::Permits::ask_until)).
    Late,
    /// The request cannot be fulfilled any more, because the permits were closed:
    /// [`Permits::close`](crate::Permits::close).
    Cancelled,
}

impl fmt::Display for FutureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FutureError::Dropped => "the answering side dropped its port without a value",
            FutureError::Panicked => "the answering side panicked",
            FutureError::Late => "it was too late",
            FutureError::Cancelled => "what was asked for is not given any more",
        })
    }
}

impl std::error::Error for FutureError {}

struct Cell<V> {
    shared: Mutex<Shared<V>>,
    waiter: Waiter,
}

struct Shared<V> {
    state: State<V>,
    on_cancel: OnCancel,
}

enum State<V> {
    /// Contains the waker of async code that waits in addition to the machine, if there is any.
    Pending(Option<Waker>),
    Value(V),
    Lost(FutureError),
    /// The future was dropped, or its machine had ended when the value was set.
    Cancelled,
}

impl<V> State<V> {
    /// Wakes the async code that was waiting in this previous state. Call it without the lock, and
    /// before the machine is woken, because that code may be part of the machine.
    #[inline]
    fn wake(self) {
        if let State::Pending(Some(waker)) = self {
            waker.wake();
        }
    }
}

impl<V> Cell<V> {
    fn lock(&self) -> MutexGuard<'_, Shared<V>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_on_cancel(&self, on_cancel: OnCancel) {
        let before = std::mem::replace(&mut self.lock().on_cancel, on_cancel);
        // Dropped without the lock, because the waker may be the last owner of the future.
        drop(before);
    }
}

/// Makes a port and its future. `waiter` is woken for the value; `on_cancel` is notified if the
/// future is dropped before there is a value.
pub(crate) fn channel<V>(waiter: Waiter, on_cancel: OnCancel) -> (Port<V>, Future<V>) {
    let shared = Mutex::new(Shared { state: State::Pending(None), on_cancel });
    let cell = sync::Arc::new(Cell { shared, waiter });
    (Port { cell: Some(cell.clone()) }, Future { cell: Some(cell) })
}

impl<V> Future<V> {
    /// Takes the value if it has been set, and otherwise returns the future.
    ///
    /// ```
    /// # use rotor_core::{Future, Outcome};
    /// fn describe(future: Future<u32>) -> String {
    ///     match future.take() {
    ///         Outcome::Value(value) => format!("got {value}"),
    ///         Outcome::Pending(_future) => "keep the future in the next state".into(),
    ///         Outcome::Lost(lost) => lost.to_string(),
    ///     }
    /// }
    /// ```
    pub fn take(mut self) -> Outcome<V> {
        let Some(cell) = self.cell.take() else { return Outcome::Pending(self) };
        let taken = match sync::Arc::try_unwrap(cell) {
            // Usually the port is gone by now, and no lock is needed.
            Ok(cell) => cell.shared.into_inner().unwrap_or_else(PoisonError::into_inner).state,
            Err(cell) => {
                let mut shared = cell.lock();
                if matches!(shared.state, State::Pending(_)) {
                    drop(shared);
                    // The cell is put back, so that a future that is dropped later still cancels.
                    self.cell = Some(cell);
                    return Outcome::Pending(self);
                }
                std::mem::replace(&mut shared.state, State::Cancelled)
            }
        };
        match taken {
            State::Value(value) => Outcome::Value(value),
            State::Lost(lost) => Outcome::Lost(lost),
            // The machine of the future had ended, so the value was returned to the sender.
            State::Pending(_) | State::Cancelled => Outcome::Lost(FutureError::Dropped),
        }
    }

    /// Blocks the current thread until the value is set. It must be the thread that is woken for
    /// it.
    pub(crate) fn wait(mut self) -> Result<V, FutureError> {
        loop {
            match self.take() {
                Outcome::Pending(pending) => self = pending,
                Outcome::Value(value) => return Ok(value),
                Outcome::Lost(lost) => return Err(lost),
            }
            // May return spuriously, and returns at once if the value has been set meanwhile.
            thread::park();
        }
    }

    /// Like `wait`, but waits for at most `time`. The outcome is then still `Pending`.
    #[expect(clippy::disallowed_methods, reason = "a thread that runs no loop has no loop's time")]
    pub(crate) fn wait_timeout(mut self, time: Duration) -> Outcome<V> {
        let started = Instant::now();
        loop {
            self = match self.take() {
                Outcome::Pending(pending) => pending,
                outcome => return outcome,
            };
            // This also works if `time` is longer than the system can represent.
            let Some(left) = time.checked_sub(started.elapsed()).filter(|left| !left.is_zero())
            else {
                return Outcome::Pending(self);
            };
            // Not loom's `park_timeout`: no time passes in a model.
            std::thread::park_timeout(left);
        }
    }

    /// Returns whether [`take`](Future::take) would return something other than the future.
    pub fn is_ready(&self) -> bool {
        self.cell.as_ref().is_some_and(|cell| !matches!(cell.lock().state, State::Pending(_)))
    }
}

impl<V> Drop for Future<V> {
    fn drop(&mut self) {
        let Some(cell) = self.cell.take() else { return };
        let (before, on_cancel) = {
            let mut shared = cell.lock();
            let on_cancel = std::mem::replace(&mut shared.on_cancel, OnCancel::Nobody);
            (std::mem::replace(&mut shared.state, State::Cancelled), on_cancel)
        };
        // Called without the lock, since the code that is notified may use the port; and only if
        // the port still exists.
        match before {
            State::Pending(_) => on_cancel.notify(),
            State::Value(_) => on_cancel.value_unclaimed(),
            State::Lost(_) | State::Cancelled => {}
        }
    }
}

impl<V> Port<V> {
    /// Sets the value and wakes the machine that waits for it.
    ///
    /// # Errors
    ///
    /// Returns the value if it is not wanted any more: the future was dropped, or its machine is
    /// gone.
    pub fn set(mut self, value: V) -> Result<(), V> {
        // Always present here: only a call that ends the port takes it.
        let Some(cell) = self.cell.take() else { return Err(value) };
        let before = {
            let mut shared = cell.lock();
            if matches!(shared.state, State::Cancelled) {
                drop(shared);
                cell.waiter.release_port();
                return Err(value);
            }
            std::mem::replace(&mut shared.state, State::Value(value))
        };
        before.wake();
        if cell.waiter.wake() {
            return Ok(());
        }
        // The machine has ended meanwhile. The value is returned, unless the future lives on
        // elsewhere and the value has been taken from it already.
        let state = std::mem::replace(&mut cell.lock().state, State::Cancelled);
        if let State::Value(value) = state { Err(value) } else { Ok(()) }
    }

    /// Returns whether the future was dropped or its machine is gone, so that a value would not be
    /// received.
    #[doc(alias = "cancellation")]
    #[doc(alias = "is_closed")]
    pub fn is_cancelled(&self) -> bool {
        let is_gone = |cell: &sync::Arc<Cell<V>>| {
            matches!(cell.lock().state, State::Cancelled) || !cell.waiter.is_alive()
        };
        self.cell.as_ref().is_none_or(is_gone)
    }

    /// Sets that `notifier` is woken when the future is dropped, instead of what would have been
    /// woken before. This is for a machine to which a port was passed on. Check
    /// [`is_cancelled`](Port::is_cancelled) after this call.
    #[doc(alias = "cancellation")]
    pub fn on_cancel(&self, notifier: Notifier) {
        if let Some(cell) = &self.cell {
            cell.set_on_cancel(OnCancel::Machine(notifier));
        }
    }

    /// Sets that the place in `queue` becomes free when the future is dropped. Returns `false` if
    /// it was dropped before.
    pub(crate) fn leave_queue_on_cancel(&self, queue: Weak<dyn WaiterQueue>, place: u64) -> bool {
        let Some(cell) = &self.cell else { return false };
        let (_before, is_wanted) = {
            let mut shared = cell.lock();
            let before = std::mem::replace(&mut shared.on_cancel, OnCancel::Queue(queue, place));
            (before, !matches!(shared.state, State::Cancelled))
        };
        is_wanted
    }

    /// Sets that nothing is notified when the future is dropped.
    pub(crate) fn clear_on_cancel(&self) {
        if let Some(cell) = &self.cell {
            cell.set_on_cancel(OnCancel::Nobody);
        }
    }

    /// Ends the port without a value, for the given reason.
    pub(crate) fn fail(mut self, lost: FutureError) {
        self.end(lost);
    }

    fn end(&mut self, lost: FutureError) {
        let Some(cell) = self.cell.take() else { return };
        let before = {
            let mut shared = cell.lock();
            if !matches!(shared.state, State::Pending(_)) {
                drop(shared);
                return cell.waiter.release_port(); // nobody waits any more
            }
            std::mem::replace(&mut shared.state, State::Lost(lost))
        };
        before.wake();
        cell.waiter.wake();
    }

    /// Drops both ends without waking anything, as if they had never existed.
    pub(crate) fn abandon(mut self, future: Future<V>) {
        if let Some(cell) = self.cell.take() {
            // Set before the future is dropped, because dropping a pending future notifies of its
            // cancellation.
            cell.lock().state = State::Cancelled;
        }
        drop(future);
    }
}

impl<V> Drop for Port<V> {
    fn drop(&mut self) {
        // A port that is dropped while its thread unwinds indicates a bug; otherwise the drop was a
        // decision.
        self.end(if thread::panicking() { FutureError::Panicked } else { FutureError::Dropped });
    }
}

impl<V> fmt::Debug for Future<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Future(ready: {})", self.is_ready())
    }
}

impl<V> fmt::Debug for Port<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Port(cancelled: {})", self.is_cancelled())
    }
}
