//! The parts of `rotor::stream` that the broker uses: the bytes that it sends, and the outboxes of
//! connections.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use crate::Notifier;

/// Bytes that many can share.
pub(crate) type Block = bytes::Bytes;

/// The length of a frame, if enough of its head has arrived.
pub(crate) enum FrameLength {
    Unknown,
    Bytes(usize),
    Malformed,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct OutboxConfig {
    bytes_max: usize,
    messages_max: usize,
}

impl OutboxConfig {
    pub(crate) fn new() -> OutboxConfig {
        OutboxConfig::default()
    }

    pub(crate) fn bytes_max(self, bytes_max: usize) -> OutboxConfig {
        OutboxConfig { bytes_max, ..self }
    }

    pub(crate) fn messages_max(self, messages_max: usize) -> OutboxConfig {
        OutboxConfig { messages_max, ..self }
    }
}

/// The output for one client. All tasks run on one thread.
#[derive(Clone)]
pub(crate) struct OutboxSender {
    queue: Rc<RefCell<Queue>>,
    notifier: Notifier,
}

struct Queue {
    blocks: VecDeque<Block>,
    bytes: usize,
    config: OutboxConfig,
    wants_room: bool,
}

pub(crate) enum OutboxError {
    Full(#[expect(dead_code, reason = "the broker asks only whether it is this")] Block),
}

impl OutboxSender {
    pub(crate) fn new(config: OutboxConfig, notifier: Notifier) -> OutboxSender {
        let queue = Queue { blocks: VecDeque::new(), bytes: 0, config, wants_room: false };
        OutboxSender { queue: Rc::new(RefCell::new(queue)), notifier }
    }

    pub(crate) fn send(&self, block: Block) -> Result<(), OutboxError> {
        let mut queue = self.queue.borrow_mut();
        let Queue { blocks, bytes, config, .. } = &mut *queue;
        if blocks.len() >= config.messages_max || *bytes + block.len() > config.bytes_max {
            return Err(OutboxError::Full(block));
        }
        *bytes += block.len();
        blocks.push_back(block);
        if blocks.len() == 1 {
            self.notifier.wakeup();
        }
        Ok(())
    }

    pub(crate) fn wake_when_room(&self, _: &Notifier) -> bool {
        self.queue.borrow_mut().wants_room = true;
        true
    }

    /// Moves the waiting blocks, up to this many bytes. Returns whether something waits for the
    /// room.
    pub(crate) fn take(&self, into: &mut VecDeque<Block>, mut bytes_max: usize) -> bool {
        let mut queue = self.queue.borrow_mut();
        while queue.blocks.front().is_some_and(|block| block.len() <= bytes_max) {
            let Some(block) = queue.blocks.pop_front() else { break };
            queue.bytes -= block.len();
            bytes_max -= block.len();
            into.push_back(block);
        }
        queue.blocks.len() < queue.config.messages_max && std::mem::take(&mut queue.wants_room)
    }
}

impl fmt::Debug for OutboxSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutboxSender")
    }
}
