//! The broker: the data that all connections share. It is the context of the loop, or a part of it.

use std::collections::BTreeMap;

use rotor::Token;
use rotor::stream::OutboxConfig;

use super::answer::{Accepted, Message, REFUSED};
use super::limits::{
    CLIENT_BYTES_MAX, Counts, FILTER_BYTES_MAX, Limits, OUTBOX_BYTES_MAX, OUTBOX_MESSAGES_MAX,
};
use super::packet::{Connect, LEVEL, Publish, Qos};
use super::retained::Retained;
use super::session::{Link, Session, SessionId};
use super::topic::{LEVELS_MAX, levels};
use super::tree::Tree;

/// The part of the context that connections need.
pub(crate) trait HasBroker {
    fn broker(&mut self) -> &mut Broker;
}

#[derive(Debug)]
pub(crate) struct Broker {
    limits: Limits,
    outbox: OutboxConfig,
    sessions: BTreeMap<SessionId, Session>,
    by_client: BTreeMap<Box<str>, SessionId>,
    /// The sessions whose clients are away, in the order in which they left.
    away: BTreeMap<u64, SessionId>,
    /// Those among them for which messages wait.
    awaited: BTreeMap<u64, SessionId>,
    /// The bytes of all messages that wait or are not answered.
    held_bytes: usize,
    /// The last number that was given to a session, or to a place in `away`.
    last: u64,
    tree: Tree,
    /// The number of levels in all filters together.
    levels: usize,
    retained: Retained,
    /// Empty between two messages; kept to reuse its memory.
    found: Vec<(SessionId, Qos)>,
    pub(crate) counts: Counts,
}

/// What the broker knows about a connection, until it ends in whatever way.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) session: SessionId,
    pub(crate) token: Token,
    /// The message that is published when it ends, unless the client disconnects properly.
    pub(crate) will: Option<Will>,
}

#[derive(Debug)]
pub(crate) struct Will {
    topic: Box<str>,
    message: Message,
    retain: bool,
    is_empty: bool,
}

impl Will {
    fn of(will: &Publish<'_>) -> Will {
        Will {
            topic: will.topic.into(),
            message: Message::of(will),
            retain: will.retain,
            is_empty: will.payload.is_empty(),
        }
    }
}

