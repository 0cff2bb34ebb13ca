//! How much of everything there may be, and how much there was.

use std::fmt;
use std::time::Duration;

use super::retained::Max;

/// The longest packet, in bytes. A longer one ends its sender's connection before it is read.
pub(crate) const PACKET_BYTES_MAX: usize = 256 * 1_024;

/// How long a connection may be there before it has said who it is.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// The longest name of a client, in bytes. 23 must be taken (§3.1.3.1).
pub(crate) const CLIENT_BYTES_MAX: usize = 256;

/// How many messages a client may have that it has not answered. What comes then waits.
pub(crate) const UNANSWERED_MAX: usize = 20;

/// How many messages of a client, of QoS 2, may be neither released nor forgotten.
pub(crate) const RECEIVED_MAX: usize = 1_024;

/// The longest filter, in bytes. A longer one is refused.
pub(crate) const FILTER_BYTES_MAX: usize = 1_024;

/// How many retained messages are looked at in one call, so that a subscription
/// does not hold up the others.
pub(crate) const LOOKED_AT_MAX: usize = 1_000;

/// What is on its way to a client and not yet in its output: bytes, and messages.
pub(crate) const OUTBOX_BYTES_MAX: usize = 1_024 * 1_024;
pub(crate) const OUTBOX_MESSAGES_MAX: usize = 1_000;

/// What may be set.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Clients that are connected, and those that are not and may come back. For one more, the one
    /// that is away longest is forgotten; if none is away, it is refused.
    pub(crate) sessions_max: usize,
    /// Filters of a client.
    pub(crate) subscriptions_max: usize,
    /// Levels of all clients' filters together, each of which may take some hundred bytes.
    pub(crate) levels_max: usize,
    /// What waits for a client that is away or slow, of QoS 1 and 2: messages, and bytes.
    pub(crate) waiting_max: usize,
    pub(crate) waiting_bytes_max: usize,
    /// What all clients together are still to answer or to get, in bytes: a message that is for two
    /// counts twice. For more, those that are away are forgotten, the longest first, of whom
    /// something waits; they hear of it when they are back, by a CONNACK without their
    /// session. If none is left, the message is dropped for whom there is no room, and no
    /// packet of this version says so.
    pub(crate) held_bytes_max: usize,
    /// Topics that have a retained message, and the bytes of these.
    pub(crate) retained_max: Max,
    /// Filters that nobody may have.
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
    /// CONNECTs that were accepted.
    pub(crate) connected: u64,
    /// CONNECTs that were refused, with an answer that says why.
    pub(crate) refused: u64,
    /// Messages that clients have published, and wills.
    pub(crate) published: u64,
    pub(crate) wills: u64,
    /// Messages that were sent to a client, again or not.
    pub(crate) delivered: u64,
    /// Messages that a client is not to get since it is too slow, or all together are, and retained
    /// ones without room.
    pub(crate) dropped: u64,
    /// Clients that were away and have no session any more, since others needed the room.
    pub(crate) forgotten: u64,
    /// Connections that were ended since what came was no packet, or not in its place.
    pub(crate) malformed: u64,
    /// Connections that were ended since nothing came for too long.
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
