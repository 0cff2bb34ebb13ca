//! `Traffic`: counts how the requests of a server ended, with one addition for each request.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rotor_core::{Histogram, SharedHistogram};
use rotor_stream::ByteCounts;

use crate::semantics::status::Status;

/// The classes of [`Counters::responses`](super::Counters::responses), by the first digit of the
/// status; `none` for a request whose connection was lost before it had a response.
pub(super) const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The class of [`Status::OK`].
const OK_CLASS: usize = 2;

/// How requests ended. Each time goes into the histogram of its status' class, so the counts need
/// no counters of their own.
#[derive(Default)]
pub(crate) struct Traffic {
    times: [SharedHistogram; CLASSES.len()],
    unseen: AtomicU64,
    bytes: Arc<ByteCounts>,
}

impl Traffic {
    /// Counts a request that has ended this long after its head.
    pub(super) fn record_end(&self, status: Option<Status>, time: Duration) {
        self.times[status_class(status)].note(time);
    }

    /// Counts a request that was answered in the turn in which its head was read.
    #[inline(always)]
    pub(super) fn record_immediate_end(&self, status: Option<Status>) {
        // The most frequent status needs no computation of its class.
        if status == Some(Status::OK) {
            self.times[OK_CLASS].note_nanos(0);
        } else {
            self.record_other_immediate_end(status);
        }
    }

    #[inline(never)]
    fn record_other_immediate_end(&self, status: Option<Status>) {
        self.times[status_class(status)].note_nanos(0);
    }

    /// Counts a response to something that never became a request: its head could not be read or
    /// interpreted.
    #[cold]
    pub(super) fn record_unseen(&self) {
        self.unseen.fetch_add(1, Relaxed);
    }

    /// Returns how many of those there were.
    pub(super) fn unseen_count(&self) -> u64 {
        self.unseen.load(Relaxed)
    }

    /// Returns the counters of bytes read and written.
    pub(super) fn bytes(&self) -> &Arc<ByteCounts> {
        &self.bytes
    }

    pub(super) fn times(&self) -> [Histogram; CLASSES.len()] {
        self.times.each_ref().map(SharedHistogram::read)
    }
}

#[inline]
fn status_class(status: Option<Status>) -> usize {
    // A status of 600 or more has no class; a client treats it as a 5xx (RFC 9110 §15).
    status.map_or(0, |status| usize::from(status.code() / 100).min(CLASSES.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_grouped_by_their_first_digit() {
        for (code, class) in [(100, 1), (199, 1), (200, 2), (304, 3), (404, 4), (599, 5), (999, 5)]
        {
            assert_eq!(status_class(Status::new(code)), class, "{code}");
        }
        assert_eq!(status_class(None), 0);
        assert_eq!(status_class(Some(Status::OK)), OK_CLASS);
    }
}
