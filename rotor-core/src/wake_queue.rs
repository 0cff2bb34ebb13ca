//! The wake queue: a lock-free list of the machines that were woken, which runs through the slots
//! and is open to every thread.
//!
//! Each slot of the slab has one atomic word here: the slot's generation, whether its machine is in
//! the list, and the next slot of the list. A machine is in the list at most once, so the list of
//! machines needs no memory of its own and can never be full. The parts that were woken come
//! through a channel, which grows. The list is a stack from which only its loop takes, and always
//! all of it, so the ABA problem of such stacks cannot occur.
//!
//! ```text
//!   wake():      word ── WOKEN set, next = head ──▶ head = this slot ──▶ was SLEEPING? wake the backend
//!   take_all():  head = AWAKE, walk the words, oldest first
//!   try_sleep(): head: AWAKE ──▶ SLEEPING, refused when the list has anything
//! ```
//!
//! A thread that finds `WOKEN` set still writes the word. This write orders what the thread did
//! before the handler that the loop is about to call, so that no wake-up is lost.

use std::collections::TryReserveError;
use std::sync::Arc;

use crate::backend::Wake;
use crate::guard::log_guarded;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::mpsc;
use crate::token::{GENERATION_LAST, MACHINES_LIMIT, Token};

/// The word's bits, from the lowest: the next slot, the two flags, the generation.
const NEXT_MASK: u64 = MACHINES_LIMIT as u64;
/// The machine is in the list, or about to be.
const WOKEN: u64 = 1 << 24;
/// The machine itself was woken, not only a part of it.
const WHOLE: u64 = 1 << 25;
const GENERATION_SHIFT: u32 = 26;

/// No next slot; also the head of an empty list of a loop that is awake.
const AWAKE: u32 = MACHINES_LIMIT as u32;
/// The head of an empty list of a loop that waits, or is about to wait: the thread that replaces it
/// wakes the backend.
const SLEEPING: u32 = u32::MAX;

/// A wake-up that names a part of a machine.
pub(crate) struct PartWake {
    pub(crate) token: Token,
    pub(crate) part: u32,
    /// Whether this notifier is in the channel; cleared by the loop as it takes the entry.
    pub(crate) queued: Arc<AtomicBool>,
}

/// The wake-ups of one loop, shared by all threads.
pub(crate) struct WakeQueue {
    words: Box<[AtomicU64]>,
    head: AtomicU32,
    parts: mpsc::Sender<PartWake>,
    /// Set once any part was woken: the loop must check the channel.
    has_parts: AtomicBool,
    /// Set when the loop is gone, so that its notifiers return `false`.
    closed: AtomicBool,
    waker: Arc<dyn Wake>,
}

impl WakeQueue {
    /// Creates a queue for `capacity` slots. Fails if there is not enough memory for their words.
    pub(crate) fn new(
        capacity: usize,
        waker: Arc<dyn Wake>,
    ) -> Result<(WakeQueue, mpsc::Receiver<PartWake>), TryReserveError> {
        debug_assert!(capacity <= MACHINES_LIMIT);
        let (parts, receiver) = mpsc::channel();
        let mut words = Vec::new();
        words.try_reserve_exact(capacity)?;
        words.extend((0..capacity).map(|_| AtomicU64::new(NEXT_MASK)));
        let wakes = WakeQueue {
            words: words.into_boxed_slice(),
            head: AtomicU32::new(AWAKE),
            parts,
            has_parts: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            waker,
        };
        Ok((wakes, receiver))
    }

    /// Wakes a machine. Returns `false` if it is gone.
    pub(crate) fn wake(&self, token: Token) -> bool {
        self.wake_with(token, WOKEN | WHOLE)
    }

    /// Wakes a part of a machine. Returns `false` if the machine is gone.
    pub(crate) fn wake_part(&self, token: Token, part: u32, queued: &Arc<AtomicBool>) -> bool {
        // Checked first. Otherwise the flag would stay set, and later calls would take the machine
        // for alive.
        if !self.is_alive(token) {
            return false;
        }
        // The loop clears the flag before it calls the handler, which therefore sees everything
        // that was written until now.
        if queued.swap(true, AcqRel) {
            return true;
        }
        // Relaxed is enough: `wake_with` writes the word after this, and the loop reads this after
        // the word.
        self.has_parts.store(true, Relaxed);
        if self.parts.send(PartWake { token, part, queued: queued.clone() }).is_err() {
            return false;
        }
        self.wake_with(token, WOKEN)
    }

