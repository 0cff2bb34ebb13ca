//! What a handler may do: the scope, through which all authority comes.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::SystemTime;

use crate::backend::{BackendHandle, Source};
use crate::environment::Environment;
use crate::future::{self, OnCancel, Waiter};
use crate::guard::{self, Panicked};
use crate::{
    Future, Interest, Mailbox, Notifier, OffloadFull, Port, Room, Sender, Time, Token, mailbox,
    offload,
};

/// The environment as handlers see it, whatever the backend.
pub(crate) type AnyEnvironment = Environment<dyn BackendHandle>;

/// What a handler may do besides answering: it is lent one, and it derefs to the context.
///
/// All ambient authority comes through here: time, randomness, sockets, waking, other threads,
/// stopping. A machine that uses nothing else runs unchanged on every backend, in virtual time too.
///
/// Nearly every method takes `&self`, so the scope can be asked while the context is borrowed
/// through it only where the two do not overlap; [`split`](Scope::split) gives both at once.
pub struct Scope<'a, C> {
    context: &'a mut C,
    environment: &'a AnyEnvironment,
    token: Token,
    part: u32,
    woken: Woken<'a>,
}

/// A scope without a context: what there is while the loop is being set up, and what
/// [`Scope::split`] lends.
pub type EarlyScope<'a> = Scope<'a, NoContext>;

