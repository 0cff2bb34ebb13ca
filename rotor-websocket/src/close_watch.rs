//! `CloseWatch`: how long the peer may take for its part of the closing handshake.

use std::time::Duration;

use rotor_core::Time;

/// Watches the peer after our close frame.
///
/// ```text
///   close frame written ──▶ unsent ──▶ all sent ──▶ (answered)
///                           │    ▲          │
///                           └────┘ some     └─ not answered in time: late
///                           └─ nothing of it taken in time: late
/// ```
///
/// While output is unsent, the peer cannot answer the close frame behind it, so it only has to take
/// some in each period. How much it has to take is the concern of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CloseWatch {
    until: Time,
    /// How many bytes were unsent when the period began: 0 once all were sent, `UNKNOWN` at first.
    unsent: usize,
}

const UNKNOWN: usize = usize::MAX;

impl CloseWatch {
    /// Begins when the close frame is written.
    pub(crate) fn new(within: Duration, now: Time) -> CloseWatch {
        CloseWatch { until: now + within, unsent: UNKNOWN }
    }

    pub(crate) fn until(&self) -> Time {
        self.until
    }

    /// Records how many bytes are unsent. Returns whether the end of that is to be reported.
    pub(crate) fn wants_flush(&mut self, unsent: usize) -> bool {
        if self.unsent == UNKNOWN {
            self.unsent = unsent;
        }
        self.unsent > 0
    }

    /// Records that all output was sent: from now on the peer can answer.
    pub(crate) fn flushed(&mut self, within: Duration, now: Time) {
        *self = CloseWatch { until: now + within, unsent: 0 };
    }

    /// Returns whether the peer is late. Otherwise it has another period, if the last one is over.
    ///
    /// `is_deaf` says that the input is not read now, so that an answer would not be noticed.
    pub(crate) fn is_late(
        &mut self,
        unsent: usize,
        is_deaf: bool,
        within: Duration,
        now: Time,
    ) -> bool {
        if now < self.until {
            return false;
        }
        let has_taken_some = unsent < self.unsent;
        if !has_taken_some && (unsent > 0 || !is_deaf) {
            return true;
        }
        *self = CloseWatch { until: now + within, unsent };
        false
    }
}
