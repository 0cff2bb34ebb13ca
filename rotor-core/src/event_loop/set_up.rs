//! `Loop`: the first stage, in which a loop gets its machines and has no context yet.

use std::collections::TryReserveError;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::broadcast::Broadcast;
use super::core::Core;
use super::drop_on_drain::DropOnDrain;
use super::handle::{Control, LoopHandle};
use super::instance::{LoopInstance, split_off_value};
use super::relay::{Baton, LoopState};
use crate::backend::Backend;
use crate::config::Config;
use crate::environment::Environment;
use crate::loop_kind::{LoopKind, MioKind};
use crate::machine::Machine;
use crate::mio_backend::Mio;
use crate::response::{BoxError, Response};
use crate::scope::{EarlyScope, NoContext, Scope, WakeTarget};
use crate::spawn_error::SpawnError;
use crate::stats::{Counters, StatsHandle};
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
    // The order does not matter: there is no context yet that machines could outlive.
    environment: Arc<Environment<B::Handle>>,
    core: Box<Core<M, B>>,
    control: Arc<Control>,
}

impl<M: Machine> Loop<M> {
    /// Creates a loop on the default backend.
    ///
    /// # Errors
    ///
    /// Fails if the system has no descriptor left for the readiness queue or the waker, or if it
    /// provides no random bytes (for example in a sandbox that forbids getrandom(2)). Fails with
    /// `OutOfMemory` if there is not enough memory for [`Config::machines_max`] machines; a smaller
    /// number needs less.
    pub fn new(config: &Config) -> io::Result<Loop<M>> {
        Loop::with_backend(MioKind.open(config)?, config)
    }
}

impl<M: Machine, B: Backend> Loop<M, B> {
    /// Creates a loop on the given backend.
    ///
    /// Set [`Config::events_max`] to the number of events that the backend returns from one wait,
    /// as [`Loop::new`] does. If more events are ready than one wait returns, the loop uses this
    /// number to tell when it has seen all those that arrived before a deadline or a drain. With a
    /// backend that returns fewer, some of these events are delivered late.
    ///
    /// # Errors
    ///
    /// Returns the backend's errors about its handle, its waker and its random bytes. Fails with
    /// `OutOfMemory` if there is not enough memory for [`Config::machines_max`] machines.
    pub fn with_backend(backend: B, config: &Config) -> io::Result<Loop<M, B>> {
        let (wakes, parts) = WakeQueue::new(config.machines_max, backend.waker()?)
            .map_err(out_of_memory_error::<M>(config))?;
        let wakes = Arc::new(wakes);
        let environment = Environment::new(backend.handle()?, wakes.clone(), config)?;
        let drop_on_drain = Arc::<DropOnDrain>::default();
        let control = Arc::new(Control::new(wakes.clone(), drop_on_drain.clone()));
        let counters = Counters::new(environment.jobs.clone(), environment.blocks.clone());
        let now = environment.now();
        let core = Core::new(backend, config.clone(), wakes, drop_on_drain, parts, counters, now);
        let core = core.map_err(out_of_memory_error::<M>(config))?;
        Ok(Loop { environment: Arc::new(environment), core: Box::new(core), control })
    }

