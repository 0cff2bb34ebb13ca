//! `Heartbeat`: the atomic words by which a loop shows other threads what it is doing, and
//! `HeartbeatWriter`, the loop's side of them.
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
pub(super) struct Heartbeat {
    /// Twice the number of polls of the backend, plus one while the loop sleeps there.
    polls: AtomicU64,
    /// The latest call: its number, the index of its name, and the machine.
    call: AtomicU64,
    /// The names of the types of machines. One is added for each new type.
    names: Mutex<Vec<&'static str>>,
    /// The queue that knows the generations of the slots.
    wakes: Arc<WakeQueue>,
}

/// The content of a heartbeat at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    pub(super) polls: u64,
    /// The call, encoded as in the heartbeat.
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

impl Heartbeat {
    pub(super) fn new(wakes: Arc<WakeQueue>) -> Heartbeat {
        Heartbeat {
            // Asleep until the loop has polled for the first time.
            polls: AtomicU64::new(1),
            call: AtomicU64::new(ShortToken::NONE.bits() << TOKEN_SHIFT),
            names: Mutex::new(vec!["nothing yet"]),
            wakes,
        }
    }

    pub(super) fn read(&self) -> Reading {
        let (polls, call) = (self.polls.load(Relaxed), self.call.load(Relaxed));
        // Read after the call, which contains the slot: the generation cannot end before the call.
        let token = ShortToken::from_bits(call >> TOKEN_SHIFT)
            .token(|slot| self.wakes.recent_generation(slot));
        Reading { polls, call, token }
    }

    /// Returns the name of the machine, or of the closure, in a reading.
    pub(super) fn name(&self, reading: Reading) -> &'static str {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let name_index = reading.call >> NUMBER_BITS & ((1 << NAME_BITS) - 1);
        names.get(name_index as usize).copied().unwrap_or("unknown")
    }

    /// Returns the index of a name, which is added if it is not found.
    #[cold]
    fn name_index(&self, name: &'static str) -> u64 {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let name_index = names.iter().position(|cached| *cached == name).unwrap_or_else(|| {
            if names.len() < NAMES_MAX {
                names.push(name);
            }
            names.len() - 1
        });
        name_index as u64
    }
}

impl Reading {
    pub(super) fn is_asleep(self) -> bool {
        self.polls & 1 == 1
    }

    /// Returns the number of the call. Calls are counted from the first one, and wrap around after
    /// 2^26.
    pub(super) fn call_number(self) -> u64 {
        self.call & NUMBER_MASK
    }

    /// Returns how many calls there were since the given one.
    pub(super) fn calls_since(self, first: u64) -> u64 {
        self.call_number().wrapping_sub(first) & NUMBER_MASK
    }

    /// Returns the reading that the next call would give.
    #[cfg(test)]
    pub(super) fn next_call(self) -> Reading {
        let number = (self.call_number() + 1) & NUMBER_MASK;
        Reading { call: self.call & !NUMBER_MASK | number, ..self }
    }
}

