//! The last message of each topic, for those who come later.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::answer::Message;
use super::packet::Qos;
use super::topic::beginning;

/// By the name of its topic.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    messages: BTreeMap<Arc<str>, Message>,
    bytes: usize,
}

/// What a subscriber is still to get of them. It remembers the last name that it came to, so that
/// it is said at the subscriber's pace, and a little of it at a time.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    pub(crate) filter: Box<str>,
    pub(crate) qos: Qos,
    pub(crate) after: Option<Arc<str>>,
}

impl Retained {
    /// Keeps a message in place of the one before. One without a payload only takes that away
    /// (§3.3.1.3). False where there is no room.
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

    /// What may be for a replay: in order, from where it was.
    pub(crate) fn rest<'a>(
        &'a self,
        replay: &Replay,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Message)> + use<'a> {
        let beginning: Box<str> = beginning(&replay.filter).into();
        let from = match &replay.after {
            Some(after) => Bound::Excluded(&**after),
            None => Bound::Included(&*beginning),
        };
        let rest = self.messages.range::<str, _>((from, Bound::Unbounded));
        rest.take_while(move |(name, _)| name.starts_with(&*beginning))
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Max {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}
