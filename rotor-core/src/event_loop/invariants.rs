//! Whether the books of a loop agree with each other: for tests and simulations.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use super::LoopInstance;
use crate::backend::Backend;
use crate::slab::Gathered;
use crate::{Machine, TICK, Time, Token};

impl<M: Machine, B: Backend> LoopInstance<M, B> {
    /// Looks for a contradiction between the slab, the deadlines, the wake-ups and the queues of
    /// what is due: every machine is in a slot, every deadline is of a machine, every call that is
    /// owed is queued, once.
    ///
    /// It walks all slots that were ever used, so it is for tests and simulations; call it between
    /// turns.
    ///
    /// # Errors
    ///
    /// What contradicts what. A bug of the loop.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.rest.slab.check()?;
        let free = self.environment.free_slots.load(Relaxed);
        if free != self.rest.slab.vacant() {
            return Err(format!(
                "{} slots are free and handlers see {free}",
                self.rest.slab.vacant()
            ));
        }
        self.check_granted()?;
        self.check_deadlines()?;
        self.check_owed()
    }

    /// Each that was granted a slot is there and will be called, so that no slot is kept for ever.
    fn check_granted(&self) -> Result<(), String> {
        let rest = &self.rest;
        let granted = self.environment.waiters.check(rest.slab.vacant())?;
        let will_be_woken = |token: Token| {
            rest.queue.is_alive(token) && rest.queue.is_woken(token.index())
                || rest
                    .slab
                    .all_gathered()
                    .any(|(owed, gathered)| owed == token && gathered.has(Gathered::WAKEUP))
        };
        match granted.into_iter().find(|token| !will_be_woken(*token)) {
            Some(token) => {
                Err(format!("a slot was granted to machine {token}, which will not be woken"))
            }
            None => Ok(()),
        }
    }

    fn check_deadlines(&self) -> Result<(), String> {
        let rest = &self.rest;
        let next = self.next_deadline().unwrap_or(Time::NEVER);
        for index in 0..rest.slab.high_water() {
            let Some(deadline) = rest.timers.deadline(index) else { continue };
            if rest.slab.at(index).is_none() {
                return Err(format!("slot {index} has no machine, and the deadline {deadline:?}"));
            }
            if next > deadline.max(self.now()) + TICK {
                return Err(format!(
                    "slot {index} has the deadline {deadline:?}, and the loop waits until {next:?}"
                ));
            }
        }
        Ok(())
    }

    /// Each slot to which a call is owed is in the queue, once; so is each whose deadline had
    /// passed when it was set; each that waits for its spawn is parked, once.
    fn check_owed(&self) -> Result<(), String> {
        let due = &self.rest.due;
        let (mut queued, mut parked) =
            (BTreeMap::<Token, u32>::new(), BTreeMap::<Token, u32>::new());
        let mut overdue = BTreeMap::<Token, u32>::new();
        due.overdue.iter().for_each(|token| *overdue.entry(*token).or_default() += 1);
        due.again.iter().for_each(|token| *queued.entry(*token).or_default() += 1);
        due.parked.iter().for_each(|(token, _)| *parked.entry(*token).or_default() += 1);
        for (token, gathered) in self.rest.slab.all_gathered() {
            let spawning = gathered.has(Gathered::SPAWNING);
            let expected = u32::from(gathered.has(Gathered::QUEUED));
            let found = queued.get(&token).copied().unwrap_or(0);
            if found != expected {
                return Err(format!(
                    "machine {token} is queued {found} times, and marked {expected} times"
                ));
            }
            if overdue.get(&token).copied().unwrap_or(0)
                != u32::from(gathered.has(Gathered::OVERDUE))
            {
                return Err(format!("machine {token} is overdue or not, which its queue denies"));
            }
            if gathered.is_owed() && expected == 0 && !spawning {
                return Err(format!("machine {token} is owed a call, and not queued"));
            }
            if parked.get(&token).copied().unwrap_or(0) != u32::from(spawning) {
                return Err(format!(
                    "machine {token} waits for a spawn: {spawning}, which its queue denies"
                ));
            }
        }
        Ok(())
    }
}
