//! `StackStats`: what a stack has done.

/// What a stack has done, and what it holds. All but those that say "now" are counts since it was
/// opened.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StackStats {
    /// Packets that came.
    pub received: u64,
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that the device did not take, which TCP sends again; and datagrams whose target nobody
    /// knew when they were given up.
    pub unsent: u64,
    /// How often the device said that its network is down, for now.
    pub went_down: u64,
    /// Packets that were no IP packet, or a fragment of one, or that asked for segments of less
    /// than 48 bytes: thrown away. From a device
    /// [with a virtio header](crate::Device::has_virtio_header), those with a wrong sum of TCP or
    /// UDP too.
    pub refused: u64,
    /// Segments that were sent as part of a larger packet, which the device cuts.
    pub merged: u64,
    /// Packets that came with segments or datagrams that nobody had cut.
    pub received_large: u64,
    /// What came with a virtio header that is nonsense, or says of its packet what that is not:
    /// thrown away.
    pub headers_refused: u64,
    /// Resets and errors of ICMP that packets for nobody did not get, since there were too many
    /// ([`rejections_per_second`](crate::StackConfig::rejections_per_second)).
    pub rejections_withheld: u64,
    /// Connections that were made by others.
    pub accepted: u64,
    /// Attempts to connect that were thrown away, because the backlog of their listener was full of
    /// connections that wait to be accepted, or the stack was full
    /// ([`connections_max`](crate::StackConfig::connections_max)).
    pub backlog_overflowed: u64,
    /// Half-open connections that were forgotten because their listener's backlog was full and others
    /// came: a SYN flood, or a [backlog](crate::StackConfig::backlog_max) that is too small for the
    /// attempts of one round trip.
    pub half_open_overflowed: u64,
    /// Attempts to connect that their peer did not complete in time, or took back.
    pub half_open_given_up: u64,
    /// Connections that the peer reset.
    pub reset: u64,
    /// Connections that were given up, since the peer did not answer.
    pub timed_out: u64,
    /// Connections that were dropped, and whose peer did not take all in time.
    pub lingered_too_long: u64,
    /// Connections that were dropped, and reset before their time, since there were too many of them.
    pub lingering_overflowed: u64,
    /// Ended connections that were forgotten before their time, since there were too many.
    pub time_wait_overflowed: u64,
    /// Connections now: those that nobody has any more included.
    pub connections: usize,
    /// Of these, half open now: the peer has not completed the handshake.
    pub half_open: usize,
    /// Of these, dropped now by who had them, while they send what they had taken, or wait for their
    /// peer's end.
    pub lingering: usize,
    /// Beside these: connections that both sides have ended and that are remembered now, to answer
    /// late segments (TIME-WAIT).
    pub time_wait: usize,
}
