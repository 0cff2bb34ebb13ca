//! `LoopInstance`: the second stage, a loop that has its context and takes turns.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::dispatch::backend_panicked;
use super::handle::{Control, Exit, LoopHandle};
use super::relay::{Baton, LocalCell, LoopState, RelayGuard, SharedCell, take_pulled_turn};
use super::run_queue::WaitMode;
use super::{Broadcast, Machines};
use crate::backend::Backend;
use crate::config::TICK;
use crate::environment::Environment;
use crate::guard::guard;
use crate::machine::Machine;
use crate::mio_backend::Mio;
use crate::response::{BoxError, Response};
use crate::scope::{GlobalScope, Scope, WakeTarget};
use crate::spawn_error::SpawnError;
use crate::stats::StatsHandle;
use crate::time::Time;
use crate::token::Token;

/// A loop that has its context and can run.
///
/// Either [`run`](LoopInstance::run) it until it ends, or embed it in another loop: first take one
/// [`turn`](LoopInstance::turn), then wait for its descriptor ([`AsFd`]) until
/// [`next_deadline`](LoopInstance::next_deadline), take the next turn, and so on. Before the first
/// turn a wake-up from another thread does not make the descriptor readable.
#[doc(alias = "reactor")]
#[doc(alias = "event loop")]
#[doc(alias = "executor")]
#[must_use = "a loop does nothing until it is run or given turns"]
pub struct LoopInstance<M: Machine, B: Backend = Mio> {
    /// Contains the machines. It is the first field, so that they are dropped while the context
    /// still exists. `None` only while other threads run the loop.
    pub(super) baton: Option<Baton<M, B>>,
    pub(super) environment: Arc<Environment<B::Handle>>,
    pub(super) control: Arc<Control>,
    /// What `run` does if the loop can be handed over: compiled where the trait bounds for that are
    /// known.
    pub(super) run: Option<RunFn<M, B>>,
    pub(super) relay: Option<RelayGuard<M, B>>,
    /// What `turn` does if each turn is to run on another thread.
    #[cfg(rotor_handed)]
    pub(super) turn: Option<TurnFn<M, B>>,
}

type RunFn<M, B> = fn(&mut LoopInstance<M, B>) -> io::Result<Exit>;

#[cfg(rotor_handed)]
type TurnFn<M, B> = fn(&mut LoopInstance<M, B>, WaitMode) -> io::Result<Option<Exit>>;

impl<M: Machine, B: Backend> LoopInstance<M, B> {
    /// Takes turns until the loop ends, and returns why it ended.
    ///
    /// While machines wake themselves or spawn others, the backend is not polled in each turn, but
    /// at least every 64 turns and every 100 µs. After a machine has returned
    /// [`Response::again`](crate::Response::again), the backend is polled before that machine is
    /// called again.
    ///
    /// The loop ends as [`Config::exit`](crate::Config::exit) says, through a [`LoopHandle`], or by
    /// a panic under [`OnPanic::StopLoop`](crate::OnPanic::StopLoop). The remaining machines are
    /// dropped with the loop. If you run it again, it goes on where it ended, if there is a reason
    /// to.
    ///
    /// # Errors
    ///
    /// When the backend can no longer wait, or it or its clock panics between handlers. The
    /// machines are unchanged.
    pub fn run(&mut self) -> io::Result<Exit> {
        if let Some(run) = self.run {
            return run(self);
        }
        let _watched = self.core_mut().watch();
        // A turn has a guard of its own for handlers, without its wait and its end. Around both it
        // would cost each turn 2 to 3 % more instructions.
        guard(|| self.take_turns()).unwrap_or_else(|panicked| {
            if let Some(baton) = &mut self.baton {
                baton.run_end_functions();
            }
            Err(backend_panicked(&panicked))
        })
    }

    pub(super) fn core(&self) -> &Core<M, B> {
        &self.baton.as_ref().expect(NOT_RUNNING).loop_state.core
    }

    pub(super) fn core_mut(&mut self) -> &mut Core<M, B> {
        &mut self.baton.as_mut().expect(NOT_RUNNING).loop_state.core
    }

