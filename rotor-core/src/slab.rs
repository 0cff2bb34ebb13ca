//! The slab: where the machines of a loop live, each in a slot that knows whether its machine is
//! with a handler.
//!
//! ```text
//!            reserve()                put()
//!  Vacant ──────────────▶ Running ───────────▶ Idle
//!    ▲                     │   ▲                 │
//!    │      release()      │   │     take()      │
//!    └─────────────────────┘   └─────────────────┘
//!  release() while a wake-up is in the list: Ended, and Vacant once the list gave it up (collect())
//! ```
//!
//! Slots never move: the room for all of them is reserved at the start and touched only as it is
//! used.

use std::collections::TryReserveError;
use std::mem;
use std::sync::Arc;

use crate::guard::drop_guarded;
use crate::token::GENERATION_LAST;
use crate::wake_queue::WakeQueue;
use crate::{EventSet, Token};

/// What has come for a machine while it could not be called: merged, to be handed over later.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Gathered {
    pub(crate) events: EventSet,
    calls: u8,
    /// The turn (1 to 255, round and round; 0 for none) in which the machine last woke itself.
    pub(crate) self_woken: u8,
}

impl Gathered {
    /// The slot is in the queue of machines to be called next turn.
    pub(crate) const QUEUED: u8 = 1;
    /// The machine waits for the answer to its spawn, and hears of nothing else before.
    pub(crate) const SPAWNING: u8 = 2;
    /// `ready` is owed, with the events gathered.
    pub(crate) const READY: u8 = 4;
    /// `wakeup` is owed, for a part or for the machine.
    pub(crate) const WAKEUP: u8 = 8;
    /// The wake-up is for the machine itself as well.
    pub(crate) const WAKEUP_WHOLE: u8 = 16;
    /// `draining` is owed.
    pub(crate) const DRAINING: u8 = 32;
    /// The machine is to be dropped.
    pub(crate) const END: u8 = 64;
    /// The slot is in the queue of machines that answered with a deadline that had passed.
    pub(crate) const OVERDUE: u8 = 128;

    /// How the slot is waiting: no calls.
    const MARKS: u8 = Gathered::QUEUED | Gathered::SPAWNING | Gathered::OVERDUE;

    pub(crate) fn has(&self, calls: u8) -> bool {
        self.calls & calls != 0
    }

    /// The calls that are also in `calls`.
    pub(crate) fn only(&self, calls: u8) -> u8 {
        self.calls & calls
    }

    /// Whether there is a call to be made, beyond the marks of how the slot is waiting.
    pub(crate) fn is_owed(&self) -> bool {
        self.calls & !Gathered::MARKS != 0
    }

    pub(crate) fn add(&mut self, calls: u8) {
        self.calls |= calls;
    }

    /// Whether the call is owed; it no longer is afterwards.
    pub(crate) fn take(&mut self, call: u8) -> bool {
        let owed = self.calls & call != 0;
        self.calls &= !call;
        owed
    }

    /// Everything that is owed; nothing is afterwards. Marks other than `OVERDUE`, whose queue is
    /// another, are gone too.
    pub(crate) fn take_all(&mut self) -> Gathered {
        let all = *self;
        let calls = self.calls & Gathered::OVERDUE;
        *self = Gathered { calls, self_woken: self.self_woken, ..Gathered::default() };
        all
    }
}

enum Slot<M> {
    /// Free; `next` is the next free slot, or `NONE`.
    Vacant { next: u32 },
    /// The machine waits for an event.
    Idle { gathered: Gathered, machine: M },
    /// The machine is with its handler, or being made.
    Running { gathered: Gathered },
    /// The machine is gone, but a wake-up of it is still in the list.
    Ended,
}

const NONE: u32 = u32::MAX;

/// The machines of a loop.
pub(crate) struct Slab<M> {
    slots: Vec<Slot<M>>,
    free: u32,
    /// Slots that hold, or are about to hold, a machine.
    used: usize,
    capacity: usize,
    /// Slots that cannot be used: those that wait in `Ended` and those whose generations are used
    /// up.
    unusable: usize,
    queue: Arc<WakeQueue>,
    /// Lent where there is nothing to lend, so that no path can panic.
    spare: Gathered,
}

