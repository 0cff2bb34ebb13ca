//! The session of a client, connected or not: what is known about it, and what it has not received
//! yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rotor::stream::{Block, OutboxError, OutboxSender};
use rotor::{Notifier, Token};

use super::answer::{Message, pubrel};
use super::limits::{Counts, Limits, RECEIVED_MAX, SCANNED_MAX, UNANSWERED_MAX};
use super::packet::Qos;
use super::reader::Malformed;
use super::retained::{Replay, Retained};
use super::topic::matches;

/// The number of a session. It is unique in a broker, and not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SessionId(pub(crate) u64);

/// The connection of a client.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) outbox: OutboxSender,
    /// Wakes the connection's machine.
    pub(crate) notifier: Notifier,
}

#[derive(Debug)]
pub(crate) struct Session {
    /// `None` for a client without an identifier, which cannot come back.
    pub(crate) client: Option<Box<str>>,
    /// Whether it ends with its connection.
    pub(crate) is_clean: bool,
    pub(crate) link: Option<Link>,
    /// Its place among the sessions that are away.
    pub(crate) away: Option<u64>,
    pub(crate) subscriptions: BTreeMap<Box<str>, Qos>,
    /// The messages that the client has not answered, in the order of sending.
    unanswered: VecDeque<Unanswered>,
    /// How many of these, from the front, were sent on this connection.
    sent: usize,
    /// The messages to be sent after those.
    waiting: VecDeque<Delivery>,
    waiting_bytes: usize,
    /// The bytes of the messages that wait or are not answered.
    pub(crate) held_bytes: usize,
    replays: VecDeque<Replay>,
    /// The numbers of messages that the client has published at QoS 2 and may send again, until it
    /// releases them (§4.3.3).
    received: BTreeSet<u16>,
    last_id: u16,
}

/// ```text
///              PUBACK
///   Message ───────────▶ gone          QoS 1
///   Message ──▶ Released ──▶ gone      QoS 2
///          PUBREC      PUBCOMP
/// ```
#[derive(Debug)]
struct Unanswered {
    id: u16,
    stage: Stage,
    /// Whether it was sent on an earlier connection.
    again: bool,
}

#[derive(Debug)]
enum Stage {
    Message(Delivery),
    Released,
}

#[derive(Debug)]
struct Delivery {
    message: Message,
    qos: Qos,
    retain: bool,
}

impl Session {
    pub(crate) fn new(client: Option<Box<str>>, is_clean: bool, link: Link) -> Session {
        Session {
            client,
            is_clean,
            link: Some(link),
            away: None,
            subscriptions: BTreeMap::new(),
            unanswered: VecDeque::new(),
            sent: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            held_bytes: 0,
            replays: VecDeque::new(),
            received: BTreeSet::new(),
            last_id: 0,
        }
    }

    /// Returns whether this is its current connection.
    pub(crate) fn is_linked_to(&self, token: Token) -> bool {
        self.link.as_ref().is_some_and(|link| link.notifier.token() == token)
    }

    /// Notes that its connection is gone: unanswered messages will be sent again on the next one.
    pub(crate) fn unlink(&mut self) -> Option<Link> {
        for unanswered in self.unanswered.range_mut(..std::mem::take(&mut self.sent)) {
            unanswered.again = true;
        }
        self.link.take()
    }

    /// Sends a message of QoS 0, if the client is connected and has room (§3.1.2.4 leaves this
    /// open).
    pub(crate) fn deliver_once(&mut self, message: &Message, counts: &mut Counts) {
        if let Some(link) = &self.link {
            let is_sent = link.outbox.send(message.once(false)).is_ok();
            *(if is_sent { &mut counts.delivered } else { &mut counts.dropped }) += 1;
        }
    }

    /// Returns whether one more message may wait. If the client is too slow, the newest message is
    /// dropped.
    pub(crate) fn has_queue_room(&self, message: &Message, limits: &Limits) -> bool {
        self.waiting.len() < limits.waiting_max
            && self.waiting_bytes + message.len() <= limits.waiting_bytes_max
    }

    /// Sends a message of QoS 1 or 2, now or later.
    pub(crate) fn deliver(&mut self, message: &Message, qos: Qos, counts: &mut Counts) {
        self.enqueue(message.clone(), qos, false);
        self.send(counts);
    }

    /// Starts to send the messages that are retained for a filter, from the beginning.
    pub(crate) fn replay(&mut self, filter: &str, qos: Qos) {
        self.forget_replay(filter);
        self.replays.push_back(Replay { filter: filter.into(), qos, after: None });
    }

    pub(crate) fn forget_replay(&mut self, filter: &str) {
        self.replays.retain(|replay| &*replay.filter != filter);
    }

    /// Sends what waits, as far as there is room. All clients together have room for this many
    /// bytes.
    pub(crate) fn send_pending(&mut self, retained: &Retained, bytes: usize, counts: &mut Counts) {
        self.send(counts);
        if !self.replays.is_empty() {
            self.send_retained(retained, bytes, counts);
            self.send(counts);
        }
    }

    fn enqueue(&mut self, message: Message, qos: Qos, retain: bool) {
        self.waiting_bytes += message.len();
        self.held_bytes += message.len();
        self.waiting.push_back(Delivery { message, qos, retain });
    }

