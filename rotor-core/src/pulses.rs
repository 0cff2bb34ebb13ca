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

/// Whether all loops of a process still make turns, and whether one of them was asked to end: what
/// probes and a service manager ask.
///
/// Each loop that is [watched](Pulses::watch) notes its time once a second, in a turn of its own.
/// One whose last note is old is held up, by a handler that blocks or that never ends; a process in
/// which that stays so is to be started again. It is read from any thread, one of the loops among
/// them.
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
/// assert!(pulses.held_up(instance.now(), Duration::from_secs(5)).is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[doc(alias = "liveness")]
#[doc(alias = "heartbeat")]
pub struct Pulses {
    loops: Arc<Mutex<Vec<Watched>>>,
}

/// A loop that makes no turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HeldUp {
    /// Which one, counted from 0 in the order in which they were watched first.
    pub index: usize,
    /// How long ago its last note was.
    pub since: Duration,
    /// Whether it has ended, though nobody had asked it to.
    pub has_ended: bool,
}

struct Watched {
    pulse: Arc<Pulse>,
    handle: LoopHandle,
}

struct Pulse {
    /// In nanoseconds, as the loop's clock counts them.
    noted: AtomicU64,
    has_ended: AtomicBool,
}

/// Held by the loop: it is dropped with it.
struct Beats(Arc<Pulse>);

impl Drop for Beats {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Relaxed);
    }
}

impl Pulses {
    /// How often a loop notes its time: 1 s, so that what is held up for a few is known, and an
    /// idle process costs nothing that anybody sees.
    pub const EVERY: Duration = Duration::from_secs(1);

    /// Without loops.
    pub fn new() -> Pulses {
        Pulses::default()
    }

    /// Has a loop note its time from now on. It is to be run soon, or it counts as held up.
    pub fn watch<M: Machine, B: Backend>(&self, instance: &mut LoopInstance<M, B>) {
        let pulse = Arc::new(Pulse {
            noted: AtomicU64::new(instance.now().as_nanos()),
            has_ended: AtomicBool::new(false),
        });
        let beats = Beats(pulse.clone());
        instance.every(Pulses::EVERY, move |_, scope| {
            beats.0.noted.store(scope.now().as_nanos(), Relaxed);
        });
        self.loops().push(Watched { pulse, handle: instance.handle() });
    }

    /// The loops whose last note is older than `within` (two seconds at least are fair), or that
    /// have ended without having been asked to. One that was asked to end and has is well.
    pub fn held_up(&self, now: Time, within: Duration) -> Vec<HeldUp> {
        let loops = self.loops();
        let held_up = |(index, watched): (usize, &Watched)| {
            let since = now - Time::from_nanos(watched.pulse.noted.load(Relaxed));
            let has_ended = watched.pulse.has_ended.load(Relaxed);
            let is_held_up = if has_ended { !watched.handle.is_ending() } else { since > within };
            is_held_up.then_some(HeldUp { index, since, has_ended })
        };
        loops.iter().enumerate().filter_map(held_up).collect()
    }

    /// How many loops are watched.
    pub fn len(&self) -> usize {
        self.loops().len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether one of the loops was asked to end; see [`LoopHandle::is_ending`].
    #[doc(alias = "readiness")]
    pub fn is_ending(&self) -> bool {
        self.loops().iter().any(|watched| watched.handle.is_ending())
    }

    fn loops(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pulses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pulses({} loops)", self.len())
    }
}
