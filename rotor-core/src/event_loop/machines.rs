//! `Machines`: the machines of a loop, as closures between handlers see them.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;

use super::dispatch::Dispatch;
use super::run_queue::Pending;
use super::slots::Slots;
use crate::description::Details;
use crate::machine::Machine;
use crate::queue_memory::shrink_empty;
use crate::scope::AnyEnvironment;
use crate::token::Token;

/// All machines of a loop, lent to the closures of [`Broadcast::post`](super::Broadcast::post) and
/// [`LoopInstance::every`](super::LoopInstance::every).
pub struct Machines<'a, M> {
    slots: &'a Slots<M>,
    verdicts: &'a mut Verdicts,
}

/// A position among the slots, from which a scan continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor(u32);

impl Cursor {
    /// The first slot.
    pub const START: Cursor = Cursor(0);
}

/// A machine as a scan sees it.
#[doc(alias = "Seen")]
pub enum MachineView<'a, M> {
    /// The machine waits for an event.
    #[doc(alias = "Idle")]
    Waiting(&'a M),
    /// The machine is in a handler that [blocks](crate::Scope::blocking) on another thread, in a
    /// loop that can be handed or taken over. The call that a verdict leads to, or the drop, waits
    /// until the machine is back.
    Busy,
}

/// What a scan decides about a machine. It is noted at the end of the turn, after all closures, and
/// the machine is called or dropped in the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// Nothing happens.
    Keep,
    /// `wakeup` is called.
    Wake,
    /// `timeout` is called, as if the machine's deadline were now.
    Expire,
    /// `draining` is called. Its `until` is the end of the loop's drain, or now if the loop is not
    /// draining.
    Drain,
    /// The machine is dropped.
    End,
}

impl<'a, M> Machines<'a, M> {
    /// Returns the number of machines.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether there is no machine.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the machine with this token; `None` if it is gone or in a handler.
    pub fn get(&self, token: Token) -> Option<&'a M> {
        match self.slots.at(token.index()) {
            Some((found, machine)) if found == token => machine,
            _ => None,
        }
    }

    /// Returns what the loop knows about the machine with this token; `None` if it is gone.
    pub fn details(&self, token: Token) -> Option<Details> {
        let (found, machine) = self.slots.at(token.index())?;
        (found == token).then(|| Details {
            deadline: self.slots.deadline(token.index()),
            made: self.slots.creation_time(token.index()),
            is_due: self.slots.has_pending_calls(token.index()),
            is_busy: machine.is_none(),
        })
    }

    /// Shows machines to `f`, from `cursor` on, without verdicts. It stops after `slots` slots,
    /// when the turn's budget is used up, or when `f` breaks, and returns where to continue; `None`
    /// if all slots were seen. With [`exact_now`](crate::GlobalScope::exact_now), `f` can apply a
    /// time limit.
    pub fn scan_some(
        &mut self,
        cursor: Cursor,
        slots: usize,
        mut f: impl FnMut(&Self, Token, MachineView<'_, M>) -> ControlFlow<()>,
    ) -> Option<Cursor> {
        let slots = slots.min(self.verdicts.scan_left);
        let end = cursor.0.saturating_add(u32::try_from(slots).unwrap_or(u32::MAX));
        let last = end.min(self.slots.high_water());
        let mut next = cursor.0;
        while next < last {
            let seen = self.slots.at(next);
            next += 1;
            let Some((token, machine)) = seen else { continue };
            if f(self, token, machine.map_or(MachineView::Busy, MachineView::Waiting)).is_break() {
                break;
            }
        }
        self.verdicts.scan_left -= (next - cursor.0) as usize;
        (next < self.slots.high_water()).then_some(Cursor(next))
    }

    /// Notes a verdict about one machine, as a scan would. Returns whether the machine exists.
    pub fn decide(&mut self, token: Token, verdict: Verdict) -> bool {
        let exists = self.slots.contains(token);
        if exists && verdict != Verdict::Keep {
            self.verdicts.queue.push_back((token, verdict));
        }
        exists
    }

    /// Returns all machines that are not in a handler.
    ///
    /// This walks over all slots, however many there are. For loops with very many machines, use
    /// [`scan`](Machines::scan).
    pub fn iter(&self) -> impl Iterator<Item = (Token, &'a M)> + use<'a, M> {
        let slots = self.slots;
        (0..slots.high_water()).filter_map(|index| match slots.at(index)? {
            (token, Some(machine)) => Some((token, machine)),
            (_, None) => None,
        })
    }

    /// Shows machines to `f`, from `cursor` on, and notes its verdicts. Returns `None` when all
    /// machines were seen. If the turn's budget (`Config::scan_budget`), which all scans share, is
    /// used up before, it returns where to continue in a later turn.
    pub fn scan(
        &mut self,
        cursor: Cursor,
        mut f: impl FnMut(Token, MachineView<'_, M>) -> Verdict,
    ) -> Option<Cursor> {
        let mut index = cursor.0;
        while index < self.slots.high_water() {
            if self.verdicts.scan_left == 0 {
                return Some(Cursor(index));
            }
            self.verdicts.scan_left -= 1;
            if let Some((token, machine)) = self.slots.at(index) {
                match f(token, machine.map_or(MachineView::Busy, MachineView::Waiting)) {
                    Verdict::Keep => {}
                    verdict => self.verdicts.queue.push_back((token, verdict)),
                }
            }
            index += 1;
        }
        None
    }
}

/// The verdicts of scans, and how many more slots scans may look at.
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

    /// Returns whether scans may still look at slots in this turn.
    pub(super) fn has_budget(&self) -> bool {
        self.scan_left > 0
    }

    /// Returns the machines for a closure between handlers.
    pub(super) fn machines<'a, M>(&'a mut self, slots: &'a Slots<M>) -> Machines<'a, M> {
        Machines { slots, verdicts: self }
    }

    #[inline]
    pub(super) fn apply<M: Machine>(
        &mut self,
        environment: &AnyEnvironment,
        dispatch: &mut Dispatch<M>,
    ) {
        // Two functions, like `RepeatedClosures::run`: as one, they cost a turn with a single call
        // 1 % of its instructions.
        if !self.queue.is_empty() {
            self.apply_queued(environment, dispatch);
        }
    }

    #[cold]
    fn apply_queued<M: Machine>(
        &mut self,
        environment: &AnyEnvironment,
        dispatch: &mut Dispatch<M>,
    ) {
        while let Some((token, verdict)) = self.queue.pop_front() {
            match verdict {
                // Unreachable: a scan does not queue it.
                Verdict::Keep => {}
                Verdict::Wake => {
                    dispatch.queue().wakes().wake(token);
                }
                Verdict::Drain => {
                    dispatch.scheduler().mark_pending(token, Pending::DRAINING);
                }
                Verdict::End => {
                    dispatch.scheduler().mark_pending(token, Pending::END);
                }
                Verdict::Expire => {
                    dispatch.scheduler().schedule_timeout_now(environment.now(), token)
                }
            }
        }
        shrink_empty(&mut self.queue);
    }
}

impl<M> fmt::Debug for Machines<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Machines({})", self.len())
    }
}

impl<M> fmt::Debug for MachineView<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MachineView::Waiting(_) => "Waiting",
            MachineView::Busy => "Busy",
        })
    }
}
