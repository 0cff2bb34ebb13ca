//! Consistency checks of a loop, for tests and simulations.

use std::sync::atomic::Ordering::Relaxed;

use super::LoopInstance;
use super::run_queue::Pending;
use crate::backend::Backend;
use crate::config::TICK;
use crate::machine::Machine;
use crate::time::Time;
use crate::token::Token;

impl<M: Machine, B: Backend> LoopInstance<M, B> {
    /// Checks that the slots, the deadlines, the wake-ups and the queues of due work agree: every
    /// machine is in a slot, every deadline belongs to a machine, every machine with a pending call
    /// is queued exactly once.
    ///
    /// This walks over all slots that were ever used, so it is for tests and simulations. Call it
    /// between turns.
    ///
    /// # Errors
    ///
    /// Returns a description of a contradiction, which is a bug of the loop.
    pub fn check_invariants(&self) -> Result<(), String> {
        let dispatch = self.core().dispatch();
        let slots = dispatch.slots();
        slots.check(|token| dispatch.is_detached(token))?;
        let free = self.environment.free_slots.load(Relaxed);
        if free != slots.vacant() {
            return Err(format!("{} slots are free and handlers see {free}", slots.vacant()));
        }
        if self.environment.has_self_wakeup() {
            return Err("a machine has woken itself, and no handler runs".into());
        }
        self.check_granted()?;
        self.check_deadlines()?;
        self.core().dispatch().check_queue()
    }

    /// Checks that each machine with a granted slot exists and will be called, or is in a handler
    /// on another thread, so that no slot is kept forever.
    fn check_granted(&self) -> Result<(), String> {
        let dispatch = self.core().dispatch();
        let slots = dispatch.slots();
        let granted = self.environment.waiters.check(slots.vacant())?;
        let wakes = &self.environment.wakes;
        let will_be_woken = |token: Token| {
            wakes.is_alive(token) && wakes.is_woken(token.index())
                || slots
                    .states()
                    .any(|(other, state)| other == token && state.pending.has(Pending::WAKEUP))
        };
        // A handler on another thread may be the one that was woken for the slot.
        let keeps_slot = |token: Token| dispatch.is_detached(token) || will_be_woken(token);
        match granted.into_iter().find(|token| !keeps_slot(*token)) {
            Some(token) => {
                Err(format!("a slot was granted to machine {token}, which will not be woken"))
            }
            None => Ok(()),
        }
    }

    fn check_deadlines(&self) -> Result<(), String> {
        let slots = self.core().dispatch().slots();
        let next = self.next_deadline().unwrap_or(Time::NEVER);
        for index in 0..slots.high_water() {
            let Some(deadline) = slots.deadline(index) else { continue };
            if slots.at(index).is_none() {
                return Err(format!("slot {index} has no machine, and the deadline {deadline:?}"));
            }
            // The wheel rounds up to a tick.
            if next > deadline.max(self.now()) + TICK {
                return Err(format!(
                    "slot {index} has the deadline {deadline:?}, and the loop waits until {next:?}"
                ));
            }
        }
        Ok(())
    }
}
