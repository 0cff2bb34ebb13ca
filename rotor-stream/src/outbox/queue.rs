//! `Queue`: the waiting messages, their limits, and the machines that wait for room.

use std::collections::VecDeque;
use std::io;

use rotor_core::Notifier;

use super::config::{OutboxConfig, OutboxFull, count};
use crate::block::Block;
use crate::output::Output;
use crate::watchers::Watchers;

#[derive(Default)]
pub(super) struct Queue {
    messages: VecDeque<Block>,
    bytes: usize,
    /// The length of the longest message that was refused since there was last room for such
    /// messages.
    longest_refused: usize,
    /// The machines to wake when there is room; created for the first one.
    room_waiters: Option<Box<Watchers>>,
    /// The connection is about to end because its peer is too slow.
    pub(super) is_peer_too_slow: bool,
    /// The protocol has ended.
    pub(super) is_closed: bool,
    /// A `WithOutbox` moves the messages into an output.
    pub(super) has_consumer: bool,
}

/// What happened to a message.
#[derive(Debug)]
pub(super) enum PushResult {
    /// It is the only one, so the protocol must be woken.
    First,
    Queued,
    Full(Block),
    TooLong(Block),
    /// The connection ends because of it.
    EndsConnection(Block),
    Closed(Block),
}

/// What is left after messages were moved into the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FillResult {
    Emptied,
    Remaining,
    /// The peer is too slow, and the connection must end.
    PeerTooSlow,
}

impl Queue {
    pub(super) fn push(&mut self, message: Block, config: &OutboxConfig) -> PushResult {
        if self.is_closed || self.is_peer_too_slow {
            return PushResult::Closed(message);
        }
        if message.len() > config.bytes_max {
            count(&config.counters.refused, 1);
            return PushResult::TooLong(message);
        }
        if !self.has_room(message.len(), config) {
            match config.when_full {
                OutboxFull::Refuse => {
                    self.longest_refused = self.longest_refused.max(message.len());
                    count(&config.counters.refused, 1);
                    return PushResult::Full(message);
                }
                OutboxFull::End => {
                    count(&config.counters.ended, 1);
                    self.is_peer_too_slow = true;
                    self.clear();
                    return PushResult::EndsConnection(message);
                }
                OutboxFull::DropOldest => {
                    while !self.has_room(message.len(), config) && self.pop().is_some() {
                        count(&config.counters.dropped, 1);
                    }
                }
            }
        }
        let is_first = self.messages.is_empty();
        self.bytes += message.len();
        self.messages.push_back(message);
        count(&config.counters.sent, 1);
        if is_first { PushResult::First } else { PushResult::Queued }
    }

    fn has_room(&self, bytes: usize, config: &OutboxConfig) -> bool {
        self.messages.len() < config.messages_max && config.bytes_max - self.bytes >= bytes
    }

