//! Making machines: from a seed that another machine spawned, or by a closure.

use super::{Dispatch, Refs};
use crate::backend::Backend;
use crate::config::Config;
use crate::event::Event;
use crate::event_loop::run_queue::Pending;
use crate::event_set::EventSet;
use crate::guard::{Panicked, guard};
use crate::machine::Machine;
use crate::response::{Answer, Response};
use crate::scope::{AnyEnvironment, Scope, WakeTarget};
use crate::spawn_error::{SpawnCause, SpawnError};
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    /// Makes a machine from a seed, for the machine that spawns it or from outside.
    pub(in crate::event_loop) fn create_from_seed(
        &mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        config: &Config,
        spawner: Option<Token>,
        seed: M::Seed,
    ) -> Result<Token, SpawnError<M::Seed>> {
        self.create_with(environment, config, spawner, seed, |token, seed| {
            let mut scope = Scope::new(context, environment, token, WakeTarget::default());
            M::create(seed, &mut scope)
        })
    }

    /// Makes a machine by a function that gets its token and a value. If no slot is free, the error
    /// returns the value.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn create_with<S>(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        spawner: Option<Token>,
        seed: S,
        make: impl FnOnce(Token, S) -> Response<M>,
    ) -> Result<Token, SpawnError<S>> {
        let Some(token) = self.reserve(environment, spawner) else {
            return Err(SpawnError { cause: SpawnCause::SlabFull, seed: Some(seed) });
        };
        let created = guard(|| make(token, seed));
        self.store_created(environment, config, token, spawner.is_some(), created)
            .map_err(|cause| SpawnError { cause, seed: None })
    }

    /// Takes a slot for a machine that is about to be made, unless all free slots are promised to
    /// other machines.
    #[inline]
    fn reserve(&mut self, environment: &AnyEnvironment, spawner: Option<Token>) -> Option<Token> {
        // Code outside of the loop cannot wait for a turn, and there may be none: a loop without
        // machines does not run.
        if spawner.is_none() && self.scheduler.slots().has_only_unusable_slots() {
            self.monitor.stats().stale += self.scheduler.reclaim_slots(environment);
        }
        // A free slot may be promised to a machine that waits for it.
        if !environment.waiters.use_slot(spawner, self.scheduler.slots().vacant()) {
            return None;
        }
        let token = self.scheduler.slots_mut().reserve()?;
        self.scheduler.slots_mut().record_creation_time(token, environment.now());
        // Before the call, because the new machine may read how many slots are left.
        self.scheduler.publish_slot_counts(environment);
        Some(token)
    }

    /// Puts the new machine into the slot that was reserved for it, or frees the slot.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn store_created(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        token: Token,
        is_spawned: bool,
        created: Result<Response<M>, Panicked>,
    ) -> Result<Token, SpawnCause> {
        // Taken in any case, so that it is not left for the next machine.
        let woke_itself = environment.take_self_wakeup();
        let response = match created {
            Ok(response) => response,
            Err(panicked) => {
                return Err(self.create_panicked(environment, config, token, is_spawned, panicked));
            }
        };
        match response.answer {
            Answer::Continue(machine) => {
                self.scheduler.put_new(environment.now(), token, machine, response.deadline);
            }
            Answer::Again(machine) => {
                self.scheduler.put_new(environment.now(), token, machine, response.deadline);
                self.scheduler.call_again(token, EventSet::EMPTY);
            }
            Answer::Spawn(_, seed) => match seed {},
            Answer::Done => {
                self.scheduler.release_slot(environment, token);
                return Err(SpawnCause::Ended);
            }
            Answer::Error(error) => {
                self.scheduler.release_slot(environment, token);
                return Err(SpawnCause::Failed(error));
            }
        }
        if woke_itself {
            // In line with all other woken machines, so that it is called in this turn.
            self.scheduler.schedule_woken_in_create(token);
        }
        self.monitor.stats().spawned += 1;
        // The drain will come to the slots that it has not passed, in this turn or a later one.
        if token.index() < self.drain_cursor {
            self.scheduler.mark_pending(token, Pending::DRAINING);
        }
        Ok(token)
    }

    /// Makes a machine for another one. Returns the event that reports the result.
    pub(super) fn spawn_for<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        spawner: Token,
        seed: M::Seed,
    ) -> Event<M::Seed> {
        let Refs { context, environment, config, .. } = refs;
        self.clock.before_cheap_call(refs.backend, environment);
        let created = self.create_from_seed(context, environment, config, Some(spawner), seed);
        created.map_or_else(Event::SpawnError, |_| Event::Spawned)
    }
}
