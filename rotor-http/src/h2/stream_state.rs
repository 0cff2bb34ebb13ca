//! The states of a stream (RFC 9113 §5.1), without those of pushes, which are not supported.
//!
//! ```text
//!                 HEADERS                 END_STREAM from the peer
//!   (none) ─────────────────▶ Open ─────────────────────────────▶ HalfClosedRemote
//!      │                       │ │                                     │
//!      │ HEADERS, END_STREAM   │ └─ END_STREAM from us ▶ HalfClosedLocal
//!      └─▶ HalfClosedRemote    │                              │        │ END_STREAM from us
//!                              └──── RST_STREAM, either ──────┴────────┴───▶ Closed
//! ```

use super::error::ErrorCode;

/// The state of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamState {
    /// Both sides may send.
    Open,
    /// This side has ended its half; the peer may still send.
    HalfClosedLocal,
    /// The peer has ended its half; this side may still send.
    HalfClosedRemote,
    /// Both have ended, or one has reset the stream.
    Closed,
}

/// An event on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// DATA or HEADERS arrived.
    Received {
        /// With END_STREAM.
        is_end: bool,
    },
    /// DATA or HEADERS are sent.
    Sent {
        /// With END_STREAM.
        is_end: bool,
    },
    /// RST_STREAM came or is sent.
    Reset,
}

impl StreamState {
    /// Returns the state of a stream that a request opens.
    pub fn for_request(is_end: bool) -> StreamState {
        if is_end { StreamState::HalfClosedRemote } else { StreamState::Open }
    }

    /// Returns the state after this event.
    ///
    /// # Errors
    ///
    /// STREAM_CLOSED if the side that sends had ended already.
    pub fn after(self, event: StreamEvent) -> Result<StreamState, ErrorCode> {
        use StreamEvent::{Received, Reset, Sent};
        use StreamState::{Closed, HalfClosedLocal, HalfClosedRemote, Open};
        Ok(match (self, event) {
            (_, Reset) => Closed,
            (Open, Received { is_end: true }) => HalfClosedRemote,
            (Open, Sent { is_end: true }) => HalfClosedLocal,
            (HalfClosedLocal, Received { is_end: true })
            | (HalfClosedRemote, Sent { is_end: true }) => Closed,
            (Open, _)
            | (HalfClosedLocal, Received { is_end: false })
            | (HalfClosedRemote, Sent { is_end: false }) => self,
            (HalfClosedLocal, Sent { .. }) | (HalfClosedRemote, Received { .. }) | (Closed, _) => {
                return Err(ErrorCode::StreamClosed);
            }
        })
    }

    /// Returns whether the peer may still send.
    pub fn is_receiving(self) -> bool {
        matches!(self, StreamState::Open | StreamState::HalfClosedLocal)
    }

    /// Returns whether this side may still send: END_STREAM was not sent, and nobody has reset the
    /// stream.
    pub fn is_sending(self) -> bool {
        matches!(self, StreamState::Open | StreamState::HalfClosedRemote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use StreamEvent::{Received, Reset, Sent};
    use StreamState::{Closed, HalfClosedLocal, HalfClosedRemote, Open};

    #[test]
    fn stream_states_follow_the_table_of_the_rfc() {
        let events = [
            Received { is_end: false },
            Received { is_end: true },
            Sent { is_end: false },
            Sent { is_end: true },
            Reset,
        ];
        let no = Err(ErrorCode::StreamClosed);
        let table = [
            (Open, [Ok(Open), Ok(HalfClosedRemote), Ok(Open), Ok(HalfClosedLocal), Ok(Closed)]),
            (HalfClosedLocal, [Ok(HalfClosedLocal), Ok(Closed), no, no, Ok(Closed)]),
            (HalfClosedRemote, [no, no, Ok(HalfClosedRemote), Ok(Closed), Ok(Closed)]),
            (Closed, [no, no, no, no, Ok(Closed)]),
        ];
        for (state, row) in table {
            for (event, after) in events.into_iter().zip(row) {
                assert_eq!(state.after(event), after, "{state:?} {event:?}");
            }
        }
        assert_eq!(StreamState::for_request(true), HalfClosedRemote);
        assert_eq!(
            [Open, HalfClosedLocal, HalfClosedRemote, Closed].map(StreamState::is_receiving),
            [true, true, false, false]
        );
        assert_eq!(
            [Open, HalfClosedLocal, HalfClosedRemote, Closed].map(StreamState::is_sending),
            [true, false, true, false]
        );
    }
}
