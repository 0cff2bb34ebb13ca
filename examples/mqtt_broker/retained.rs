//! The last message of each topic, for later subscribers.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::answer::Message;
use super::packet::Qos;
use super::topic::literal_prefix;

/// The messages, by the names of their topics.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    messages: BTreeMap<Arc<str>, Message>,
    bytes: usize,
}

/// The retained messages that a subscriber has not received yet. It remembers the last name, so
/// that the messages can be sent at the subscriber's pace, a few at a time.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    pub(crate) filter: Box<str>,
    pub(crate) qos: Qos,
    pub(crate) after: Option<Arc<str>>,
}

impl Retained {
    /// Stores a message in place of the previous one. A message without a payload only removes that
    /// (§3.3.1.3). Returns `false` if there is no room.
    pub(crate) fn set(&mut self, name: &str, message: &Message, is_empty: bool, max: Max) -> bool {
        if let Some(before) = self.messages.remove(name) {
            self.bytes -= before.len();
        }
        if is_empty {
            return true;
        }
        if self.messages.len() >= max.messages || max.bytes - self.bytes < message.len() {
            return false;
        }
        self.bytes += message.len();
        self.messages.insert(name.into(), message.clone());
        true
    }

    /// Returns the messages that may match a replay, in order, from where it stopped.
    pub(crate) fn rest<'a>(
        &'a self,
        replay: &Replay,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Message)> + use<'a> {
        let literal_prefix: Box<str> = literal_prefix(&replay.filter).into();
        let from = match &replay.after {
            Some(after) => Bound::Excluded(&**after),
            None => Bound::Included(&*literal_prefix),
        };
        let rest = self.messages.range::<str, _>((from, Bound::Unbounded));
        rest.take_while(move |(name, _)| name.starts_with(&*literal_prefix))
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }
}

/// The limits for what is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Max {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}
