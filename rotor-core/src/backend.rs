//! The interface between a loop and what it waits with: the kernel through mio, a simulation, a
//! userspace network stack.
//!
//! # What a backend must provide
//!
//! 1. `wait`: block until something is ready, a time is reached or the waker was used; return
//!    `(token, events)` pairs.
//! 2. A handle, owned by the loop and shared with the sockets: two clocks, a name, and whatever its
//!    sockets need to register themselves. Sockets find it through the scope and downcast it to its
//!    type. Methods with a default may be left out: random bytes then come from the system, and no
//!    work goes to other threads.
//! 3. A waker that any thread may use ([`Wake`]).
//!
//! # The readiness contract
//!
//! Edges may be spurious, merged, late, in any order across tokens, or for a machine that is gone
//! (the loop drops these). No edge is lost: once an operation on a source has returned
//! `WouldBlock`, the next change is reported. Loop time never runs backwards.
//!
//! If a backend has more events than one wait takes ([`Backend::may_have_more`]), it must return
//! them first in, first out. In this way the loop knows after how many waits it has seen everything
//! that was ready before a deadline ([`Backend::full_waits`]).

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use crate::event_set::{EventSet, Interest};
use crate::offload::OffloadPool;
use crate::time::Time;
use crate::token::Token;

pub use crate::clock::Clock;
pub use crate::offload::work::{JobEnd, JobStart, OffloadJob, OffloadWork};

/// Where and how urgently a job should run.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct JobOrder<'a> {
    /// The pool that was chosen for the job; `None` means the backend's own pool.
    pub pool: Option<&'a OffloadPool>,
    /// Whether the job comes before all jobs that are not urgent.
    pub is_urgent: bool,
}

impl JobOrder<'_> {
    /// Offers a job to the chosen pool or, if there is none, to `own`, the backend's pool.
    /// [`BackendHandle::offload_job`] is implemented with this. Returns whether a pool took the
    /// job. `make` is called if, and only if, a pool took it.
    pub fn offer(&self, own: Option<&OffloadPool>, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.pool.or(own).is_some_and(|pool| match self.is_urgent {
            true => pool.offer_urgent(make),
            false => pool.offer(make),
        })
    }
}

/// The part of a loop that waits for events.
///
/// See the [module](crate::backend) for the contract.
#[doc(alias = "reactor")]
#[doc(alias = "driver")]
#[doc(alias = "epoll")]
#[doc(alias = "kqueue")]
#[doc(alias = "io_uring")]
#[doc(alias = "poll")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a backend",
    note = "`Mio` is the default one; `Loop::with_backend` takes others"
)]
pub trait Backend {
    /// The handle of this backend, which its sockets find through the scope.
    type Handle: BackendHandle;

    /// Makes the handle that the loop's environment keeps. Called once, when the loop is made.
    fn handle(&self) -> io::Result<Self::Handle>;

    /// Makes the waker. Called once, when the loop is made.
    fn waker(&self) -> io::Result<Arc<dyn Wake>>;

    /// Blocks until a source is ready, `until` is reached, or the waker was used, and appends the
    /// sources that are ready to `ready`. With `None` it waits without a time limit; if `until` has
    /// already passed, it only polls, and must append every source that is ready, up to its
    /// capacity. Otherwise it may return early without any event.
    ///
    /// # Errors
    ///
    /// Only errors after which the loop cannot go on: an error ends `run`. An interrupting signal
    /// (`EINTR`) is not an error.
    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()>;

    /// Returns whether more sources may have been ready than the last `wait` had capacity for. The
    /// loop then polls again at once. An outer loop that embeds this one must do so too, because
    /// the descriptor's edge is not reported to it a second time.
    ///
    /// A needless `true` costs a poll. The default, `false`, is for a backend that reports
    /// everything that is ready.
    fn may_have_more(&self) -> bool {
        false
    }

    /// Returns how many full waits report everything that is ready now. Input that arrived before a
    /// deadline or a drain comes first, so while waits are full, the loop makes at least that many
    /// before it calls machines for those. It makes more if one event for each machine needs more
    /// ([`Config::events_max`](crate::Config::events_max)).
    ///
    /// The default, 1, is for a backend that reports a source once, however much has arrived for
    /// it. One that counts something else as it waits (packets, completed operations) returns an
    /// estimate that is rather too large. It must not depend on what arrives later, or the loop
    /// would never get to its deadlines.
    fn full_waits(&self) -> usize {
        1
    }

    /// Returns whether a loop without machines still has to wait, because what its dropped sockets
    /// have written has not reached their peers. Called only when no machine is left.
    ///
    /// The default, `false`, is for sockets of a kernel, which sends on when the process has ended.
    /// A backend that sends by itself must return `false` after some time, whatever the peers do.
    /// `wait` then returns in time for that.
    fn has_unsent(&self) -> bool {
        false
    }

    /// Returns a recent reading of the clock: some milliseconds old at most, and never later than
    /// the current time. The loop calls this before each event except the first of a turn, so it
    /// must cost next to nothing.
    ///
    /// If the loop's time is behind this, because a handler took long, the loop reads the clock
    /// before the next event. The default is [`Time::ZERO`]: then the loop's time stands still
    /// until the events of a turn are done.
    fn coarse_now(&self) -> Time {
        Time::ZERO
    }

    /// Sorts the deadlines of one tick into the order in which they should fire. By default they
    /// stay as they are. A simulation shuffles them by its seed.
    fn order(&mut self, same_tick: &mut [Token]) {
        let _ = same_tick;
    }
}

/// The part of a backend that handlers and sockets see, through a shared reference.
#[doc(alias = "reactor")]
#[doc(alias = "registry")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the handle of a backend",
    note = "a backend's own handle implements `BackendHandle`: a name and two clocks are enough"
)]
pub trait BackendHandle: Any {
    /// Returns the backend's name for errors and logs.
    fn name(&self) -> &str;