/// A machine that was taken out together with what holds it in its slot, so that it is copied once
/// on its way out and once on its way back; or nothing.
pub(crate) struct Lifted<M>(Slot<M>);

impl<M> Lifted<M> {
    /// Whether there was no machine to be lifted.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        !matches!(self.0, Slot::Idle { .. })
    }

    /// Lends the machine to its handlers.
    #[inline]
    pub(crate) fn in_hand(&mut self) -> InHand<'_, M> {
        InHand(&mut self.0)
    }

    #[inline]
    pub(crate) fn into_machine(self) -> Option<M> {
        match self.0 {
            Slot::Idle { machine, .. } => Some(machine),
            _ => None,
        }
    }
}

/// A lifted machine, while code of its own runs. If that panics, it is dropped under a guard: its
/// drop may panic as well, and a second panic that gets out of a drop while the first unwinds ends
/// the process.
pub(crate) struct InHand<'a, M>(&'a mut Slot<M>);

impl<M> InHand<'_, M> {
    #[inline]
    pub(crate) fn machine(&mut self) -> Option<&mut M> {
        match self.0 {
            Slot::Idle { machine, .. } => Some(machine),
            _ => None,
        }
    }

    /// It has not panicked: the machine stays where it is.
    #[inline]
    pub(crate) fn let_go(self) {
        mem::forget(self);
    }
}

impl<M> Drop for InHand<'_, M> {
    fn drop(&mut self) {
        drop_guarded(mem::replace(self.0, Slot::Ended), "a machine whose handler had panicked");
    }
}

