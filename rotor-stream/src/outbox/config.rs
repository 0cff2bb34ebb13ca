//! How much an outbox holds, what happens beyond that, and what it counts.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The limits of an [`Outbox`](crate::Outbox). Clones share their
/// [counters](OutboxConfig::counters).
#[derive(Clone, Debug)]
pub struct OutboxConfig {
    pub(super) messages_max: usize,
    pub(super) bytes_max: usize,
    pub(super) output_max: usize,
    pub(super) when_full: OutboxFull,
    pub(super) counters: Arc<OutboxCounters>,
}

/// What happens to a message if its [`Outbox`](crate::Outbox) is full.
///
/// Not only a peer that reads slowly fills its outbox, but also one who sends to it more in one event
/// than it takes: a connection may pass on 1,024 lines
/// ([`calls_budget`](crate::StreamConfig::calls_budget)) before any other has its turn. If senders
/// are not to be trusted, let them pause after each message, as the example `line_chat` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OutboxFull {
    /// It is returned to the sender, which decides what to do, and may be [woken when there is
    /// room](crate::OutboxSender::wake_when_room). The default.
    #[default]
    Refuse,
    /// The oldest messages are dropped to make room: for messages that make older ones obsolete,
    /// such as prices and positions.
    DropOldest,
    /// The connection ends with an error ([`StreamError::Behind`](crate::StreamError::Behind)) and
    /// is [reset](crate::Intent::reset): for peers that must get every message or begin anew.
    End,
}

/// Counters of messages, for all outboxes made from one config and its clones.
#[derive(Debug, Default)]
pub struct OutboxCounters {
    pub(super) sent: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) ended: AtomicU64,
}

impl OutboxConfig {
    /// Returns the defaults: 1,000 messages and 256 KiB, and up to 32 KiB in the output at a time;
    /// further messages are refused.
    pub fn new() -> OutboxConfig {
        OutboxConfig {
            messages_max: 1_000,
            bytes_max: 256 * 1_024,
            output_max: 32 * 1_024,
            when_full: OutboxFull::Refuse,
            counters: Arc::default(),
        }
    }

    /// Sets how many messages may wait (at least 1). Default: 1,000. Each takes about 40 bytes in
    /// addition to its own.
    pub fn messages_max(mut self, messages: usize) -> OutboxConfig {
        self.messages_max = messages.max(1);
        self
    }

    /// Sets how many bytes the waiting messages may have in total. Default: 256 KiB. A single
    /// message that is longer is always refused. Messages that are already in the output do not
    /// count.
    ///
    /// Messages wait at least until their own machine is called, however fast its peer reads. If a
    /// peer's input makes messages for all, as in a chat, allow for what one of them can send in an
    /// event ([`read_budget`](crate::StreamConfig::read_budget)).
    pub fn bytes_max(mut self, bytes: usize) -> OutboxConfig {
        self.bytes_max = bytes;
        self
    }

    /// Sets the number of bytes in the output below which another message is moved there (at least
    /// 2). Default: 32 KiB. At most half of the mark above which a stream stops reading
    /// ([`output_high_water`](crate::StreamConfig::output_high_water)) is used, whatever is set here,
    /// so that a peer that is always sent something can still send. Messages in the output cannot be
    /// dropped for newer ones.
    pub fn output_max(mut self, bytes: usize) -> OutboxConfig {
        self.output_max = bytes.max(2);
        self
    }

    /// Sets what happens to a message for which there is no room. Default: [`OutboxFull::Refuse`].
    pub fn when_full(mut self, when_full: OutboxFull) -> OutboxConfig {
        self.when_full = when_full;
        self
    }

    /// Returns the counters of all outboxes made from this config.
    pub fn counters(&self) -> Arc<OutboxCounters> {
        self.counters.clone()
    }
}

impl Default for OutboxConfig {
    fn default() -> OutboxConfig {
        OutboxConfig::new()
    }
}

impl OutboxCounters {
    /// Returns how many messages were accepted.
    pub fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Returns how many messages were returned to their senders, because there was no room or
    /// because they were longer than an outbox may hold.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Returns how many messages were accepted and then dropped for newer ones.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Returns how many connections were ended because their peers were too slow.
    pub fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }
}

pub(super) fn count(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Relaxed);
}
