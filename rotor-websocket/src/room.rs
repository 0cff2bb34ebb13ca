//! `Room`: sends messages to many connections of a loop.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};

use rotor_core::{Notifier, Token};

use crate::prepared::Prepared;
use crate::room_config::{RoomConfig, Slow};
use crate::send_error::SendError;
use crate::sender::Sender;

/// Sends messages to many connections. A room keeps the latest messages once for all its members,
/// and wakes the members; each takes the messages at its own pace.
///
/// A room lives in the loop's context. **A member that does not keep up costs nothing but its place
/// in the room**: the room holds the messages that the member has not taken, and keeps at most
/// [`backlog_max`](RoomConfig::backlog_max) of them. [`Slow`] decides what happens to such a
/// member.
///
/// A room does not limit how much is said. A member that says more than `backlog_max` messages before
/// the others have their turn makes them miss some, or be cut, however fast they read. If members
/// are not to be trusted, let them pause after each message, as the example `ws_chat` does.
///
/// A connection in several rooms has a [`Member`] for each. If each loop has its own room, a
/// machine on each loop must say the message there; a [`Prepared`] may be sent to other loops.
///
/// # Examples
///
/// A handler whose messages go to everybody in its room:
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_websocket as websocket; }
/// use rotor::Scope;
/// use rotor::websocket::{
///     Closed, Code, Delivery, Handler, Member, Message, Next, Prepared, Room, Sender,
/// };
///
/// struct World {
///     room: Room,
/// }
///
/// struct Chat(Member);
///
/// impl Chat {
///     fn hear(mut self, out: &mut Sender<'_>, scope: &mut Scope<'_, World>) -> Next<Self> {
///         match scope.room.deliver(&mut self.0, out) {
///             Delivery::Cut => Next::close(self, Code::TRY_AGAIN_LATER, "too slow"),
///             _ => Next::go_on(self).keep_deadline(),
///         }
///     }
/// }
///
/// impl Handler for Chat {
///     type Context = World;
///     type Seed = ();
///
///     fn opened(_: (), _: &mut Sender<'_>, scope: &mut Scope<'_, World>) -> Next<Self> {
///         let notifier = scope.notifier();
///         Next::go_on(Chat(scope.room.join(notifier))).no_deadline()
///     }
///
///     fn message(
///         self,
///         message: Message<'_>,
///         _: &mut Sender<'_>,
///         scope: &mut Scope<'_, World>,
///     ) -> Next<Self> {
///         scope.room.say(Prepared::message(message));
///         Next::go_on(self).keep_deadline()
///     }
///
///     // Both continue where the last delivery ended.
///     fn wakeup(self, out: &mut Sender<'_>, scope: &mut Scope<'_, World>) -> Next<Self> {
///         self.hear(out, scope)
///     }
///     fn flushed(self, out: &mut Sender<'_>, scope: &mut Scope<'_, World>) -> Next<Self> {
///         self.hear(out, scope)
///     }
///
///     fn closed(self, _: Closed<'_>, scope: &mut Scope<'_, World>) {
///         scope.room.leave(self.0);
///     }
/// }
/// ```
#[doc(alias = "broadcast")]
#[doc(alias = "publish-subscribe")]
pub struct Room {
    config: RoomConfig,
    /// The newest message is last.
    log: VecDeque<Prepared>,
    /// The number of the first message in the log; of the next message, if the log is empty.
    first: u64,
    bytes: usize,
    members: BTreeMap<MemberId, MemberEntry>,
    /// With this many members, joining removes those that are gone.
    prune_at: usize,
}

/// With fewer members, those that are gone are removed only when something is said.
const PRUNE_MIN: usize = 64;

/// Identifies a WebSocket: the machine's token, and the part for a stream of HTTP/2.
type MemberId = (Token, u32);

/// A member's entry in the room.
struct MemberEntry {
    notifier: Notifier,
    /// Dead once the last [`Member`] of the place is dropped, for whatever reason.
    membership: Weak<()>,
}

impl MemberEntry {
    fn is_occupied(&self) -> bool {
        self.membership.strong_count() > 0
    }
}

/// A membership in a [`Room`], which knows what its holder has received.
#[derive(Debug)]
#[must_use = "who is in a room and does not take what is said there is woken for nothing"]
pub struct Member {
    id: MemberId,
    #[expect(dead_code, reason = "that it is there says to the room that the place is taken")]
    membership: Arc<()>,
    /// The number of the message to deliver next.
    next: u64,
    missed: u64,
    /// Whether the member was held up since it last had received everything.
    is_lagging: bool,
}