impl<M> Slab<M> {
    /// Without machines. Fails where there is no room for so many.
    pub(crate) fn new(capacity: usize, queue: Arc<WakeQueue>) -> Result<Slab<M>, TryReserveError> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(capacity)?;
        Ok(Slab {
            slots,
            free: NONE,
            used: 0,
            capacity,
            unusable: 0,
            queue,
            spare: Gathered::default(),
        })
    }

    /// How many machines there are, those with a handler included.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// How many more machines there is room for.
    pub(crate) fn vacant(&self) -> usize {
        self.capacity - self.unusable - self.used
    }

    /// One more than the highest slot that was ever used.
    pub(crate) fn high_water(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Takes a free slot for a machine that is being made.
    pub(crate) fn reserve(&mut self) -> Option<Token> {
        let index = if self.free != NONE {
            let index = self.free;
            let slot = mem::replace(
                &mut self.slots[index as usize],
                Slot::Running { gathered: Gathered::default() },
            );
            let Slot::Vacant { next } = slot else { return None };
            self.free = next;
            index
        } else if self.slots.len() < self.capacity {
            self.slots.push(Slot::Running { gathered: Gathered::default() });
            self.slots.len() as u32 - 1
        } else {
            return None;
        };
        self.used += 1;
        Some(Token::new(index, self.queue.generation(index)))
    }

    /// Puts a machine into its running slot; lends what has come for it meanwhile.
    #[inline(always)]
    pub(crate) fn put(&mut self, token: Token, machine: M) -> &mut Gathered {
        let slot = &mut self.slots[token.index() as usize];
        // Always. Where the slot is known to hold no machine, the new one is copied to its place
        // and nowhere else.
        if let Slot::Running { gathered } = slot {
            let gathered = *gathered;
            *slot = Slot::Idle { gathered, machine };
        } else {
            *slot = Slot::Idle { gathered: Gathered::default(), machine };
        }
        match slot {
            Slot::Idle { gathered, .. } => gathered,
            _ => &mut self.spare,
        }
    }

    /// Takes a machine out, if it is there; not while one of the calls in `held` is owed to it.
    #[inline]
    pub(crate) fn take(&mut self, token: Token, held: u8) -> Option<M> {
        self.lift(token, held).into_machine()
    }

    /// As `take`, with what holds the machine in its slot, to be put back together.
    #[inline(always)]
    pub(crate) fn lift(&mut self, token: Token, held: u8) -> Lifted<M> {
        if self.names(token) {
            let slot = &mut self.slots[token.index() as usize];
            if let Slot::Idle { gathered, .. } = slot
                && !gathered.has(held)
            {
                let gathered = *gathered;
                return Lifted(mem::replace(slot, Slot::Running { gathered }));
            }
        }
        Lifted(Slot::Ended)
    }

    /// Puts what was lifted back into its running slot; lends what has come for it meanwhile.
    #[inline(always)]
    pub(crate) fn put_back(&mut self, token: Token, mut lifted: Lifted<M>) -> &mut Gathered {
        let slot = &mut self.slots[token.index() as usize];
        if let (Slot::Running { gathered: now }, Slot::Idle { gathered, .. }) =
            (&*slot, &mut lifted.0)
        {
            *gathered = *now;
            *slot = lifted.0;
        }
        match slot {
            Slot::Idle { gathered, .. } => gathered,
            _ => &mut self.spare,
        }
    }

    /// Gives up a running slot whose machine has ended.
    pub(crate) fn release(&mut self, token: Token) {
        let index = token.index();
        if !self.names(token) || !matches!(self.slots[index as usize], Slot::Running { .. }) {
            return;
        }
        self.used -= 1;
        if self.queue.end_generation(index) {
            self.slots[index as usize] = Slot::Ended;
            self.unusable += 1;
        } else {
            self.vacate(index);
        }
    }

    /// Frees a slot that waited for its last wake-up to leave the list; answers whether it was one.
    pub(crate) fn collect(&mut self, index: u32) -> bool {
        let ended = matches!(self.slots[index as usize], Slot::Ended);
        if ended {
            self.unusable -= 1;
            self.vacate(index);
        }
        ended
    }

    fn vacate(&mut self, index: u32) {
        if self.queue.generation(index) == GENERATION_LAST {
            self.slots[index as usize] = Slot::Vacant { next: NONE };
            self.unusable += 1;
            return;
        }
        self.slots[index as usize] = Slot::Vacant { next: self.free };
        self.free = index;
    }

    /// What has been gathered for a machine, whether or not it is with a handler.
    pub(crate) fn gathered(&mut self, token: Token) -> Option<&mut Gathered> {
        if !self.names(token) {
            return None;
        }
        match &mut self.slots[token.index() as usize] {
            Slot::Idle { gathered, .. } | Slot::Running { gathered } => Some(gathered),
            Slot::Vacant { .. } | Slot::Ended => None,
        }
    }

    /// Looks for a contradiction: each slot is counted once, and none is with a handler between
    /// turns.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (mut used, mut ended, mut free) = (0, 0, 0);
        for (index, slot) in self.slots.iter().enumerate() {
            match slot {
                Slot::Idle { .. } => used += 1,
                Slot::Running { .. } => {
                    return Err(format!("slot {index} is running between turns"));
                }
                Slot::Ended if self.queue.is_woken(index as u32) => ended += 1,
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
        // A slot whose generations are used up is vacant, and neither listed nor usable.
        if used != self.used || ended + free - listed.min(free) != self.unusable {
            return Err(format!(
                "{used} slots hold machines and {} are counted; {ended} wait, {free} are vacant, {listed} listed",
                self.used
            ));
        }
        Ok(())
    }

    /// What has been gathered for each machine.
    pub(crate) fn all_gathered(&self) -> impl Iterator<Item = (Token, &Gathered)> {
        self.slots.iter().zip(0..).filter_map(|(slot, index)| match slot {
            Slot::Idle { gathered, .. } | Slot::Running { gathered } => {
                Some((Token::new(index, self.queue.generation(index)), gathered))
            }
            Slot::Vacant { .. } | Slot::Ended => None,
        })
    }

    /// The token of the machine in a slot, and the machine unless it is with a handler.
    pub(crate) fn at(&self, index: u32) -> Option<(Token, Option<&M>)> {
        let token = || Token::new(index, self.queue.generation(index));
        match self.slots.get(index as usize)? {
            Slot::Idle { machine, .. } => Some((token(), Some(machine))),
            Slot::Running { .. } => Some((token(), None)),
            Slot::Vacant { .. } | Slot::Ended => None,
        }
    }

    fn names(&self, token: Token) -> bool {
        (token.index() as usize) < self.slots.len()
            && self.queue.generation(token.index()) == token.generation()
    }
}

#[cfg(test)]
mod tests;