    /// Takes one turn. Returns why the loop has ended, or `None` if it has not.
    ///
    /// A turn waits for at most `max_wait` (`None`: until there is something to do), and then does
    /// the work that is due. The backend is polled in any case.
    ///
    /// # Errors
    ///
    /// Fails as [`run`](LoopInstance::run) does. But if the backend or its clock panics between
    /// handlers, this may panic as well: to convert that into an error, `run` has a guard, which
    /// would make each turn more expensive. The machines are unchanged.
    pub fn turn(&mut self, max_wait: Option<Duration>) -> io::Result<Option<Exit>> {
        let ended = self.take_turn(WaitMode::AtMost(max_wait))?;
        // From now on the embedding code sleeps on the descriptor: wake-ups must reach it.
        self.environment.wakes.try_sleep();
        Ok(ended)
    }

    fn take_turns(&mut self) -> io::Result<Exit> {
        loop {
            if let Some(exit) = self.take_turn(WaitMode::AtPace)? {
                return Ok(exit);
            }
        }
    }

    fn take_turn(&mut self, wait: WaitMode) -> io::Result<Option<Exit>> {
        #[cfg(rotor_handed)]
        if let Some(turn) = self.turn {
            return turn(self, wait);
        }
        let LoopInstance { baton, environment, control, .. } = self;
        let ended = if cfg!(any(rotor_pulled, rotor_taking)) {
            let taken = baton.take().expect(NOT_RUNNING);
            let (returned, ended) = if cfg!(rotor_taking) {
                take_pulled_turn::<M, B, SharedCell<M, B>>(taken, &**environment, control, wait)
            } else {
                take_pulled_turn::<M, B, LocalCell<M, B>>(taken, &**environment, control, wait)
            };
            *baton = returned;
            ended
        } else {
            let Baton { loop_state, context } = baton.as_mut().expect(NOT_RUNNING);
            let LoopState { core, repeated, .. } = &mut **loop_state;
            core.turn(context, &**environment, repeated, control, wait)
        };
        if !matches!(ended, Ok(None))
            && let Some(baton) = baton
        {
            // A drain has dropped machines since the last time closures were run.
            baton.run_end_functions();
        }
        ended
    }

    /// Returns when the loop needs its next turn if no event comes before. That is now if there is
    /// work, or if the backend may have more events than the last turn took. `None` means that the
    /// loop waits for events only.
    pub fn next_deadline(&self) -> Option<Time> {
        let Baton { loop_state, .. } = self.baton.as_ref().expect(NOT_RUNNING);
        loop_state.core.next_deadline(&*self.environment, &loop_state.repeated, &self.control)
    }

    /// Returns how long code that embeds the loop may wait, if no event comes before, until it takes
    /// the next turn: the time that is left until [`next_deadline`](LoopInstance::next_deadline),
    /// zero if that has passed. `None` means that the loop waits for events only.
    ///
    /// The loop reads its clock for this, because the embedding code may have been busy since the
    /// last turn.
    #[doc(alias = "poll_timeout")]
    pub fn max_wait(&self) -> Option<Duration> {
        let next = self.next_deadline()?;
        Some(next - self.environment.refresh_now())
    }

    /// Returns the loop's time: the result of the last reading of its clock.
    pub fn now(&self) -> Time {
        self.environment.now()
    }

    /// Makes a machine from a seed, as if one of the loop's machines had spawned it. The loop reads
    /// its clock first. Code that embeds the loop asks [`next_deadline`](LoopInstance::next_deadline)
    /// again afterwards, since the new machine may have set one, or have woken itself.
    ///
    /// # Errors
    ///
    /// Returns the error that a machine's `spawn_error` would get, with the seed if it was not
    /// used.
    pub fn spawn(&mut self, seed: M::Seed) -> Result<Token, SpawnError<M::Seed>> {
        let LoopInstance { baton, environment, .. } = self;
        let Baton { loop_state, context } = baton.as_mut().expect(NOT_RUNNING);
        // The caller may have been busy since the last turn.
        environment.refresh_now();
        loop_state.core.create_from_seed(context, &**environment, seed)
    }

