//! `Shared`: what an outbox and its senders have in common.

use std::io;
use std::sync::PoisonError;

use rotor_core::Notifier;

use super::config::OutboxConfig;
use super::queue::{FillResult, Queue};
use crate::output::Output;
use crate::sync::Mutex;

/// The messages of one outbox, for its owner and its senders.
pub(super) struct Shared {
    queue: Mutex<Queue>,
    pub(super) config: OutboxConfig,
    /// The notifier of the protocol's machine.
    pub(super) notifier: Notifier,
}

impl Shared {
    pub(super) fn new(config: OutboxConfig, notifier: Notifier) -> Shared {
        Shared { queue: Mutex::default(), config, notifier }
    }

    /// Calls `f` under the lock. It must not wake anything or call foreign code.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Queue, &OutboxConfig) -> R) -> R {
        f(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner), &self.config)
    }

    /// Moves messages into the output while it has less than `output_max` bytes; none if `is_held`,
    /// because the protocol waits for its output to be written. Wakes machines that wait for room.
    pub(super) fn fill(
        &self,
        output: &mut Output,
        output_max: usize,
        is_held: bool,
    ) -> io::Result<FillResult> {
        let (left, waiting) = self.with(|queue, config| {
            let left = queue.fill(output, output_max, is_held);
            (left, queue.take_room_waiters(config))
        });
        for notifier in waiting {
            notifier.wakeup();
        }
        left
    }

    /// Moves all messages into the output, after the last call of the protocol. Further messages
    /// are refused: the protocol and its outbox may exist for a moment longer, but the queue is not
    /// looked at again. Moves none if a message was lost because the peer is too slow.
    pub(super) fn move_all_and_close(&self, output: &mut Output) -> FillResult {
        self.with(|queue, _| {
            queue.is_closed = true;
            if queue.is_peer_too_slow {
                return FillResult::PeerTooSlow;
            }
            while let Some(message) = queue.pop() {
                // This fails if our side was ended: then the peer must not get anything more.
                if output.push_block(message).is_err() {
                    queue.clear();
                }
            }
            FillResult::Emptied
        })
    }

    /// Refuses further messages, because the protocol has failed. Returns whether messages are lost
    /// with it.
    pub(super) fn close(&self) -> bool {
        self.with(|queue, _| {
            let loses_messages = queue.is_peer_too_slow || queue.len() > 0;
            queue.is_closed = true;
            queue.clear();
            loses_messages
        })
    }

    pub(super) fn notify_room_waiters(&self) {
        for notifier in self.with(|queue, config| queue.take_room_waiters(config)) {
            notifier.wakeup();
        }
    }
}
