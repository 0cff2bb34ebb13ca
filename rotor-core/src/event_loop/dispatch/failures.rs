//! Machines that end badly, or are dropped: what is told of them, and to whom.

use std::any::type_name;

use super::Dispatch;
use crate::event_loop::handle::Exit;
use crate::guard::{guard, log_guarded};
use crate::scope::AnyEnvironment;
use crate::{Config, FailureCause, Machine, MachineFailure, OnPanic, Panicked, SpawnCause, Token};

/// The machine whose handler runs.
#[derive(Clone, Copy)]
pub(in crate::event_loop) struct Running {
    pub(in crate::event_loop) token: Token,
    pub(in crate::event_loop) machine: &'static str,
}

impl<M: Machine> Dispatch<M> {
    /// Ends a machine that is not with a handler, by dropping it.
    pub(in crate::event_loop) fn drop_machine(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        token: Token,
    ) {
        let Some(machine) = self.scheduler.slots_mut().take(token) else { return };
        let name = guard(|| machine.type_name()).unwrap_or_else(|_| type_name::<M>());
        let dropped = guard(|| drop(machine));
        self.scheduler.end(environment, token);
        match dropped {
            Ok(()) => self.counters.stats.ended += 1,
            Err(panicked) => {
                self.counters.stats.panicked += 1;
                let running = Running { token, machine: name };
                report(config, running, &FailureCause::Panic(&panicked));
            }
        }
    }

    /// Drops all machines and deferred spawns. Returns how many machines there were.
    pub(in crate::event_loop) fn drop_all(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
    ) -> usize {
        let dropped = self.scheduler.slots().len();
        for index in 0..self.scheduler.slots().high_water() {
            if let Some((token, _)) = self.scheduler.slots().at(index) {
                self.drop_machine(environment, config, token);
            }
        }
        self.scheduler.drop_deferred_spawns();
        dropped
    }

    /// Ends the machine whose handler has panicked: it was with the handler, so it is gone.
    pub(in crate::event_loop) fn handler_panicked(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        panicked: &Panicked,
    ) {
        match self.running.take() {
            Some(running) => self.count_panic(environment, config, running, panicked),
            None => log_guarded!(error, "what a loop was to drop between its handlers {panicked}"),
        }
    }

    /// Ends a machine whose `create` has panicked.
    pub(super) fn create_panicked(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        token: Token,
        panicked: Panicked,
    ) -> SpawnCause {
        let running = Running { token, machine: type_name::<M>() };
        self.count_panic(environment, config, running, &panicked);
        SpawnCause::Panicked(panicked)
    }

    fn count_panic(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        running: Running,
        panicked: &Panicked,
    ) {
        self.counters.stats.panicked += 1;
        self.scheduler.end(environment, running.token);
        report(config, running, &FailureCause::Panic(panicked));
        if config.on_panic == OnPanic::StopLoop {
            self.ended = Some(Exit::Panicked { token: running.token });
        }
    }
}

/// Logs, once, that a machine ended badly, and shows it to the observer.
pub(super) fn report(config: &Config, running: Running, cause: &FailureCause<'_>) {
    let Running { token, machine } = running;
    let failure = MachineFailure { token, machine, cause: cause.borrow() };
    if let Err(panicked) = guard(|| log::error!("{failure}")) {
        log_guarded!(
            error,
            "machine {token} ({machine}) ended with an error that {panicked}, when it was printed"
        );
    }
    let Some(observer) = &config.observer else { return };
    if let Err(panicked) = guard(|| (observer.0)(&failure)) {
        log_guarded!(error, "the observer of failures {panicked}");
    }
}

impl FailureCause<'_> {
    fn borrow(&self) -> FailureCause<'_> {
        match self {
            FailureCause::Error(error) => FailureCause::Error(error),
            FailureCause::Panic(panicked) => FailureCause::Panic(panicked),
        }
    }
}
