//! `Traffic`: how the requests of a server ended, counted so that it costs a request one addition.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rotor_core::{Histogram, SharedHistogram};
use rotor_stream::OctetCounts;

use crate::semantics::status::Status;

/// The classes of [`Counters::responses`](super::Counters::responses): by the first digit of the
/// status; `none` for a request whose connection was lost before it had a response.
pub(super) const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// That of [`Status::OK`] among them.
const CLASS_OF_OK: usize = 2;

/// How requests ended. A time falls into the histogram of its status' class, so that there is no
/// other count of the two.
#[derive(Default)]
pub(crate) struct Traffic {
    times: [SharedHistogram; CLASSES.len()],
    unseen: AtomicU64,
    octets: Arc<OctetCounts>,
}

impl Traffic {
    /// A request has ended, as long after its head.
    pub(super) fn ended(&self, status: Option<Status>, time: Duration) {
        self.times[class_of(status)].note(time);
    }

    /// The same where it was answered in the turn in which its head was read.
    #[inline(always)]
    pub(super) fn ended_at_once(&self, status: Option<Status>) {
        // Without a look at its class where it has the status that most have.
        if status == Some(Status::OK) {
            self.times[CLASS_OF_OK].note_nanos(0);
        } else {
            self.ended_at_once_otherwise(status);
        }
    }

    #[inline(never)]
    fn ended_at_once_otherwise(&self, status: Option<Status>) {
        self.times[class_of(status)].note_nanos(0);
    }

    /// An answer to what never became a request: its head could not be read or understood.
    #[cold]
    pub(super) fn unseen(&self) {
        self.unseen.fetch_add(1, Relaxed);
    }

    /// How many of those there were.
    pub(super) fn all_unseen(&self) -> u64 {
        self.unseen.load(Relaxed)
    }

    /// What counts the octets of the connections.
    pub(super) fn octets(&self) -> &Arc<OctetCounts> {
        &self.octets
    }

    pub(super) fn times(&self) -> [Histogram; CLASSES.len()] {
        self.times.each_ref().map(SharedHistogram::read)
    }
}

#[inline]
fn class_of(status: Option<Status>) -> usize {
    // A status of 600 or more is nobody's class; a client takes it for a 5xx (RFC 9110 §15).
    status.map_or(0, |status| usize::from(status.code() / 100).min(CLASSES.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_class_and_none_is_one() {
        for (code, class) in [(100, 1), (199, 1), (200, 2), (304, 3), (404, 4), (599, 5), (999, 5)]
        {
            assert_eq!(class_of(Status::new(code)), class, "{code}");
        }
        assert_eq!(class_of(None), 0);
        assert_eq!(class_of(Some(Status::OK)), CLASS_OF_OK);
    }
}
