//! `Beat`: the words by which a loop shows other threads what it is at, and `Pulse`, the loop's
//! side of them.
//!
//! Nothing is concluded from one reading. That a loop is stuck says a row of equal readings, long
//! after the stores that they read; so each store is relaxed, and costs what a store costs.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};

use super::alarm::Alarm;
use crate::token::Token;

/// What a loop is at.
#[derive(Debug)]
pub(super) struct Beat {
    /// Polls of the backend, times two; and one, while the loop sleeps there.
    looks: AtomicU64,
    /// The machine that was called last; `NO_TOKEN` for a closure.
    token: AtomicUsize,
    /// Calls, and in the lowest bits the place of the machine's name in `names`.
    call: AtomicU64,
    /// Grows by one for each type of machine.
    names: Mutex<Vec<&'static str>>,
}

/// What a beat said at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    pub(super) looks: u64,
    pub(super) token: usize,
    pub(super) call: u64,
}

const NAME_BITS: u32 = 16;

/// No machine has it.
const NO_TOKEN: usize = usize::MAX;

impl Beat {
    pub(super) fn new() -> Beat {
        Beat {
            // Asleep, until the loop has looked for the first time.
            looks: AtomicU64::new(1),
            token: AtomicUsize::new(NO_TOKEN),
            call: AtomicU64::new(0),
            names: Mutex::new(vec!["nothing yet"]),
        }
    }

    pub(super) fn read(&self) -> Reading {
        let looks = self.looks.load(Relaxed);
        Reading { looks, call: self.call.load(Relaxed), token: self.token.load(Relaxed) }
    }

    /// The name of the machine, or of the closure, that a reading is of.
    pub(super) fn name(&self, reading: Reading) -> &'static str {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let place = reading.call & ((1 << NAME_BITS) - 1);
        names.get(place as usize).copied().unwrap_or("unknown")
    }

    /// The place of a name, which is new if it is not found.
    #[cold]
    fn place_of(&self, name: &'static str) -> u64 {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            // A program has fewer types than this; one that has more sees the last name too often.
            if names.len() >> NAME_BITS == 0 {
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

    /// Which call it was, counted from the first one.
    pub(super) fn calls(self) -> u64 {
        self.call >> NAME_BITS
    }

    /// How many calls there were since that one.
    pub(super) fn calls_since(self, first: u64) -> u64 {
        self.calls().wrapping_sub(first) & (u64::MAX >> NAME_BITS)
    }

    /// The machine that was called; `None` for a closure.
    pub(super) fn token(self) -> Option<Token> {
        (self.token != NO_TOKEN).then(|| Token::from_usize(self.token))
    }
}

/// The loop's side of its beat: counts in plain numbers, and stores them.
pub(crate) struct Pulse {
    beat: Arc<Beat>,
    looks: u64,
    /// As in the beat, with the place of `name`.
    call: u64,
    name: &'static str,
    /// The names called lately and their places, each where its address says: those of one program
    /// seldom meet.
    known: Box<[(&'static str, u64); KNOWN]>,
    alarm: Arc<Alarm>,
}

const KNOWN: usize = 8;

impl Pulse {
    pub(super) fn new(beat: Arc<Beat>, alarm: Arc<Alarm>) -> Pulse {
        Pulse { beat, looks: 0, call: 0, name: "", known: Box::new([("", 0); KNOWN]), alarm }
    }

    /// The loop goes to sleep in its backend.
    pub(crate) fn sleeps(&mut self) {
        self.beat.looks.store(self.looks | 1, Relaxed);
    }

    /// The loop has polled its backend, and is awake.
    pub(crate) fn has_polled(&mut self) {
        self.looks += 2;
        self.beat.looks.store(self.looks, Relaxed);
        self.alarm.ring_if_armed();
    }

    /// A machine's handler is called.
    #[inline]
    pub(crate) fn calls(&mut self, token: Token, machine: &'static str) {
        self.note(token.into_usize(), machine);
    }

    /// A closure between handlers is called.
    pub(crate) fn runs(&mut self, what: &'static str) {
        self.note(NO_TOKEN, what);
    }

    /// Whether the call of that reading is the last one still.
    pub(crate) fn is_in_call(&self, call: u64) -> bool {
        self.call == call
    }

    /// Makes this the name of the calls that follow.
    #[cold]
    #[inline(never)]
    fn look_up(&mut self, name: &'static str) {
        // Names are about a word long at least, so that the last bits of their addresses say
        // little.
        let known = &mut self.known[(name.as_ptr() as usize >> 3) % KNOWN];
        if !ptr::eq(known.0, name) {
            *known = (name, self.beat.place_of(name));
        }
        self.name = name;
        self.call = self.call >> NAME_BITS << NAME_BITS | known.1;
    }

    #[inline]
    fn note(&mut self, token: usize, name: &'static str) {
        if !ptr::eq(self.name, name) {
            self.look_up(name);
        }
        // Round after 2^48 of them, as `calls_since` counts.
        self.call = self.call.wrapping_add(1 << NAME_BITS);
        self.beat.token.store(token, Relaxed);
        self.beat.call.store(self.call, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_says_who_was_called_and_how_many_were() {
        let beat = Arc::new(Beat::new());
        let mut pulse = Pulse::new(beat.clone(), Arc::default());
        assert!(beat.read().is_asleep() && beat.read().token().is_none());
        pulse.has_polled();
        assert!(!beat.read().is_asleep());
        for (name, number) in [("first", 1), ("second", 2), ("first", 3)] {
            pulse.calls(Token::new(7, number), name);
            let reading = beat.read();
            assert_eq!(reading.token(), Some(Token::new(7, number)));
            assert_eq!((beat.name(reading), reading.calls()), (name, number));
        }
        let before = beat.read();
        pulse.call |= u64::MAX << NAME_BITS;
        pulse.calls(Token::new(7, 4), "second");
        assert_eq!((beat.read().calls(), beat.name(beat.read())), (0, "second"));
        assert_eq!(beat.read().calls_since(before.calls()), (1 << 48) - 3);
        pulse.runs("a closure");
        assert_eq!((beat.name(beat.read()), beat.read().token()), ("a closure", None));
        pulse.sleeps();
        assert!(beat.read().is_asleep());
    }

    #[test]
    fn names_that_meet_in_one_place_are_told_apart() {
        let beat = Arc::new(Beat::new());
        let mut pulse = Pulse::new(beat.clone(), Arc::default());
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
        let beat = Beat::new();
        for _ in 0..1 << NAME_BITS {
            let mut names = beat.names.lock().expect("nobody panics");
            names.push("x");
        }
        assert_eq!(beat.place_of("y") + 1, beat.names.lock().expect("nobody panics").len() as u64);
    }
}
