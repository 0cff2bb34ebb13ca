//! `Rooms`: all rooms, by their names.

use std::collections::BTreeMap;

use rotor::Notifier;
use rotor::websocket::{Delivery, Member, Prepared, Room, RoomConfig, Sender, Slow};

/// The maximum number of rooms. Each keeps up to 6 MiB for members that are behind: 4 MiB of
/// messages, and what these cost besides.
const ROOMS_MAX: usize = 100;

/// How many messages a room keeps: more than there are in one turn if a thousand members come and
/// go at once.
const BACKLOG_MAX: usize = 4 * 1_024;

/// How much a room keeps, in bytes: a thousand messages, even if all are as long as allowed.
const BACKLOG_BYTES_MAX: usize = 4 << 20;

/// How many of the messages that a room keeps are sent to a client that enters it or reconnects.
const HISTORY_MAX: usize = 50;

/// All rooms. A room is removed when its last member has left.
#[derive(Debug, Default)]
pub(crate) struct Rooms(BTreeMap<String, Room>);

impl Rooms {
    /// Enters a room, and gets its last messages. Fails if there are too many rooms.
    pub(crate) fn join(
        &mut self,
        name: &str,
        notifier: Notifier,
        out: &mut Sender<'_>,
    ) -> Option<Member> {
        if self.0.len() >= ROOMS_MAX && !self.0.contains_key(name) {
            return None;
        }
        let config = RoomConfig::new()
            .backlog_max(BACKLOG_MAX)
            .backlog_bytes_max(BACKLOG_BYTES_MAX)
            .slow(Slow::Cut);
        let room = self.0.entry(name.to_owned()).or_insert_with(|| Room::new(config));
        let backlog = room.backlog();
        let older = backlog.len().saturating_sub(HISTORY_MAX);
        for message in backlog.skip(older) {
            // Messages that do not fit any more are skipped, because they are old.
            let _full = out.prepared(message);
        }
        Some(room.join(notifier))
    }

    pub(crate) fn broadcast(&mut self, name: &str, line: &str) {
        if let Some(room) = self.0.get_mut(name) {
            room.say(Prepared::text(line));
        }
    }

    pub(crate) fn deliver(
        &self,
        name: &str,
        member: &mut Member,
        out: &mut Sender<'_>,
    ) -> Delivery {
        self.0.get(name).map_or(Delivery::All, |room| room.deliver(member, out))
    }

    pub(crate) fn leave(&mut self, name: &str, member: Member) {
        let Some(room) = self.0.get_mut(name) else { return };
        room.leave(member);
        if room.is_empty() {
            self.0.remove(name);
        }
    }

    /// Returns the number of rooms.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
