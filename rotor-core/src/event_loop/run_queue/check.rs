//! Checks that the run queue and the states of the slots agree.

use std::collections::BTreeMap;

use super::{CallState, RunQueue};
use crate::token::Token;

impl<S> RunQueue<S> {
    /// Checks that both agree: each machine with a pending call is in the run queue exactly once.
    /// The same holds for machines whose deadline had passed when it was set and the overdue ones,
    /// and for machines that wait for the result of a spawn and the deferred ones.
    pub(in crate::event_loop) fn check(
        &self,
        states: impl Iterator<Item = (Token, CallState)>,
    ) -> Result<(), String> {
        let runnable = count(self.runnable.iter().chain(self.woken_in_create.iter()));
        let overdue = count(self.overdue.iter());
        let deferred = count(self.deferred.iter().map(|(token, _)| token));
        for (token, state) in states {
            let agrees = |what: &str, times: &BTreeMap<Token, u32>, is_said: bool| {
                let times = times.get(&token).copied().unwrap_or(0);
                if times == u32::from(is_said) {
                    return Ok(());
                }
                Err(format!("machine {token} is {what} {times} times, and said to be: {is_said}"))
            };
            agrees("in the run queue", &runnable, state.is_queued)?;
            agrees("overdue", &overdue, state.is_overdue)?;
            agrees("waiting for a deferred spawn", &deferred, state.awaits_spawn)?;
            if !state.pending.is_empty() && !state.is_queued && !state.awaits_spawn {
                return Err(format!("machine {token} has a call pending, and is not queued"));
            }
        }
        Ok(())
    }
}

fn count<'a>(tokens: impl Iterator<Item = &'a Token>) -> BTreeMap<Token, u32> {
    let mut counts = BTreeMap::new();
    tokens.for_each(|token| *counts.entry(*token).or_default() += 1);
    counts
}
