//! Closures that are called repeatedly.

use std::time::Duration;

use super::dispatch::{Dispatch, Refs};
use super::machines::{Machines, Verdicts};
use crate::backend::Backend;
use crate::guard::{drop_guarded, guard, log_guarded};
use crate::machine::Machine;
use crate::scope::GlobalScope;
use crate::time::Time;

/// A closure that is called repeatedly.
type Closure<M> =
    Box<dyn FnMut(Machines<'_, M>, &mut GlobalScope<'_, <M as Machine>::Context>) + Send>;

/// The closures that a loop calls repeatedly. Like the context they belong to the caller, and are
/// not part of the core.
pub(super) struct RepeatedClosures<M: Machine>(Vec<RepeatedClosure<M>>);

struct RepeatedClosure<M: Machine> {
    period: Duration,
    next: Time,
    /// Since when each of its calls found the budget of scans used up; never, if the last call had
    /// some.
    starved_since: Time,
    has_panicked: bool,
    f: Closure<M>,
}

impl<M: Machine> RepeatedClosures<M> {
    pub(super) fn new() -> RepeatedClosures<M> {
        RepeatedClosures(Vec::new())
    }

    /// Calls `f` every `period`, for the first time one period after `now`.
    pub(super) fn add(&mut self, period: Duration, now: Time, f: Closure<M>) {
        let (next, starved_since) = (now + period, Time::NEVER);
        self.0.push(RepeatedClosure { period, next, starved_since, has_panicked: false, f });
    }

    /// Returns when the next closure is to be called, which may be never.
    #[inline]
    pub(super) fn next_time(&self) -> Time {
        self.0.iter().fold(Time::NEVER, |earliest, closure| earliest.min(closure.next))
    }

    /// Calls the closures whose time has come.
    #[inline]
    pub(super) fn run<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        dispatch: &mut Dispatch<M>,
        verdicts: &mut Verdicts,
    ) {
        if !self.0.is_empty() {
            self.run_due(refs, dispatch, verdicts);
        }
    }

    #[cold]
    fn run_due<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        dispatch: &mut Dispatch<M>,
        verdicts: &mut Verdicts,
    ) {
        let now = refs.environment.now();
        for closure in self.0.iter_mut().filter(|closure| closure.next <= now) {
            dispatch.clock().before_call(refs.backend, refs.environment);
            if let Some(heartbeat) = dispatch.monitor_mut().heartbeat() {
                heartbeat.record_closure("a repeated closure");
            }
            closure.starved_since = match verdicts.has_budget() {
                true => Time::NEVER,
                false => closure.starved_since.min(now),
            };
            let machines = verdicts.machines(dispatch.slots());
            let mut scope = GlobalScope::new(refs.context, refs.environment);
            if let Err(panicked) = guard(|| (closure.f)(machines, &mut scope)) {
                log_guarded!(error, "a repeated closure {panicked}, and is not called again");
                // Removed below, after the iteration.
                closure.has_panicked = true;
            }
            // From now rather than from when it was due: missed calls are not made up for.
            closure.next = refs.environment.now() + closure.period;
        }
        // Those for whose scans nothing was left come first the next time, in the order in which
        // that began. Otherwise they might never see a machine.
        if !verdicts.has_budget() {
            self.0.sort_by_key(|closure| closure.starved_since);
        }
        // Guarded, because outside of a handler a panic is taken for the backend's, and ends the
        // loop.
        let ended = self.0.extract_if(.., |closure| closure.has_panicked);
        ended.for_each(|closure| drop_guarded(closure, "a repeated closure"));
    }
}

/// Drops foreign values one by one, so that a panic of one does not affect the others.
impl<M: Machine> Drop for RepeatedClosures<M> {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|closure| drop_guarded(closure, "a repeated closure"));
    }
}
