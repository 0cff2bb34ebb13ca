//! `Turn`: how much a stream may send before the next one.

use super::frame::PAYLOAD_BYTES_MAX;

/// No frame of fewer bytes is written only because there is no room for more.
pub(crate) const SPLIT_MIN: usize = 1024;

/// How much of its turn a stream has used. A turn is one frame of the maximum length.
///
/// If the output or the window of the connection has room for only a part of that frame, the turn
/// goes on with the rest once there is more. Otherwise a stream whose turns are always cut would
/// get less than the others, or nothing at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Turn {
    used: u16,
}

/// What has become of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TurnOutcome {
    /// It is the next stream's turn.
    Over,
    /// Only a part of it was used. The stream goes on once there is more room.
    GoesOn,
    /// There was no room at all.
    NoRoom,
    /// The window is used up. The stream leaves the schedule until there is more.
    NoWindow,
}

impl Turn {
    /// Returns how many bytes may still be sent in this turn; never few.
    #[inline]
    pub(crate) fn left(self) -> usize {
        PAYLOAD_BYTES_MAX - usize::from(self.used)
    }

    /// Counts a frame of this many bytes. `is_cut` says that the stream had more to send in this
    /// turn.
    #[inline]
    pub(crate) fn count(&mut self, bytes: usize, is_cut: bool) -> TurnOutcome {
        let used = usize::from(self.used) + bytes;
        // A shorter rest is not worth a frame.
        if is_cut && used + SPLIT_MIN <= PAYLOAD_BYTES_MAX {
            self.used = used as u16;
            TurnOutcome::GoesOn
        } else {
            self.used = 0;
            TurnOutcome::Over
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_goes_on_until_a_frame_was_sent_but_for_a_short_rest() {
        const WHOLE: usize = PAYLOAD_BYTES_MAX;
        for (frames, left) in [
            (&[(WHOLE, false)][..], WHOLE),
            // The stream has nothing more to send.
            (&[(10, false)], WHOLE),
            (&[(10, true)], WHOLE - 10),
            (&[(10, true), (20, true)], WHOLE - 30),
            (&[(10, true), (20, false)], WHOLE),
            (&[(WHOLE - SPLIT_MIN, true)], SPLIT_MIN),
            (&[(WHOLE - SPLIT_MIN + 1, true)], WHOLE),
            (&[(WHOLE - SPLIT_MIN, true), (1, true)], WHOLE),
        ] {
            let mut turn = Turn::default();
            let outcomes = frames.iter().map(|(bytes, is_cut)| turn.count(*bytes, *is_cut));
            let goes_on = outcomes.last() == Some(TurnOutcome::GoesOn);
            assert_eq!((turn.left(), goes_on), (left, left < WHOLE), "{frames:?}");
        }
    }
}
