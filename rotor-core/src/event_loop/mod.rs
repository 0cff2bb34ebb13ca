//! The loop: two stages of making it, one turn after another, and the end.
//!
//! ```text
//!   Loop::new ──▶ add machines (EarlyScope) ──▶ instantiate(context) ──▶ LoopInstance ──▶ run() ──▶ Exit
//! ```
//!
//! `core` is the value that a turn works on, and `core/turn.rs` the order of the steps. Its parts:
//! `slots`, where machines live; `run_queue`, what waits to be done with them; `scheduler`, both
//! together; `dispatch`, which calls machines; `drain`, `room_search` (with `longest_idle`, what
//! that has found) and `closures`, what else a turn does. `machines`, `broadcast` (with `adding`) and
//! `handle` are the ways to reach a loop from outside its handlers; `invariants` is for tests.

mod adding;
mod broadcast;
mod closures;
mod core;
mod dispatch;
mod drain;
mod handing;
mod handle;
mod invariants;
mod kept;
mod longest_idle;
mod machines;
mod room_search;
mod run_queue;
mod scheduler;
mod slots;
mod taking_over;

use std::collections::TryReserveError;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

pub use adding::{AddError, Adding};
pub use broadcast::{Broadcast, PostError};
pub use handle::{Exit, LoopHandle};
pub use machines::{Cursor, Machines, Seen, Verdict};

use self::core::Core;
use self::handing::{Baton, Closes, Open, Own, Relay, Rest, pulled_turn};
use self::handle::Control;
use self::kept::Kept;
use self::run_queue::Wait;
use crate::backend::Backend;
use crate::config::{Config, TICK};
use crate::environment::Environment;
use crate::machine::Machine;
use crate::mio_backend::Mio;
use crate::response::{BoxError, Response};
use crate::scope::{EarlyScope, GlobalScope, NoContext, Scope, Woken};
use crate::spawn_error::SpawnError;
use crate::stats::{Counters, StatsHandle};
use crate::time::Time;
use crate::token::Token;
use crate::wake_queue::WakeQueue;

/// A loop that is being set up: it takes machines, but has no context yet.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Config, Exit, Loop, Response};
/// # use rotor::{Machine, Scope, Infallible};
/// # struct Once;
/// # impl Machine for Once {
/// #     type Context = u32;
/// #     type Seed = Infallible;
/// #     fn timeout(self, scope: &mut Scope<'_, u32>) -> Response<Self, Infallible> { **scope += 1; Response::done() }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = Loop::new(&Config::new())?;
/// creator.add_machine_with(|scope| Response::ok(Once).deadline(scope.now()))?;
/// let mut instance = creator.instantiate(41);
/// assert_eq!(instance.run()?, Exit::Empty);
/// assert_eq!(instance.into_context(), 42);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "reactor")]
#[doc(alias = "event loop")]
#[doc(alias = "runtime")]
pub struct Loop<M: Machine, B: Backend = Mio> {
    // In any order: there is no context yet that machines could outlive.
    environment: Arc<Environment<B::Handle>>,
    core: Box<Core<M, B>>,
    control: Arc<Control>,
}

/// A loop with its context: it runs.
///
/// Either [`run`](LoopInstance::run) it to its end, or embed it: give it a
/// [`turn`](LoopInstance::turn) first, then wait for its descriptor ([`AsFd`]) until
/// [`next_deadline`](LoopInstance::next_deadline), and so on. Before its first turn a wake-up from
/// another thread does not reach the descriptor.
#[doc(alias = "reactor")]
#[doc(alias = "event loop")]
#[doc(alias = "executor")]
#[must_use = "a loop does nothing until it is run or given turns"]
pub struct LoopInstance<M: Machine, B: Backend = Mio> {
    /// Behind it the machines, first, so that they are dropped while the context still lives. Absent
    /// only while other threads run the loop.
    baton: Option<Baton<M, B>>,
    environment: Arc<Environment<B::Handle>>,
    control: Arc<Control>,
    /// What `run` does where the loop is handed over: compiled where the bounds of that are known.
    run: Option<Run<M, B>>,
    relay: Option<Closes<M, B>>,
}

