//! `BytesHeld`: how many bytes several owners hold together, and their limit; `Share`: the bytes of
//! one owner.

use std::fmt;
use std::sync::Arc;

use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;

/// A count of the bytes that many connections hold together, with a limit.
///
/// A limit for each connection does not limit their sum: ten thousand connections of a megabyte
/// each are ten gigabytes. Streams count their buffers in this way
/// ([`StreamConfig::held`](crate::StreamConfig::held)), and a protocol that keeps data of its peers
/// can do the same. Each owner has a [`Share`], whose bytes are given back when it is dropped, also
/// after an error or a panic.
///
/// The count can be read from any thread, for example for metrics.
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
    /// Makes a count with a limit of `max` bytes, of which none are held.
    pub fn new(max: usize) -> Arc<BytesHeld> {
        Arc::new(BytesHeld { held: AtomicUsize::new(0), max })
    }

    /// Returns how many bytes are held now.
    pub fn bytes(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// Returns how many bytes may be held.
    pub fn bytes_max(&self) -> usize {
        self.max
    }

    /// Adds `more` bytes if they fit; otherwise adds nothing.
    fn acquire(&self, more: usize) -> bool {
        let enlarge = |held: usize| held.checked_add(more).filter(|held| *held <= self.max);
        // `Relaxed`: no other memory depends on the count.
        self.held.fetch_update(Relaxed, Relaxed, enlarge).is_ok()
    }

    fn release(&self, fewer: usize) {
        self.held.fetch_sub(fewer, Relaxed);
    }

    /// Changes the bytes of one owner from `before` to `after`. If they do not fit, nothing
    /// changes.
    pub(crate) fn change(&self, before: usize, after: usize) -> Result<(), NoRoom> {
        if after <= before {
            self.release(before - after);
        } else if !self.acquire(after - before) {
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

/// There is no room for more bytes. This is nobody's fault: existing owners go on, and new ones
/// must wait or end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all together have reached their limit of bytes")
    }
}

impl std::error::Error for NoRoom {}

/// The bytes that one owner holds of a total. They are given back when this is dropped.
#[derive(Debug)]
pub struct Share {
    total: Option<Arc<BytesHeld>>,
    bytes: usize,
}

impl Share {
    /// A share without any bytes; it costs nothing.
    pub const NONE: Share = Share { total: None, bytes: 0 };

    /// Returns how many bytes the share holds.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets how many bytes the share holds, more or fewer than before.
    ///
    /// # Errors
    ///
    /// `NoRoom` if the total has no room for that many; the share is unchanged.
    pub fn set(&mut self, bytes: usize, total: &Arc<BytesHeld>) -> Result<(), NoRoom> {
        if bytes == self.bytes {
            return Ok(());
        }
        // Always the first total: taking from one and giving back to another would make both wrong.
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
            total.release(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_stays_within_the_limit_and_is_released_on_drop_and_panic() {
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
    fn a_share_is_released_to_the_total_it_was_taken_from() {
        let (one, other) = (BytesHeld::new(10), BytesHeld::new(10));
        let mut share = Share::NONE;
        share.set(7, &one).expect("there is room");
        share.set(3, &other).expect("it becomes less");
        assert_eq!((one.bytes(), other.bytes()), (3, 0));
        drop(share);
        assert_eq!((one.bytes(), other.bytes()), (0, 0));
    }

    #[test]
    fn concurrent_shares_never_exceed_the_limit_and_leave_nothing_held() {
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
