//! A one-shot channel to a machine: `Port` is its sender, usable anywhere, and `Future` its
//! receiver.
//!
//! Neither is related to `std::future::Future`: there is no executor, and nothing is polled. The
//! machine is woken when the value is there.

mod poll_cancelled;
mod poll_ready;

use std::fmt;
use std::sync::{Arc, PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::notifier::Notifier;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use crate::sync::thread::{self, Thread};
use crate::sync::{self, Mutex, MutexGuard};

/// The receiver of a one-shot channel, which a machine keeps; not related to
/// [`std::future::Future`].
///
/// It is made with its [`Port`] by [`Scope::create_future`](crate::Scope::create_future). When the
/// value is set, or the port is dropped without one, the machine is woken; then
/// [`take`](Future::take) returns the outcome. Dropping the future tells the other end that nobody
/// waits any more ([`Port::is_cancelled`]). A future that outlives its machine does not get a value
/// that is set after the machine's end.
///
/// Where you need both, name the trait of async code by its path:
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
    /// Absent only while it is being taken apart.
    cell: Option<sync::Arc<Cell<V>>>,
}

/// The sender of a one-shot channel, which is given away: to another machine, or to another thread.
///
/// Setting it wakes the machine that made it. Dropping it without a value wakes that machine too,
/// and the future then says [`Lost::Dropped`], or [`Lost::Panicked`] when a panic was the reason.
#[doc(alias = "oneshot")]
#[doc(alias = "Sender")]
#[doc(alias = "promise")]
#[must_use = "dropping a port tells the machine that waits that there will be no value"]
pub struct Port<V> {
    /// Absent only while it is being taken apart.
    cell: Option<sync::Arc<Cell<V>>>,
}

/// What a future has come to.
#[doc(alias = "Poll")]
#[derive(Debug)]
pub enum Outcome<V> {
    /// There is no value yet; this is the future, to keep.
    Pending(Future<V>),
    /// The value.
    Value(V),
    /// There will be no value.
    Lost(Lost),
}

/// Why there will be no value.
#[doc(alias = "RecvError")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Lost {
    /// The port was dropped without a value.
    Dropped,
    /// The port was dropped by a panic.
    Panicked,
    /// It was too late to begin ([`JobBuilder::begin_before`](crate::JobBuilder::begin_before)), or
    /// to wait any longer ([`Permits::ask_until`](crate::Permits::ask_until)).
    Late,
    /// What was asked for is no longer given: [`Permits::close`](crate::Permits::close).
    Cancelled,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lost::Dropped => "the answering side dropped its port without a value",
            Lost::Panicked => "the answering side panicked",
            Lost::Late => "it was too late",
            Lost::Cancelled => "what was asked for is not given any more",
        })
    }
}

impl std::error::Error for Lost {}

/// Who takes the value.
pub(crate) enum Waiter {
    Machine(Notifier),
    Thread(Thread),
    /// A machine that hears of several values together.
    Together(Arc<Together>),
}

/// Counts the ports that are to come to something before a machine is woken.
pub(crate) struct Together {
    machine: Notifier,
    left: AtomicUsize,
}

impl Together {
    /// Makes one that waits for one thing: that there will be no more.
    pub(crate) fn new(machine: Notifier) -> Together {
        Together { machine, left: AtomicUsize::new(1) }
    }

    /// There is one thing more to wait for.
    pub(crate) fn one_more(&self) {
        self.left.fetch_add(1, Relaxed);
    }

    /// One thing has come. Returns `false` when the machine is gone.
    pub(crate) fn one_less(&self) -> bool {
        // What came before each of them is seen by the machine, which the last one wakes.
        match self.left.fetch_sub(1, AcqRel) {
            1 => self.machine.wakeup(),
            _ => self.machine.is_alive(),
        }
    }
}

impl Waiter {
    /// Wakes it. Returns `false` when nobody is there any more.
    fn wake(&self) -> bool {
        match self {
            Waiter::Machine(notifier) => notifier.wakeup(),
            Waiter::Thread(thread) => {
                // Not lost on a thread that is about to park: that returns at once then.
                thread.unpark();
                true
            }
            Waiter::Together(together) => together.one_less(),
        }
    }

    fn is_alive(&self) -> bool {
        match self {
            Waiter::Machine(notifier) => notifier.is_alive(),
            // It holds the future for as long as it waits; `State::Cancelled` says when it does
            // not.
            Waiter::Thread(_) => true,
            Waiter::Together(together) => together.machine.is_alive(),
        }
    }

    /// The port has come to its end, and nobody waits for that any more.
    fn pass_by(&self) {
        if let Waiter::Together(together) = self {
            together.one_less();
        }
    }
}

