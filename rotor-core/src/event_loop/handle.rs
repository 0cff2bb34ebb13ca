//! Ending a loop from outside: at once, or after its machines have finished.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::drop_on_drain::DropOnDrain;
use crate::drain::Drain;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU32};
use crate::token::Token;
use crate::wake_queue::WakeQueue;

/// Why a loop has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Exit {
    /// No machine is left.
    Empty,
    /// A machine or a [`LoopHandle`] stopped the loop.
    Stopped,
    /// The loop was drained: every machine has ended by itself, or the time limit was reached and
    /// the remaining machines were dropped.
    Drained {
        /// How many machines were dropped when the time limit was reached. The log says, at level
        /// info, of which types they were.
        dropped: usize,
    },
    /// A handler panicked under [`OnPanic::StopLoop`](crate::OnPanic::StopLoop). Its machine is
    /// gone.
    Panicked {
        /// The machine whose handler panicked.
        token: Token,
    },
}

/// A handle that stops or drains one loop, from any thread.
#[derive(Clone)]
pub struct LoopHandle {
    control: Arc<Control>,
}

/// The requests to a loop, from its handles and from handlers on other threads.
pub(crate) struct Control {
    pub(super) stop: AtomicBool,
    /// Whether a handle was used to end the loop, in whatever way.
    is_ending: AtomicBool,
    /// Whether a successor process has the listeners.
    has_successor: AtomicBool,
    /// The bits [`DRAIN_REQUESTED`], [`LOOP_WANTED`] and [`LATE_ANSWERS`] in one word, because each
    /// turn looks at it.
    requests: AtomicU32,
    drain: Mutex<Option<Drain>>,
    drop_on_drain: Arc<DropOnDrain>,
    wakes: Arc<WakeQueue>,
}

/// `Control::drain` was written.
const DRAIN_REQUESTED: u32 = 1;

/// A handler that has handed the loop over wants it back.
const LOOP_WANTED: u32 = 2;

/// A handler from which the loop was taken has returned.
const LATE_ANSWERS: u32 = 4;

impl Control {
    pub(super) fn new(wakes: Arc<WakeQueue>, drop_on_drain: Arc<DropOnDrain>) -> Control {
        Control {
            stop: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            has_successor: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            drain: Mutex::new(None),
            drop_on_drain,
            wakes,
        }
    }

    /// Returns whether there is any request to handle.
    pub(super) fn has_request(&self) -> bool {
        self.stop.load(SeqCst) || self.requests.load(SeqCst) != 0
    }

    /// Notes whether a handler wants the loop back. Called with a lock held, so that the latest
    /// call decides.
    pub(super) fn set_loop_wanted(&self, is_wanted: bool) {
        self.set_bit(LOOP_WANTED, is_wanted);
    }

    /// Notes whether late answers wait to be applied. Called with a lock held as well.
    pub(super) fn set_late_answers(&self, has_any: bool) {
        self.set_bit(LATE_ANSWERS, has_any);
    }

    fn set_bit(&self, bit: u32, is_set: bool) {
        if is_set {
            self.requests.fetch_or(bit, SeqCst);
        } else {
            self.requests.fetch_and(!bit, SeqCst);
        }
    }

    /// Returns whether handlers on other threads need something from the thread that runs the loop.
    /// Checked before each call of a machine.
    #[inline]
    pub(super) fn has_handler_request(&self) -> bool {
        self.requests.load(Relaxed) & (LOOP_WANTED | LATE_ANSWERS) != 0
    }

    /// Returns whether a handler wants the loop back.
    pub(super) fn is_loop_wanted(&self) -> bool {
        self.requests.load(Relaxed) & LOOP_WANTED != 0
    }

