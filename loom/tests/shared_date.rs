//! rotor-http's shared date: no reader sees parts of two different dates.

#[allow(dead_code, unused_imports, reason = "the date needs a part of it")]
#[path = "../src/sync.rs"]
mod sync;

/// A shorter stand-in for the date's content: two words instead of six.
mod semantics {
    pub(crate) mod date {
        #[derive(Clone, Debug)]
        pub(crate) struct DateCache(i64, i64);

        impl DateCache {
            pub(crate) const WORDS: usize = 2;

            pub(crate) fn new(second: i64) -> DateCache {
                DateCache(second, second)
            }

            pub(crate) fn update(&mut self, second: i64) {
                *self = DateCache::new(second);
            }

            pub(crate) fn to_words(&self) -> [u64; 2] {
                [self.0.cast_unsigned(), self.1.cast_unsigned()]
            }

            pub(crate) fn from_words(words: &[u64; 2]) -> DateCache {
                DateCache(words[0].cast_signed(), words[1].cast_signed())
            }

            /// The second, if both parts belong to the same one.
            pub(crate) fn second(&self) -> Option<i64> {
                (self.0 == self.1).then_some(self.0)
            }
        }
    }
}

#[path = "../../rotor-http/src/server/shared_date.rs"]
mod shared_date;

use std::sync::Arc;

use loom::thread;

use shared_date::SharedDate;

#[test]
fn a_date_read_while_two_threads_update_it_is_consistent() {
    loom::model(|| {
        let date = Arc::new(SharedDate::new());
        let threads = [1, 2].map(|second| {
            let date = date.clone();
            thread::spawn(move || date.update(second))
        });
        let read = date.read();
        assert!(read.second().is_some(), "{read:?}");
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_ne!(date.read().second(), Some(0));
    });
}
