//! `OctetCounts`: how much came in and went out, of all streams that share a configuration.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How many octets streams have read from their sockets and written to them, above whatever wraps
/// those (TLS): [`StreamConfig::count_octets`](crate::StreamConfig::count_octets). It can be read
/// from any thread.
#[derive(Default)]
pub struct OctetCounts {
    read: AtomicU64,
    written: AtomicU64,
}

impl OctetCounts {
    /// Counts from zero.
    pub fn new() -> OctetCounts {
        OctetCounts::default()
    }

    /// What was read, also to be thrown away.
    pub fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// What was written: what the sockets have taken.
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Once for each event of a stream.
    #[inline]
    pub(crate) fn add(&self, read: usize, written: usize) {
        // An event that moves nothing costs no more than the questions.
        if read != 0 {
            self.read.fetch_add(read as u64, Relaxed);
        }
        if written != 0 {
            self.written.fetch_add(written as u64, Relaxed);
        }
    }
}

impl fmt::Debug for OctetCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OctetCounts({} read, {} written)", self.read(), self.written())
    }
}
