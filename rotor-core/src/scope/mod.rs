//! `Scope`: a handler's access to everything outside its machine.

mod blocking;
mod channels;
mod context_ref;
mod draining;
mod global;
mod jobs;
mod parts;
mod run_at;
mod slots;
mod waking;

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::time::SystemTime;

pub use self::blocking::NoPermit;
pub(crate) use self::context_ref::{ContextRef, LoopHolder, ReclaimOutcome, ReleaseOutcome};
pub use self::global::GlobalScope;
pub use self::jobs::JobBuilder;
pub use self::run_at::{Place, RunAtResult};
use crate::backend::{BackendHandle, Source};
use crate::environment::Environment;
use crate::event_set::Interest;
use crate::guard::Panicked;
use crate::time::Time;
use crate::token::Token;

/// The environment as handlers see it, whatever the backend.
pub(crate) type AnyEnvironment = Environment<dyn BackendHandle>;

/// A handler's access to everything outside its machine. Each handler gets a scope, which derefs to
/// the context.
///
/// Time, randomness, sockets, waking, other threads and stopping the loop are reached through the
/// scope. A machine that uses nothing else runs unchanged on every backend, including a simulated
/// one with virtual time.
///
/// The context is borrowed through the scope: while a handler holds a reference into it, the scope
/// cannot be used. [`split`](Scope::split) lends both at once.
pub struct Scope<'a, C> {
    context: ContextRef<'a, C>,
    environment: &'a AnyEnvironment,
    token: Token,
    part: u32,
    woken: WakeTarget<'a>,
}

/// A scope without a context. It is used while the loop is being set up, and [`Scope::split`] lends
/// one.
pub type EarlyScope<'a> = Scope<'a, NoContext>;

/// The empty context of an [`EarlyScope`].
///
/// If the compiler expected your context and found this type, then a function that makes a machine
/// requires a context that does not exist during set-up. With `&mut Scope<'_, C>`, for any `C`, it
/// can be called both before the loop has its context and from handlers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NoContext;

/// Which parts of the machine a wake-up is for.
#[derive(Clone, Copy, Default)]
pub(crate) struct WakeTarget<'a> {
    pub(crate) whole: bool,
    pub(crate) parts: &'a [u32],
}