impl<M: Machine> Loop<M> {
    /// Makes a loop on the default backend.
    ///
    /// # Errors
    ///
    /// When the system has no descriptor left for the readiness queue or the waker, or gives no
    /// random bytes (a sandbox that forbids getrandom(2)); `OutOfMemory` when there is no memory
    /// for as many machines as [`Config::machines_max`] says: a smaller number needs less.
    pub fn new(config: &Config) -> io::Result<Loop<M>> {
        let backend = Mio::new(config.events_max)?.offload_pool(config.offload.clone());
        Loop::with_backend(backend, config)
    }
}

type Run<M, B> = fn(&mut LoopInstance<M, B>) -> io::Result<Exit>;

/// Says what there is no memory for, and what to do.
fn no_memory<M>(config: &Config) -> impl FnOnce(TryReserveError) -> io::Error {
    let machines = config.machines_max;
    move |_| {
        let bytes = size_of::<M>();
        let advice = "a smaller `Config::machines_max` needs less";
        let message = format!("no memory for {machines} machines of {bytes} bytes each: {advice}");
        io::Error::new(io::ErrorKind::OutOfMemory, message)
    }
}

impl<M: Machine, B: Backend> Loop<M, B> {
    /// Makes a loop on a backend of your choice.
    ///
    /// [`Config::events_max`] is to be what the backend takes in one wait, as [`Loop::new`] has it:
    /// where there is more than one wait takes, the loop counts by it how many show all that had
    /// come before a deadline or a drain. A backend that takes fewer shows some of that late.
    ///
    /// # Errors
    ///
    /// What the backend says of its handle, its waker and its random bytes; `OutOfMemory` when
    /// there is no memory for as many machines as [`Config::machines_max`] says.
    pub fn with_backend(backend: B, config: &Config) -> io::Result<Loop<M, B>> {
        let (wakes, parts) = WakeQueue::new(config.machines_max, backend.waker()?)
            .map_err(no_memory::<M>(config))?;
        let wakes = Arc::new(wakes);
        let environment = Environment::new(backend.handle()?, wakes.clone(), config)?;
        let kept = Arc::<Kept>::default();
        let control = Arc::new(Control::new(wakes.clone(), kept.clone()));
        let counters = Counters::new(environment.jobs.clone(), environment.blocks.clone());
        let now = environment.now();
        let core = Core::new(backend, config.clone(), wakes, kept, parts, counters, now);
        let core = core.map_err(no_memory::<M>(config))?;
        Ok(Loop { environment: Arc::new(environment), core: Box::new(core), control })
    }