    pub(super) fn pop(&mut self) -> Option<Block> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len();
        if self.messages.is_empty() {
            // The queue is long only while a peer is slow; its memory need not be kept forever.
            self.messages = VecDeque::new();
        }
        Some(message)
    }

    /// Moves messages into the output while it has less than `output_max` bytes; none if `is_held`.
    pub(super) fn fill(
        &mut self,
        output: &mut Output,
        output_max: usize,
        is_held: bool,
    ) -> io::Result<FillResult> {
        if self.is_peer_too_slow {
            return Ok(FillResult::PeerTooSlow);
        }
        if output.is_ended() {
            self.clear();
            // Otherwise senders would believe forever that their messages are sent.
            self.is_closed = true;
        }
        while !is_held && output.len() < output_max {
            let Some(message) = self.pop() else { break };
            output.push_block(message)?;
        }
        Ok(if self.messages.is_empty() { FillResult::Emptied } else { FillResult::Remaining })
    }

    pub(super) fn clear(&mut self) {
        self.messages = VecDeque::new();
        self.bytes = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a machine to be woken when there is room. Returns `false` if there is room now.
    pub(super) fn wait_for_room(&mut self, notifier: &Notifier, config: &OutboxConfig) -> bool {
        if self.should_wake_waiters(config) {
            self.longest_refused = 0;
            return false;
        }
        // A peer may be slow for its whole life, while many senders come and go.
        self.room_waiters.get_or_insert_default().add(notifier.clone());
        true
    }

    /// Returns the machines to wake now; none before there is room for the refused message.
    pub(super) fn take_room_waiters(&mut self, config: &OutboxConfig) -> Vec<Notifier> {
        if self.room_waiters.is_none() || !self.should_wake_waiters(config) {
            return Vec::new();
        }
        self.longest_refused = 0;
        self.room_waiters.take().map_or_else(Vec::new, |waiting| waiting.into_vec())
    }

    /// Returns whether half of the queue is free and the longest refused message fits. A machine
    /// that is woken earlier would be refused again, and would have waited for nothing.
    fn should_wake_waiters(&self, config: &OutboxConfig) -> bool {
        let is_half_free =
            self.messages.len() <= config.messages_max / 2 && self.bytes <= config.bytes_max / 2;
        self.is_closed
            || self.is_peer_too_slow
            || is_half_free && config.bytes_max - self.bytes >= self.longest_refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watchers::testing::watchers;

    fn push(queue: &mut Queue, len: usize, config: &OutboxConfig) -> &'static str {
        match queue.push(Block::from(vec![b'x'; len]), config) {
            PushResult::First => "first",
            PushResult::Queued => "queued",
            PushResult::Full(_) => "full",
            PushResult::TooLong(_) => "too long",
            PushResult::EndsConnection(_) => "ends",
            PushResult::Closed(_) => "closed",
        }
    }

    #[test]
    fn the_limits_of_bytes_and_of_messages_are_exact() {
        let config = OutboxConfig::new().bytes_max(10).messages_max(3);
        for (lengths, became) in [
            (&[10, 0][..], &["first", "queued"][..]),
            (&[10, 1], &["first", "full"]),
            (&[11], &["too long"]),
            (&[1, 9, 0, 0], &["first", "queued", "queued", "full"]),
        ] {
            let mut queue = Queue::default();
            let seen: Vec<_> = lengths.iter().map(|len| push(&mut queue, *len, &config)).collect();
            assert_eq!(seen, became, "{lengths:?}");
        }
        let counters = config.counters();
        assert_eq!((counters.sent(), counters.refused()), (6, 3));
    }

    #[test]
    fn the_oldest_messages_are_dropped_for_the_newest() {
        let config = OutboxConfig::new().bytes_max(10).when_full(OutboxFull::DropOldest);
        let mut queue = Queue::default();
        for len in [4, 4, 2, 7] {
            push(&mut queue, len, &config);
        }
        assert_eq!((queue.len(), queue.bytes(), config.counters().dropped()), (2, 9, 2));
        assert_eq!(push(&mut queue, 11, &config), "too long");
        assert_eq!(push(&mut queue, 10, &config), "first", "all others were dropped");
    }

    #[test]
    fn ended_machines_are_removed_from_the_room_waiters() {
        let config = OutboxConfig::new().bytes_max(10);
        let mut queue = Queue::default();
        assert_eq!(
            (push(&mut queue, 10, &config), push(&mut queue, 1, &config)),
            ("first", "full")
        );
        let (instance, lasting) = watchers(2);
        for _ in 0..100 {
            let (ended, notifiers) = watchers(10);
            assert!(notifiers.iter().all(|notifier| queue.wait_for_room(notifier, &config)));
            drop(ended);
            assert!(lasting.iter().all(|notifier| queue.wait_for_room(notifier, &config)));
        }
        let kept = queue.room_waiters.as_ref().map_or(0, |waiting| waiting.len());
        assert!(kept < 40, "{kept} are kept, of whom two are there");
        queue.pop();
        let told = queue.take_room_waiters(&config);
        assert_eq!(told.iter().filter(|told| told.is_alive()).count(), 2);
        drop(instance);
    }

    #[test]
    fn a_queue_that_ends_its_connection_accepts_nothing_more() {
        let config = OutboxConfig::new().messages_max(1).when_full(OutboxFull::End);
        let mut queue = Queue::default();
        for became in ["first", "ends", "closed"] {
            assert_eq!(push(&mut queue, 1, &config), became);
        }
        assert_eq!((queue.len(), config.counters().ended()), (0, 1));
    }
}
