//! Whether the run queue agrees with what the slots say of it.

use std::collections::BTreeMap;

use super::{Mark, RunQueue};
use crate::token::Token;

impl<S> RunQueue<S> {
    /// Checks that both agree: each machine that a call is pending for is in the run queue,
    /// once; so is each whose deadline had passed when it was set among these, and each that waits
    /// to hear of its spawn among the deferred.
    pub(in crate::event_loop) fn check(
        &self,
        marks: impl Iterator<Item = (Token, Mark)>,
    ) -> Result<(), String> {
        let runnable = count(self.runnable.iter());
        let overdue = count(self.overdue.iter());
        let deferred = count(self.deferred.iter().map(|(token, _)| token));
        for (token, mark) in marks {
            let agrees = |what: &str, times: &BTreeMap<Token, u32>, is_marked: bool| {
                let times = times.get(&token).copied().unwrap_or(0);
                if times == u32::from(is_marked) {
                    return Ok(());
                }
                Err(format!("machine {token} is {what} {times} times, and marked: {is_marked}"))
            };
            agrees("in the run queue", &runnable, mark.to_run)?;
            agrees("overdue", &overdue, mark.overdue)?;
            agrees("waiting for a deferred spawn", &deferred, mark.to_spawn)?;
            if !mark.pending.is_empty() && !mark.to_run && !mark.to_spawn {
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
