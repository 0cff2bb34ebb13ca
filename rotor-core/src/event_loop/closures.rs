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
pub(super) struct Repeated<M: Machine>(Vec<Every<M>>);

struct Every<M: Machine> {
    period: Duration,
    next: Time,
    f: Closure<M>,
}

impl<M: Machine> Repeated<M> {
    pub(super) fn new() -> Repeated<M> {
        Repeated(Vec::new())
    }

    /// Calls `f` every `period`, for the first time one period after `now`.
    pub(super) fn add(&mut self, period: Duration, now: Time, f: Closure<M>) {
        self.0.push(Every { period, next: now + period, f });
    }

    /// Returns when the next closure is to be called.
    pub(super) fn next(&self) -> Option<Time> {
        self.0.iter().map(|every| every.next).min()
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
            self.run_some(refs, dispatch, verdicts);
        }
    }

    #[cold]
    fn run_some<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        dispatch: &mut Dispatch<M>,
        verdicts: &mut Verdicts,
    ) {
        let now = refs.environment.now();
        for every in self.0.iter_mut().filter(|every| every.next <= now) {
            dispatch.clock().before_call(refs.backend, refs.environment);
            if let Some(heartbeat) = dispatch.heartbeat() {
                heartbeat.record_closure("a repeated closure");
            }
            let machines = verdicts.machines(dispatch.slots());
            let mut scope = GlobalScope::new(refs.context, refs.environment);
            every.next = match guard(|| (every.f)(machines, &mut scope)) {
                // From now rather than from when it was due: missed calls are not made up for.
                Ok(()) => refs.environment.now() + every.period,
                Err(panicked) => {
                    log_guarded!(error, "a repeated closure {panicked}, and is not called again");
                    // Removed below, after the iteration.
                    Time::NEVER
                }
            };
        }
        // Guarded, because outside of a handler a panic is taken for the backend's, and ends the
        // loop.
        let over = self.0.extract_if(.., |every| every.next == Time::NEVER);
        over.for_each(|every| drop_guarded(every, "a repeated closure"));
    }
}

/// Drops foreign values one by one, so that a panic of one does not affect the others.
impl<M: Machine> Drop for Repeated<M> {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|every| drop_guarded(every, "a repeated closure"));
    }
}
