//! A chat of lines: what one client writes, all others get.
//!
//! Each client is a protocol on a stream of its own, with an outbox that contains what it has not
//! received yet. The [`Room`] that they share is in the context: the senders to all outboxes. A
//! line is one shared block, however many clients get it.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::time::Duration;

use rotor::stream::{
    Block, Exception, HasOutbox, Intent, Matched, Outbox, OutboxConfig, OutboxFull, OutboxSender,
    Protocol, Transport,
};
use rotor::{ReturnOnDrop, Scope, Time, Token};

/// The longest line, in bytes including its end. A client that sends a longer one is disconnected:
/// a chat is not for files.
pub(crate) const LINE_BYTES_MAX: usize = 1_024;

/// How long a line may take from its first byte to its end, however slowly it arrives. A client
/// that sends nothing may stay.
pub(crate) const LINE_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a client has to wait after each line before the next one is taken. Somebody who pastes
/// a page hardly notices it. Without it, one client could say more in a single event than the
/// outboxes of the others have room for, and get them dropped, however fast they read.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

/// How many lines may wait for a client that does not read: more than there are in one turn if a
/// thousand others speak, come or go at once. Beyond that the client is dropped, so that the others
/// need not wait for it and it cannot fill the memory.
pub(crate) const UNREAD_LINES_MAX: usize = 4 * 1_024;

/// How much may wait for it, in bytes, in addition to what the kernel and its output hold: that
/// many lines, even if all are as long as allowed. A line is held once, however many it waits for.
pub(crate) const UNREAD_BYTES_MAX: usize = UNREAD_LINES_MAX * LINE_BYTES_MAX;

/// The part of the context that this protocol needs.
pub(crate) trait HasRoom {
    fn room(&mut self) -> &mut Room;
}

/// All members of the chat.
#[derive(Debug, Default)]
pub(crate) struct Room {
    members: BTreeMap<Token, OutboxSender>,
    joined: u64,
}

/// How a member is known: to the others by its number, to the room by its token.
#[derive(Clone, Copy, Debug)]
struct Seat {
    token: Token,
    number: u64,
}

impl Room {
    fn join(&mut self, sender: OutboxSender) -> Seat {
        self.joined += 1;
        let token = sender.token();
        self.members.insert(token, sender);
        Seat { token, number: self.joined }
    }

    /// Removes a member, and tells the others.
    fn leave(&mut self, gone: Seat) {
        // Removed first, so that the member does not get this line itself.
        self.members.remove(&gone.token);
        self.broadcast(gone.token, &Block::from(format!("* {} left\n", gone.number).into_bytes()));
    }

    /// Sends a line to everybody except the speaker.
    fn broadcast(&mut self, speaker: Token, line: &Block) {
        for (_, member) in self.members.iter().filter(|(token, _)| **token != speaker) {
            // A member whose outbox is full ends by itself, and one that is gone leaves the room by
            // itself, so there is nothing to do here.
            let _not_heard = member.send(line.clone());
        }
    }

    /// Returns the number of clients.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} clients came, {} are there", self.joined, self.len())
    }
}

/// One client.
///
/// ```text
///           a byte             its end            the pause is over
///   Silent ────────▶ Speaking ─────────▶ Pausing ──────────────────▶ Silent
///                        └── too long, too slow ──▶ end
/// ```
pub(crate) struct Client<C: 'static> {
    /// However the client ends, even by a panic, this makes it leave the room.
    seat: ReturnOnDrop<Seat, C>,
    outbox: Outbox,
    /// Whether it waits for the end of its pause.
    is_pausing: bool,
}

impl<C: HasRoom> Client<C> {
    /// Waits for a line from this client or from others.
    fn silent(self) -> Intent<Self> {
        Intent::of(self).bytes(1).no_deadline()
    }
}

impl<C: HasRoom> Protocol for Client<C> {
    type Context = C;
    type Seed = ();

    fn create((): (), transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        let config = OutboxConfig::new()
            .bytes_max(UNREAD_BYTES_MAX)
            .messages_max(UNREAD_LINES_MAX)
            .when_full(OutboxFull::End);
        let outbox = Outbox::new(config, scope);
        let room = scope.room();
        let seat = room.join(outbox.sender());
        let number = seat.number;
        room.broadcast(seat.token, &Block::from(format!("* {number} joined\n").into_bytes()));
        let seat = scope.at_end(seat, |context: &mut C, seat| context.room().leave(seat));
        match transport.output.push_block(format!("* you are {number}\n").into_bytes()) {
            Ok(()) => Client { seat, outbox, is_pausing: false }.silent(),
            Err(error) => Intent::error(error),
        }
    }

    fn bytes_read(
        mut self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        if !transport.input[..matched.len()].ends_with(b"\n") {
            // The first byte of a line: the time limit begins now.
            return Intent::of(self)
                .delimiter(b"\n", LINE_BYTES_MAX)
                .deadline(scope.now() + LINE_TIME_MAX);
        }
        let mut line = format!("{}: ", self.seat.number);
        // Control characters would be commands to the terminals of the others. Some terminals also
        // take a single byte that is not UTF-8 for a command.
        let said = String::from_utf8_lossy(matched.content(transport.input));
        line.extend(said.chars().filter(|char| !char.is_control()));
        line.push('\n');
        matched.consume(transport.input);
        let speaker = scope.token();
        scope.room().broadcast(speaker, &Block::from(line.into_bytes()));
        // Its next lines stay in the socket meanwhile, so it is the sender that has to wait.
        self.is_pausing = true;
        Intent::of(self).hold().deadline(scope.now() + PAUSE)
    }

    fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        Intent::done()
    }

    fn timeout(mut self, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        match mem::take(&mut self.is_pausing) {
            true => self.silent(),
            false => Intent::done(),
        }
    }

    fn draining(self, _: Time, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        Intent::done()
    }
}

impl<C: HasRoom> HasOutbox for Client<C> {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}
