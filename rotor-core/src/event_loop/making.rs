//! Making machines: by a seed that another one spawned, or by a closure.

use std::any::type_name;

use super::handle::Exit;
use super::rest::{Lent, Rest, Running};
use crate::backend::BackendHandle;
use crate::environment::Environment;
use crate::guard::guard;
use crate::response::{Answer, Deadline};
use crate::scope::{AnyEnvironment, Woken};
use crate::slab::Gathered;
use crate::{
    EventSet, FailureCause, Infallible, Machine, OnPanic, Panicked, Response, Scope, SpawnCause,
    SpawnError, Token,
};

impl<M: Machine, B> Rest<M, B> {
    /// Makes a machine from a seed, for the machine that spawns it or from outside.
    pub(super) fn create(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        spawner: Option<Token>,
        seed: M::Seed,
    ) -> Result<Token, SpawnError<M::Seed>> {
        let mut seed = Some(seed);
        let environment = lent.environment;
        let made = self.make_any(environment, spawner, |token| {
            let seed = seed.take()?;
            Some(M::create(
                seed,
                &mut Scope::new(lent.context, environment, token, Woken::default()),
            ))
        });
        made.map_err(|cause| SpawnError { cause, seed })
    }

    /// Makes a machine by a closure that is given its token.
    pub(super) fn make<H: BackendHandle>(
        &mut self,
        environment: &Environment<H>,
        make: impl FnOnce(Token) -> Response<M>,
    ) -> Result<Token, SpawnError<Infallible>> {
        self.make_any(environment, None, |token| Some(make(token)))
            .map_err(|cause| SpawnError { cause, seed: None })
    }

    pub(super) fn make_any(
        &mut self,
        environment: &AnyEnvironment,
        spawner: Option<Token>,
        make: impl FnOnce(Token) -> Option<Response<M>>,
    ) -> Result<Token, SpawnCause> {
        if !environment.waiters.take(spawner, self.slab.vacant()) {
            return Err(SpawnCause::SlabFull);
        }
        let Some(token) = self.slab.reserve() else { return Err(SpawnCause::SlabFull) };
        self.note_free_slots(environment);
        let made = guard(|| make(token));
        let (answer, deadline) = match made {
            Ok(response) => response.map_or((Answer::Done, Deadline::Never), Response::into_parts),
            Err(panicked) => return Err(self.create_panicked(environment, token, &panicked)),
        };
        match answer {
            Answer::Continue(machine) => self.keep(environment, token, machine, deadline),
            Answer::Again(machine) => {
                self.keep(environment, token, machine, deadline);
                self.again(token, EventSet::EMPTY);
            }
            Answer::Spawn(_, seed) => match seed {},
            Answer::Done => {
                self.release(environment, token);
                return Err(SpawnCause::Ended);
            }
            Answer::Error(error) => {
                self.release(environment, token);
                return Err(SpawnCause::Failed(error));
            }
        }
        self.counters.stats.spawned += 1;
        // The walk of a drain comes to the slots that it has not passed, in this turn or a later
        // one.
        if self.drain.as_ref().is_some_and(|drain| token.index() < drain.next) {
            self.owe(token, Gathered::DRAINING);
        }
        Ok(token)
    }

    pub(super) fn create_panicked(
        &mut self,
        environment: &AnyEnvironment,
        token: Token,
        panicked: &Panicked,
    ) -> SpawnCause {
        self.counters.stats.panicked += 1;
        self.release(environment, token);
        let running = Running { token, machine: type_name::<M>() };
        self.report(running, &FailureCause::Panic(panicked));
        if self.config.on_panic == OnPanic::StopLoop {
            self.ended = Some(Exit::Panicked { token });
        }
        SpawnCause::Panicked(panicked.clone())
    }
}
