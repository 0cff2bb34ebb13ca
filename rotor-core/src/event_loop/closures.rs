//! Closures that are called again and again.

use std::time::Duration;

use super::dispatch::{Dispatch, Refs};
use super::machines::{Machines, Verdicts};
use crate::backend::Backend;
use crate::guard::{drop_guarded, guard, log_guarded};
use crate::machine::Machine;
use crate::scope::GlobalScope;
use crate::time::Time;

/// What is called again and again.
type Closure<M> =
    Box<dyn FnMut(Machines<'_, M>, &mut GlobalScope<'_, <M as Machine>::Context>) + Send>;

/// The closures that a loop calls again and again. They are the caller's, as the context is, and no
/// part of the core.
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

    /// When the next one is to be called.
    pub(super) fn next(&self) -> Option<Time> {
        self.0.iter().map(|every| every.next).min()
    }

    /// Calls those whose time has come.
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
            if let Some(pulse) = dispatch.pulse() {
                pulse.runs("a repeated closure");
            }
            let machines = verdicts.machines(dispatch.slots());
            let mut scope = GlobalScope::new(refs.context, refs.environment);
            every.next = match guard(|| (every.f)(machines, &mut scope)) {
                // Not from when it was due: calls that were missed are not made up for.
                Ok(()) => refs.environment.now() + every.period,
                Err(panicked) => {
                    log_guarded!(error, "a repeated closure {panicked}, and is not called again");
                    // Taken out below, once the list is no longer walked.
                    Time::NEVER
                }
            };
        }
        // Outside of a handler a panic is the backend's, and ends the loop.
        let over = self.0.extract_if(.., |every| every.next == Time::NEVER);
        over.for_each(|every| drop_guarded(every, "a repeated closure"));
    }
}

/// Drops one by one what is not ours, so that one that panics costs none of the others.
impl<M: Machine> Drop for Repeated<M> {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|every| drop_guarded(every, "a repeated closure"));
    }
}
