//! What a handler may do: the scope, which gives access to everything outside the machine.

mod blocking;
mod channels;
mod draining;
mod global;
mod jobs;
mod lent;
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
pub use self::global::GlobalScope;
pub use self::jobs::JobBuilder;
pub(crate) use self::lent::{GaveUp, HandOver, Lent, TookBack};
pub use self::run_at::{Place, Ran};
use crate::backend::{BackendHandle, Source};
use crate::environment::Environment;
use crate::event_set::Interest;
use crate::guard::Panicked;
use crate::time::Time;
use crate::token::Token;

/// The environment as handlers see it, whatever the backend.
pub(crate) type AnyEnvironment = Environment<dyn BackendHandle>;

/// What a handler may do besides answering. Each handler is lent a scope, which derefs to the
/// context.
///
/// Everything ambient is reached through it: time, randomness, sockets, waking, other threads,
/// stopping. A machine that uses nothing else runs unchanged on every backend, also in virtual
/// time.
///
/// The context is borrowed through the scope: while a handler holds a part of it, the scope cannot
/// be used. [`split`](Scope::split) lends both at once.
pub struct Scope<'a, C> {
    context: Lent<'a, C>,
    environment: &'a AnyEnvironment,
    token: Token,
    part: u32,
    woken: Woken<'a>,
}

/// A scope without a context: the scope while the loop is being set up, and the one that
/// [`Scope::split`] lends.
pub type EarlyScope<'a> = Scope<'a, NoContext>;

/// The empty context of an [`EarlyScope`].
///
/// If the compiler expected your context and found this one, a function that makes a machine
/// requires more than there is during set-up. With `&mut Scope<'_, C>`, for any `C`, it can be
/// called both before the loop has its context and from handlers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NoContext;

/// Which parts of the machine a wake-up names.
#[derive(Clone, Copy, Default)]
pub(crate) struct Woken<'a> {
    pub(crate) whole: bool,
    pub(crate) parts: &'a [u32],
}

impl<'a, C> Scope<'a, C> {
    pub(crate) fn new(
        context: &'a mut C,
        environment: &'a AnyEnvironment,
        token: Token,
        woken: Woken<'a>,
    ) -> Scope<'a, C> {
        Scope { context: Lent::own(context), environment, token, part: 0, woken }
    }

    /// The scope of a handler whose loop may be carried on by another thread.
    pub(crate) fn lent(
        context: Lent<'a, C>,
        environment: &'a AnyEnvironment,
        token: Token,
        woken: Woken<'a>,
    ) -> Scope<'a, C> {
        Scope { context, environment, token, part: 0, woken }
    }

    /// Returns the loop's time: what its clock said after the last wait.
    ///
    /// It is the same for all handlers that run until the clock is read again. That happens before
    /// deadlines fire. When handlers have taken longer than the system's timer interrupt (1 to 10
    /// ms), it also happens before the next event, and at the latest before every eighth of the
    /// other calls.
    pub fn now(&self) -> Time {
        self.environment.now()
    }

    /// Returns wall-clock time, read now. It may jump; never compute deadlines from it.
    pub fn wall_time(&self) -> SystemTime {
        self.environment.handle.wall_time()
    }

    /// Returns a random number, evenly distributed, from the loop's fast generator
    /// ([`Config::seed`](crate::Config::seed)).
    ///
    /// It is for what stays in the process: sampling, spreading load or deadlines, the dice of a
    /// test. **Never send any of its bits to a peer, and never rely on its being unguessable**:
    /// whoever knows one number, or a few bits of several, can compute all that came before and
    /// will come after. For what a peer sees, use [`secure_random`](Scope::secure_random).
    pub fn random_u64(&self) -> u64 {
        self.environment.random_u64()
    }

    /// Returns random bytes that nobody can guess, however many others they have seen: for ids,
    /// ports, session numbers, boundaries, keys, and everything else that a peer sees or must not
    /// know.
    ///
    /// ```
    /// # use rotor_core::Scope;
    /// # fn with<C>(scope: &Scope<'_, C>) {
    /// let id = u16::from_ne_bytes(scope.secure_random());
    /// let key: [u8; 32] = scope.secure_random();
    /// # }
    /// ```
    ///
    /// The bytes are the key stream of ChaCha20. The backend gave the key when the loop was made:
    /// from the system's random bytes, or in a simulation from its seed. So this cannot fail, makes
    /// no system call, and takes some 15 ns for 16 bytes.
    ///
    /// The key lives as long as the loop. If a process goes on twice (it forks, or the machine that
    /// it runs on is copied with its memory), both copies get the same numbers: fork before you
    /// make a loop.
    pub fn secure_random<const N: usize>(&self) -> [u8; N] {
        self.environment.secure_random()
    }

    /// Returns the name of this machine in its loop.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Asks the backend to report events of `source` to this machine, edge-triggered, until the
    /// source is dropped or [deregistered](Scope::deregister).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) when the source belongs to another backend than
    /// this loop's (the caller's mistake); otherwise the system's error. The source is unchanged.
    pub fn register(&self, source: &mut impl Source, interest: Interest) -> io::Result<()> {
        source.register(self.backend(), self.token, interest)
    }

    /// Ends the reports about a source that lives on, for example to be registered by another
    /// machine.
    ///
    /// # Errors
    ///
    /// As for [`register`](Scope::register); the source may then still be registered.
    pub fn deregister(&self, source: &mut impl Source) -> io::Result<()> {
        source.deregister(self.backend())
    }

    /// Returns the loop's backend, for those who implement sockets on one.
    pub fn backend(&self) -> &dyn BackendHandle {
        &self.environment.handle
    }

    /// Notes in the trace of a simulation what this machine has come to, where its answers do not
    /// show it: for example which of its deadlines has passed. On other backends nobody reads the
    /// note, and the arguments are not formatted.
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

    /// Reads the clock, and sets the loop's time if this thread has the loop.
    fn refresh_now(&self) -> Time {
        match self.context.other_hand() {
            Some(hand) => hand.refresh_now().unwrap_or_else(|| self.environment.handle.now()),
            None => self.environment.refresh_now(),
        }
    }

    /// Asks the loop to stop after this turn, whatever state its machines are in; they are dropped
    /// with the loop.
    ///
    /// To let them finish, drain it instead: [`LoopHandle::drain`](crate::LoopHandle::drain). Under
    /// [`ExitPolicy::Never`](crate::ExitPolicy::Never) the request is logged and ignored.
    pub fn stop_loop(&self) {
        self.environment.stop.store(true, SeqCst);
        // Another thread may have the loop by now, and be asleep with it.
        if self.context.other_hand().is_some() {
            self.environment.wakes.wake_loop();
        }
    }

    /// Runs a part of the handler and turns a panic in it into an error. For a layer that keeps its
    /// own state outside `f`, so that a panic costs only the innermost machine.
    ///
    /// If `f` was changing something in the context when it panicked, that stays half changed.
    ///
    /// # Errors
    ///
    /// [`Panicked`], with the message: a bug in `f`. It is not logged or counted here.
    pub fn guard<V>(&mut self, f: impl FnOnce(&mut Self) -> V) -> Result<V, Panicked> {
        catch_unwind(AssertUnwindSafe(|| f(self))).map_err(|payload| self.context.caught(payload))
    }
}

impl<C> Deref for Scope<'_, C> {
    type Target = C;
    #[inline(always)]
    fn deref(&self) -> &C {
        self.context.get()
    }
}

impl<C> DerefMut for Scope<'_, C> {
    #[inline(always)]
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
