//! What waits to be done: the queues that a turn takes its work from, and what comes round by time.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::machines::{Machines, Verdict};
use crate::queue_memory::{give_back, give_back_vec};
use crate::sync::mpsc;
use crate::timers::Due;
use crate::wake_queue::PartWake;
use crate::{EventSet, GlobalScope, Machine, Time, Token};

/// What waits to be done, in the order in which a turn does it.
pub(super) struct DueWork<M: Machine> {
    /// What the backend reported; the first `ready_done` are done.
    pub(super) ready: Vec<(Token, EventSet)>,
    pub(super) ready_done: usize,
    /// Machines that something was gathered for; the first `again_left` are of earlier turns.
    pub(super) again: VecDeque<Token>,
    pub(super) again_left: usize,
    /// Spawns beyond the budget of their event; the first `parked_left` are of earlier turns.
    pub(super) parked: VecDeque<(Token, M::Seed)>,
    pub(super) parked_left: usize,
    /// Slots taken from the wake queue; the first `woken_done` are done.
    pub(super) woken: Vec<u32>,
    pub(super) woken_done: usize,
    pub(super) wakeups_left: u32,
    /// Parts that were woken, of machines that are still to hear of it.
    pub(super) parts: BTreeSet<(Token, u32)>,
    pub(super) parts_arriving: mpsc::Receiver<PartWake>,
    /// Deadlines that have passed, and how many of them may still fire in this turn.
    pub(super) timers: VecDeque<Due>,
    pub(super) timeouts_left: u32,
    /// Machines that answered with a deadline that had passed, each once; the first `overdue_left`
    /// are to be called in this turn, once it is known how many they are.
    pub(super) overdue: VecDeque<Token>,
    pub(super) overdue_left: Option<usize>,
    pub(super) verdicts: VecDeque<(Token, Verdict)>,
    /// How many slots scans may still look at in this turn.
    pub(super) scan_left: usize,
}

impl<M: Machine> DueWork<M> {
    /// Gives back what a burst has left in the queues, if that is much. Called once a turn.
    #[inline]
    pub(super) fn give_back(&mut self) {
        let queued = self.again.capacity() + self.timers.capacity() + self.overdue.capacity();
        if queued + self.woken.capacity() + self.verdicts.capacity() > ROOM_USUAL {
            self.give_back_all();
        }
    }

    #[cold]
    fn give_back_all(&mut self) {
        give_back(&mut self.again);
        give_back(&mut self.parked);
        give_back(&mut self.timers);
        give_back(&mut self.overdue);
        give_back(&mut self.verdicts);
        give_back_vec(&mut self.woken);
    }
}

/// Entries of all queues that are nothing to speak of: they have 4 to 16 bytes each.
const ROOM_USUAL: usize = 8_192;

/// What is called again and again.
type Repeated<M> = Box<dyn FnMut(Machines<'_, M>, &mut GlobalScope<'_, <M as Machine>::Context>)>;

/// A closure that is called again and again.
pub(super) struct Every<M: Machine> {
    pub(super) period: Duration,
    pub(super) next: Time,
    pub(super) f: Repeated<M>,
}

/// A drain that is under way.
pub(super) struct Drain {
    pub(super) until: Time,
    /// How often the backend is still to be looked at before any machine hears of it.
    pub(super) looks_left: usize,
    /// The next slot whose machine is to hear of it.
    pub(super) next: u32,
    /// How many machines had been made when those that wait for the others were told that there are
    /// none left.
    pub(super) told_last: Option<u64>,
}