/// Who is to hear that the future was dropped.
pub(crate) enum OnCancel {
    Nobody,
    Machine(Notifier),
    /// Async code that works on the value.
    Waker(Waker),
    Server(Arc<Cancellations>),
    /// The line in which its place becomes free. Weak, since the line has the port: it is to go
    /// with the last one who could serve it.
    Line(Weak<dyn Leave>, u64),
}

/// A line of those who wait for a value: who does not any more leaves it.
pub(crate) trait Leave: Send + Sync {
    fn leave(&self, place: u64);

    /// The future was dropped with its value in it. What is to go on to the next one does so in the
    /// value's own drop; a value that has none is passed on here.
    fn was_not_taken(&self) {}
}

/// Tells a machine that one of many futures was dropped, so that it looks through them only when
/// one was.
pub(crate) struct Cancellations {
    server: Notifier,
    happened: AtomicBool,
}

impl Cancellations {
    pub(crate) fn new(server: Notifier) -> Cancellations {
        Cancellations { server, happened: AtomicBool::new(false) }
    }

    /// Returns whether there was one since this was last asked.
    pub(crate) fn take(&self) -> bool {
        self.happened.swap(false, AcqRel)
    }

    fn tell(&self) {
        // Before the wake-up, so that the server that looks finds it.
        self.happened.store(true, Release);
        self.server.wakeup();
    }
}

impl OnCancel {
    fn was_not_taken(&self) {
        if let OnCancel::Line(line, _) = self
            && let Some(line) = line.upgrade()
        {
            line.was_not_taken();
        }
    }

    fn tell(&self) {
        match self {
            OnCancel::Nobody => {}
            OnCancel::Machine(notifier) => {
                notifier.wakeup();
            }
            OnCancel::Waker(waker) => waker.wake_by_ref(),
            OnCancel::Server(cancellations) => cancellations.tell(),
            OnCancel::Line(line, place) => {
                if let Some(line) = line.upgrade() {
                    line.leave(*place);
                }
            }
        }
    }
}

struct Cell<V> {
    shared: Mutex<Shared<V>>,
    waiter: Waiter,
}

struct Shared<V> {
    state: State<V>,
    on_cancel: OnCancel,
}

enum State<V> {
    /// With the waker of async code that waits beside the machine, if there is some.
    Pending(Option<Waker>),
    Value(V),
    Lost(Lost),
    /// The future was dropped, or its machine had ended when the value was set.
    Cancelled,
}

impl<V> State<V> {
    /// It was this until now: async code that waits for its end looks again. Without the lock, and
    /// before the machine is woken, in which the code may be.
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
        // Without the lock: a waker may be the last that owns the future.
        drop(before);
    }
}

/// Makes the two ends; `waiter` takes the value, `on_cancel` hears that the future was dropped
/// before there was one.
pub(crate) fn pair<V>(waiter: Waiter, on_cancel: OnCancel) -> (Port<V>, Future<V>) {
    let shared = Mutex::new(Shared { state: State::Pending(None), on_cancel });
    let cell = sync::Arc::new(Cell { shared, waiter });
    (Port { cell: Some(cell.clone()) }, Future { cell: Some(cell) })
}

impl<V> Future<V> {
    /// Takes the value if it is there, and otherwise returns the future.
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
            // As a rule the port is gone by now: then there is nobody to be locked out.
            Ok(cell) => cell.shared.into_inner().unwrap_or_else(PoisonError::into_inner).state,
            Err(cell) => {
                let mut shared = cell.lock();
                if matches!(shared.state, State::Pending(_)) {
                    drop(shared);
                    // Back in its place, so that a future that is dropped later still cancels.
                    self.cell = Some(cell);
                    return Outcome::Pending(self);
                }
                std::mem::replace(&mut shared.state, State::Cancelled)
            }
        };
        match taken {
            State::Value(value) => Outcome::Value(value),
            State::Lost(lost) => Outcome::Lost(lost),
            // The machine that made it had ended, so the value went back.
            State::Pending(_) | State::Cancelled => Outcome::Lost(Lost::Dropped),
        }
    }

    /// Waits for the value, on the thread that is woken for it.
    pub(crate) fn wait(mut self) -> Result<V, Lost> {
        loop {
            match self.take() {
                Outcome::Pending(pending) => self = pending,
                Outcome::Value(value) => return Ok(value),
                Outcome::Lost(lost) => return Err(lost),
            }
            // May return for no reason, and at once if the value came meanwhile.
            thread::park();
        }
    }

    /// The same, for so long at most; then it is `Pending` still.
    #[expect(clippy::disallowed_methods, reason = "a thread that runs no loop has no loop's time")]
    pub(crate) fn wait_timeout(mut self, time: Duration) -> Outcome<V> {
        let begun = Instant::now();
        loop {
            self = match self.take() {
                Outcome::Pending(pending) => pending,
                outcome => return outcome,
            };
            // Also where the time is beyond all that the system counts.
            let Some(left) = time.checked_sub(begun.elapsed()).filter(|left| !left.is_zero())
            else {
                return Outcome::Pending(self);
            };
            // No time passes in a model, so that loom's has none.
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
        // Without the lock, since who is told looks at the port; and only if the port is still
        // there.
        match before {
            State::Pending(_) => on_cancel.tell(),
            State::Value(_) => on_cancel.was_not_taken(),
            State::Lost(_) | State::Cancelled => {}
        }
    }
}

