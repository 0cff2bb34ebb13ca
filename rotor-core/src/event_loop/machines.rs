//! The machines of a loop, seen from between the handlers.

use std::collections::VecDeque;
use std::fmt;

use crate::Token;
use crate::slab::Slab;

/// All machines of a loop: lent to [`Broadcast::post`](super::Broadcast::post) and
/// [`LoopInstance::every`](super::LoopInstance::every).
pub struct Machines<'a, M> {
    pub(super) slab: &'a Slab<M>,
    pub(super) verdicts: &'a mut VecDeque<(Token, Verdict)>,
    /// Slots that may still be looked at in this turn.
    pub(super) budget: &'a mut usize,
}

/// Where a scan goes on: a place among the slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor(u32);

impl Cursor {
    /// The first slot.
    pub const START: Cursor = Cursor(0);
}

/// A machine as a scan meets it.
pub enum Seen<'a, M> {
    /// It waits for an event.
    Idle(&'a M),
    /// It is with a handler that blocks elsewhere; a verdict is applied when it comes back.
    Busy,
}

/// What a scan decides about a machine. Applied in the next turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// Nothing.
    Keep,
    /// `wakeup` is called.
    Wake,
    /// `timeout` is called, as if its deadline were now.
    Expire,
    /// `draining` is called, until the end of the loop's drain or, when there is none, at once
    /// (`until` is now).
    Drain,
    /// It is dropped.
    End,
}

impl<'a, M> Machines<'a, M> {
    /// How many machines there are.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The machine that a token names; nothing when it is gone or with a handler.
    pub fn get(&self, token: Token) -> Option<&'a M> {
        match self.slab.at(token.index()) {
            Some((found, machine)) if found == token => machine,
            _ => None,
        }
    }

    /// All machines that are not with a handler.
    ///
    /// This walks every slot, whatever the number; for work on a loop with very many,
    /// [`scan`](Machines::scan).
    pub fn iter(&self) -> impl Iterator<Item = (Token, &'a M)> + use<'a, M> {
        let slab = self.slab;
        (0..slab.high_water()).filter_map(|index| match slab.at(index)? {
            (token, Some(machine)) => Some((token, machine)),
            (_, None) => None,
        })
    }

    /// Shows machines to `f`, from `cursor` on, and notes its verdicts, until all were seen
    /// (`None`) or the turn's budget (`Config::scan_budget`) is spent: then it answers where to go
    /// on, in a later turn.
    pub fn scan(
        &mut self,
        cursor: Cursor,
        mut f: impl FnMut(Token, Seen<'_, M>) -> Verdict,
    ) -> Option<Cursor> {
        let mut index = cursor.0;
        while index < self.slab.high_water() {
            if *self.budget == 0 {
                return Some(Cursor(index));
            }
            *self.budget -= 1;
            if let Some((token, machine)) = self.slab.at(index) {
                match f(token, machine.map_or(Seen::Busy, Seen::Idle)) {
                    Verdict::Keep => {}
                    verdict => self.verdicts.push_back((token, verdict)),
                }
            }
            index += 1;
        }
        None
    }
}

impl<M> fmt::Debug for Machines<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Machines({})", self.len())
    }
}

impl<M> fmt::Debug for Seen<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Seen::Idle(_) => "Idle",
            Seen::Busy => "Busy",
        })
    }
}
