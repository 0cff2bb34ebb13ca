//! `Shared`: what an outbox and its senders have in common.

use std::io;
use std::sync::PoisonError;

use rotor_core::Notifier;

use super::config::OutboxConfig;
use super::queue::{Left, Queue};
use crate::output::Output;
use crate::sync::Mutex;

/// The messages of one outbox, for its owner and for those who send.
pub(super) struct Shared {
    queue: Mutex<Queue>,
    pub(super) config: OutboxConfig,
    /// Of the machine that has the protocol.
    pub(super) notifier: Notifier,
}

impl Shared {
    pub(super) fn new(config: OutboxConfig, notifier: Notifier) -> Shared {
        Shared { queue: Mutex::default(), config, notifier }
    }

    /// Nothing is woken and nothing of others is called under the lock.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Queue, &OutboxConfig) -> R) -> R {
        f(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner), &self.config)
    }

    /// Puts as much into the output as may be there; where the protocol waits to be rid of what is
    /// there, nothing. Those who wait for room are told.
    pub(super) fn fill(&self, output: &mut Output, is_held: bool) -> io::Result<Left> {
        let (left, waiting) = self.with(|queue, config| {
            let left = queue.fill(output, is_held, config);
            (left, queue.take_waiting(config))
        });
        for notifier in waiting {
            notifier.wakeup();
        }
        left
    }

    /// Puts all into the output, after the last call of the protocol. Nothing is taken from then on:
    /// the protocol, and with it the outbox, may still be there for a moment, and nobody looks again.
    pub(super) fn empty(&self, output: &mut Output) {
        self.with(|queue, _| {
            queue.is_closed = true;
            while let Some(message) = queue.pop() {
                // It fails where our side was ended: then nobody is to hear any more.
                if output.push_block(message).is_err() {
                    return queue.clear();
                }
            }
        });
    }

    pub(super) fn tell_of_room(&self) {
        for notifier in self.with(|queue, config| queue.take_waiting(config)) {
            notifier.wakeup();
        }
    }
}
