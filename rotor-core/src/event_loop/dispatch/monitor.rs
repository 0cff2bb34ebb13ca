//! `Monitor`: which handler is running, and what the statistics, the watchdog and the log are told
//! of it.

use std::fmt;

use log::Level;

use super::callee::Callee;
use crate::blocking::HeartbeatWriter;
use crate::config::Config;
use crate::event::Event;
use crate::event_loop::slots::Slots;
use crate::guard::log_guarded;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::stats::{Counters, Stats};
use crate::time::Time;
use crate::token::Token;

/// The call that is in progress, and those who watch it.
pub(in crate::event_loop) struct Monitor {
    counters: Counters,
    /// The machine whose handler is running.
    callee: Option<Callee>,
    /// Whether the calls of this turn are shown to the watchdog, or timed. If not, a call costs one
    /// test.
    observes_calls: bool,
    /// Whether the calls of this turn are timed.
    times_calls: bool,
    /// The state that the watchdog sees.
    heartbeat: Option<HeartbeatWriter>,
}

impl Monitor {
    pub(super) fn new(counters: Counters) -> Monitor {
        Monitor {
            counters,
            callee: None,
            observes_calls: false,
            times_calls: false,
            heartbeat: None,
        }
    }

    pub(in crate::event_loop) fn counters(&self) -> &Counters {
        &self.counters
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn stats(&mut self) -> &mut Stats {
        &mut self.counters.stats
    }

    /// Returns how many machines have been made so far.
    pub(in crate::event_loop) fn machines_created(&self) -> u64 {
        self.counters.stats.spawned
    }

    /// Sets the heartbeat: from now on the watchdog sees what the loop does.
    pub(in crate::event_loop) fn set_heartbeat(&mut self, heartbeat: HeartbeatWriter) {
        self.heartbeat = Some(heartbeat);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn is_watched(&self) -> bool {
        self.heartbeat.is_some()
    }

    #[inline]
    pub(in crate::event_loop) fn heartbeat(&mut self) -> Option<&mut HeartbeatWriter> {
        self.heartbeat.as_mut()
    }
}

/// The running handler.
impl Monitor {
    /// Counts a turn, and decides whether its calls are observed.
    #[inline]
    pub(in crate::event_loop) fn begin_turn(&mut self, config: &Config, begun: Time) {
        self.counters.stats.turns += 1;
        self.counters.times().record_turn_start(begun);
        self.times_calls = config.time_handlers | self.counters.is_sampled(config.sample_mask);
        self.observes_calls = self.times_calls | self.heartbeat.is_some();
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn observes_calls(&self) -> bool {
        self.observes_calls
    }

    /// The machine whose handler is running.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn callee(&mut self) -> &mut Option<Callee> {
        &mut self.callee
    }

    /// Returns the machine whose handler is running; if `call` is given, only if that call is still
    /// in progress.
    pub(in crate::event_loop) fn running_callee(&self, call: Option<u64>) -> Option<Callee> {
        let is_running = call.is_none_or(|call| {
            self.heartbeat.as_ref().is_some_and(|heartbeat| heartbeat.is_in_call(call))
        });
        self.callee.filter(|_| is_running)
    }

    /// Notes whose handler runs, and when it began if that is wanted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn begin_call<M: Machine>(
        &mut self,
        environment: &AnyEnvironment,
        token: Token,
        machine: &M,
    ) -> (Callee, Option<Time>) {
        let callee = self.name(token, machine);
        let started = match self.observes_calls {
            true => self.observe_call_out_of_line(environment, callee),
            false => None,
        };
        (callee, started)
    }

    /// Notes whose handler runs.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn name<M: Machine>(&mut self, token: Token, machine: &M) -> Callee {
        // `type_name` is the machine's code, and may panic.
        self.callee = Some(Callee::unnamed::<M>(token));
        let callee = Callee::of(token, machine);
        self.callee = Some(callee);
        callee
    }

    /// Shows the call to the watchdog, out of line, because most loops are not watched.
    #[inline(never)]
    fn observe_call_out_of_line(
        &mut self,
        environment: &AnyEnvironment,
        callee: Callee,
    ) -> Option<Time> {
        self.observe_call(environment, callee)
    }

    /// Shows the call to the watchdog. Returns when it began, if it is timed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn observe_call(&mut self, environment: &AnyEnvironment, callee: Callee) -> Option<Time> {
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.record_call(callee.token, callee.type_name);
        }
        self.times_calls.then(|| environment.handle.now())
    }

    /// Notes whose handler runs and when it began, for a machine in its slot.
    #[inline(never)]
    pub(super) fn begin_call_in_slot<M: Machine>(
        &mut self,
        slots: &Slots<M>,
        environment: &AnyEnvironment,
        token: Token,
    ) -> Option<Time> {
        let machine = slots.machine_at(token.index())?;
        let callee = self.name(token, machine);
        self.observe_call(environment, callee)
    }

    /// Records the time of a handler that has returned, if it was timed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn record_handler_time(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        callee: Callee,
        started: Option<Time>,
    ) {
        if let Some(started) = started {
            let elapsed = environment.handle.now() - started;
            self.counters.record_handler_time(elapsed, callee.type_name, config.time_handlers);
        }
    }

    /// Notes that a handler that was [begun in its slot](Monitor::begin_call_in_slot) has returned.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn end_call_in_slot(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        started: Option<Time>,
    ) {
        if let Some(callee) = self.callee {
            self.record_handler_time(environment, config, callee, started);
        }
        self.callee = None;
    }

    /// Notes that a detached handler goes on. To the watchdog, the rest of it is a new call,
    /// because other machines were called in between.
    pub(super) fn reattach(&mut self, callee: Callee) {
        self.callee = Some(callee);
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.record_call(callee.token, callee.type_name);
        }
    }

    /// Logs an event of a machine in its slot.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_in_slot<M: Machine>(
        &mut self,
        slots: &Slots<M>,
        token: Token,
        event: Event<M::Seed>,
    ) {
        if let Some(machine) = slots.machine_at(token.index()) {
            let previous = self.callee;
            write_trace(self.name(token, machine), &event);
            self.callee = previous;
        }
    }
}

/// Returns whether each event is logged. With `log`'s static levels, nothing of this is left in a
/// program that does not want it.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn is_traced() -> bool {
    Level::Trace <= log::STATIC_MAX_LEVEL && Level::Trace <= log::max_level()
}

/// Logs an event, if wanted. The event is passed as a closure: if it were passed by reference, it
/// would have to be in memory for every call.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn trace<E: fmt::Debug>(callee: Callee, event: impl FnOnce() -> E) {
    if is_traced() {
        write_trace(callee, &event());
    }
}

#[cold]
fn write_trace(Callee { token, type_name }: Callee, event: &dyn fmt::Debug) {
    log_guarded!(trace, "machine {token} ({type_name}): {event:?}");
}