    pub(super) fn take_drain(&self) -> Option<Drain> {
        // Clear the bit before the value is taken: a drain that is written in between sets it
        // again.
        if self.requests.load(SeqCst) & DRAIN_REQUESTED == 0 {
            return None;
        }
        self.requests.fetch_and(!DRAIN_REQUESTED, SeqCst);
        self.drain.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Takes a flag that is rarely set. Every turn looks at several such flags, and a load costs a
/// fraction of a swap.
pub(super) fn take_flag(flag: &AtomicBool) -> bool {
    flag.load(SeqCst) && flag.swap(false, SeqCst)
}

impl LoopHandle {
    pub(super) fn new(control: Arc<Control>) -> LoopHandle {
        LoopHandle { control }
    }

    /// Stops the loop after its current turn. Its machines are not called again; they are dropped
    /// with the loop.
    pub fn stop(&self) {
        self.control.is_ending.store(true, Release);
        // `SeqCst`, because `wake_loop` requires it for what is stored before the call.
        self.control.stop.store(true, SeqCst);
        self.control.wakes.wake_loop();
    }

    /// Lets the machines finish, for at most `time`.
    ///
    /// Each machine gets [`draining`](crate::Machine::draining); listeners then accept the
    /// connections that are queued, and end. The loop ends when no machine is left, or when the
    /// time is over, in which case the remaining machines are dropped.
    ///
    /// This is [`drain_with`](LoopHandle::drain_with) with [`Drain::new(time)`](Drain::new):
    /// without an announcement, and with a grace of 1 s for connections whose peers may have sent a
    /// request already.
    ///
    /// A second call can bring the end nearer, but never postpone it.
    #[doc(alias = "graceful shutdown")]
    pub fn drain(&self, time: Duration) {
        self.drain_with(Drain::new(time));
    }

    /// Lets the machines finish, in the phases that `drain` describes.
    ///
    /// A second call can bring each phase and the end nearer, but never postpone them: of two
    /// announcements, time limits or graces, the one that is over first counts. A grace that a
    /// machine was already given does not change.
    #[doc(alias = "graceful shutdown")]
    pub fn drain_with(&self, drain: Drain) {
        self.control.is_ending.store(true, Release);
        {
            let mut pending = self.control.drain.lock().unwrap_or_else(PoisonError::into_inner);
            *pending = Some(pending.map_or(drain, |previous| previous.combine_earliest(drain)));
        }
        // After the write: a loop that sees this bit sees the drain.
        self.control.requests.fetch_or(DRAIN_REQUESTED, SeqCst);
        self.control.wakes.wake_loop();
    }
}

impl LoopHandle {
    /// Returns whether a handle has told the loop to end, by stopping or draining it; an
    /// announcement of a drain counts. It stays `false` for a loop that ends by itself or that a
    /// machine stops, and `true` for one that was told to end and is run again.
    #[doc(alias = "readiness")]
    pub fn is_ending(&self) -> bool {
        // A thread that sees this also sees a successor that was noted before.
        self.control.is_ending.load(Acquire)
    }

    /// Notes that the process has a successor, which now has the listeners.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn set_has_successor(&self) {
        self.control.has_successor.store(true, Relaxed);
    }

    pub(crate) fn has_successor(&self) -> bool {
        self.control.has_successor.load(Relaxed)
    }

    /// Keeps a value until the loop drains or is dropped.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        allow(dead_code, reason = "listeners are handed over there only")
    )]
    pub(crate) fn keep_until_draining(&self, value: impl Send + 'static) {
        self.control.drop_on_drain.add(value);
    }
}

/// What a hand-over does with a handle, for the models.
#[cfg(rotor_loom)]
impl LoopHandle {
    /// Drains a loop whose process has a successor.
    pub fn drain_after_hand_over(&self, time: Duration) {
        self.set_has_successor();
        self.drain(time);
    }

    /// Returns whether the process has a successor.
    pub fn is_followed(&self) -> bool {
        self.has_successor()
    }
}

impl fmt::Debug for LoopHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoopHandle")
    }
}
