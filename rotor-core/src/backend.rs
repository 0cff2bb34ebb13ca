//! The seam between a loop and what it waits with: the kernel through mio, a simulation, a
//! userspace stack.
//!
//! # What a backend must provide
//!
//! 1. `wait`: block until something is ready, a time is reached or the waker was used; yield
//!    `(token, events)`.
//! 2. A handle, owned and shared with the sockets: two clocks, a name, and whatever its sockets
//!    need to register themselves. Sockets find it through the scope and downcast it to its type.
//!    Methods with a default are safe to leave out: random bytes are the system's, and no work goes
//!    to other threads.
//! 3. A waker that any thread may use ([`Wake`]).
//!
//! # The readiness contract
//!
//! Edges may be spurious, merged, late, in any order across tokens, or for a machine that is gone
//! (the loop drops these). None is lost: once an operation on a source returned `WouldBlock`, the
//! next change is reported. Loop time never runs backwards.
//!
//! A backend that has more than one wait takes ([`Backend::may_have_more`]) hands it out first in,
//! first out, in whatever order it came: by that the loop knows when it has seen all that was there
//! before a deadline.

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
pub use crate::offload::work::{Begun, JobEnd, OffloadJob, OffloadWork};

/// Where a job is to be run, and how soon.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct JobOrder<'a> {
    /// The pool that was named; the backend's own, if none was.
    pub pool: Option<&'a OffloadPool>,
    /// Before all that are not.
    pub is_urgent: bool,
}

impl JobOrder<'_> {
    /// Offers a job to the pool that was named, or to `own`, which is the backend's: what
    /// [`BackendHandle::offload_job`] is to do. Returns whether a pool took it; `make` was called
    /// then, and only then.
    pub fn offer(&self, own: Option<&OffloadPool>, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.pool.or(own).is_some_and(|pool| match self.is_urgent {
            true => pool.offer_urgent(make),
            false => pool.offer(make),
        })
    }
}

/// What a loop waits with.
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
    /// What the sockets of this backend find through the scope.
    type Handle: BackendHandle;

    /// Makes the handle that the environment of the loop keeps. Called once, when the loop is made.
    fn handle(&self) -> io::Result<Self::Handle>;

    /// Makes the waker. Called once, when the loop is made.
    fn waker(&self) -> io::Result<Arc<dyn Wake>>;

    /// Blocks until a source is ready, `until` is reached (`None`: whatever time passes; a time
    /// that has passed: only polls) or the waker was used, and appends what is ready. Returning
    /// early, with nothing, is allowed.
    ///
    /// # Errors
    ///
    /// Only what makes going on impossible: an error ends `run`. An interrupting signal (`EINTR`)
    /// is no error.
    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()>;

    /// Returns whether more may have been ready than the last `wait` had capacity for. The loop
    /// then polls again at once, and so does whoever embeds it: an outer loop that waits for the
    /// descriptor's edges is not told of it a second time.
    ///
    /// Saying so without need costs a poll. The default is for a backend that reports all there is:
    /// no.
    fn may_have_more(&self) -> bool {
        false
    }

    /// Returns what the clock said lately: some milliseconds ago at the most, and never later than
    /// it says now. The loop asks before each event but the first of a turn, so it must cost next
    /// to nothing.
    ///
    /// When the loop's time is behind this, because a handler took long, the clock is read before
    /// the next one. By default the beginning of time: then the loop's time stands still until the
    /// events of a turn are done.
    fn coarse_now(&self) -> Time {
        Time::ZERO
    }

    /// Puts the deadlines of one tick in the order in which they are to fire; as they are, by
    /// default. A simulation shuffles them by its seed.
    fn order(&mut self, same_tick: &mut [Token]) {
        let _ = same_tick;
    }
}

/// The part of a backend that handlers and sockets see, by `&`.
#[doc(alias = "reactor")]
#[doc(alias = "registry")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the handle of a backend",
    note = "a backend's own handle implements `BackendHandle`: a name and two clocks are enough"
)]
pub trait BackendHandle: Any {
    /// Returns what the backend is called in errors and logs.
    fn name(&self) -> &str;

    /// Reads the loop's clock.
    fn now(&self) -> Time;

    /// Reads the wall clock.
    fn wall_time(&self) -> SystemTime;

