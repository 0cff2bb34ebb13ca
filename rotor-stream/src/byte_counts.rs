//! `ByteCounts`: how many bytes were read and written by all streams that share a configuration.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How many bytes streams have read from their sockets and written to them, above any wrapping
/// socket (TLS): [`StreamConfig::count_bytes`](crate::StreamConfig::count_bytes). The counts can
/// be read from any thread.
#[derive(Default)]
pub struct ByteCounts {
    read: AtomicU64,
    written: AtomicU64,
}

impl ByteCounts {
    /// Makes counters that begin at zero.
    pub fn new() -> ByteCounts {
        ByteCounts::default()
    }

    /// Returns how many bytes were read, including discarded ones.
    pub fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Returns how many bytes were written, that is, taken by the sockets.
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Adds the bytes of one event of a stream.
    #[inline]
    pub(crate) fn add(&self, read: usize, written: usize) {
        // An event that moves no bytes costs only these checks.
        if read != 0 {
            self.read.fetch_add(read as u64, Relaxed);
        }
        if written != 0 {
            self.written.fetch_add(written as u64, Relaxed);
        }
    }
}

impl fmt::Debug for ByteCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteCounts({} read, {} written)", self.read(), self.written())
    }
}
