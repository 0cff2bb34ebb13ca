//! The limits, and the counters.

use std::fmt;
use std::time::Duration;

use super::retained::Max;

/// The longest packet, in bytes. A longer one ends its sender's connection before it is read.
pub(crate) const PACKET_BYTES_MAX: usize = 256 * 1_024;

/// How long a connection may take until its CONNECT has arrived.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// The longest client identifier, in bytes. At least 23 must be accepted (§3.1.3.1).
pub(crate) const CLIENT_BYTES_MAX: usize = 256;

/// How many unanswered messages a client may have. Further ones wait.
pub(crate) const UNANSWERED_MAX: usize = 20;

/// How many messages of QoS 2 from a client may wait to be released.
pub(crate) const RECEIVED_MAX: usize = 1_024;

/// The longest filter, in bytes. A longer one is refused.
pub(crate) const FILTER_BYTES_MAX: usize = 1_024;

/// How many retained messages are checked in one call, so that a subscription does not hold up
/// other clients.
pub(crate) const SCANNED_MAX: usize = 1_000;

/// How much may be on its way to a client and not yet in its output: bytes, and messages. These are
/// several times as many as a client can publish in one event (`StreamConfig::calls_budget`), so
/// that none is dropped before the others had their turn.
pub(crate) const OUTBOX_BYTES_MAX: usize = 1_024 * 1_024;
pub(crate) const OUTBOX_MESSAGES_MAX: usize = 4 * 1_024;

/// The limits that can be set.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The number of clients, both connected ones and those that are away and may come back. If
    /// there is one more, the one that has been away longest is forgotten; if none is away, the new
    /// one is refused.
    pub(crate) sessions_max: usize,
    /// The number of filters of a client.
    pub(crate) subscriptions_max: usize,
    /// The number of levels in the filters of all clients together, each of which may take some
    /// hundred bytes.
    pub(crate) levels_max: usize,
    /// How many messages of QoS 1 and 2, and bytes of them, may wait for a client that is away or
    /// slow.
    pub(crate) waiting_max: usize,
    pub(crate) waiting_bytes_max: usize,
    /// How many bytes all clients together may have to answer or to receive; a message for two
    /// clients counts twice. Beyond that, clients that are away and have waiting messages are
    /// forgotten, starting with the one that has been away longest. When they come back, the
    /// CONNACK tells them that there is no session. If no such client is left, the message is
    /// dropped for the clients without room, and this version of the protocol has no packet to tell
    /// them.
    pub(crate) held_bytes_max: usize,
    /// The number of topics with a retained message, and the bytes of these messages.
    pub(crate) retained_max: Max,
    /// Filters that are refused to all clients.
    pub(crate) refused: Vec<String>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            sessions_max: 10_000,
            subscriptions_max: 100,
            levels_max: 1_000_000,
            waiting_max: 1_000,
            waiting_bytes_max: 1_024 * 1_024,
            held_bytes_max: 256 * 1_024 * 1_024,
            retained_max: Max { messages: 10_000, bytes: 64 * 1_024 * 1_024 },
            refused: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Accepted CONNECTs.
    pub(crate) connected: u64,
    /// Refused CONNECTs that got an answer with the reason.
    pub(crate) refused: u64,
    /// Messages that clients have published, including wills.
    pub(crate) published: u64,
    pub(crate) wills: u64,
    /// Messages that were sent to a client, including repeated ones.
    pub(crate) delivered: u64,
    /// Messages that were dropped because a client, or all together, were too slow, and retained
    /// messages without room.
    pub(crate) dropped: u64,
    /// Clients that were away and lost their sessions, because others needed the room.
    pub(crate) forgotten: u64,
    /// Connections that were closed because of a malformed or unexpected packet.
    pub(crate) malformed: u64,
    /// Connections that were closed because nothing arrived for too long.
    pub(crate) late: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { connected, refused, malformed, late, forgotten, .. } = self;
        let Counts { published, wills, delivered, dropped, .. } = self;
        write!(
            f,
            "{connected} connected, {refused} refused, {malformed} malformed, {late} late, \
             {forgotten} forgotten; {published} published, {wills} of them wills, \
             {delivered} delivered, {dropped} dropped"
        )
    }
}
