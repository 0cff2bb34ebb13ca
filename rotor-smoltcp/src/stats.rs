//! `StackStats`: the statistics of a stack.

/// The statistics of a stack. All fields count since the stack was opened, except those that say
/// "now".
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StackStats {
    /// Packets that were received.
    pub received: u64,
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that the device did not take, or refused for 50 ms because it had no room, or for
    /// which 4 MiB of waiting packets left no room: TCP sends its own again. And datagrams that were
    /// given up because the hardware address of their target was not known.
    pub unsent: u64,
    /// How often the device reported that its network is down for now.
    pub went_down: u64,
    /// Received packets that were dropped: they were not IP packets, were fragments, or asked for
    /// segments of less than 48 bytes. For a device [with a virtio
    /// header](crate::Device::has_virtio_header), this includes packets with a wrong TCP or UDP
    /// checksum.
    pub refused: u64,
    /// Segments that were sent as part of a larger packet, which the device splits.
    pub merged: u64,
    /// Received packets that contained several segments or datagrams.
    pub received_large: u64,
    /// Received packets that were dropped because their virtio header is invalid or does not match
    /// the packet.
    pub headers_refused: u64,
    /// Resets and ICMP errors that were not sent because there were too many
    /// ([`rejections_per_second`](crate::StackConfig::rejections_per_second)).
    pub rejections_withheld: u64,
    /// Connections that peers have established.
    pub accepted: u64,
    /// Connection attempts that were dropped because the backlog of the listener was full of
    /// connections that wait to be accepted, or because the stack was full
    /// ([`connections_max`](crate::StackConfig::connections_max)).
    pub backlog_overflowed: u64,
    /// Half-open connections that were discarded to make room for others because the backlog was
    /// full: in a SYN flood, or if the [backlog](crate::StackConfig::backlog_max) is too small for
    /// the attempts of one round trip.
    pub half_open_overflowed: u64,
    /// Connection attempts that the peer did not complete in time, or has cancelled.
    pub half_open_given_up: u64,
    /// Connections that the peer has reset.
    pub reset: u64,
    /// Connections that were given up because the peer did not answer.
    pub timed_out: u64,
    /// Dropped connections that were reset because their time was over
    /// ([`linger`](crate::StackConfig::linger)): the peer had not acknowledged everything, or not
    /// ended its side.
    pub lingered_too_long: u64,
    /// Dropped connections that were reset early because there were too many of them.
    pub lingering_overflowed: u64,
    /// Ended connections that were forgotten early because there were too many of them.
    pub time_wait_overflowed: u64,
    /// Connections now, including those that were dropped.
    pub connections: usize,
    /// Half-open connections now, of the above: the peer has not completed the handshake.
    pub half_open: usize,
    /// Dropped connections now, of the above: they still send what they have buffered, or wait for
    /// the peer's end.
    pub lingering: usize,
    /// Connections in TIME-WAIT now, not counted above: both sides have ended them, and they are
    /// remembered to answer late segments.
    pub time_wait: usize,
}