    /// Adds a machine. The closure gets the scope of the new machine, without a context;
    /// constructors take `&Scope<'_, C>` for any `C`, so they work here as in handlers. The loop's
    /// clock is read anew for it.
    ///
    /// # Errors
    ///
    /// When no slot is free, or the closure answered `done` or an error, or panicked. The loop is
    /// as it was.
    pub fn add_machine_with(
        &mut self,
        make: impl FnOnce(&mut EarlyScope<'_>) -> Response<M>,
    ) -> Result<Token, SpawnError<Infallible>> {
        let environment = &*self.environment;
        environment.refresh_now();
        let mut nothing = NoContext;
        self.core.make(environment, |token| {
            make(&mut Scope::new(&mut nothing, environment, token, Woken::default()))
        })
    }

    /// Adds a machine that comes with something for others, and returns that: the handle of a
    /// resolver or of a pool, the address of a listener, a notifier.
    ///
    /// "Part" is the part of a composed machine, one of its types; the part numbers of
    /// [`Scope::part`](crate::Scope::part) are another thing.
    ///
    /// `make` gives that and the constructor's answer, or an error, for which `?` may be used;
    /// `wrap` makes the machine one of the composed type. Handles are had before there is a
    /// context, which they are put into:
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use rotor::{Config, Loop, Machine, Mailbox, Response, Scope, Sender, Infallible, rotor_compose};
    ///
    /// struct Shared {
    ///     log: Sender<&'static str>,
    /// }
    ///
    /// struct Log(Mailbox<&'static str>);
    ///
    /// impl Log {
    ///     fn new<C>(lines_max: usize, scope: &Scope<'_, C>) -> (Sender<&'static str>, Response<Log>) {
    ///         let (sender, mailbox) = scope.create_mailbox(lines_max);
    ///         (sender, Response::ok(Log(mailbox)))
    ///     }
    /// }
    /// # impl Machine for Log {
    /// #     type Context = Shared;
    /// #     type Seed = Infallible;
    /// # }
    ///
    /// rotor_compose! {
    ///     enum App <Shared> {
    ///         Log(Log),
    ///         // .. and those that write to it
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut creator = Loop::new(&Config::new())?;
    /// let log = creator.add_part(App::Log, |scope| Ok(Log::new(1_000, scope)))?;
    /// let instance = creator.instantiate(Shared { log });
    /// # assert!(instance.context().log.send("here").is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`add_machine_with`](Loop::add_machine_with); an error of `make` is the cause
    /// ([`SpawnCause::Failed`](crate::SpawnCause::Failed)). The loop is as it was.
    pub fn add_part<P, V>(
        &mut self,
        wrap: impl FnOnce(P) -> M,
        make: impl FnOnce(&mut EarlyScope<'_>) -> Result<(V, Response<P>), BoxError>,
    ) -> Result<V, SpawnError<Infallible>> {
        let mut beside = None;
        self.add_machine_with(|scope| set_apart(make(scope), wrap, &mut beside))?;
        Ok(beside.expect("a machine was made, so there was no error"))
    }

    /// Ends the set-up: from now on the loop can run.
    pub fn instantiate(self, context: M::Context) -> LoopInstance<M, B>
    where
        M: 'static,
    {
        let Loop { environment, core, control } = self;
        environment.set_ends::<M::Context>(core.posts().clone());
        let baton = Baton { rest: Box::new(Rest::new(*core)), context: Box::new(context) };
        LoopInstance { baton: Some(baton), environment, control, run: None, relay: None }
    }

    /// A handle that stops or drains the loop from any thread.
    pub fn handle(&self) -> LoopHandle {
        LoopHandle::new(self.control.clone())
    }

    /// A handle that reads the loop's statistics from any thread: for a context that shows them.
    pub fn stats(&self) -> StatsHandle {
        self.core.dispatch().stats()
    }
}

impl<M: Machine, B: Backend> LoopInstance<M, B> {
    /// Takes turns until the loop ends, and says why it did.
    ///
    /// While machines wake themselves or start others, the backend is polled every 64 turns and
    /// every 100 µs at least, not in each turn; after a machine answered
    /// [`Response::again`](crate::Response::again) it is polled first.
    ///
    /// It ends as [`Config::exit`](crate::Config::exit) says, by a [`LoopHandle`], or by a panic
    /// under [`OnPanic::StopLoop`](crate::OnPanic::StopLoop). What machines are left are dropped
    /// with the loop. Running it again goes on where it ended, if there is a reason to.
    ///
    /// # Errors
    ///
    /// When the backend cannot wait any more. Its machines are as they were.
    pub fn run(&mut self) -> io::Result<Exit> {
        if let Some(run) = self.run {
            return run(self);
        }
        let _watched = self.core_mut().watch();
        loop {
            if let Some(exit) = self.one_turn(Wait::AtPace)? {
                return Ok(exit);
            }
        }
    }

    /// Has the loop go on while a handler blocks: [`run`](LoopInstance::run) has its handlers run by
    /// threads of its own, one at a time, and a handler that calls
    /// [`Scope::blocking`](crate::Scope::blocking) costs its machine the time, and no other.
    ///
    /// Machines, seeds, context and backend go from thread to thread, so they are `Send`; what a
    /// handler keeps in thread-local variables stays behind. How many threads there may be, and
    /// which sections are worth one, is set by [`Config::blocking`](crate::Config::blocking); where
    /// that is not set its defaults hold, the watchdog included.
    ///
    /// When `run` returns, handlers may still be away: of a loop that was stopped, or in a drain
    /// whose deadline has come, which counts their machines as dropped. Running it again has those
    /// come back that are machines of the loop; once it is dropped, they are unwound when they do.
    ///
    /// [`turn`](LoopInstance::turn) does not hand over, and nobody comes back in it. Asking again
    /// changes nothing.
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use std::time::Duration;
    /// use rotor::{Config, Infallible, Loop, Machine, Response, Scope};
    ///
    /// /// Looks something up where that takes long.
    /// struct Lookup(u32);
    ///
    /// impl Machine for Lookup {
    ///     type Context = Vec<u32>;
    ///     type Seed = Infallible;
    ///
    ///     fn wakeup(self, scope: &mut Scope<'_, Vec<u32>>) -> Response<Self, Infallible> {
    ///         let key = self.0;
    ///         // Meanwhile the other machine does the same.
    ///         let found = scope.blocking(move || {
    ///             std::thread::sleep(Duration::from_millis(20));
    ///             key * 10
    ///         });
    ///         scope.push(found);
    ///         Response::done()
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut creator = Loop::new(&Config::new())?;
    /// for key in 1..=2 {
    ///     creator.add_machine_with(|scope| {
    ///         scope.wake_self();
    ///         Response::ok(Lookup(key))
    ///     })?;
    /// }
    /// let mut instance = creator.instantiate(Vec::new()).handing_over();
    /// instance.run()?;
    /// assert_eq!(instance.stats().read().handed_over, 2);
    /// assert_eq!(instance.into_context().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "block_in_place")]
    #[doc(alias = "spawn_blocking")]
    pub fn handing_over(mut self) -> LoopInstance<M, B>
    where
        M: Machine<Seed: Send, Context: Send> + Send + 'static,
        B: Backend<Handle: Send + Sync> + Send + 'static,
    {
        if self.relay.is_some() {
            return self;
        }
        let blocking = self.core_mut().enable_blocking();
        let relay = Relay::new(self.environment.clone(), self.control.clone(), blocking);
        self.relay = Some(Closes(relay));
        self.run = Some(LoopInstance::run_by_threads);
        self
    }

    /// What `run` does where other threads run the loop.
    fn run_by_threads(&mut self) -> io::Result<Exit>
    where
        M: Machine<Seed: Send, Context: Send> + Send + 'static,
        B: Backend<Handle: Send + Sync> + Send + 'static,
    {
        let relay = self.relay.as_ref().map(|closes| closes.0.clone());
        let (Some(relay), Some(baton)) = (relay, self.baton.take()) else {
            return Err(io::Error::other("the loop is with other threads"));
        };
        let (mut baton, ended) = relay.run(baton);
        baton.run_ends();
        self.baton = Some(baton);
        ended
    }

    fn core(&self) -> &Core<M, B> {
        &self.baton.as_ref().expect(HERE).rest.core
    }

    fn core_mut(&mut self) -> &mut Core<M, B> {
        &mut self.baton.as_mut().expect(HERE).rest.core
    }

    /// Takes one turn: waits for `max_wait` at most (`None`: until there is something to do), with
    /// the backend polled in any case, then does what is due. Returns why the loop has ended,
    /// once it has.
    ///
    /// # Errors
    ///
    /// As for [`run`](LoopInstance::run).
    pub fn turn(&mut self, max_wait: Option<Duration>) -> io::Result<Option<Exit>> {
        let ended = self.one_turn(Wait::AtMost(max_wait))?;
        // Whoever embeds the loop sleeps on its descriptor from now on: wake-ups must reach it.
        self.environment.wakes.try_sleep();
        Ok(ended)
    }

    fn one_turn(&mut self, wait: Wait) -> io::Result<Option<Exit>> {
        let LoopInstance { baton, environment, control, .. } = self;
        let ended = if cfg!(any(rotor_pulled, rotor_taking)) {
            let baton_now = baton.take().expect(HERE);
            let (back, ended) = if cfg!(rotor_taking) {
                pulled_turn::<M, B, Open<M, B>>(baton_now, &**environment, control, wait)
            } else {
                pulled_turn::<M, B, Own<M, B>>(baton_now, &**environment, control, wait)
            };
            *baton = back;
            ended
        } else {
            let Baton { rest, context } = baton.as_mut().expect(HERE);
            let Rest { core, repeated, .. } = &mut **rest;
            core.turn(context, &**environment, repeated, control, wait)
        };
        if !matches!(ended, Ok(None))
            && let Some(baton) = baton
        {
            // A drain has dropped machines since closures were run.
            baton.run_ends();
        }
        ended
    }

    /// When the loop wants its next turn, if nothing happens before: now, if there is work or the
    /// backend may have more events than the last turn took; `None`, if it waits for events only.
    pub fn next_deadline(&self) -> Option<Time> {
        let Baton { rest, .. } = self.baton.as_ref().expect(HERE);
        rest.core.next_deadline(&*self.environment, &rest.repeated, &self.control)
    }

    /// The loop's time: what its clock said when it was last read.
    pub fn now(&self) -> Time {
        self.environment.now()
    }

    /// Makes a machine from a seed, as if one of the loop's machines had spawned it. The loop's
    /// clock is read anew for it.
    ///
    /// # Errors
    ///
    /// As a machine's `spawn_error` would hear, with the seed if it was not used.
    pub fn spawn(&mut self, seed: M::Seed) -> Result<Token, SpawnError<M::Seed>> {
        let LoopInstance { baton, environment, .. } = self;
        let Baton { rest, context } = baton.as_mut().expect(HERE);
        // Whoever calls this between turns may have been busy since the last one.
        environment.refresh_now();
        rest.core.create(context, &**environment, seed)
    }

    /// Adds a machine that the closure makes with its scope. The loop's clock is read anew for it.
    ///
    /// # Errors
    ///
    /// As for [`Loop::add_machine_with`].
    pub fn add_machine_with(
        &mut self,
        make: impl FnOnce(&mut Scope<'_, M::Context>) -> Response<M>,
    ) -> Result<Token, SpawnError<Infallible>> {
        let LoopInstance { baton, environment, .. } = self;
        let Baton { rest, context } = baton.as_mut().expect(HERE);
        environment.refresh_now();
        rest.core.make(&**environment, |token| {
            make(&mut Scope::new(context, &**environment, token, Woken::default()))
        })
    }

    /// Adds a machine that comes with something for others, and returns that:
    /// [`Loop::add_part`], later, with the context.
    ///
    /// # Errors
    ///
    /// As for [`Loop::add_part`].
    pub fn add_part<P, V>(
        &mut self,
        wrap: impl FnOnce(P) -> M,
        make: impl FnOnce(&mut Scope<'_, M::Context>) -> Result<(V, Response<P>), BoxError>,
    ) -> Result<V, SpawnError<Infallible>> {
        let mut beside = None;
        self.add_machine_with(|scope| set_apart(make(scope), wrap, &mut beside))?;
        Ok(beside.expect("a machine was made, so there was no error"))
    }

    /// Calls `f` every `period`, between handlers, when every machine is in its slot; the first
    /// time after one period. A period of less than a [`TICK`] is one: with none at all the loop
    /// would never rest.
    ///
    /// A call that comes late is not made up for. One that panics is logged and never called again.
    /// A loop whose machines have all ended ends in spite of it.
    pub fn every(
        &mut self,
        period: Duration,
        f: impl FnMut(Machines<'_, M>, &mut GlobalScope<'_, M::Context>) + Send + 'static,
    ) {
        let period = period.max(TICK);
        let now = self.environment.refresh_now();
        self.baton.as_mut().expect(HERE).rest.repeated.add(period, now, Box::new(f));
    }

    /// A handle that stops or drains the loop from any thread.
    pub fn handle(&self) -> LoopHandle {
        LoopHandle::new(self.control.clone())
    }

    /// A handle that runs closures between handlers of this loop, or adds machines to it, from any
    /// thread.
    pub fn broadcast(&self) -> Broadcast<M> {
        Broadcast::new(self.core().posts().clone())
    }

    /// A handle that reads the loop's statistics from any thread. What has happened so far is in
    /// them already, the machines of the set-up included.
    pub fn stats(&self) -> StatsHandle {
        self.core().dispatch().stats()
    }

    /// The machines, between turns. A [scan](Machines::scan) may look at what the last turn's
    /// budget has left.
    pub fn machines(&mut self) -> Machines<'_, M> {
        self.core_mut().machines()
    }

    /// The context.
    pub fn context(&self) -> &M::Context {
        &self.baton.as_ref().expect(HERE).context
    }

    /// The context, to be changed between turns.
    pub fn context_mut(&mut self) -> &mut M::Context {
        &mut self.baton.as_mut().expect(HERE).context
    }

    /// The context, when the loop is no longer needed. Its machines are dropped, and what they kept
    /// for their end ([`AtEnd`](crate::AtEnd)) has come to the context.
    pub fn into_context(mut self) -> M::Context {
        *self.end().expect(HERE)
    }

    /// Drops the machines, those among them whose late answers wait, and all else but the context.
    fn end(&mut self) -> Option<Box<M::Context>> {
        let baton = self.baton.take()?;
        if let Some(Closes(relay)) = &self.relay {
            relay.close_late();
        }
        Some(baton.into_context())
    }
}

/// The machines are dropped while there is still a context for what they kept for their end.
impl<M: Machine, B: Backend> Drop for LoopInstance<M, B> {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// The baton is absent only while `run` has it, which borrows the loop.
const HERE: &str = "nobody reaches a loop while it runs";

/// The constructor's answer, wrapped; what comes with it goes to `beside`.
fn set_apart<P, M, V>(
    made: Result<(V, Response<P>), BoxError>,
    wrap: impl FnOnce(P) -> M,
    beside: &mut Option<V>,
) -> Response<M> {
    match made {
        Ok((value, machine)) => {
            *beside = Some(value);
            machine.wrap(wrap)
        }
        Err(error) => Response::error(error),
    }
}

/// The descriptor that becomes readable when there is something to do: for embedding the loop in
/// another one.
impl<M: Machine, B: Backend + AsFd> AsFd for LoopInstance<M, B> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.core().backend().as_fd()
    }
}

impl<M: Machine, B: Backend> fmt::Debug for Loop<M, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loop({} machines)", self.core.dispatch().slots().len())
    }
}

impl<M: Machine, B: Backend> fmt::Debug for LoopInstance<M, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoopInstance({} machines)", self.core().dispatch().slots().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Idle;

    impl Machine for Idle {
        type Context = ();
        type Seed = Infallible;
    }

    #[test]
    fn the_statistics_of_a_loop_that_has_not_run_yet_tell_of_its_machines() {
        let mut creator = Loop::new(&Config::new().machines_max(2)).expect("a descriptor is left");
        for _ in 0..2 {
            creator.add_machine_with(|_| Response::ok(Idle)).expect("a slot is free");
        }
        let stats = creator.instantiate(()).stats().read();
        assert_eq!((stats.alive, stats.spawned, stats.turns), (2, 2, 0));
    }
}
