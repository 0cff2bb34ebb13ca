//! `Beat`: the atomic words by which a loop shows other threads what it is doing, and `Pulse`, the
//! loop's side of them.
//!
//! ```text
//!   call, from the highest bit:   generation, 2   slot, 24   name, 12   number, 26
//!                                      │             │          │
//!                                      └── WakeQueue ┘        names
//! ```
//!
//! No conclusion is drawn from a single reading. A loop counts as stuck only if several readings in
//! a row are equal, long after the stores that they read. So each store is relaxed, and costs no
//! more than a plain store.

use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use super::alarm::Alarm;
use super::short_token::{SHORT_BITS, ShortToken};
use crate::token::Token;
use crate::wake_queue::WakeQueue;

/// What a loop is doing.
pub(super) struct Beat {
    /// Twice the number of polls of the backend, plus one while the loop sleeps there.
    looks: AtomicU64,
    /// The latest call: its number, the index of its name, and the machine.
    call: AtomicU64,
    /// The names of the types of machines. One is added for each new type.
    names: Mutex<Vec<&'static str>>,
    /// The queue that knows the generations of the slots.
    wakes: Arc<WakeQueue>,
}

/// The content of a beat at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    pub(super) looks: u64,
    /// The call, encoded as in the beat.
    pub(super) call: u64,
    /// The machine that was called; `None` for a closure.
    pub(super) token: Option<Token>,
}

/// A program has fewer types of machines. If there are more, they are all reported under the last
/// name.
const NAMES_MAX: usize = 4_096;

const NAME_BITS: u32 = NAMES_MAX.ilog2();

/// The number of bits for the number of the call, which are the lowest ones. It wraps around after
/// 2^26 calls, which no loop makes between two polls.
const NUMBER_BITS: u32 = u64::BITS - SHORT_BITS - NAME_BITS;

const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// The position of the machine's bits.
const TOKEN_SHIFT: u32 = NUMBER_BITS + NAME_BITS;

impl Beat {
    pub(super) fn new(wakes: Arc<WakeQueue>) -> Beat {
        Beat {
            // Asleep until the loop has polled for the first time.
            looks: AtomicU64::new(1),
            call: AtomicU64::new(ShortToken::NONE.bits() << TOKEN_SHIFT),
            names: Mutex::new(vec!["nothing yet"]),
            wakes,
        }
    }

    pub(super) fn read(&self) -> Reading {
        let (looks, call) = (self.looks.load(Relaxed), self.call.load(Relaxed));
        // Read after the call, which contains the slot: the generation cannot end before the call.
        let token =
            ShortToken::of_bits(call >> TOKEN_SHIFT).token(|slot| self.wakes.generation_seen(slot));
        Reading { looks, call, token }
    }

    /// Returns the name of the machine, or of the closure, in a reading.
    pub(super) fn name(&self, reading: Reading) -> &'static str {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let place = reading.call >> NUMBER_BITS & ((1 << NAME_BITS) - 1);
        names.get(place as usize).copied().unwrap_or("unknown")
    }

    /// Returns the index of a name, which is added if it is not found.
    #[cold]
    fn place_of(&self, name: &'static str) -> u64 {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            if names.len() < NAMES_MAX {
                names.push(name);
            }
            names.len() - 1
        });
        place as u64
    }
}

impl Reading {
    pub(super) fn is_asleep(self) -> bool {
        self.looks & 1 == 1
    }

    /// Returns the number of the call. Calls are counted from the first one, and wrap around after
    /// 2^26.
    pub(super) fn calls(self) -> u64 {
        self.call & NUMBER_MASK
    }

    /// Returns how many calls there were since the given one.
    pub(super) fn calls_since(self, first: u64) -> u64 {
        self.calls().wrapping_sub(first) & NUMBER_MASK
    }

    /// Returns the reading that the next call would give.
    #[cfg(test)]
    pub(super) fn next_call(self) -> Reading {
        let number = (self.calls() + 1) & NUMBER_MASK;
        Reading { call: self.call & !NUMBER_MASK | number, ..self }
    }
}

