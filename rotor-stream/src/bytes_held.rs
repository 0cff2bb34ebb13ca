//! `BytesHeld`: what many hold together, in bytes, and how much that may be; `Share`: what one of
//! them holds of it.

use std::fmt;
use std::sync::Arc;

use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;

/// How many bytes of something many connections hold together, and how many they may.
///
/// A limit for each connection is not one for all of them: ten thousand that each keep a megabyte
/// are ten gigabytes. Streams count their buffers so
/// ([`StreamConfig::held`](crate::StreamConfig::held)); a protocol that keeps what its peers send
/// can do the same. Each holds a [`Share`], which is given back when it is dropped: after an error
/// and a panic, too.
///
/// It can be read from any thread, for a page of metrics, say.
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; }
/// use rotor::stream::{BytesHeld, Share};
///
/// let total = BytesHeld::new(1_000);
/// let (mut one, mut other) = (Share::NONE, Share::NONE);
/// assert!(one.set(800, &total).is_ok());
/// assert!(other.set(300, &total).is_err());
/// drop(one);
/// assert!(other.set(300, &total).is_ok());
/// assert_eq!(total.bytes(), 300);
/// ```
pub struct BytesHeld {
    held: AtomicUsize,
    max: usize,
}

impl BytesHeld {
    /// A total of so many bytes, of which nothing is held.
    pub fn new(max: usize) -> Arc<BytesHeld> {
        Arc::new(BytesHeld { held: AtomicUsize::new(0), max })
    }

    /// What is held now, in bytes.
    pub fn bytes(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// What may be held, in bytes.
    pub fn bytes_max(&self) -> usize {
        self.max
    }

    /// Takes so many more, or none.
    fn take(&self, more: usize) -> bool {
        let enlarge = |held: usize| held.checked_add(more).filter(|held| *held <= self.max);
        // No other memory hangs on it: the count alone has to be right.
        self.held.fetch_update(Relaxed, Relaxed, enlarge).is_ok()
    }

    fn give_back(&self, fewer: usize) {
        self.held.fetch_sub(fewer, Relaxed);
    }

    /// Somebody holds so many, where it held so many before; or not, and then nothing has changed.
    pub(crate) fn change(&self, before: usize, after: usize) -> Result<(), NoRoom> {
        if after <= before {
            self.give_back(before - after);
        } else if !self.take(after - before) {
            return Err(NoRoom);
        }
        Ok(())
    }
}

impl fmt::Debug for BytesHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BytesHeld({} of {})", self.bytes(), self.max)
    }
}

/// There is no room for more. Nobody's fault: those who have it go on, and whoever comes later has
/// to wait, or to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all together hold as many bytes as they may")
    }
}

impl std::error::Error for NoRoom {}

/// What one holds of a total, which has it back when this is dropped, however that comes.
#[derive(Debug)]
pub struct Share {
    total: Option<Arc<BytesHeld>>,
    bytes: usize,
}

impl Share {
    /// Nothing of any total: it costs nothing to have.
    pub const NONE: Share = Share { total: None, bytes: 0 };

    /// How many bytes it holds.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds so many bytes from now on, more or fewer than before.
    ///
    /// # Errors
    ///
    /// `NoRoom`: there are not so many; it holds what it held.
    pub fn set(&mut self, bytes: usize, total: &Arc<BytesHeld>) -> Result<(), NoRoom> {
        if bytes == self.bytes {
            return Ok(());
        }
        // Always the total that it began with: to take from one and give back to another would
        // falsify both.
        let total = self.total.get_or_insert_with(|| total.clone());
        total.change(self.bytes, bytes)?;
        self.bytes = bytes;
        Ok(())
    }
}

impl Default for Share {
    fn default() -> Share {
        Share::NONE
    }
}

impl Drop for Share {
    #[inline]
    fn drop(&mut self) {
        if let Some(total) = &self.total {
            total.give_back(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_what_was_taken_and_is_given_back_however_it_ends() {
        let total = BytesHeld::new(100);
        let mut share = Share::NONE;
        for (bytes, is_taken, held) in [
            (0, true, 0),
            (99, true, 99),
            (100, true, 100),
            (101, false, 100),
            (usize::MAX, false, 100),
            (40, true, 40),
            (0, true, 0),
            (60, true, 60),
        ] {
            assert_eq!(share.set(bytes, &total).is_ok(), is_taken, "{bytes}");
            assert_eq!(total.bytes(), held, "{bytes}");
        }
        let mut other = Share::NONE;
        assert_eq!(other.set(41, &total), Err(NoRoom));
        assert_eq!(other.set(40, &total), Ok(()));
        drop(share);
        assert_eq!(total.bytes(), 40);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _mine = other;
            panic!("with a share in hand");
        }));
        assert!(panicked.is_err());
        assert_eq!(total.bytes(), 0);
    }

    #[test]
    fn a_share_gives_back_to_the_total_that_it_has_taken_from() {
        let (one, other) = (BytesHeld::new(10), BytesHeld::new(10));
        let mut share = Share::NONE;
        share.set(7, &one).expect("there is room");
        share.set(3, &other).expect("it becomes less");
        assert_eq!((one.bytes(), other.bytes()), (3, 0));
        drop(share);
        assert_eq!((one.bytes(), other.bytes()), (0, 0));
    }

    #[test]
    fn threads_that_take_and_give_back_never_pass_the_limit_and_leave_nothing() {
        let total = BytesHeld::new(64);
        std::thread::scope(|scope| {
            for number in 1..=4 {
                let total = &total;
                scope.spawn(move || {
                    for round in 0..1_000 {
                        let mut share = Share::NONE;
                        let _full = share.set(number * (round % 20), total);
                        assert!(total.bytes() <= 64);
                    }
                });
            }
        });
        assert_eq!(total.bytes(), 0);
    }
}
