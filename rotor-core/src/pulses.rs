//! `Pulses`: whether all loops of a process still make turns.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backend::Backend;
use crate::event_loop::{LoopHandle, LoopInstance};
use crate::machine::Machine;
use crate::time::Time;

/// Tells whether all loops of a process still make turns, and whether one of them was told to end:
/// for probes and for a service manager.
///
/// Each [watched](Pulses::watch) loop notes its time once a second, in one of its turns. If the
/// last note of a loop is old, the loop is held up by a handler that blocks or never ends. If this
/// lasts, the process should be restarted. The notes can be read from any thread, including those
/// of the loops.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Config, Loop, Pulses, Time};
/// # use rotor::{Infallible, Machine};
/// # struct Idle;
/// # impl Machine for Idle { type Context = (); type Seed = Infallible; }
/// use std::time::Duration;
///
/// # fn main() -> std::io::Result<()> {
/// let pulses = Pulses::new();
/// let mut instance = Loop::<Idle>::new(&Config::new())?.instantiate(());
/// pulses.watch(&mut instance);
/// assert!(pulses.stalled_loops(instance.now(), Duration::from_secs(5)).is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[doc(alias = "liveness")]
#[doc(alias = "heartbeat")]
pub struct Pulses {
    loops: Arc<Mutex<Vec<WatchedLoop>>>,
}

/// A loop that makes no turns.
#[doc(alias = "HeldUp")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StalledLoop {
    /// The number of the loop, counted from 0 in the order of the calls of
    /// [`watch`](Pulses::watch), without those that are forgotten.
    pub index: usize,
    /// How long ago its last note was.
    pub since: Duration,
    /// Whether the loop has ended although no handle had told it to.
    pub has_ended: bool,
}

struct WatchedLoop {
    pulse: Arc<LoopPulse>,
    handle: LoopHandle,
}

impl WatchedLoop {
    fn has_ended_as_told(&self) -> bool {
        self.pulse.has_ended.load(Relaxed) && self.handle.is_ending()
    }
}

struct LoopPulse {
    /// In nanoseconds of the loop's clock.
    last_pulse: AtomicU64,
    has_ended: AtomicBool,
}

/// Owned by the loop, so that it is dropped with it.
struct PulseGuard(Arc<LoopPulse>);

impl Drop for PulseGuard {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Relaxed);
    }
}

impl Pulses {
    /// How often a loop notes its time: 1 s, so that a loop that is held up for a few seconds is
    /// noticed, and an idle process has no noticeable load.
    pub const EVERY: Duration = Duration::from_secs(1);

    /// Creates a value that watches no loops yet.
    pub fn new() -> Pulses {
        Pulses::default()
    }

    /// Makes a loop note its time from now on. Run the loop soon, or it counts as held up.
    ///
    /// Loops that were told to end and have ended are forgotten: the process goes on with this one.
    pub fn watch<M: Machine, B: Backend>(&self, instance: &mut LoopInstance<M, B>) {
        let pulse = Arc::new(LoopPulse {
            last_pulse: AtomicU64::new(instance.now().as_nanos()),
            has_ended: AtomicBool::new(false),
        });
        let guard = PulseGuard(pulse.clone());
        instance.every(Pulses::EVERY, move |_, scope| {
            guard.0.last_pulse.store(scope.now().as_nanos(), Relaxed);
        });
        let mut loops = self.loops();
        loops.retain(|watched| !watched.has_ended_as_told());
        loops.push(WatchedLoop { pulse, handle: instance.handle() });
    }

    /// Returns the loops whose last note is older than `within`, and those that have ended although
    /// no handle had told them to. `within` should be at least two seconds. A loop that was told to
    /// end and has ended is not returned.
    #[doc(alias = "held_up")]
    pub fn stalled_loops(&self, now: Time, within: Duration) -> Vec<StalledLoop> {
        let loops = self.loops();
        let held_up = |(index, watched): (usize, &WatchedLoop)| {
            let since = now - Time::from_nanos(watched.pulse.last_pulse.load(Relaxed));
            let has_ended = watched.pulse.has_ended.load(Relaxed);
            let is_held_up = if has_ended { !watched.handle.is_ending() } else { since > within };
            is_held_up.then_some(StalledLoop { index, since, has_ended })
        };
        loops.iter().enumerate().filter_map(held_up).collect()
    }

    /// Returns how many loops are watched.
    pub fn len(&self) -> usize {
        self.loops().len()
    }

    /// Returns whether no loop is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether one of the loops was told to end; see [`LoopHandle::is_ending`].
    #[doc(alias = "readiness")]
    pub fn is_ending(&self) -> bool {
        self.loops().iter().any(|watched| watched.handle.is_ending())
    }

    /// Returns whether one of the loops was told to end because a successor process has its
    /// listeners (module `hand_over`), so that the service goes on.
    pub fn has_successor(&self) -> bool {
        self.loops().iter().any(|watched| watched.handle.has_successor())
    }

    fn loops(&self) -> MutexGuard<'_, Vec<WatchedLoop>> {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pulses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pulses({} loops)", self.len())
    }
}
