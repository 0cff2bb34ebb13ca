//! `BodiesWatch`: the rate at which the bodies of a connection arrive, all together.

use rotor_core::Time;
use rotor_stream::RateWatch;

use super::frame::{FRAME_HEADER_BYTES, FrameHeader, kind};
use crate::body_watch::rate;
use crate::limits::Limits;

/// Watches all bodies of a connection. A body may have to wait behind those of other streams, and a
/// frame takes its time: if the peer sends all bodies together at the required rate, none of them
/// is late.
#[derive(Debug)]
pub(crate) struct BodiesWatch {
    watch: RateWatch,
    /// How much of an incomplete DATA frame has been counted.
    counted: usize,
}

impl BodiesWatch {
    /// Starts to watch now.
    pub(crate) fn new(limits: &Limits, now: Time) -> BodiesWatch {
        BodiesWatch { watch: RateWatch::new(rate(limits), now), counted: 0 }
    }

    /// Counts a complete DATA frame of this many bytes.
    pub(crate) fn count_frame(&mut self, bytes: usize, limits: &Limits, now: Time) {
        self.count_bytes(bytes, limits, now);
        self.counted = 0;
    }

    /// Counts what has arrived of the incomplete frame at the start of the input, if it is DATA.
    pub(crate) fn count_partial(&mut self, input: &[u8], limits: &Limits, now: Time) {
        if let Some(header) = FrameHeader::read(input)
            && header.kind == kind::DATA
        {
            let arrived = input.len() - FRAME_HEADER_BYTES;
            self.count_bytes(arrived.min(header.len), limits, now);
        }
    }

    fn count_bytes(&mut self, bytes: usize, limits: &Limits, now: Time) {
        let more = bytes.saturating_sub(self.counted);
        self.counted = bytes;
        self.watch.pass(more as u64, rate(limits), now);
    }

    /// Returns the time until which no body is late.
    ///
    /// As long as bodies arrive fast enough, none is late, whichever they are. The time is also
    /// extended while the peer may not be able to send: if the `left` bytes of the connection's
    /// window are less than a step, since other bodies may occupy the rest; and if `unsent` bytes
    /// of our output wait, since the peer may not have received a WINDOW_UPDATE among them.
    pub(crate) fn until(&self, left: u32, unsent: usize, limits: &Limits, now: Time) -> Time {
        let is_blocked = unsent > 0 || u64::from(left) < limits.body_step().0;
        if is_blocked { now + limits.body_grace } else { self.watch.until() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::h2::frame_writer::frame_header;

    #[test]
    fn each_byte_of_data_counts_once_on_arrival() {
        let second = |number| Time::ZERO + Duration::from_secs(number);
        let limits = Limits::new().body_grace(Duration::from_secs(100)).body_rate_min(1);
        let late = |watch: &BodiesWatch| watch.until(65_535, 0, &limits, second(0));
        let mut watch = BodiesWatch::new(&limits, second(0));
        assert_eq!(late(&watch), second(100));
        let frame =
            |kind, arrived| [&frame_header(20, kind, 0, 1)[..], &vec![0; arrived][..]].concat();
        // At 90 s the grace is nearly over. Each byte extends the deadline by a second, as long as it
        // is no further ahead than the grace.
        let now = second(90);
        for (kind, arrived, until) in [
            (kind::DATA, 0, 100),
            (kind::DATA, 3, 103),
            (kind::DATA, 3, 103),
            (kind::HEADERS, 19, 103),
            (kind::DATA, 5, 105),
        ] {
            watch.count_partial(&frame(kind, arrived), &limits, now);
            assert_eq!(late(&watch), second(until), "{arrived} of {kind}");
        }
        watch.count_partial(&frame(kind::DATA, 0)[..8], &limits, now);
        assert_eq!(late(&watch), second(105), "no header yet");
        watch.count_frame(20, &limits, now);
        assert_eq!(late(&watch), second(120), "the rest");
        // The arrived part of the next frame, and the bytes after it.
        watch.count_partial(&frame(kind::DATA, 30), &limits, now);
        assert_eq!(late(&watch), second(140));
    }

    #[test]
    fn no_body_is_late_while_its_peer_may_be_unable_to_send() {
        let second = |number| Time::ZERO + Duration::from_secs(number);
        let limits = Limits::new().body_grace(Duration::from_secs(5)).body_rate_min(100);
        let watch = BodiesWatch::new(&limits, second(0));
        for (left, unsent, until) in [(100, 0, 5), (99, 0, 65), (0, 0, 65), (100, 1, 65)] {
            let found = watch.until(left, unsent, &limits, second(60));
            assert_eq!(found, second(until), "{left} left, {unsent} unsent");
        }
    }
}
