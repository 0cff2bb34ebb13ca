//! Checks that the slots are consistent.

use super::Slots;
use super::slot::{NONE, Slot};
use crate::token::Token;

impl<M> Slots<M> {
    /// Checks that the counts agree: each slot is counted once, and no machine is in a handler
    /// between turns, except for those that are detached.
    pub(in crate::event_loop) fn check(
        &self,
        is_detached: impl Fn(Token) -> bool,
    ) -> Result<(), String> {
        let (mut used, mut ended, mut free) = (0, 0, 0);
        for (index, slot) in self.slots.iter().enumerate() {
            match slot {
                Slot::Waiting { .. } => used += 1,
                Slot::Running { .. } if is_detached(self.token(index as u32)) => used += 1,
                Slot::Running { .. } => {
                    return Err(format!("slot {index} is running between turns"));
                }
                Slot::Ended if self.wakes.is_woken(index as u32) => ended += 1,
                Slot::Ended => {
                    return Err(format!("slot {index} waits for a wake-up that is in no list"));
                }
                Slot::Vacant { .. } => free += 1,
            }
        }
        let (mut listed, mut next) = (0, self.free);
        while next != NONE && listed <= free {
            let Some(Slot::Vacant { next: after }) = self.slots.get(next as usize) else {
                return Err(format!("slot {next} is in the free list, and not vacant"));
            };
            listed += 1;
            next = *after;
        }
        // A slot whose generations are used up is vacant, but neither in the list nor usable.
        if used != self.used || ended + free - listed.min(free) != self.unusable {
            return Err(format!(
                "{used} slots hold machines and {} are counted; {ended} wait, {free} are vacant, {listed} listed",
                self.used
            ));
        }
        Ok(())
    }
}