impl<'a, C> Scope<'a, C> {
    pub(crate) fn new(
        context: &'a mut C,
        environment: &'a AnyEnvironment,
        token: Token,
        woken: WakeTarget<'a>,
    ) -> Scope<'a, C> {
        Scope::with_context(ContextRef::direct(context), environment, token, woken)
    }

    /// Makes the scope of a handler whose loop may be run by another thread meanwhile.
    pub(crate) fn with_context(
        context: ContextRef<'a, C>,
        environment: &'a AnyEnvironment,
        token: Token,
        woken: WakeTarget<'a>,
    ) -> Scope<'a, C> {
        Scope { context, environment, token, part: 0, woken }
    }

    /// Returns the loop's time: the time at which its clock was last read, usually after the last
    /// wait.
    ///
    /// It is the same for all handlers that run until the clock is read again. The clock is read
    /// before deadlines fire. If handlers have taken longer than the system's timer interrupt (1 to
    /// 10 ms), it is also read before the next event, and at the latest before every eighth of the
    /// other calls.
    pub fn now(&self) -> Time {
        self.environment.now()
    }

    /// Returns the wall-clock time, read now. It may jump, so never compute deadlines from it.
    pub fn wall_time(&self) -> SystemTime {
        self.environment.handle.wall_time()
    }

    /// Returns a random number, evenly distributed, from the loop's fast generator
    /// ([`Config::seed`](crate::Config::seed)).
    ///
    /// Use it for what stays in the process: sampling, spreading load or deadlines, random choices
    /// in a test. **Never send any of its bits to a peer, and never rely on its being
    /// unguessable**: from one number, or a few bits of several, all earlier and later numbers can
    /// be computed. For anything that a peer sees, use [`secure_random`](Scope::secure_random).
    pub fn random_u64(&self) -> u64 {
        self.environment.random_u64()
    }

    /// Returns random bytes that nobody can guess, however many others they have seen. Use it for
    /// ids, ports, session numbers, boundaries, keys, and everything else that a peer sees or must
    /// not know.
    ///
    /// ```
    /// # use rotor_core::Scope;
    /// # fn with<C>(scope: &Scope<'_, C>) {
    /// let id = u16::from_ne_bytes(scope.secure_random());
    /// let key: [u8; 32] = scope.secure_random();
    /// # }
    /// ```
    ///
    /// The bytes are the key stream of ChaCha20. The backend provides the key when the loop is
    /// made: from the system's random bytes, or in a simulation from its seed. So this cannot fail,
    /// makes no system call, and takes some 15 ns for 16 bytes.
    ///
    /// The key lives as long as the loop. If a process is duplicated (by a fork, or because its
    /// virtual machine is copied with its memory), both copies get the same numbers, so fork before
    /// you make a loop.
    pub fn secure_random<const N: usize>(&self) -> [u8; N] {
        self.environment.secure_random()
    }

    /// Returns the name of this machine in its loop.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Registers `source` with the backend, which then reports its events to this machine,
    /// edge-triggered, until the source is dropped or [deregistered](Scope::deregister).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) if the source belongs to a backend other than
    /// this loop's (the caller's mistake); otherwise the system's error. The source is unchanged.
    pub fn register(&self, source: &mut impl Source, interest: Interest) -> io::Result<()> {
        source.register(self.backend(), self.token, interest)
    }

    /// Stops the reports about a source that lives on, for example in order to be registered by
    /// another machine. An event that was reported before may still come.
    ///
    /// # Errors
    ///
    /// As for [`register`](Scope::register). The source may then still be registered.
    pub fn deregister(&self, source: &mut impl Source) -> io::Result<()> {
        source.deregister(self.backend())
    }

    /// Returns the loop's backend, for implementations of sockets.
    pub fn backend(&self) -> &dyn BackendHandle {
        &self.environment.handle
    }

    /// Writes a note about this machine into the trace of a simulation, for what the machine's
    /// answers do not show: for example, which of its deadlines has passed. On other backends the
    /// note is discarded, and the arguments are not formatted.
    ///
    /// ```
    /// # use rotor_core::{Machine, Response, Scope};
    /// # struct Patient;
    /// # impl Machine for Patient {
    /// #     type Context = ();
    /// #     type Seed = ();
    /// #     fn create(_: (), _: &mut Scope<'_, ()>) -> Response<Self> { Response::ok(Patient) }
    /// fn timeout(self, scope: &mut Scope<'_, ()>) -> Response<Self, ()> {
    ///     scope.note_in_trace(format_args!("nobody answered"));
    ///     Response::done()
    /// }
    /// # }
    /// ```
    #[doc(alias = "trace")]
    pub fn note_in_trace(&self, what: fmt::Arguments<'_>) {
        self.backend().note(self.token(), what);
    }

    /// Reads the clock, and sets the loop's time if this thread runs the loop.
    fn refresh_now(&self) -> Time {
        match self.context.takeover_holder() {
            Some(holder) => holder.refresh_now().unwrap_or_else(|| self.environment.handle.now()),
            None => self.environment.refresh_now(),
        }
    }

    /// Asks the loop to stop after this turn, whatever state its machines are in: `run` returns
    /// [`Exit::Stopped`](crate::Exit::Stopped). The machines and their pending calls stay until the
    /// loop is run again, or are dropped with it.
    ///
    /// To let them finish, drain the loop instead: [`LoopHandle::drain`](crate::LoopHandle::drain).
    /// Under [`ExitPolicy::Never`](crate::ExitPolicy::Never) the request is logged and ignored.
    pub fn stop_loop(&self) {
        self.environment.stop.store(true, SeqCst);
        // Another thread may be running the loop by now, and be asleep in its wait.
        if self.context.takeover_holder().is_some() {
            self.environment.wakes.wake_loop();
        }
    }

    /// Calls `f` and turns a panic in it into an error. This is for a layer that keeps its own
    /// state outside `f`, so that a panic costs only the innermost machine.
    ///
    /// If `f` panics while it changes the context, the context stays half changed.
    ///
    /// # Errors
    ///
    /// [`Panicked`], with the message: a bug in `f`. It is not logged or counted here.
    pub fn guard<V>(&mut self, f: impl FnOnce(&mut Self) -> V) -> Result<V, Panicked> {
        catch_unwind(AssertUnwindSafe(|| f(self)))
            .map_err(|payload| self.context.convert_panic(payload))
    }
}

impl<C> Deref for Scope<'_, C> {
    type Target = C;
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn deref(&self) -> &C {
        self.context.get()
    }
}

impl<C> DerefMut for Scope<'_, C> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn deref_mut(&mut self) -> &mut C {
        self.context.get_mut()
    }
}

impl<C> fmt::Debug for Scope<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("token", &self.token)
            .field("part", &self.part)
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