/// The loop's side of its beat. Only the loop stores there, so the loop also keeps its counts
/// there.
pub(crate) struct Pulse {
    beat: Arc<Beat>,
    name: &'static str,
    /// The index of the name, shifted to its position in `Beat::call`.
    place: u64,
    /// A cache of recent names and their indices, indexed by the name's address. The names of one
    /// program seldom collide.
    known: Box<[(&'static str, u64); KNOWN]>,
    alarm: Arc<Alarm>,
}

const KNOWN: usize = 8;

impl Pulse {
    pub(super) fn new(beat: Arc<Beat>, alarm: Arc<Alarm>) -> Pulse {
        Pulse { beat, name: "", place: 0, known: Box::new([("", 0); KNOWN]), alarm }
    }

    /// Notes that the loop goes to sleep in its backend.
    pub(crate) fn sleeps(&mut self) {
        self.beat.looks.store(self.beat.looks.load(Relaxed) | 1, Relaxed);
    }

    /// Notes that the loop has polled its backend, and is awake.
    pub(crate) fn has_polled(&mut self) {
        self.beat.looks.store((self.beat.looks.load(Relaxed) | 1) + 1, Relaxed);
        self.alarm.ring_if_armed();
    }

    /// Notes that a machine's handler is called.
    #[inline]
    pub(crate) fn calls(&mut self, token: Token, machine: &'static str) {
        self.note(ShortToken::of(token), machine);
    }

    /// Notes that a closure between handlers is called.
    pub(crate) fn runs(&mut self, what: &'static str) {
        self.note(ShortToken::NONE, what);
    }

    /// Returns whether this call is still the latest one.
    pub(crate) fn is_in_call(&self, call: u64) -> bool {
        self.beat.call.load(Relaxed) == call
    }

    /// Sets the name for the calls that follow.
    #[cold]
    #[inline(never)]
    fn look_up(&mut self, name: &'static str) {
        // Names are usually at least a word long, so the lowest bits of their addresses differ
        // little.
        let known = &mut self.known[(name.as_ptr() as usize >> 3) % KNOWN];
        if !ptr::eq(known.0, name) {
            *known = (name, self.beat.place_of(name) << NUMBER_BITS);
        }
        (self.name, self.place) = *known;
    }

    #[inline]
    fn note(&mut self, token: ShortToken, name: &'static str) {
        if !ptr::eq(self.name, name) {
            self.look_up(name);
        }
        let number = self.beat.call.load(Relaxed).wrapping_add(1) & NUMBER_MASK;
        // A single store, so that a reading never mixes two calls.
        self.beat.call.store(token.bits() << TOKEN_SHIFT | self.place | number, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::NoWaker;

    fn beat() -> (Arc<Beat>, Arc<WakeQueue>) {
        let (wakes, _) = WakeQueue::new(8, Arc::new(NoWaker)).expect("memory");
        let wakes = Arc::new(wakes);
        (Arc::new(Beat::new(wakes.clone())), wakes)
    }

    #[test]
    fn a_reading_says_who_was_called_and_how_many_were() {
        let (beat, wakes) = beat();
        let mut pulse = Pulse::new(beat.clone(), Arc::default());
        assert!(beat.read().is_asleep() && beat.read().token.is_none());
        pulse.has_polled();
        assert!(!beat.read().is_asleep());
        for (name, number) in [("first", 1), ("second", 2), ("first", 3)] {
            wakes.end_generation(7);
            pulse.calls(Token::new(7, number), name);
            let reading = beat.read();
            assert_eq!(reading.token, Some(Token::new(7, number)));
            assert_eq!((beat.name(reading), reading.calls()), (name, number));
        }
        let before = beat.read();
        beat.call.fetch_or(NUMBER_MASK, Relaxed);
        pulse.calls(Token::new(7, 3), "second");
        assert_eq!((beat.read().calls(), beat.name(beat.read())), (0, "second"));
        assert_eq!(beat.read().calls_since(before.calls()), (1 << 26) - 3);
        pulse.runs("a closure");
        assert_eq!((beat.name(beat.read()), beat.read().token), ("a closure", None));
        pulse.sleeps();
        assert!(beat.read().is_asleep());
    }

    #[test]
    fn a_machine_that_ends_in_its_call_is_the_one_that_was_called() {
        let (beat, wakes) = beat();
        let mut pulse = Pulse::new(beat.clone(), Arc::default());
        pulse.calls(Token::new(3, 0), "a");
        let called = beat.read();
        wakes.end_generation(3);
        assert_eq!(beat.read(), called, "what is left of the call is still its own");
        pulse.calls(Token::new(3, 1), "a");
        assert_eq!(beat.read().token, Some(Token::new(3, 1)));
    }

    #[test]
    fn polls_are_told_apart_and_so_are_polling_and_sleeping() {
        let (beat, _) = beat();
        let mut pulse = Pulse::new(beat.clone(), Arc::default());
        let mut seen = vec![beat.read().looks];
        for _ in 0..2 {
            pulse.has_polled();
            seen.push(beat.read().looks);
            pulse.sleeps();
            assert!(beat.read().is_asleep());
            seen.push(beat.read().looks);
            pulse.has_polled();
            assert!(!beat.read().is_asleep());
        }
        assert!(seen.is_sorted_by(|one, other| one < other), "{seen:?}");
    }

    #[test]
    fn names_that_meet_in_one_place_are_told_apart() {
        let (beat, wakes) = beat();
        let mut pulse = Pulse::new(beat.clone(), Arc::default());
        wakes.end_generation(1);
        // Parts of one text, a word apart: each place has several.
        let text = "the quick brown fox jumps over the lazy dog, and then it sleeps. The end of the tale is near.";
        for _ in 0..2 {
            for start in (0..text.len()).step_by(4) {
                pulse.calls(Token::new(1, 1), &text[start..]);
                assert_eq!(beat.name(beat.read()), &text[start..]);
            }
        }
    }

    #[test]
    fn more_names_than_there_are_places_share_the_last() {
        let (beat, _) = beat();
        beat.names.lock().expect("nobody panics").resize(NAMES_MAX - 1, "x");
        assert_eq!(beat.place_of("the last") as usize, NAMES_MAX - 1);
        assert_eq!(beat.place_of("y") as usize, NAMES_MAX - 1);
        assert!(NAMES_MAX.is_power_of_two());
    }
}