/// The loop's side of its heartbeat. Only the loop stores there, so the loop also keeps its counts
/// there.
pub(crate) struct HeartbeatWriter {
    heartbeat: Arc<Heartbeat>,
    name: &'static str,
    /// The index of the name, shifted to its position in `Heartbeat::call`.
    name_index: u64,
    /// A cache of recent names and their indices, indexed by the name's address. The names of one
    /// program seldom collide.
    cached: Box<[(&'static str, u64); CACHED_NAMES]>,
    alarm: Arc<Alarm>,
}

const CACHED_NAMES: usize = 8;

impl HeartbeatWriter {
    pub(super) fn new(heartbeat: Arc<Heartbeat>, alarm: Arc<Alarm>) -> HeartbeatWriter {
        HeartbeatWriter {
            heartbeat,
            name: "",
            name_index: 0,
            cached: Box::new([("", 0); CACHED_NAMES]),
            alarm,
        }
    }

    /// Records that the loop goes to sleep in its backend.
    pub(crate) fn record_sleep(&mut self) {
        self.heartbeat.polls.store(self.heartbeat.polls.load(Relaxed) | 1, Relaxed);
    }

    /// Records that the loop has polled its backend, and is awake.
    pub(crate) fn record_poll(&mut self) {
        self.heartbeat.polls.store((self.heartbeat.polls.load(Relaxed) | 1) + 1, Relaxed);
        self.alarm.ring_if_armed();
    }

    /// Records that a machine's handler is called.
    #[inline]
    pub(crate) fn record_call(&mut self, token: Token, machine: &'static str) {
        self.record(ShortToken::of(token), machine);
    }

    /// Records that a closure between handlers is called.
    pub(crate) fn record_closure(&mut self, what: &'static str) {
        self.record(ShortToken::NONE, what);
    }

    /// Returns whether this call is still the latest one.
    pub(crate) fn is_in_call(&self, call: u64) -> bool {
        self.heartbeat.call.load(Relaxed) == call
    }

    /// Sets the name for the calls that follow.
    #[cold]
    #[inline(never)]
    fn set_name(&mut self, name: &'static str) {
        // Names are usually at least a word long, so the lowest bits of their addresses differ
        // little.
        let cached = &mut self.cached[(name.as_ptr() as usize >> 3) % CACHED_NAMES];
        if !ptr::eq(cached.0, name) {
            *cached = (name, self.heartbeat.name_index(name) << NUMBER_BITS);
        }
        (self.name, self.name_index) = *cached;
    }

    #[inline]
    fn record(&mut self, token: ShortToken, name: &'static str) {
        if !ptr::eq(self.name, name) {
            self.set_name(name);
        }
        let number = self.heartbeat.call.load(Relaxed).wrapping_add(1) & NUMBER_MASK;
        // A single store, so that a reading never mixes two calls.
        self.heartbeat.call.store(token.bits() << TOKEN_SHIFT | self.name_index | number, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::NoWaker;

    fn heartbeat() -> (Arc<Heartbeat>, Arc<WakeQueue>) {
        let (wakes, _) = WakeQueue::new(8, Arc::new(NoWaker)).expect("memory");
        let wakes = Arc::new(wakes);
        (Arc::new(Heartbeat::new(wakes.clone())), wakes)
    }

    #[test]
    fn a_reading_shows_the_called_machine_and_the_number_of_calls() {
        let (heartbeat, wakes) = heartbeat();
        let mut writer = HeartbeatWriter::new(heartbeat.clone(), Arc::default());
        assert!(heartbeat.read().is_asleep() && heartbeat.read().token.is_none());
        writer.record_poll();
        assert!(!heartbeat.read().is_asleep());
        for (name, number) in [("first", 1), ("second", 2), ("first", 3)] {
            wakes.end_generation(7);
            writer.record_call(Token::new(7, number), name);
            let reading = heartbeat.read();
            assert_eq!(reading.token, Some(Token::new(7, number)));
            assert_eq!((heartbeat.name(reading), reading.call_number()), (name, number));
        }
        let before = heartbeat.read();
        heartbeat.call.fetch_or(NUMBER_MASK, Relaxed);
        writer.record_call(Token::new(7, 3), "second");
        assert_eq!(
            (heartbeat.read().call_number(), heartbeat.name(heartbeat.read())),
            (0, "second")
        );
        assert_eq!(heartbeat.read().calls_since(before.call_number()), (1 << 26) - 3);
        writer.record_closure("a closure");
        assert_eq!((heartbeat.name(heartbeat.read()), heartbeat.read().token), ("a closure", None));
        writer.record_sleep();
        assert!(heartbeat.read().is_asleep());
    }

    #[test]
    fn a_machine_that_ends_in_its_call_is_still_the_called_one() {
        let (heartbeat, wakes) = heartbeat();
        let mut writer = HeartbeatWriter::new(heartbeat.clone(), Arc::default());
        writer.record_call(Token::new(3, 0), "a");
        let called = heartbeat.read();
        wakes.end_generation(3);
        assert_eq!(heartbeat.read(), called, "what is left of the call is still its own");
        writer.record_call(Token::new(3, 1), "a");
        assert_eq!(heartbeat.read().token, Some(Token::new(3, 1)));
    }

    #[test]
    fn each_poll_and_each_sleep_changes_the_reading() {
        let (heartbeat, _) = heartbeat();
        let mut writer = HeartbeatWriter::new(heartbeat.clone(), Arc::default());
        let mut seen = vec![heartbeat.read().polls];
        for _ in 0..2 {
            writer.record_poll();
            seen.push(heartbeat.read().polls);
            writer.record_sleep();
            assert!(heartbeat.read().is_asleep());
            seen.push(heartbeat.read().polls);
            writer.record_poll();
            assert!(!heartbeat.read().is_asleep());
        }
        assert!(seen.is_sorted_by(|one, other| one < other), "{seen:?}");
    }

    #[test]
    fn colliding_names_in_the_cache_are_distinguished() {
        let (heartbeat, wakes) = heartbeat();
        let mut writer = HeartbeatWriter::new(heartbeat.clone(), Arc::default());
        wakes.end_generation(1);
        // Parts of one text, offset by four bytes each: each location has several.
        let text = "the quick brown fox jumps over the lazy dog, and then it sleeps. The end of the tale is near.";
        for _ in 0..2 {
            for start in (0..text.len()).step_by(4) {
                writer.record_call(Token::new(1, 1), &text[start..]);
                assert_eq!(heartbeat.name(heartbeat.read()), &text[start..]);
            }
        }
    }

    #[test]
    fn names_beyond_the_limit_share_the_last_index() {
        let (heartbeat, _) = heartbeat();
        heartbeat.names.lock().expect("nobody panics").resize(NAMES_MAX - 1, "x");
        assert_eq!(heartbeat.name_index("the last") as usize, NAMES_MAX - 1);
        assert_eq!(heartbeat.name_index("y") as usize, NAMES_MAX - 1);
        assert!(NAMES_MAX.is_power_of_two());
    }
}