/// The context of an [`EarlyScope`]: nothing.
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
        Scope { context, environment, token, part: 0, woken }
    }

    /// The loop's time: what its clock said after the last wait, the same for all handlers that run
    /// until it is read again. That is done before deadlines are looked at, and when handlers have
    /// taken longer than the system's timer interrupt (1 to 10 ms): before the next event, and
    /// before every eighth of the other calls at the latest.
    pub fn now(&self) -> Time {
        self.environment.now()
    }

    /// Wall-clock time, read now. It may jump; never compute deadlines from it.
    pub fn wall_time(&self) -> SystemTime {
        self.environment.handle.wall_time()
    }

    /// A random number, evenly spread, from the loop's fast generator
    /// ([`Config::seed`](crate::Config::seed)).
    ///
    /// For what stays in the process: sampling, spreading load or deadlines, the dice of a test.
    /// **None of its bits may reach a peer, and nothing may rest on its not being guessed**:
    /// whoever knows one number, or a few bits of several, can compute all that came before and
    /// will come after. What a peer sees is made of [`secure_random`](Scope::secure_random).
    pub fn random_u64(&self) -> u64 {
        self.environment.random_u64()
    }

    /// Random bytes that nobody can guess, whatever others he has seen: for ids, ports, session
    /// numbers, boundaries, keys, and all else that a peer sees or must not know.
    ///
    /// ```
    /// # use rotor_core::Scope;
    /// # fn with<C>(scope: &Scope<'_, C>) {
    /// let id = u16::from_ne_bytes(scope.secure_random());
    /// let key: [u8; 32] = scope.secure_random();
    /// # }
    /// ```
    ///
    /// They are the key stream of ChaCha20 under a key that the backend gave when the loop was
    /// made: the system's random bytes, or in a simulation its seed's. So this cannot fail, makes
    /// no system call, and takes some 15 ns for 16 bytes.
    ///
    /// The key lives as long as the loop. A process that goes on twice (it forks, or the machine
    /// that it runs on is copied with its memory) has the same numbers twice: fork before a loop is
    /// made.
    pub fn secure_random<const N: usize>(&self) -> [u8; N] {
        self.environment.secure_random()
    }

    /// The name of this machine in its loop.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Asks the backend to report what happens to `source` to this machine, as edges, until the
    /// source is dropped or [deregistered](Scope::deregister).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) when the source belongs to another backend than
    /// this loop's (the caller's mistake); else what the system says. The source is unchanged.
    pub fn register(&self, source: &mut impl Source, interest: Interest) -> io::Result<()> {
        source.register(self.backend(), self.token, interest)
    }

    /// Ends the reports about a source that lives on, to be registered by another machine, say.
    ///
    /// # Errors
    ///
    /// As for [`register`](Scope::register); the source may then still be registered.
    pub fn deregister(&self, source: &mut impl Source) -> io::Result<()> {
        source.deregister(self.backend())
    }

    /// The loop's backend, for those who implement sockets on one.
    pub fn backend(&self) -> &dyn BackendHandle {
        &self.environment.handle
    }

    /// A handle that wakes this machine (or this part of it) from anywhere.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(self.environment.queue.clone(), self.token, self.part)
    }

    /// A one-shot value to this machine: the port is given away, the future kept.
    pub fn create_future<V>(&self) -> (Port<V>, Future<V>) {
        future::pair(Waiter::Machine(self.notifier()), OnCancel::Nobody)
    }

    /// A one-shot value to this machine whose cancellation is heard: when the future is dropped
    /// before the value was set, `on_cancel` is woken and finds [`Port::is_cancelled`].
    pub fn create_cancellable_future<V>(&self, on_cancel: Notifier) -> (Port<V>, Future<V>) {
        future::pair(Waiter::Machine(self.notifier()), OnCancel::Machine(on_cancel))
    }

    /// A channel of messages to this machine, holding at most `bound` of them (at least 1), each of
    /// which wakes it.
    ///
    /// Its memory grows with the messages that wait.
    pub fn create_mailbox<V>(&self, bound: usize) -> (Sender<V>, Mailbox<V>) {
        mailbox::mailbox(bound, self.notifier())
    }

    /// Whether a machine that is spawned now would find a slot: one that is free and not owed to
    /// those who [wait for one](Scope::wake_on_free_slot), or the one that this machine has waited
    /// for.
    ///
    /// A listener asks before it accepts, so that it never holds a connection that has no place.
    pub fn has_free_slot(&self) -> bool {
        let free = self.environment.free_slots.load(Relaxed);
        self.environment.waiters.is_free_for(self.token, self.part, free)
    }

    /// Wakes this machine once when a slot is free, in the order in which machines asked. Asking
    /// again before that changes nothing.
    ///
    /// The slot is kept for it until that [`wakeup`](crate::Machine::wakeup) has been answered:
    /// nobody else can spawn into it meanwhile. If it was not used by then, it is the next one's in
    /// line, and so it is when the machine ends.
    pub fn wake_on_free_slot(&self) {
        self.environment.waiters.add(self.notifier());
    }

    /// Asks that machines that are [idle](crate::Machine::idle) end, those first that have been so
    /// longest: for a machine that cannot go on for want of a slot or a descriptor, and knows that
    /// somebody waits for it.
    ///
    /// They end with this turn; where there are more slots than a turn may look at
    /// ([`Config::scan_budget`](crate::Config::scan_budget)), in a later one. When the request has
    /// been answered, and one has ended at least, this machine is woken. If none has been idle long
    /// enough the request is forgotten, and nobody is woken: ask again after a pause. Asking again
    /// before that changes nothing.
    ///
    /// The slot of a machine that ended is for those who [wait for one](Scope::wake_on_free_slot):
    /// who wants it waits as well.
    pub fn ask_for_room(&self, room: Room) {
        self.environment.waiters.ask_for_room(self.notifier(), room);
    }

    /// Asks the loop to stop after this turn, wherever its machines are; they are dropped with the
    /// loop.
    ///
    /// To let them finish, drain it instead: [`LoopHandle::drain`](crate::LoopHandle::drain). Under
    /// [`ExitPolicy::Never`](crate::ExitPolicy::Never) it is logged and ignored.
    pub fn stop_loop(&self) {
        self.environment.stop.store(true, SeqCst);
    }

    /// Until when the loop drains; `None` while it does not. An answer to a peer may say that no
    /// other will follow.
    pub fn draining_until(&self) -> Option<Time> {
        self.environment.draining()
    }

    /// In `draining`, for a machine that others need until they end themselves (a pool, a resolver,
    /// a desk of your own): whether any are left that have not said this in this drain. If so, go
    /// on serving: `draining` is called again when there are none. Otherwise there is nobody left
    /// to serve, and the machine may end.
    ///
    /// ```
    /// # use rotor_core::{Calls, Machine, Response, Scope, Time, Infallible};
    /// # struct Desk { calls: Calls<u32, u32> }
    /// # impl Machine for Desk {
    /// #     type Context = ();
    /// #     type Seed = Infallible;
    /// fn draining(self, _: Time, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
    ///     if scope.wait_for_others() { Response::keep(self) } else { Response::done() }
    /// }
    /// # }
    /// ```
    ///
    /// The drain's deadline holds for it as for all. False in a loop that does not drain.
    pub fn wait_for_others(&self) -> bool {
        self.draining_until().is_some()
            && self.environment.machines.load(Relaxed) > self.environment.last.add(self.token)
    }

    /// Whether this machine has said [`wait_for_others`](Self::wait_for_others) in this drain, for
    /// layers that watch what is around: such a machine is told of the drain again.
    pub fn is_last_in_drain(&self) -> bool {
        self.draining_until().is_some() && self.environment.last.contains(self.token)
    }

    /// The context and, beside it, a scope that can do all the rest.
    pub fn split(&mut self) -> (&mut C, EarlyScope<'_>) {
        // No allocation: the box of a type without size.
        let nothing = Box::leak(Box::new(NoContext));
        let early = Scope {
            context: nothing,
            environment: self.environment,
            token: self.token,
            part: self.part,
            woken: self.woken,
        };
        (self.context, early)
    }

    /// The same scope for a part of this machine: notifiers, ports, mailboxes and waits for a slot
    /// that are made there wake the machine under that part's number
    /// ([`woken_parts`](Scope::woken_parts)).
    ///
    /// For a layer that runs children of its own, as the streams of a multiplexed connection; 0 is
    /// the machine itself.
    pub fn part(&mut self, part: u32) -> Scope<'_, C> {
        Scope {
            context: self.context,
            environment: self.environment,
            token: self.token,
            part,
            woken: self.woken,
        }
    }

    /// In `wakeup`: the parts that were woken, in ascending order, each once; 0 for the machine
    /// itself. Elsewhere: none.
    pub fn woken_parts(&self) -> impl Iterator<Item = u32> + use<'a, C> {
        self.woken.whole.then_some(0).into_iter().chain(self.woken.parts.iter().copied())
    }

    /// Runs a part of the handler and turns a panic in it into an error: for a layer that keeps its
    /// own state outside `f`, so that a panic costs the innermost machine only.
    ///
    /// What `f` was changing in the context when it panicked stays half changed.
    ///
    /// # Errors
    ///
    /// [`Panicked`], with the message: a bug in `f`. It is not logged or counted here.
    pub fn guard<V>(&mut self, f: impl FnOnce(&mut Self) -> V) -> Result<V, Panicked> {
        guard::guard(|| f(self))
    }

    /// Has another thread run `work`, and wakes this machine when it is done; then [`Future::take`]
    /// gives the result, or [`Lost::Panicked`](crate::Lost::Panicked), or
    /// [`Lost::Dropped`](crate::Lost::Dropped) when the pool ended first. On a simulated loop it
    /// takes virtual time instead.
    ///
    /// Dropping the future before a thread got to it cancels the job; later, and when this machine
    /// has ended, the result is dropped. [`Stats::unclaimed`](crate::Stats::unclaimed) counts both.
    ///
    /// ```
    /// # use rotor_core::{Future, OffloadFull, Scope};
    /// fn checksum<C>(bytes: Vec<u8>, scope: &Scope<'_, C>) -> Option<Future<u64>> {
    ///     let work = move || bytes.iter().fold(0, |sum, byte| sum * 31 % 1_000_007 + u64::from(*byte));
    ///     scope.offload(work).ok()
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The closure back, when as many jobs wait as the pool has room for:
    /// [`Config::offload_pool`](crate::Config::offload_pool).
    pub fn offload<T, F>(&self, work: F) -> Result<Future<T>, OffloadFull<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let mut state = Err(OffloadFull(work));
        self.backend().offload(&mut || {
            // No port before there is room: one that is dropped wakes its machine.
            let (port, future) = self.create_future();
            match std::mem::replace(&mut state, Ok(future)) {
                Err(OffloadFull(work)) => {
                    offload::job(work, port, self.environment.unclaimed.clone())
                }
                Ok(_) => Box::new(|| {}),
            }
        });
        state
    }

    /// Runs something that may take longer than a handler should: a lookup, a small file, a long
    /// computation.
    ///
    /// Today it runs right here and holds up the loop; [`now`](Scope::now) is read anew afterwards.
    /// Work that can be moved away as a whole belongs on another thread.
    pub fn blocking<V>(&mut self, f: impl FnOnce() -> V) -> V {
        let value = f();
        self.environment.refresh_now();
        value
    }
}

