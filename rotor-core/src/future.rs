//! A one-shot value from anywhere to a machine: `Port` sets it, `Future` takes it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::Notifier;

/// The end of a one-shot value that a machine keeps.
///
/// Made with its [`Port`] by [`Scope::create_future`](crate::Scope::create_future). When the value is set, or the port
/// is dropped without one, the machine is woken; then [`take`](Future::take) tells. Dropping the future tells the other
/// end that nobody waits any more ([`Port::is_cancelled`]).
#[must_use = "dropping a future cancels what it waits for"]
pub struct Future<V> {
    cell: Arc<Cell<V>>,
}

/// The end of a one-shot value that is given away: to another machine, or to another thread.
///
/// Setting it wakes the machine that made it. Dropping it unset wakes it too, and its future says
/// [`Lost::Dropped`], or [`Lost::Panicked`] when a panic was the reason.
pub struct Port<V> {
    cell: Arc<Cell<V>>,
    notifier: Option<Notifier>,
}

/// What a future has come to.
#[derive(Debug)]
pub enum Outcome<V> {
    /// Nothing yet: the future back.
    Pending(Future<V>),
    /// The value.
    Value(V),
    /// There will be none.
    Lost(Lost),
}

/// Why there will be no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The port was dropped without a value.
    Dropped,
    /// The port was dropped by a panic.
    Panicked,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lost::Dropped => "the answering side dropped its port without a value",
            Lost::Panicked => "the answering side panicked",
        })
    }
}

impl std::error::Error for Lost {}

struct Cell<V> {
    state: Mutex<State<V>>,
    /// Who is to hear that the future was dropped.
    on_cancel: Option<Notifier>,
}

enum State<V> {
    Pending,
    Value(V),
    Lost(Lost),
    /// The future was dropped.
    Cancelled,
}

impl<V> Cell<V> {
    fn lock(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the two ends; `notifier` wakes the machine that takes the value, `on_cancel` whoever is to hear that the
/// future was dropped before there was one.
pub(crate) fn pair<V>(notifier: Notifier, on_cancel: Option<Notifier>) -> (Port<V>, Future<V>) {
    let cell = Arc::new(Cell { state: Mutex::new(State::Pending), on_cancel });
    (Port { cell: cell.clone(), notifier: Some(notifier) }, Future { cell })
}

impl<V> Future<V> {
    /// The value, if it is there; the future back, if it is not.
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
    pub fn take(self) -> Outcome<V> {
        let mut state = self.cell.lock();
        if matches!(*state, State::Pending | State::Cancelled) {
            drop(state);
            return Outcome::Pending(self);
        }
        let taken = std::mem::replace(&mut *state, State::Cancelled);
        drop(state);
        match taken {
            State::Value(value) => Outcome::Value(value),
            State::Lost(lost) => Outcome::Lost(lost),
            State::Pending | State::Cancelled => Outcome::Lost(Lost::Dropped),
        }
    }

    /// Whether [`take`](Future::take) would give something other than the future back.
    pub fn is_ready(&self) -> bool {
        matches!(*self.cell.lock(), State::Value(_) | State::Lost(_))
    }
}

impl<V> Drop for Future<V> {
    fn drop(&mut self) {
        let before = {
            let mut state = self.cell.lock();
            std::mem::replace(&mut *state, State::Cancelled)
        };
        if let (State::Pending, Some(notifier)) = (&before, &self.cell.on_cancel) {
            notifier.wakeup();
        }
    }
}

impl<V> Port<V> {
    /// Sets the value and wakes the machine that waits for it.
    ///
    /// # Errors
    ///
    /// The value back, when nobody waits any more: the future was dropped, or its machine is gone.
    pub fn set(mut self, value: V) -> Result<(), V> {
        let Some(notifier) = self.notifier.take() else { return Err(value) };
        {
            let mut state = self.cell.lock();
            if matches!(*state, State::Cancelled) {
                return Err(value);
            }
            *state = State::Value(value);
        }
        if notifier.wakeup() {
            return Ok(());
        }
        match std::mem::replace(&mut *self.cell.lock(), State::Cancelled) {
            State::Value(value) => Err(value),
            _ => Ok(()),
        }
    }

    /// Whether the future was dropped, or its machine is gone: the value would reach nobody.
    pub fn is_cancelled(&self) -> bool {
        matches!(*self.cell.lock(), State::Cancelled)
            || self.notifier.as_ref().is_none_or(|notifier| !notifier.is_alive())
    }
}

impl<V> Drop for Port<V> {
    fn drop(&mut self) {
        let Some(notifier) = self.notifier.take() else { return };
        let lost = if thread::panicking() { Lost::Panicked } else { Lost::Dropped };
        {
            let mut state = self.cell.lock();
            if !matches!(*state, State::Pending) {
                return; // nobody waits any more
            }
            *state = State::Lost(lost);
        }
        notifier.wakeup();
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
