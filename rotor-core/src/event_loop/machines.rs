//! The machines of a loop, seen from between the handlers.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;

use super::dispatch::Dispatch;
use super::run_queue::Calls;
use super::slots::Slots;
use crate::description::Details;
use crate::machine::Machine;
use crate::queue_memory::give_back;
use crate::scope::AnyEnvironment;
use crate::token::Token;

/// All machines of a loop: lent to [`Broadcast::post`](super::Broadcast::post) and
/// [`LoopInstance::every`](super::LoopInstance::every).
pub struct Machines<'a, M> {
    slots: &'a Slots<M>,
    verdicts: &'a mut Verdicts,
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
    #[doc(alias = "Idle")]
    Waiting(&'a M),
    /// It is with a handler that [blocks](crate::Scope::blocking) on another thread, in a loop that
    /// hands over or takes over. A verdict is applied when it comes back.
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
        self.slots.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The machine that a token names; nothing when it is gone or with a handler.
    pub fn get(&self, token: Token) -> Option<&'a M> {
        match self.slots.at(token.index()) {
            Some((found, machine)) if found == token => machine,
            _ => None,
        }
    }

    /// What the loop knows of the machine that a token names; `None` when it is gone.
    pub fn details(&self, token: Token) -> Option<Details> {
        let (found, machine) = self.slots.at(token.index())?;
        (found == token).then(|| Details {
            deadline: self.slots.deadline(token.index()),
            made: self.slots.made(token.index()),
            is_due: self.slots.is_due(token.index()),
            is_busy: machine.is_none(),
        })
    }

    /// The same as [`scan`](Machines::scan), without a verdict, and for so many slots of the turn's
    /// budget only, or until `f` breaks off: then the next one is where to go on. With
    /// [`exact_now`](crate::GlobalScope::exact_now) it can have a limit of time.
    pub fn scan_some(
        &mut self,
        cursor: Cursor,
        slots: usize,
        mut f: impl FnMut(&Self, Token, Seen<'_, M>) -> ControlFlow<()>,
    ) -> Option<Cursor> {
        let slots = slots.min(self.verdicts.scan_left);
        let end = cursor.0.saturating_add(u32::try_from(slots).unwrap_or(u32::MAX));
        let last = end.min(self.slots.high_water());
        let mut next = cursor.0;
        while next < last {
            let seen = self.slots.at(next);
            next += 1;
            let Some((token, machine)) = seen else { continue };
            if f(self, token, machine.map_or(Seen::Busy, Seen::Waiting)).is_break() {
                break;
            }
        }
        self.verdicts.scan_left -= (next - cursor.0) as usize;
        (next < self.slots.high_water()).then_some(Cursor(next))
    }

    /// Notes a verdict about one machine, as a scan would.
    pub fn decide(&mut self, token: Token, verdict: Verdict) -> bool {
        let is_there = self.slots.is_there(token);
        if is_there && verdict != Verdict::Keep {
            self.verdicts.queue.push_back((token, verdict));
        }
        is_there
    }

    /// All machines that are not with a handler.
    ///
    /// This walks every slot, whatever the number; for work on a loop with very many,
    /// [`scan`](Machines::scan).
    pub fn iter(&self) -> impl Iterator<Item = (Token, &'a M)> + use<'a, M> {
        let slots = self.slots;
        (0..slots.high_water()).filter_map(|index| match slots.at(index)? {
            (token, Some(machine)) => Some((token, machine)),
            (_, None) => None,
        })
    }

    /// Shows machines to `f`, from `cursor` on, and notes its verdicts, until all were seen
    /// (`None`) or the turn's budget (`Config::scan_budget`) is spent: then it returns where to go
    /// on, in a later turn.
    pub fn scan(
        &mut self,
        cursor: Cursor,
        mut f: impl FnMut(Token, Seen<'_, M>) -> Verdict,
    ) -> Option<Cursor> {
        let mut index = cursor.0;
        while index < self.slots.high_water() {
            if self.verdicts.scan_left == 0 {
                return Some(Cursor(index));
            }
            self.verdicts.scan_left -= 1;
            if let Some((token, machine)) = self.slots.at(index) {
                match f(token, machine.map_or(Seen::Busy, Seen::Waiting)) {
                    Verdict::Keep => {}
                    verdict => self.verdicts.queue.push_back((token, verdict)),
                }
            }
            index += 1;
        }
        None
    }
}

/// What scans have decided, and how much more they may see.
pub(super) struct Verdicts {
    queue: VecDeque<(Token, Verdict)>,
    /// How many slots scans may still look at in this turn.
    scan_left: usize,
}

impl Verdicts {
    pub(super) fn new(scan_budget: usize) -> Verdicts {
        Verdicts { queue: VecDeque::new(), scan_left: scan_budget }
    }

    pub(super) fn begin_turn(&mut self, scan_budget: usize) {
        self.scan_left = scan_budget;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The machines, as a closure between handlers sees them.
    pub(super) fn machines<'a, M>(&'a mut self, slots: &'a Slots<M>) -> Machines<'a, M> {
        Machines { slots, verdicts: self }
    }

    #[inline]
    pub(super) fn apply<M: Machine>(
        &mut self,
        environment: &AnyEnvironment,
        dispatch: &mut Dispatch<M>,
    ) {
        // In two, as `Repeated::run`: in one piece they cost a turn of one call 1 % of its
        // instructions.
        if !self.queue.is_empty() {
            self.apply_some(environment, dispatch);
        }
    }

    #[cold]
    fn apply_some<M: Machine>(&mut self, environment: &AnyEnvironment, dispatch: &mut Dispatch<M>) {
        while let Some((token, verdict)) = self.queue.pop_front() {
            match verdict {
                // Never queued: a scan leaves it out.
                Verdict::Keep => {}
                Verdict::Wake => {
                    dispatch.queue().wakes().wake(token);
                }
                Verdict::Drain => dispatch.scheduler().pend(token, Calls::DRAINING),
                Verdict::End => dispatch.scheduler().pend(token, Calls::END),
                Verdict::Expire => dispatch.scheduler().time_out_now(environment.now(), token),
            }
        }
        give_back(&mut self.queue);
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
            Seen::Waiting(_) => "Waiting",
            Seen::Busy => "Busy",
        })
    }
}