    /// Reads the loop's clock.
    fn now(&self) -> Time;

    /// Reads the wall clock.
    fn wall_time(&self) -> SystemTime;

    /// Fills `bytes` with unpredictable random bytes, from which
    /// [`Scope::secure_random`](crate::Scope::secure_random) is computed. Called once for each
    /// loop, when it is made.
    ///
    /// By default the bytes come from the system ([`system_entropy`]), which is right for every
    /// loop that has real peers. A simulation takes them from its seed, so that a run can be
    /// repeated.
    ///
    /// # Errors
    ///
    /// Any error that prevents this; the loop is then not made.
    fn entropy(&self, bytes: &mut [u8]) -> io::Result<()> {
        system_entropy(bytes)
    }

    /// Gives the job that `make` returns to another thread. Returns whether it did. `make` is
    /// called at most once, and only if there is room, so that a caller whose job is refused still
    /// owns what the job would have been made from.
    ///
    /// A backend without a pool refuses all jobs, which is the default.
    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        let _ = make;
        false
    }

    /// Returns the handle of the backend that this one wraps, whose sockets work on the loop as
    /// well as its own. By default there is none.
    fn within(&self) -> Option<&dyn BackendHandle> {
        None
    }

    /// Gives a job of [`Scope::job`](crate::Scope::job) to another thread, as
    /// [`offload`](BackendHandle::offload) does, but with options. The default ignores the options
    /// and calls `offload`.
    fn offload_job(&self, order: &JobOrder<'_>, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        let _ = order;
        self.offload(make)
    }

    /// Receives what a machine writes into the trace
    /// ([`Scope::note_in_trace`](crate::Scope::note_in_trace)), and the message of its panic. The
    /// default discards it.
    fn note(&self, machine: Token, what: fmt::Arguments<'_>) {
        let _ = (machine, what);
    }
}

/// Wakes the thread that waits in a backend, from any thread.
#[doc(alias = "waker")]
#[doc(alias = "eventfd")]
pub trait Wake: Send + Sync {
    /// Ends the current wait at once or, if there is none, the next one.
    ///
    /// Called only when the loop may be asleep.
    ///
    /// # Errors
    ///
    /// The backend is gone or broken. The error is logged and the call is not repeated: the work
    /// for which the loop was to be woken stays queued until its next event or deadline, and so
    /// does work that is queued later.
    fn wake(&self) -> io::Result<()>;
}

impl dyn BackendHandle {
    /// Returns the handle as the type that a source needs: this handle, or one [within
    /// it](BackendHandle::within).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported), naming both, if the loop runs on another
    /// backend. This is the caller's mistake; nothing has changed.
    pub fn expect<H: BackendHandle>(&self, source: &str) -> io::Result<&H> {
        let mut handles = std::iter::successors(Some(self), |handle| handle.within());
        handles.find_map(|handle| (handle as &dyn Any).downcast_ref()).ok_or_else(|| {
            let message =
                format!("{source} cannot be used on a loop of the {} backend", self.name());
            io::Error::new(io::ErrorKind::Unsupported, message)
        })
    }
}

/// Fills `bytes` from the random source of the operating system (getrandom(2), getentropy(3)).
///
/// This is a system call. It blocks only on a computer that has just booted and has not gathered
/// enough entropy yet. Use it for what is set up once, such as a backend or a key. In machines, use
/// [`Scope::secure_random`](crate::Scope::secure_random), which needs no system call and can be
/// simulated.
///
/// # Errors
///
/// The system's error, for example if a sandbox forbids the call or the kernel does not have it.
/// The contents of `bytes` are then unspecified.
#[doc(alias = "getrandom")]
#[doc(alias = "CSPRNG")]
#[expect(clippy::disallowed_methods, reason = "this is the source that the scope stands for")]
pub fn system_entropy(bytes: &mut [u8]) -> io::Result<()> {
    Ok(getrandom::fill(bytes)?)
}

/// A source of events that can be registered with a loop: a socket of its backend, or a type that
/// wraps one.
///
/// [`MioSource`](crate::foreign::MioSource) makes a source from anything that mio can register, and
/// from any other descriptor.
///
/// Machines call [`Scope::register`](crate::Scope::register). Dropping a source deregisters it. The
/// kernel's listeners and datagram sockets do that themselves; a stream, or a source of mio, is
/// deregistered when its descriptor is closed, provided that no other descriptor refers to the same
/// socket. If another one does (`try_clone`, a child process that inherits it),
/// [deregister](crate::Scope::deregister) the source first. Otherwise its events go on waking the
/// loop, which counts them in [`Stats::stale`](crate::Stats::stale).
#[doc(alias = "event::Source")]
#[doc(alias = "registration")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be registered with a loop",
    note = "the sockets of `rotor_core::net` can, which `from_std` makes of the standard library's, and what mio can \
            register as a `rotor_core::foreign::MioSource`; a socket of another backend implements `rotor_core::Source`"
)]
pub trait Source {
    /// Registers the source with the backend, which then reports its edges under `token`.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; otherwise the
    /// system's error (a limit of descriptors, a source that is registered already). The source is
    /// unchanged and may be registered elsewhere.
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()>;

    /// Deregisters a source that lives on.
    ///
    /// # Errors
    ///
    /// As for `register`. The source may then still be registered.
    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()>;
}

/// A waker for tests whose loop never sleeps.
#[cfg(test)]
pub(crate) struct NoWaker;

#[cfg(test)]
impl Wake for NoWaker {
    fn wake(&self) -> io::Result<()> {
        Ok(())
    }
}