    fn wake_with(&self, token: Token, flags: u64) -> bool {
        // A token that was made from a number may name a slot that does not exist.
        let Some(word) = self.words.get(token.index() as usize) else { return false };
        let mut seen = word.load(Relaxed);
        let head = self.head.load(Relaxed);
        loop {
            // Checked in each attempt, because the machine may end in between.
            if seen >> GENERATION_SHIFT != token.generation() || self.closed.load(Relaxed) {
                return false;
            }
            let queued = seen & WOKEN != 0;
            // If it is in the list already, `next` belongs to the thread that put it there.
            let new =
                if queued { seen | flags } else { (seen & !NEXT_MASK) | next_bits(head) | flags };
            match word.compare_exchange_weak(seen, new, AcqRel, Relaxed) {
                Ok(_) if queued => return true,
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        self.push(token.index(), head);
        true
    }

    /// Puts a slot at the head of the list. This thread has set `WOKEN` in its word, which names
    /// `head` as the next slot.
    fn push(&self, index: u32, mut head: u32) {
        let word = &self.words[index as usize];
        while let Err(now) = self.head.compare_exchange_weak(head, index, SeqCst, Relaxed) {
            head = now;
            // Only this thread writes `next` until the slot is in the list. The generation may
            // change meanwhile.
            let _ = word
                .fetch_update(AcqRel, Relaxed, |seen| Some((seen & !NEXT_MASK) | next_bits(head)));
        }
        // One system call for all wake-ups that come while the loop sleeps: the next thread finds a
        // slot at the head.
        if head == SLEEPING {
            self.wake_backend();
        }
    }

    /// Wakes the loop for something other than a machine: a request that was stored, with `SeqCst`,
    /// before this call.
    pub(crate) fn wake_loop(&self) {
        // The loop checks for requests after it has recorded that it sleeps. In the total order of
        // `SeqCst`, either the loop finds this request, or this call finds the loop asleep.
        if self.head.compare_exchange(SLEEPING, AWAKE, SeqCst, SeqCst).is_ok() {
            self.wake_backend();
        }
    }

    fn wake_backend(&self) {
        if let Err(error) = self.waker.wake() {
            log_guarded!(error, "a sleeping loop could not be woken: {error}");
        }
    }

    /// Returns whether the machine with this token still exists.
    pub(crate) fn is_alive(&self, token: Token) -> bool {
        let word = self.words.get(token.index() as usize).map(|word| word.load(Acquire));
        word.is_some_and(|word| word >> GENERATION_SHIFT == token.generation())
            && !self.closed.load(Relaxed)
    }

    /// Returns the generation that a slot had recently, as any thread may read it; 0 if there is no
    /// such slot.
    pub(crate) fn recent_generation(&self, index: u32) -> u64 {
        let word = self.words.get(index as usize).map(|word| word.load(Relaxed));
        word.map_or(0, |word| word >> GENERATION_SHIFT)
    }
}

/// Methods that only the loop calls.
impl WakeQueue {
    /// Returns the generation of a slot: that of the machine in it, or of the next one.
    pub(crate) fn generation(&self, index: u32) -> u64 {
        // Relaxed: only the loop, which calls this, changes it.
        self.words[index as usize].load(Relaxed) >> GENERATION_SHIFT
    }

    /// Returns whether the machine of a slot was woken and has not been called for it.
    pub(crate) fn is_woken(&self, index: u32) -> bool {
        // Relaxed: a concurrent wake-up that is missed here is in the list all the same.
        self.words[index as usize].load(Relaxed) & WOKEN != 0
    }

    /// Ends the generation of a slot, so that its old tokens are invalid from now on. Returns
    /// whether a wake-up is still in the list; then the slot must not be used again before that was
    /// taken.
    pub(crate) fn end_generation(&self, index: u32) -> bool {
        let word = &self.words[index as usize];
        debug_assert!(
            self.generation(index) < GENERATION_LAST,
            "a slot of the last generation is never used"
        );
        word.fetch_add(1 << GENERATION_SHIFT, AcqRel) & WOKEN != 0
    }

    /// Takes the whole list, oldest first, into an empty `batch`, and records that the loop is
    /// awake.
    pub(crate) fn take_all(&self, batch: &mut Vec<u32>) {
        let mut index = match self.head.load(Relaxed) {
            // The usual case: a load instead of the swap, which is a locked instruction.
            AWAKE => return,
            _ => self.head.swap(AWAKE, SeqCst),
        };
        // The list ends with one of the two values that are not slots, `AWAKE` or `SLEEPING`.
        while index < AWAKE {
            batch.push(index);
            index = (self.words[index as usize].load(Acquire) & NEXT_MASK) as u32;
        }
        // It is a stack: the latest wake-up comes first.
        batch.reverse();
    }

    /// Records that the loop is awake: from now on wake-ups need no system call.
    pub(crate) fn mark_awake(&self) {
        // Only the loop writes `SLEEPING`, so it sees its own write. The usual case: a load instead
        // of the exchange, which is a locked instruction.
        if self.head.load(Relaxed) == SLEEPING {
            // A slot at the head stays there: the thread that put it there has woken the backend
            // already.
            let _ = self.head.compare_exchange(SLEEPING, AWAKE, SeqCst, Relaxed);
        }
    }

    /// Takes the flags of a slot that was in the list, so that a new wake-up puts it there again.
    /// Returns whether the machine itself was woken, not only parts of it.
    pub(crate) fn take_flags(&self, index: u32) -> bool {
        self.words[index as usize].fetch_and(!(WOKEN | WHOLE), AcqRel) & WHOLE != 0
    }

    /// Returns whether any part was ever woken. Read this after `take_flags` for the machine, which
    /// orders it.
    pub(crate) fn has_parts(&self) -> bool {
        self.has_parts.load(Relaxed)
    }

    /// Returns whether the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(SeqCst) >= AWAKE
    }

    /// Records that the loop is about to wait, unless the list has entries. Returns whether it may
    /// wait. Wake-ups from now on wake the backend.
    pub(crate) fn try_sleep(&self) -> bool {
        match self.head.compare_exchange(AWAKE, SLEEPING, SeqCst, SeqCst) {
            Ok(_) => true,
            // It was recorded already: by the last turn of an embedded loop, or before a wait that
            // was cut short. Otherwise the head is a slot.
            Err(head) => head == SLEEPING,
        }
    }

    /// Records that the loop has ended.
    pub(crate) fn close(&self) {
        // A thread that does not see this yet puts a slot into a list that is never taken, which is
        // harmless.
        self.closed.store(true, Relaxed);
    }
}

fn next_bits(head: u32) -> u64 {
    u64::from(head.min(AWAKE))
}

#[cfg(test)]
mod tests;