impl Broker {
    pub(crate) fn new(limits: Limits) -> Broker {
        Broker {
            limits,
            outbox: OutboxConfig::new()
                .bytes_max(OUTBOX_BYTES_MAX)
                .messages_max(OUTBOX_MESSAGES_MAX),
            sessions: BTreeMap::new(),
            by_client: BTreeMap::new(),
            away: BTreeMap::new(),
            awaited: BTreeMap::new(),
            held_bytes: 0,
            last: 0,
            tree: Tree::default(),
            levels: 0,
            retained: Retained::default(),
            found: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Returns the configuration for the outboxes of connections.
    pub(crate) fn outbox_config(&self) -> OutboxConfig {
        self.outbox.clone()
    }

    /// Registers a client that has sent its CONNECT. Returns whether its session is known.
    ///
    /// # Errors
    ///
    /// The reason for the client why it is refused.
    pub(crate) fn connect(
        &mut self,
        connect: &Connect<'_>,
        link: Link,
    ) -> Result<(Seat, bool), Accepted> {
        if connect.level != LEVEL {
            return Err(Accepted::WrongVersion);
        }
        let is_nameless = connect.client.is_empty();
        if connect.client.len() > CLIENT_BYTES_MAX || is_nameless && !connect.is_clean {
            return Err(Accepted::NoSuchClient);
        }
        let token = link.notifier.token();
        let known = self.by_client.get(connect.client).copied();
        let known = known.and_then(|id| self.take_over(id, connect.is_clean));
        let session = match known {
            Some(id) => id,
            None => {
                self.make_room()?;
                self.last += 1;
                SessionId(self.last)
            }
        };
        let of_client = || (!is_nameless).then(|| connect.client.into());
        let entry = self.sessions.entry(session);
        let entry =
            entry.or_insert_with(|| Session::new(of_client(), connect.is_clean, link.clone()));
        entry.link = Some(link);
        if let Some(client) = of_client() {
            self.by_client.insert(client, session);
        }
        self.counts.connected += 1;
        let will = connect.will.as_ref().map(Will::of);
        Ok((Seat { session, token, will }, known.is_some()))
    }

    /// Returns the session of a client, if it may continue it. If the session has a connection,
    /// that is told to end (§3.1.4).
    fn take_over(&mut self, id: SessionId, is_clean: bool) -> Option<SessionId> {
        let session = self.sessions.get_mut(&id)?;
        if let Some(before) = session.unlink() {
            before.notifier.wakeup();
        }
        if is_clean || session.is_clean {
            self.forget(id);
            return None;
        }
        if let Some(place) = session.away.take() {
            self.away.remove(&place);
            self.awaited.remove(&place);
        }
        Some(id)
    }

    fn make_room(&mut self) -> Result<(), Accepted> {
        if self.sessions.len() < self.limits.sessions_max {
            return Ok(());
        }
        let longest = self.away.first_key_value().map(|(_, id)| *id);
        let longest = longest.ok_or(Accepted::Unavailable)?;
        self.counts.forgotten += 1;
        self.forget(longest);
        Ok(())
    }

    /// Returns whether there is room for a message, which may cost clients that are away their
    /// sessions.
    fn has_room_for(&mut self, bytes: usize) -> bool {
        while self.held_bytes + bytes > self.limits.held_bytes_max {
            let Some((_, longest)) = self.awaited.pop_first() else { return false };
            self.counts.forgotten += 1;
            self.forget(longest);
        }
        true
    }

    /// Does something with a session that may change how much it holds.
    fn with_session<T>(
        &mut self,
        id: SessionId,
        what: impl FnOnce(&mut Session, &mut Counts, &Retained) -> T,
    ) -> Option<T> {
        let session = self.sessions.get_mut(&id)?;
        self.held_bytes -= session.held_bytes;
        let done = what(session, &mut self.counts, &self.retained);
        self.held_bytes += session.held_bytes;
        if let Some(place) = session.away.filter(|_| session.held_bytes > 0) {
            self.awaited.insert(place, id);
        }
        Some(done)
    }

    fn forget(&mut self, id: SessionId) {
        let Some(session) = self.sessions.remove(&id) else { return };
        self.held_bytes -= session.held_bytes;
        for filter in session.subscriptions.keys() {
            self.tree.remove(filter, id);
            self.levels -= levels(filter);
        }
        if let Some(client) = session.client {
            self.by_client.remove(&client);
        }
        if let Some(place) = session.away {
            self.away.remove(&place);
            self.awaited.remove(&place);
        }
    }

    /// Called when a connection is gone.
    pub(crate) fn leave(&mut self, seat: Seat) {
        self.last += 1;
        let place = self.last;
        // The client may have another connection by now.
        if let Some(session) = self.session(&seat) {
            session.unlink();
            if session.is_clean {
                self.forget(seat.session);
            } else {
                session.away = Some(place);
                if session.held_bytes > 0 {
                    self.awaited.insert(place, seat.session);
                }
                self.away.insert(place, seat.session);
            }
        }
        if let Some(will) = seat.will {
            self.counts.wills += 1;
            self.send_to_subscribers(&will.topic, &will.message, will.retain, will.is_empty);
        }
    }

    /// Returns the session of a connection, as long as it belongs to it.
    pub(crate) fn session(&mut self, seat: &Seat) -> Option<&mut Session> {
        self.sessions.get_mut(&seat.session).filter(|session| session.is_linked_to(seat.token))
    }

    pub(crate) fn publish(&mut self, publish: &Publish<'_>) {
        let message = Message::of(publish);
        self.send_to_subscribers(
            publish.topic,
            &message,
            publish.retain,
            publish.payload.is_empty(),
        );
    }

    /// Sends a message to all subscribers.
    fn send_to_subscribers(
        &mut self,
        topic: &str,
        message: &Message,
        retain: bool,
        is_empty: bool,
    ) {
        self.counts.published += 1;
        if retain && !self.retained.set(topic, message, is_empty, self.limits.retained_max) {
            self.counts.dropped += 1;
        }
        let mut found = std::mem::take(&mut self.found);
        self.tree.find(topic, &mut found);
        for (id, qos) in found.drain(..) {
            self.deliver(id, message, qos.min(message.qos));
        }
        self.found = found;
    }

    fn deliver(&mut self, id: SessionId, message: &Message, qos: Qos) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if qos == Qos::Zero {
            return session.deliver_once(message, &mut self.counts);
        }
        let has_room =
            session.has_queue_room(message, &self.limits) && self.has_room_for(message.len());
        // Making room may have removed that session itself.
        let delivered = has_room
            && self
                .with_session(id, |session, counts, _| session.deliver(message, qos, counts))
                .is_some();
        if !delivered {
            self.counts.dropped += 1;
        }
    }

    /// Returns the answer to a subscription: its QoS, or that it is refused.
    pub(crate) fn subscribe(&mut self, seat: &Seat, filter: &str, qos: Qos) -> u8 {
        let Some(session) = self.sessions.get_mut(&seat.session) else { return REFUSED };
        let (bytes, levels) = (filter.len(), levels(filter));
        let has_room = session.subscriptions.len() < self.limits.subscriptions_max
            && self.levels + levels <= self.limits.levels_max;
        let is_known = session.subscriptions.contains_key(filter);
        if self.limits.refused.iter().any(|refused| refused == filter)
            || bytes > FILTER_BYTES_MAX
            || levels > LEVELS_MAX
            || !has_room && !is_known
        {
            return REFUSED;
        }
        if !is_known {
            self.levels += levels;
        }
        session.subscriptions.insert(filter.into(), qos);
        session.replay(filter, qos);
        self.tree.insert(filter, seat.session, qos);
        qos as u8
    }

    pub(crate) fn unsubscribe(&mut self, seat: &Seat, filter: &str) {
        if let Some(session) = self.sessions.get_mut(&seat.session) {
            if session.subscriptions.remove(filter).is_some() {
                self.levels -= levels(filter);
            }
            session.forget_replay(filter);
            self.tree.remove(filter, seat.session);
        }
    }

    /// Sends as much as there is room for. Returns `false` if the session has another connection by
    /// now.
    pub(crate) fn send_pending(&mut self, seat: &Seat) -> bool {
        let bytes = self.limits.held_bytes_max.saturating_sub(self.held_bytes);
        let went_on = self.with_session(seat.session, |session, counts, retained| {
            let is_its = session.is_linked_to(seat.token);
            if is_its {
                session.send_pending(retained, bytes, counts);
            }
            is_its
        });
        went_on.unwrap_or(false)
    }

    /// Called when a client has answered a message, so that it need not be kept.
    pub(crate) fn answered(&mut self, seat: &Seat, how: fn(&mut Session, u16), id: u16) {
        self.with_session(seat.session, |session, _, _| how(session, id));
    }

    /// Returns the number of sessions, of those that are away, and of retained messages.
    pub(crate) fn len(&self) -> (usize, usize, usize) {
        (self.sessions.len(), self.away.len(), self.retained.len())
    }
}
