//! `LoopInstance`: the second stage, a loop that has its context and takes turns.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::handing::{Baton, Closes, Open, Own, Rest, pulled_turn};
use super::handle::{Control, Exit, LoopHandle};
use super::run_queue::Wait;
use super::{Broadcast, Machines};
use crate::backend::Backend;
use crate::config::TICK;
use crate::environment::Environment;
use crate::machine::Machine;
use crate::mio_backend::Mio;
use crate::response::{BoxError, Response};
use crate::scope::{GlobalScope, Scope, Woken};
use crate::spawn_error::SpawnError;
use crate::stats::StatsHandle;
use crate::time::Time;
use crate::token::Token;

/// A loop with its context: it can run.
///
/// Either [`run`](LoopInstance::run) it until it ends, or embed it: first take one
/// [`turn`](LoopInstance::turn), then wait for its descriptor ([`AsFd`]) until
/// [`next_deadline`](LoopInstance::next_deadline), take a turn, and so on. Before the first turn a
/// wake-up from another thread does not reach the descriptor.
#[doc(alias = "reactor")]
#[doc(alias = "event loop")]
#[doc(alias = "executor")]
#[must_use = "a loop does nothing until it is run or given turns"]
pub struct LoopInstance<M: Machine, B: Backend = Mio> {
    /// Behind it the machines, first, so that they are dropped while the context still lives.
    /// Absent only while other threads run the loop.
    pub(super) baton: Option<Baton<M, B>>,
    pub(super) environment: Arc<Environment<B::Handle>>,
    pub(super) control: Arc<Control>,
    /// What `run` does where the loop is handed over: compiled where the bounds of that are known.
    pub(super) run: Option<Run<M, B>>,
    pub(super) relay: Option<Closes<M, B>>,
    /// What `turn` does where each turn is to be another thread's.
    #[cfg(rotor_handed)]
    pub(super) turn: Option<Turn<M, B>>,
}

type Run<M, B> = fn(&mut LoopInstance<M, B>) -> io::Result<Exit>;

#[cfg(rotor_handed)]
type Turn<M, B> = fn(&mut LoopInstance<M, B>, Wait) -> io::Result<Option<Exit>>;

impl<M: Machine, B: Backend> LoopInstance<M, B> {
    /// Takes turns until the loop ends, and returns why it ended.
    ///
    /// While machines wake themselves or start others, the backend is not polled in each turn, but
    /// at least every 64 turns and every 100 µs. After a machine has answered
    /// [`Response::again`](crate::Response::again) it is polled first.
    ///
    /// The loop ends as [`Config::exit`](crate::Config::exit) says, through a [`LoopHandle`], or by
    /// a panic under [`OnPanic::StopLoop`](crate::OnPanic::StopLoop). The remaining machines are
    /// dropped with the loop. If you run it again, it goes on where it ended, if there is a reason
    /// to.
    ///
    /// # Errors
    ///
    /// When the backend can no longer wait, or it or its clock panics between handlers. The machines
    /// are unchanged.
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

    pub(super) fn core(&self) -> &Core<M, B> {
        &self.baton.as_ref().expect(HERE).rest.core
    }

    pub(super) fn core_mut(&mut self) -> &mut Core<M, B> {
        &mut self.baton.as_mut().expect(HERE).rest.core
    }

    /// Takes one turn, and returns why the loop has ended, once it has.
    ///
    /// A turn waits for at most `max_wait` (`None`: until there is something to do), then does what
    /// is due. The backend is polled in any case.
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
        #[cfg(rotor_handed)]
        if let Some(turn) = self.turn {
            return turn(self, wait);
        }
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

    /// Returns when the loop wants its next turn if nothing happens before. That is now, if there
    /// is work or the backend may have more events than the last turn took; `None` means that it
    /// waits for events only.
    pub fn next_deadline(&self) -> Option<Time> {
        let Baton { rest, .. } = self.baton.as_ref().expect(HERE);
        rest.core.next_deadline(&*self.environment, &rest.repeated, &self.control)
    }

    /// Returns the loop's time: what its clock said when it was last read.
    pub fn now(&self) -> Time {
        self.environment.now()
    }

    /// Makes a machine from a seed, as if one of the loop's machines had spawned it. The loop's
    /// clock is read anew for it.
    ///
    /// # Errors
    ///
    /// The error that a machine's `spawn_error` would get, with the seed if it was not used.
    pub fn spawn(&mut self, seed: M::Seed) -> Result<Token, SpawnError<M::Seed>> {
        let LoopInstance { baton, environment, .. } = self;
        let Baton { rest, context } = baton.as_mut().expect(HERE);
        // Whoever calls this between turns may have been busy since the last one.
        environment.refresh_now();
        rest.core.create(context, &**environment, seed)
    }

    /// Adds a machine, which the closure makes with the machine's scope. The loop's clock is read
    /// anew for it.
    ///
    /// # Errors
    ///
    /// As for [`Loop::add_machine_with`](crate::Loop::add_machine_with).
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

    /// Adds a machine that comes with something for others, and returns that: as
    /// [`Loop::add_part`](crate::Loop::add_part), but later and with the context.
    ///
    /// # Errors
    ///
    /// As for [`Loop::add_part`](crate::Loop::add_part).
    pub fn add_part<P, V>(
        &mut self,
        wrap: impl FnOnce(P) -> M,
        make: impl FnOnce(&mut Scope<'_, M::Context>) -> Result<(V, Response<P>), BoxError>,
    ) -> Result<V, SpawnError<Infallible>> {
        let mut beside = None;
        self.add_machine_with(|scope| set_apart(make(scope), wrap, &mut beside))?;
        Ok(beside.expect("a machine was made, so there was no error"))
    }

    /// Calls `f` every `period`, between handlers, when every machine is in its slot. The first
    /// call comes after one period. A period shorter than one [`TICK`] counts as one tick, because
    /// with none at all the loop would never rest.
    ///
    /// A call that comes late is not made up for. If a call panics, that is logged and `f` is never
    /// called again. These calls do not keep a loop alive whose machines have all ended.
    pub fn every(
        &mut self,
        period: Duration,
        f: impl FnMut(Machines<'_, M>, &mut GlobalScope<'_, M::Context>) + Send + 'static,
    ) {
        let period = period.max(TICK);
        let now = self.environment.refresh_now();
        self.baton.as_mut().expect(HERE).rest.repeated.add(period, now, Box::new(f));
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

    /// Returns the machines, between turns. A [scan](Machines::scan) may look at as many as the
    /// last turn's budget has left.
    pub fn machines(&mut self) -> Machines<'_, M> {
        self.core_mut().machines()
    }

    /// Returns the context.
    pub fn context(&self) -> &M::Context {
        &self.baton.as_ref().expect(HERE).context
    }

    /// Returns the context, to change it between turns.
    pub fn context_mut(&mut self) -> &mut M::Context {
        &mut self.baton.as_mut().expect(HERE).context
    }

    /// Ends the loop and returns its context. The machines are dropped, and what they kept for
    /// their end ([`AtEnd`](crate::AtEnd)) has been applied to the context.
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

/// The descriptor that becomes readable when there is something to do: for embedding the loop in
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

/// The constructor's answer, wrapped; what comes with it goes to `beside`.
pub(super) fn set_apart<P, M, V>(
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