    /// Adds the machine that the closure creates.
    ///
    /// The closure gets the scope of the new machine, without a context. Constructors take
    /// `&Scope<'_, C>` for any `C`, so they work here as they do in handlers. The loop reads its
    /// clock before it calls the closure.
    ///
    /// # Errors
    ///
    /// Fails if no slot is free, or if the closure panicked or returned `done` or an error. The
    /// loop is unchanged.
    pub fn add_machine_with(
        &mut self,
        make: impl FnOnce(&mut EarlyScope<'_>) -> Response<M>,
    ) -> Result<Token, SpawnError<Infallible>> {
        let environment = &*self.environment;
        environment.refresh_now();
        let mut nothing = NoContext;
        self.core.create_with(environment, |token| {
            make(&mut Scope::new(&mut nothing, environment, token, WakeTarget::default()))
        })
    }

    /// Adds a machine together with a value for other code, and returns that value: for example the
    /// handle of a resolver or of a pool, the address of a listener, a notifier.
    ///
    /// "Part" means a part of a composed machine, one of its types. It has nothing to do with the
    /// part numbers of [`Scope::part`](crate::Scope::part).
    ///
    /// `make` returns the value and the constructor's response, or an error, so `?` can be used in
    /// it. `wrap` turns the machine into one of the composed type. In this way handles exist before
    /// the context that contains them:
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
    /// Fails as [`add_machine_with`](Loop::add_machine_with) does. An error of `make` becomes the
    /// cause ([`SpawnCause::Failed`](crate::SpawnCause::Failed)). The loop is unchanged.
    pub fn add_part<P, V>(
        &mut self,
        wrap: impl FnOnce(P) -> M,
        make: impl FnOnce(&mut EarlyScope<'_>) -> Result<(V, Response<P>), BoxError>,
    ) -> Result<V, SpawnError<Infallible>> {
        let mut value_slot = None;
        self.add_machine_with(|scope| split_off_value(make(scope), wrap, &mut value_slot))?;
        Ok(value_slot.expect("a machine was made, so there was no error"))
    }

    /// Ends the set-up and adds the context. From now on the loop can run.
    #[cfg(not(rotor_handed))]
    pub fn instantiate(self, context: M::Context) -> LoopInstance<M, B>
    where
        M: 'static,
    {
        self.into_instance(context)
    }

    /// Does the same for a loop that changes its thread in every turn; see
    /// `relay/thread_rotation.rs`.
    #[cfg(rotor_handed)]
    #[allow(missing_docs, reason = "nobody but this crate's tests sees it")]
    pub fn instantiate(self, context: M::Context) -> LoopInstance<M, B>
    where
        M: Machine<Seed: Send, Context: Send> + Send + 'static,
        B: Backend<Handle: Send + Sync> + Send + 'static,
    {
        self.into_instance(context).rotating_threads()
    }

    fn into_instance(self, context: M::Context) -> LoopInstance<M, B>
    where
        M: 'static,
    {
        let Loop { environment, core, control } = self;
        environment.set_end_queue::<M::Context>(core.posts().clone());
        let baton =
            Baton { loop_state: Box::new(LoopState::new(*core)), context: Box::new(context) };
        LoopInstance {
            baton: Some(baton),
            environment,
            control,
            run: None,
            relay: None,
            #[cfg(rotor_handed)]
            turn: None,
        }
    }

    /// Returns a handle that stops or drains the loop from any thread.
    pub fn handle(&self) -> LoopHandle {
        LoopHandle::new(self.control.clone())
    }

    /// Returns a handle that runs closures between the handlers of this loop, or adds machines to
    /// it, for example for a context whose machines make machines of other kinds.
    pub fn broadcast(&self) -> Broadcast<M> {
        Broadcast::new(self.core.posts().clone())
    }

    /// Returns a handle that reads the loop's statistics from any thread, for example for a context
    /// that shows them.
    pub fn stats(&self) -> StatsHandle {
        self.core.dispatch().stats()
    }
}

impl<M: Machine, B: Backend> fmt::Debug for Loop<M, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loop({} machines)", self.core.dispatch().slots().len())
    }
}

/// Makes the error that says for what there is not enough memory, and what helps.
fn out_of_memory_error<M>(config: &Config) -> impl FnOnce(TryReserveError) -> io::Error {
    let machines = config.machines_max;
    move |_| {
        let bytes = size_of::<M>();
        let advice = "a smaller `Config::machines_max` needs less";
        let message = format!("no memory for {machines} machines of {bytes} bytes each: {advice}");
        io::Error::new(io::ErrorKind::OutOfMemory, message)
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
    fn the_statistics_count_machines_before_the_loop_has_run() {
        let mut creator = Loop::new(&Config::new().machines_max(2)).expect("a descriptor is left");
        for _ in 0..2 {
            creator.add_machine_with(|_| Response::ok(Idle)).expect("a slot is free");
        }
        let stats = creator.instantiate(()).stats().read();
        assert_eq!((stats.alive, stats.spawned, stats.turns), (2, 2, 0));
    }
}