impl<C> Deref for Scope<'_, C> {
    type Target = C;
    fn deref(&self) -> &C {
        self.context
    }
}

impl<C> DerefMut for Scope<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        self.context
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

/// What a scope is without a machine: the context, time, randomness and stopping.
///
/// Lent to what runs between handlers: [`Broadcast::post`](crate::Broadcast::post) and
/// [`LoopInstance::every`](crate::LoopInstance::every). It has no token, so nothing can be
/// registered or woken by it.
pub struct GlobalScope<'a, C> {
    context: &'a mut C,
    environment: &'a AnyEnvironment,
}

impl<'a, C> GlobalScope<'a, C> {
    pub(crate) fn new(context: &'a mut C, environment: &'a AnyEnvironment) -> GlobalScope<'a, C> {
        GlobalScope { context, environment }
    }

    /// The loop's time; see [`Scope::now`].
    pub fn now(&self) -> Time {
        self.environment.now()
    }

    /// Wall-clock time, read now; see [`Scope::wall_time`].
    pub fn wall_time(&self) -> SystemTime {
        self.environment.handle.wall_time()
    }

    /// A random number that is no secret; see [`Scope::random_u64`].
    pub fn random_u64(&self) -> u64 {
        self.environment.random_u64()
    }

    /// Random bytes that nobody can guess; see [`Scope::secure_random`].
    pub fn secure_random<const N: usize>(&self) -> [u8; N] {
        self.environment.secure_random()
    }

    /// Asks the loop to stop after this turn; see [`Scope::stop_loop`].
    pub fn stop_loop(&self) {
        self.environment.stop.store(true, SeqCst);
    }

    /// Until when the loop drains; see [`Scope::draining_until`].
    pub fn draining_until(&self) -> Option<Time> {
        self.environment.draining()
    }
}

impl<C> Deref for GlobalScope<'_, C> {
    type Target = C;
    fn deref(&self) -> &C {
        self.context
    }
}

impl<C> DerefMut for GlobalScope<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        self.context
    }
}

impl<C> fmt::Debug for GlobalScope<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GlobalScope").field("now", &self.now()).finish_non_exhaustive()
    }
}