    /// Adds the machine that the closure creates, with the machine's scope. The loop reads its
    /// clock before it calls the closure.
    ///
    /// # Errors
    ///
    /// Fails as [`Loop::add_machine_with`](crate::Loop::add_machine_with) does.
    pub fn add_machine_with(
        &mut self,
        make: impl FnOnce(&mut Scope<'_, M::Context>) -> Response<M>,
    ) -> Result<Token, SpawnError<Infallible>> {
        let LoopInstance { baton, environment, .. } = self;
        let Baton { loop_state, context } = baton.as_mut().expect(NOT_RUNNING);
        environment.refresh_now();
        loop_state.core.create_with(&**environment, |token| {
            make(&mut Scope::new(context, &**environment, token, WakeTarget::default()))
        })
    }

    /// Adds a machine together with a value for other code, and returns that value: as
    /// [`Loop::add_part`](crate::Loop::add_part), but with the context.
    ///
    /// # Errors
    ///
    /// Fails as [`Loop::add_part`](crate::Loop::add_part) does.
    pub fn add_part<P, V>(
        &mut self,
        wrap: impl FnOnce(P) -> M,
        make: impl FnOnce(&mut Scope<'_, M::Context>) -> Result<(V, Response<P>), BoxError>,
    ) -> Result<V, SpawnError<Infallible>> {
        let mut value_slot = None;
        self.add_machine_with(|scope| split_off_value(make(scope), wrap, &mut value_slot))?;
        Ok(value_slot.expect("a machine was made, so there was no error"))
    }

    /// Calls `f` every `period`, between handlers, when every machine is in its slot. The first
    /// call comes after one period. A period shorter than one [`TICK`] counts as one tick, because
    /// with a shorter one the loop would never sleep.
    ///
    /// Missed calls are not made up for. If `f` panics, the panic is logged and `f` is never called
    /// again. These calls do not keep a loop running whose machines have all ended.
    pub fn every(
        &mut self,
        period: Duration,
        f: impl FnMut(Machines<'_, M>, &mut GlobalScope<'_, M::Context>) + Send + 'static,
    ) {
        let period = period.max(TICK);
        let now = self.environment.refresh_now();
        self.baton.as_mut().expect(NOT_RUNNING).loop_state.repeated.add(period, now, Box::new(f));
    }

    /// Returns a handle that stops or drains the loop from any thread.
    pub fn handle(&self) -> LoopHandle {
        LoopHandle::new(self.control.clone())
    }

    /// Returns a handle that runs closures between the handlers of this loop, or adds machines to
    /// it, from any thread.
    pub fn broadcast(&self) -> Broadcast<M> {
        Broadcast::new(self.core().posts().clone())
    }

    /// Returns a handle that reads the loop's statistics from any thread. They include what has
    /// happened so far, also during set-up.
    pub fn stats(&self) -> StatsHandle {
        self.core().dispatch().stats()
    }

    /// Returns the machines, between turns. A [scan](Machines::scan) may look at as many machines
    /// as the last turn has left of its budget.
    pub fn machines(&mut self) -> Machines<'_, M> {
        self.core_mut().machines()
    }

    /// Returns the context.
    pub fn context(&self) -> &M::Context {
        &self.baton.as_ref().expect(NOT_RUNNING).context
    }

    /// Returns the context for changes between turns.
    pub fn context_mut(&mut self) -> &mut M::Context {
        &mut self.baton.as_mut().expect(NOT_RUNNING).context
    }

    /// Ends the loop and returns its context. The machines are dropped first, and the functions of
    /// their [`ReturnOnDrop`](crate::ReturnOnDrop) values have been applied to the context.
    pub fn into_context(mut self) -> M::Context {
        *self.take_context().expect(NOT_RUNNING)
    }

    /// Drops everything but the context: the machines, also those whose late answers wait.
    fn take_context(&mut self) -> Option<Box<M::Context>> {
        let baton = self.baton.take()?;
        if let Some(RelayGuard(relay)) = &self.relay {
            relay.close_late_answers();
        }
        Some(baton.into_context())
    }
}

/// Drops the machines while there is still a context for the functions of their `ReturnOnDrop`
/// values.
impl<M: Machine, B: Backend> Drop for LoopInstance<M, B> {
    fn drop(&mut self) {
        drop(self.take_context());
    }
}

/// The baton is absent only while `run` has it, and `run` borrows the loop.
const NOT_RUNNING: &str = "nobody reaches a loop while it runs";

/// The descriptor that becomes readable when there is something to do, for embedding the loop in
/// another one.
impl<M: Machine, B: Backend + AsFd> AsFd for LoopInstance<M, B> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.core().backend().as_fd()
    }
}

impl<M: Machine, B: Backend> fmt::Debug for LoopInstance<M, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoopInstance({} machines)", self.core().dispatch().slots().len())
    }
}

/// Wraps the machine of the constructor's response, and stores the other value in `value_slot`.
pub(super) fn split_off_value<P, M, V>(
    made: Result<(V, Response<P>), BoxError>,
    wrap: impl FnOnce(P) -> M,
    value_slot: &mut Option<V>,
) -> Response<M> {
    match made {
        Ok((value, machine)) => {
            *value_slot = Some(value);
            machine.wrap(wrap)
        }
        Err(error) => Response::error(error),
    }
}
