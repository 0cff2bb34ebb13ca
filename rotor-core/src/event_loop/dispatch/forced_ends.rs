//! Machines that end without a response: dropped between handlers, or gone with a panic.

use std::collections::BTreeMap;
use std::io;

use super::Dispatch;
use super::callee::Callee;
use super::failures::report_failure;
use crate::config::{Config, OnPanic};
use crate::event_loop::handle::Exit;
use crate::guard::{Panicked, drop_guarded, guard, log_guarded};
use crate::machine::Machine;
use crate::machine_failure::FailureCause;
use crate::scope::AnyEnvironment;
use crate::spawn_error::SpawnCause;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    /// Ends a machine that is not in a handler, by dropping it.
    pub(in crate::event_loop) fn drop_machine(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        token: Token,
    ) {
        let Some(machine) = self.scheduler.slots_mut().take(token) else { return };
        // Read before the drop. It is the machine's code, like the drop, and may panic.
        let callee = Callee::guarded(token, &machine);
        if let Some(heartbeat) = self.monitor.heartbeat() {
            heartbeat.record_call(token, callee.type_name);
        }
        let dropped = guard(|| drop(machine));
        self.scheduler.release_slot(environment, token);
        match dropped {
            Ok(()) => self.monitor.stats().ended += 1,
            Err(panicked) => {
                self.monitor.stats().panicked += 1;
                report_panic(environment, config, callee, &panicked);
            }
        }
    }

    /// Drops all machines and deferred spawns, because the time of a drain is over. Returns how many
    /// machines there were.
    pub(in crate::event_loop) fn drop_all(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
    ) -> usize {
        let dropped = self.scheduler.slots().len();
        if dropped > 0 {
            self.log_dropped();
        }
        for index in 0..self.scheduler.slots().high_water() {
            if let Some((token, _)) = self.scheduler.slots().at(index) {
                self.drop_machine(environment, config, token);
            }
        }
        self.abandon_detached(environment);
        self.scheduler.drop_deferred_spawns();
        dropped
    }

    /// Says which machines did not end in the time of a drain: their number alone does not show
    /// whose `draining` has to be looked at. At level info, because peers that are slow or silent
    /// keep their connections, too.
    #[cold]
    #[inline(never)]
    fn log_dropped(&self) {
        let slots = self.scheduler.slots();
        let mut counts = BTreeMap::<&'static str, usize>::new();
        for (token, machine) in (0..slots.high_water()).filter_map(|index| slots.at(index)) {
            let name = match machine {
                Some(machine) => Callee::guarded(token, machine).type_name,
                None => "whose handler has not returned",
            };
            *counts.entry(name).or_default() += 1;
        }
        let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        log_guarded!(info, "the time of the drain is over: dropped {}", counts.join(", "));
    }

    /// Ends the machine whose handler has panicked, and returns its token. The machine itself is
    /// gone: it was passed to the handler by value, or was dropped in its slot during unwinding.
    ///
    /// # Errors
    ///
    /// Fails if no handler was running: then the panic is that of the backend or its clock, and may
    /// recur in every turn.
    pub(in crate::event_loop) fn handler_panicked(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        panicked: &Panicked,
    ) -> io::Result<Token> {
        // This flag belonged to the machine that is gone, not to the next one.
        environment.take_self_wakeup();
        let Some(callee) = self.monitor.callee().take() else {
            return Err(backend_panicked(panicked));
        };
        self.detached.remove(callee.token);
        if !self.scheduler.slots().contains(callee.token) {
            // Its machine was dropped by a drain while the handler was detached.
            log_guarded!(error, "a handler whose machine its loop had given up {panicked}");
            return Ok(callee.token);
        }
        // The machine still exists if other code panicked: the clock, when the handler's time was
        // measured.
        if let Some(machine) = self.scheduler.slots_mut().take(callee.token) {
            drop_guarded(machine, "a machine whose handler had panicked");
        }
        self.count_panic(environment, config, callee, panicked);
        self.stop_after_panic(config, callee.token);
        Ok(callee.token)
    }

    /// Ends a machine whose `create` has panicked. If that was called from outside, its caller gets
    /// the error, and the loop goes on even with `StopLoop`.
    pub(super) fn create_panicked(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        token: Token,
        is_spawned: bool,
        panicked: Panicked,
    ) -> SpawnCause {
        let callee = Callee::unnamed::<M>(token);
        self.count_panic(environment, config, callee, &panicked);
        if is_spawned {
            self.stop_after_panic(config, token);
        }
        SpawnCause::Panicked(panicked)
    }

    fn count_panic(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        callee: Callee,
        panicked: &Panicked,
    ) {
        self.monitor.stats().panicked += 1;
        self.scheduler.release_slot(environment, callee.token);
        report_panic(environment, config, callee, panicked);
    }

    fn stop_after_panic(&mut self, config: &Config, token: Token) {
        if config.on_panic == OnPanic::StopLoop {
            // After a panic in `create` the turn goes on, and the first one counts.
            self.stop_reason.get_or_insert(Exit::Panicked { token });
        }
    }
}

/// Logs a panic, tells the observer of it, and shows it in the trace of a simulation.
fn report_panic(
    environment: &AnyEnvironment,
    config: &Config,
    callee: Callee,
    panicked: &Panicked,
) {
    environment.handle.note(callee.token, format_args!("{panicked}"));
    report_failure(config, callee, FailureCause::Panic(panicked));
}

/// Returns the error of a loop whose backend, or its clock, has panicked.
#[cold]
pub(in crate::event_loop) fn backend_panicked(panicked: &Panicked) -> io::Error {
    io::Error::other(format!("the backend, or its clock, {panicked}"))
}