    /// Sends the messages that were not sent on this connection yet, and then those that wait, as
    /// long as there are not too many unanswered ones.
    fn send(&mut self, counts: &mut Counts) {
        let Some(link) = &self.link else { return };
        loop {
            if self.sent == self.unanswered.len() {
                if self.sent >= UNANSWERED_MAX {
                    return;
                }
                let Some(delivery) = self.waiting.pop_front() else { return };
                self.waiting_bytes -= delivery.message.len();
                let id = free_id(&mut self.last_id, &self.unanswered);
                let stage = Stage::Message(delivery);
                self.unanswered.push_back(Unanswered { id, stage, again: false });
            }
            let unanswered = &self.unanswered[self.sent];
            if !link.send(unanswered.packet()) {
                return;
            }
            self.sent += 1;
            if let Stage::Message(_) = unanswered.stage {
                counts.delivered += 1;
            }
        }
    }

    /// Sends some of the retained messages, and wakes itself for the rest.
    fn send_retained(&mut self, retained: &Retained, bytes: usize, counts: &mut Counts) {
        let Some(link) = self.link.clone() else { return };
        let held_bytes_max = self.held_bytes + bytes;
        let mut scanned = 0;
        while let Some(mut replay) = self.replays.pop_front() {
            for (name, message) in retained.rest(&replay) {
                if scanned == SCANNED_MAX {
                    // In the next turn, after the other machines.
                    link.notifier.wakeup();
                    return self.replays.push_front(replay);
                }
                scanned += 1;
                if matches(&replay.filter, name) {
                    let qos = replay.qos.min(message.qos);
                    if qos == Qos::Zero && link.send(message.once(true)) {
                        counts.delivered += 1;
                    } else if qos > Qos::Zero && self.held_bytes + message.len() > held_bytes_max {
                        // An answer of any client could make room, so this would have to be checked
                        // after each of them.
                        counts.dropped += 1;
                    } else if qos > Qos::Zero && self.waiting.len() < UNANSWERED_MAX {
                        self.enqueue(message.clone(), qos, true);
                    } else {
                        // Room in the outbox, or an answer, wakes the machine.
                        return self.replays.push_front(replay);
                    }
                }
                replay.after = Some(name.clone());
            }
        }
    }

    /// PUBACK: the client has received a message of QoS 1.
    pub(crate) fn acknowledged(&mut self, id: u16) {
        let Some(at) = self.answered_by(id, Qos::One) else { return };
        if let Some(Unanswered { stage, .. }) = self.remove(at) {
            self.release_held_bytes(&stage);
        }
    }

    /// PUBREC: the client has received a message of QoS 2.
    pub(crate) fn received(&mut self, id: u16) {
        let Some(at) = self.answered_by(id, Qos::Two) else { return };
        let stage = std::mem::replace(&mut self.unanswered[at].stage, Stage::Released);
        self.release_held_bytes(&stage);
    }

    fn answered_by(&self, id: u16, qos: Qos) -> Option<usize> {
        self.unanswered.iter().enumerate().position(|(at, unanswered)| {
            // The client may have received it.
            let was_sent = at < self.sent || unanswered.again;
            was_sent && unanswered.is_answered_by(id, qos)
        })
    }

    fn remove(&mut self, at: usize) -> Option<Unanswered> {
        let removed = self.unanswered.remove(at)?;
        self.sent -= usize::from(at < self.sent);
        Some(removed)
    }

    fn release_held_bytes(&mut self, stage: &Stage) {
        if let Stage::Message(delivery) = stage {
            self.held_bytes -= delivery.message.len();
        }
    }

    /// PUBCOMP: the client has released the number.
    pub(crate) fn completed(&mut self, id: u16) {
        let is_it = |unanswered: &Unanswered| {
            unanswered.id == id && matches!(unanswered.stage, Stage::Released)
        };
        if let Some(at) = self.unanswered.iter().position(is_it) {
            self.remove(at);
        }
    }

    /// Returns whether a message of QoS 2 from the client is new.
    ///
    /// # Errors
    ///
    /// Too many numbers are in use.
    pub(crate) fn is_new(&mut self, id: u16) -> Result<bool, Malformed> {
        if self.received.len() >= RECEIVED_MAX && !self.received.contains(&id) {
            return Err(Malformed("too many messages that are not released"));
        }
        Ok(self.received.insert(id))
    }

    /// PUBREL: the next message with this number is another one.
    pub(crate) fn released(&mut self, id: u16) {
        self.received.remove(&id);
    }
}

impl Unanswered {
    /// Returns whether it is the message with this number and QoS.
    fn is_answered_by(&self, id: u16, qos: Qos) -> bool {
        self.id == id && matches!(&self.stage, Stage::Message(sent) if sent.qos == qos)
    }

    fn packet(&self) -> Block {
        match &self.stage {
            Stage::Message(Delivery { message, qos, retain }) => {
                message.packet(*qos, self.id, self.again, *retain)
            }
            Stage::Released => pubrel(self.id).to_vec().into(),
        }
    }
}

impl Link {
    /// Sends a packet. Returns `false` if there is no room, or no connection. The machine is woken
    /// when there is room.
    fn send(&self, packet: Block) -> bool {
        match self.outbox.send(packet) {
            Ok(()) => return true,
            // There may be room by now, which would not be notified any more.
            Err(OutboxError::Full(_)) if !self.outbox.wake_when_room(&self.notifier) => {
                self.notifier.wakeup();
            }
            Err(_) => {}
        }
        false
    }
}

/// Returns the next number that no unanswered message has. There are far fewer of these than
/// numbers.
fn free_id(last: &mut u16, unanswered: &VecDeque<Unanswered>) -> u16 {
    loop {
        *last = last.wrapping_add(1).max(1);
        if unanswered.iter().all(|unanswered| unanswered.id != *last) {
            return *last;
        }
    }
}
