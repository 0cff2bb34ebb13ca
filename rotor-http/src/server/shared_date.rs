//! `SharedDate`: the date of the current second, read by every response without a lock.

use std::sync::PoisonError;

use crate::semantics::date::DateCache;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64, fence};

/// A date that one thread writes once a second and all threads read.
///
/// This is a sequence lock: the sequence number is odd while the words are being written, and has
/// changed afterwards. A reader that notices either takes the lock, which a writer holds.
#[derive(Debug)]
pub(super) struct SharedDate {
    sequence: AtomicU32,
    words: [AtomicU64; DateCache::WORDS],
    cache: Mutex<DateCache>,
}

impl SharedDate {
    pub(super) fn new() -> SharedDate {
        let cache = DateCache::new(0);
        let words = cache.to_words().map(AtomicU64::new);
        SharedDate { sequence: AtomicU32::new(0), words, cache: Mutex::new(cache) }
    }

    /// Returns the date as it was last written.
    #[inline]
    pub(super) fn read(&self) -> DateCache {
        // Acquire: the words are read after this, and are at least as new as the number.
        let before = self.sequence.load(Acquire);
        let words = self.words.each_ref().map(|word| word.load(Relaxed));
        // The words are read before the number below.
        fence(Acquire);
        // If this does not hold, a writer is or was active: words of two seconds may be mixed.
        if before.is_multiple_of(2) && self.sequence.load(Relaxed) == before {
            DateCache::from_words(&words)
        } else {
            self.read_locked()
        }
    }

    #[cold]
    fn read_locked(&self) -> DateCache {
        // Even if poisoned: the date is complete at every moment, and no reason to fail a request.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the date to this second since 1970.
    #[cold]
    pub(super) fn update(&self, unix_seconds: i64) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.update(unix_seconds);
        let before = self.sequence.load(Relaxed);
        // A plain store: only the holder of the lock changes the number.
        self.sequence.store(before.wrapping_add(1), Relaxed);
        // A reader that sees one of the words below also sees the odd number, or a later one.
        fence(Release);
        for (word, value) in self.words.iter().zip(cache.to_words()) {
            word.store(value, Relaxed);
        }
        self.sequence.store(before.wrapping_add(2), Release);
    }
}

#[cfg(all(test, not(rotor_loom)))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn the_written_date_is_read() {
        let shared = SharedDate::new();
        for second in [0, 784_111_777, 784_111_777, 1_790_000_000, -1] {
            shared.update(second);
            let (read, whole) = (shared.read(), DateCache::new(second));
            assert_eq!((read.unix_seconds(), read.line()), (second, whole.line()));
            assert_eq!(shared.read_locked().line(), whole.line());
        }
    }

    #[test]
    fn no_reader_sees_a_mix_of_two_dates() {
        let shared = SharedDate::new();
        let ended = AtomicBool::new(false);
        let seconds = [784_111_777, 1_790_086_400];
        shared.update(seconds[0]);
        let dates = seconds.map(DateCache::new);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while !ended.load(Relaxed) {
                    let read = shared.read();
                    let is_one = dates.iter().any(|date| {
                        (date.unix_seconds(), date.line()) == (read.unix_seconds(), read.line())
                    });
                    assert!(is_one, "{read:?}");
                }
            });
            for round in 0..100_000 {
                shared.update(seconds[round % 2]);
            }
            ended.store(true, Relaxed);
            reader.join().expect("no date was torn");
        });
    }
}