    /// Fills `bytes` with what nobody can guess: what
    /// [`Scope::secure_random`](crate::Scope::secure_random) is computed from. Called once for each
    /// loop, when it is made.
    ///
    /// By default they are the system's ([`system_entropy`]), which is right for every loop that
    /// has real peers; a simulation takes them from its seed, so that a run can be repeated.
    ///
    /// # Errors
    ///
    /// Whatever makes it impossible; the loop is then not made.
    fn entropy(&self, bytes: &mut [u8]) -> io::Result<()> {
        system_entropy(bytes)
    }

    /// Hands the job that `make` makes to another thread, and returns whether it did. `make` is
    /// called once, and only if there is room; so whoever is refused still has what the job would
    /// have been made of.
    ///
    /// A backend that has no pool refuses.
    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        let _ = make;
        false
    }

    /// Returns the handle of a backend that this one stands around, whose sockets work on the loop
    /// as well as its own. By default there is none.
    fn within(&self) -> Option<&dyn BackendHandle> {
        None
    }

    /// Does the same for a job of [`Scope::job`](crate::Scope::job), of which more may be said. By
    /// default all of that is left aside, and it is handed over as any other.
    fn offload_job(&self, order: &JobOrder<'_>, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        let _ = order;
        self.offload(make)
    }

    /// Hears what a machine says of itself ([`Scope::note_in_trace`](crate::Scope::note_in_trace)),
    /// for who reads a trace. By default nobody does.
    fn note(&self, machine: Token, what: fmt::Arguments<'_>) {
        let _ = (machine, what);
    }
}

/// Wakes the thread that waits in a backend, from any thread.
#[doc(alias = "waker")]
#[doc(alias = "eventfd")]
pub trait Wake: Send + Sync {
    /// Ends the wait that is under way, or else the next one, at once.
    ///
    /// Called only when the loop may be asleep.
    ///
    /// # Errors
    ///
    /// When the backend is gone or broken; it is logged. What was to wake the loop waits for its
    /// next event or deadline, and so does what comes until then: none of it tries again.
    fn wake(&self) -> io::Result<()>;
}

impl dyn BackendHandle {
    /// Returns the handle as the type that a source needs: this one, or one [within
    /// it](BackendHandle::within).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported), naming both, when the loop runs on another
    /// backend: the caller's mistake, nothing has changed.
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
/// A system call, which waits only while a machine that has just been switched on has gathered too
/// little: for what is set up once, such as a backend or a key. Machines have
/// [`Scope::secure_random`](crate::Scope::secure_random), which costs none and can be simulated.
///
/// # Errors
///
/// What the system says: a sandbox that forbids the call, a kernel without it. What is in `bytes`
/// then is of no use.
#[doc(alias = "getrandom")]
#[doc(alias = "CSPRNG")]
#[expect(clippy::disallowed_methods, reason = "this is the source that the scope stands for")]
pub fn system_entropy(bytes: &mut [u8]) -> io::Result<()> {
    Ok(getrandom::fill(bytes)?)
}

/// What can be registered with a loop: the sockets of its backend, and those that wrap one.
///
/// What mio can register, and any other descriptor, is one as a
/// [`MioSource`](crate::foreign::MioSource).
///
/// Machines call [`Scope::register`](crate::Scope::register). Dropping a source deregisters it: the
/// kernel's listeners and datagram sockets do that themselves; a stream, or a source of mio's, is
/// deregistered when its descriptor is closed and no other names the same socket. Where one does
/// (`try_clone`, a child process that inherits it), [deregister](crate::Scope::deregister) the
/// source first, or what happens to it goes on waking the loop, which counts it in
/// [`Stats::stale`](crate::Stats::stale).
#[doc(alias = "event::Source")]
#[doc(alias = "registration")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be registered with a loop",
    note = "the sockets of `rotor_core::net` can, which `from_std` makes of the standard library's, and what mio can \
            register as a `rotor_core::foreign::MioSource`; a socket of another backend implements `rotor_core::Source`"
)]
pub trait Source {
    /// Asks the backend to report edges under `token`.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; else what the
    /// system says (descriptor limits, a source that is registered already). The source is
    /// unchanged and may be registered elsewhere.
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()>;

    /// Ends what `register` began, for a source that lives on.
    ///
    /// # Errors
    ///
    /// As for `register`; the source may then still be registered.
    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()>;
}

/// For tests of what never sleeps.
#[cfg(test)]
pub(crate) struct NoWaker;

#[cfg(test)]
impl Wake for NoWaker {
    fn wake(&self) -> io::Result<()> {
        Ok(())
    }
}
