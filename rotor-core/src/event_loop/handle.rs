//! Ending a loop from outside: at once, or after its machines have finished.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::kept::Kept;
use crate::drain::Drain;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU32};
use crate::token::Token;
use crate::wake_queue::WakeQueue;

/// Why a loop has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Exit {
    /// No machine is left.
    Empty,
    /// A machine or a [`LoopHandle`] asked it to stop.
    Stopped,
    /// It was drained: every machine ended by itself, or the deadline came and the rest were
    /// dropped.
    Drained {
        /// How many machines were dropped at the deadline.
        dropped: usize,
    },
    /// A handler panicked under [`OnPanic::StopLoop`](crate::OnPanic::StopLoop). Its machine is
    /// gone.
    Panicked {
        /// The machine whose handler panicked.
        token: Token,
    },
}

/// Stops or drains one loop, from any thread.
#[derive(Clone)]
pub struct LoopHandle {
    control: Arc<Control>,
}

/// What handles ask of a loop.
pub(crate) struct Control {
    pub(super) stop: AtomicBool,
    /// Somebody was asked to end the loop, in whatever way.
    is_ending: AtomicBool,
    /// Another process has the listeners.
    is_followed: AtomicBool,
    /// [`DRAIN`], [`WANTED`] and [`LATE`]: one word for all, since each turn looks at it.
    asked: AtomicU32,
    drain: Mutex<Option<Drain>>,
    kept: Arc<Kept>,
    wakes: Arc<WakeQueue>,
}

/// Something was written to `Control::drain`.
const DRAIN: u32 = 1;

/// A handler that has given the loop away wants it back.
const WANTED: u32 = 2;

/// A handler from which the loop was taken has answered.
const LATE: u32 = 4;

impl Control {
    pub(super) fn new(wakes: Arc<WakeQueue>, kept: Arc<Kept>) -> Control {
        Control {
            stop: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            is_followed: AtomicBool::new(false),
            asked: AtomicU32::new(0),
            drain: Mutex::new(None),
            kept,
            wakes,
        }
    }

    /// Whether there is something to obey.
    pub(super) fn is_asked(&self) -> bool {
        self.stop.load(SeqCst) || self.asked.load(SeqCst) != 0
    }

    /// Notes whether a handler wants the loop back. Called with a lock, so that the last word is
    /// that of the last call.
    pub(super) fn set_wanted(&self, is_wanted: bool) {
        self.set(WANTED, is_wanted);
    }

    /// Notes whether late answers wait to be applied. Called with a lock as well.
    pub(super) fn set_late(&self, are_any: bool) {
        self.set(LATE, are_any);
    }

    fn set(&self, what: u32, is_so: bool) {
        if is_so {
            self.asked.fetch_or(what, SeqCst);
        } else {
            self.asked.fetch_and(!what, SeqCst);
        }
    }

    /// Whether handlers that are elsewhere want something of who runs the loop: looked at before
    /// each call.
    #[inline]
    pub(super) fn is_called(&self) -> bool {
        self.asked.load(Relaxed) & (WANTED | LATE) != 0
    }

    /// Whether a handler wants the loop back.
    pub(super) fn is_wanted(&self) -> bool {
        self.asked.load(Relaxed) & WANTED != 0
    }

    pub(super) fn take_drain(&self) -> Option<Drain> {
        // Taken before what was asked for: one that is written in between has this set again.
        if self.asked.load(SeqCst) & DRAIN == 0 {
            return None;
        }
        self.asked.fetch_and(!DRAIN, SeqCst);
        self.drain.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Takes a flag that is rarely set. Every turn looks at several of them, and a look costs a
/// fraction of a swap.
pub(super) fn take_flag(flag: &AtomicBool) -> bool {
    flag.load(SeqCst) && flag.swap(false, SeqCst)
}

impl LoopHandle {
    pub(super) fn new(control: Arc<Control>) -> LoopHandle {
        LoopHandle { control }
    }

    /// Stops the loop after its current turn. Its machines do not go on: they are dropped with the
    /// loop.
    pub fn stop(&self) {
        self.control.is_ending.store(true, Relaxed);
        // `SeqCst`, as `wake_loop` wants what is stored before it.
        self.control.stop.store(true, SeqCst);
        self.control.wakes.wake_loop();
    }

    /// Lets the machines finish, for at most `time`.
    ///
    /// Each machine gets [`draining`](crate::Machine::draining), at which listeners accept what has
    /// come, and end. The loop ends when no machine is left, or when the time is over; the
    /// remaining machines are then dropped.
    ///
    /// This is [`drain_with`](LoopHandle::drain_with) of [`Drain::new(time)`](Drain::new): without
    /// an announcement, and with a grace of 1 s for connections whose peers may have sent a request
    /// already.
    ///
    /// Asking again can bring the end nearer, but never postpone it.
    #[doc(alias = "graceful shutdown")]
    pub fn drain(&self, time: Duration) {
        self.drain_with(Drain::new(time));
    }

    /// Lets the machines finish, in the phases that `drain` describes.
    ///
    /// Asking again can bring each phase, and the end, nearer, but never postpone it: of two
    /// announcements, times and graces, those count that are over first. A grace that a machine was
    /// already given does not change.
    #[doc(alias = "graceful shutdown")]
    pub fn drain_with(&self, drain: Drain) {
        self.control.is_ending.store(true, Relaxed);
        {
            let mut asked = self.control.drain.lock().unwrap_or_else(PoisonError::into_inner);
            *asked = Some(asked.map_or(drain, |before| before.or_sooner(drain)));
        }
        // Behind what is asked for: a loop that finds this finds that.
        self.control.asked.fetch_or(DRAIN, SeqCst);
        self.control.wakes.wake_loop();
    }
}

impl LoopHandle {
    /// Returns whether a handle was asked to end the loop: to stop it or to drain it, an
    /// announcement included. It stays `false` for a loop that ends by itself or that a machine
    /// stops.
    #[doc(alias = "readiness")]
    pub fn is_ending(&self) -> bool {
        self.control.is_ending.load(Relaxed)
    }

    /// Notes that the process has a successor, which has the listeners.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn set_followed(&self) {
        self.control.is_followed.store(true, Relaxed);
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.control.is_followed.load(Relaxed)
    }

    /// Keeps a thing until the loop drains or is gone.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        allow(dead_code, reason = "listeners are handed over there only")
    )]
    pub(crate) fn keep_until_draining(&self, thing: impl Send + 'static) {
        self.control.kept.keep(thing);
    }
}

impl fmt::Debug for LoopHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoopHandle")
    }
}