impl<V> Port<V> {
    /// Sets the value and wakes the machine that waits for it.
    ///
    /// # Errors
    ///
    /// Returns the value when nobody waits any more: the future was dropped, or its machine is
    /// gone.
    pub fn set(mut self, value: V) -> Result<(), V> {
        // It is there: only what ends the port takes it.
        let Some(cell) = self.cell.take() else { return Err(value) };
        let before = {
            let mut shared = cell.lock();
            if matches!(shared.state, State::Cancelled) {
                drop(shared);
                cell.waiter.pass_by();
                return Err(value);
            }
            std::mem::replace(&mut shared.state, State::Value(value))
        };
        before.wake();
        if cell.waiter.wake() {
            return Ok(());
        }
        // The machine has ended meanwhile: the value goes back, unless its future lives on
        // elsewhere and has taken it by now.
        let state = std::mem::replace(&mut cell.lock().state, State::Cancelled);
        if let State::Value(value) = state { Err(value) } else { Ok(()) }
    }

    /// Returns whether the future was dropped or its machine is gone, so that the value would reach
    /// nobody.
    #[doc(alias = "cancellation")]
    #[doc(alias = "is_closed")]
    pub fn is_cancelled(&self) -> bool {
        let gone = |cell: &sync::Arc<Cell<V>>| {
            matches!(cell.lock().state, State::Cancelled) || !cell.waiter.is_alive()
        };
        self.cell.as_ref().is_none_or(gone)
    }

    /// From now on, wakes `notifier` when the future is dropped, instead of whoever was to be woken
    /// before: for a machine that a port was passed on to. Look at
    /// [`is_cancelled`](Port::is_cancelled) after calling this.
    #[doc(alias = "cancellation")]
    pub fn on_cancel(&self, notifier: Notifier) {
        if let Some(cell) = &self.cell {
            cell.set_on_cancel(OnCancel::Machine(notifier));
        }
    }

    /// From now on the place in `line` becomes free when the future is dropped. Returns `false`
    /// when it was dropped before.
    pub(crate) fn leave_on_cancel(&self, line: Weak<dyn Leave>, place: u64) -> bool {
        let Some(cell) = &self.cell else { return false };
        let (_before, is_wanted) = {
            let mut shared = cell.lock();
            let before = std::mem::replace(&mut shared.on_cancel, OnCancel::Line(line, place));
            (before, !matches!(shared.state, State::Cancelled))
        };
        is_wanted
    }

    /// From now on nobody hears that the future is dropped.
    pub(crate) fn forget_line(&self) {
        if let Some(cell) = &self.cell {
            cell.set_on_cancel(OnCancel::Nobody);
        }
    }

    /// Tells the future that there will be no value, and why.
    pub(crate) fn lose(mut self, lost: Lost) {
        self.end(lost);
    }

    fn end(&mut self, lost: Lost) {
        let Some(cell) = self.cell.take() else { return };
        let before = {
            let mut shared = cell.lock();
            if !matches!(shared.state, State::Pending(_)) {
                drop(shared);
                return cell.waiter.pass_by(); // nobody waits any more
            }
            std::mem::replace(&mut shared.state, State::Lost(lost))
        };
        before.wake();
        cell.waiter.wake();
    }

    /// Drops both ends as if they had never been: nobody is woken.
    pub(crate) fn abandon(mut self, future: Future<V>) {
        if let Some(cell) = self.cell.take() {
            // Before the future is dropped: one that is pending tells of its cancellation.
            cell.lock().state = State::Cancelled;
        }
        drop(future);
    }
}

impl<V> Drop for Port<V> {
    fn drop(&mut self) {
        // Dropped as a handler unwinds: a bug, where else it is a decision.
        self.end(if thread::panicking() { Lost::Panicked } else { Lost::Dropped });
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