/// The result of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a member that is cut must be closed"]
pub enum Delivery {
    /// The member has received everything.
    All,
    /// There is more to send, but no room for it: [`flushed`](crate::Handler::flushed) will be
    /// called.
    More,
    /// The member was too slow, and the room is configured with [`Slow::Cut`]: close the
    /// connection.
    Cut,
    /// The connection is closing, or the handler has begun a message of its own ([`Sender::begin`])
    /// and not ended it. In the second case, deliver again after that.
    Busy,
}

impl Room {
    /// Makes an empty room.
    pub fn new(config: RoomConfig) -> Room {
        let (log, members) = (VecDeque::new(), BTreeMap::new());
        Room { config, log, first: 0, bytes: 0, members, prune_at: PRUNE_MIN }
    }

    /// Adds a member. Pass the notifier of the WebSocket's own scope
    /// ([`Scope::notifier`](rotor_core::Scope::notifier)). The member receives the messages that
    /// are said from now on. A WebSocket that joins again still has one place and is woken once;
    /// the first [`leave`](Room::leave) gives up that place.
    pub fn join(&mut self, notifier: Notifier) -> Member {
        let id = (notifier.token(), notifier.part());
        let before = self.members.get(&id).and_then(|entry| entry.membership.upgrade());
        let membership = before.unwrap_or_default();
        // In a room where nothing is ever said, members that are gone would accumulate.
        if self.members.len() >= self.prune_at {
            self.members.retain(|_, entry| entry.is_occupied() && entry.notifier.is_alive());
            // Twice as many as are left, so that a join checks two members on average.
            self.prune_at = self.members.len().max(PRUNE_MIN / 2).saturating_mul(2);
        }
        self.members.insert(id, MemberEntry { notifier, membership: Arc::downgrade(&membership) });
        Member { id, membership, next: self.next_number(), missed: 0, is_lagging: false }
    }

    /// Removes a member. A member that ended without leaving (because its handler panicked, for
    /// example), or whose [`Member`] was dropped, is removed when something is said, or when others
    /// join.
    #[expect(clippy::needless_pass_by_value, reason = "who has left hears no more")]
    pub fn leave(&mut self, member: Member) {
        self.members.remove(&member.id);
    }

    /// Sends a message to all members, including the speaker. Each member is woken, and receives
    /// the message by [`deliver`](Room::deliver). The room drops its oldest messages beyond its
    /// limits. The cost is one wake-up for each member, whatever the length of the message.
    pub fn say(&mut self, message: Prepared) {
        self.bytes += message.payload().len();
        self.log.push_back(message);
        let RoomConfig { backlog_max, backlog_bytes_max, .. } = self.config;
        while self.log.len() > backlog_max || self.bytes > backlog_bytes_max && self.log.len() > 1 {
            let dropped = self.log.pop_front();
            self.bytes -= dropped.map_or(0, |message| message.payload().len());
            self.first += 1;
        }
        // Removes members that are gone, for whatever reason.
        self.members.retain(|_, entry| entry.is_occupied() && entry.notifier.wakeup());
    }

    /// Sends a member the messages that it has not received, as far as there is room. Call this in
    /// [`wakeup`](crate::Handler::wakeup) and [`flushed`](crate::Handler::flushed).
    pub fn deliver(&self, member: &mut Member, out: &mut Sender<'_>) -> Delivery {
        if member.next < self.first {
            if self.config.slow == Slow::Cut {
                return Delivery::Cut;
            }
            member.skip_to(self.first);
        }
        if member.is_lagging && self.config.slow == Slow::Coalesce {
            // Skips to the newest message, if that was not received yet.
            member.skip_to(self.next_number().saturating_sub(1).max(member.next));
        }
        while member.next < self.next_number() {
            if out.room() == 0 {
                member.is_lagging = true;
                return Delivery::More;
            }
            let message = &self.log[(member.next - self.first) as usize];
            match out.prepared(message) {
                Ok(()) => member.next += 1,
                Err(SendError::Full) => return Delivery::More,
                Err(_) => return Delivery::Busy,
            }
        }
        member.is_lagging = false;
        Delivery::All
    }

    /// Returns the number of members. Those that ended without [leaving](Room::leave) count until
    /// they are removed.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether there are no members, as counted by [`len`](Room::len).
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the messages that the room keeps, oldest first, for example to send them to a new
    /// member.
    pub fn backlog(&self) -> impl ExactSizeIterator<Item = &Prepared> {
        self.log.iter()
    }

    /// Returns the number of the next message.
    fn next_number(&self) -> u64 {
        self.first + self.log.len() as u64
    }
}

impl Member {
    /// Returns how many messages this member has missed because it was slow.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn skip_to(&mut self, next: u64) {
        self.missed += next - self.next;
        self.next = next;
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room")
            .field("members", &self.members.len())
            .field("backlog", &self.log.len())
            .finish_non_exhaustive()
    }
}
