//! A chat of lines: what one client says, all others hear.
//!
//! Each client is a protocol on a stream of its own. What they share, the [`Room`], is in the
//! context: for each client a queue of what it is still to hear, and its notifier. A line is one
//! shared block, whatever the number of those who hear it.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Error, ErrorKind};
use std::time::Duration;

use rotor::stream::{Block, Exception, Fatal, Intent, Matched, Protocol, Transport};
use rotor::{Notifier, Scope, Time, Token};

/// The longest line, in bytes with its end. Longer ones end their sender: a chat is not for files.
pub(crate) const LINE_BYTES_MAX: usize = 1_024;

/// How long a line may take from its first byte to its end, however it drips. A client that says
/// nothing may stay.
pub(crate) const LINE_TIME_MAX: Duration = Duration::from_secs(30);

/// How much a client may leave unread, in bytes. Beyond that it is dropped: the others do not wait
/// for it, and it does not fill the memory.
pub(crate) const UNREAD_BYTES_MAX: usize = 256 * 1_024;

/// The part of the context that this protocol needs.
pub(crate) trait HasRoom {
    fn room(&mut self) -> &mut Room;
}

/// Everybody who is in the chat.
#[derive(Debug, Default)]
pub(crate) struct Room {
    members: BTreeMap<Token, Member>,
    joined: u64,
}

#[derive(Debug)]
struct Member {
    notifier: Notifier,
    unheard: VecDeque<Block>,
    unheard_bytes: usize,
}

impl Room {
    fn join(&mut self, notifier: Notifier) -> u64 {
        self.joined += 1;
        let member =
            Member { notifier: notifier.clone(), unheard: VecDeque::new(), unheard_bytes: 0 };
        self.members.insert(notifier.token(), member);
        self.joined
    }

    /// Has everybody but the speaker hear a line. Those who are gone, however they went, are
    /// forgotten here.
    fn say(&mut self, speaker: Token, line: &Block) {
        self.members.retain(|token, member| {
            if *token == speaker {
                return true;
            }
            // One who lags that far behind is dropped when it is woken, and need not hear any more.
            if member.unheard_bytes <= UNREAD_BYTES_MAX {
                member.unheard_bytes += line.len();
                member.unheard.push_back(line.clone());
            }
            // Also one that lags: it is dropped by its own wake-up.
            member.notifier.wakeup()
        });
    }

    fn hear(&mut self, listener: Token) -> VecDeque<Block> {
        let Some(member) = self.members.get_mut(&listener) else { return VecDeque::new() };
        member.unheard_bytes = 0;
        std::mem::take(&mut member.unheard)
    }

    /// How many clients there are, or were when the last line was said.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }
}

/// One client.
///
/// ```text
///           a byte                    its end
///   Silent ────────▶ Speaking(until) ─────────▶ Silent
///                        └── too long, too slow ──▶ end
/// ```
pub(crate) struct Client<C> {
    number: u64,
    context: std::marker::PhantomData<fn(C)>,
}

impl<C: HasRoom> Client<C> {
    /// Waits for somebody to say something: the client, or others.
    fn silent(self) -> Intent<Self> {
        Intent::of(self).bytes(1).no_deadline()
    }

    fn leaves(&self, scope: &mut Scope<'_, C>) {
        let (token, number) = (scope.token(), self.number);
        let room = scope.room();
        // First: who leaves does not hear of it.
        room.members.remove(&token);
        room.say(token, &Block::from(format!("* {number} left\n").into_bytes()));
    }
}

impl<C: HasRoom> Protocol for Client<C> {
    type Context = C;
    type Seed = ();

    fn create((): (), transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        let (token, notifier) = (scope.token(), scope.notifier());
        let room = scope.room();
        let number = room.join(notifier);
        room.say(token, &Block::from(format!("* {number} joined\n").into_bytes()));
        match transport.output.push_block(format!("* you are {number}\n").into_bytes()) {
            Ok(()) => Client { number, context: std::marker::PhantomData }.silent(),
            Err(error) => Intent::error(error),
        }
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        if !transport.input[..matched.len()].ends_with(b"\n") {
            // The first byte of a line: from here on the clock runs.
            return Intent::of(self)
                .delimiter(b"\n", LINE_BYTES_MAX)
                .deadline(scope.now() + LINE_TIME_MAX);
        }
        let mut line = format!("{}: ", self.number).into_bytes();
        // Control bytes would be commands to the terminals of the others.
        let said = transport.input[..matched.len()].iter();
        line.extend(said.filter(|byte| !byte.is_ascii_control() || **byte == b'\n'));
        matched.consume(transport.input);
        let speaker = scope.token();
        scope.room().say(speaker, &Block::from(line));
        self.silent()
    }

    fn wakeup(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        let token = scope.token();
        for line in scope.room().hear(token) {
            if let Err(error) = transport.output.push_block(line) {
                return Intent::error(error);
            }
        }
        if transport.output.len() > UNREAD_BYTES_MAX {
            self.leaves(scope);
            return Intent::error(Error::new(
                ErrorKind::TimedOut,
                "a client does not read what it is told",
            ));
        }
        Intent::of(self).keep().keep_deadline()
    }

    fn exception(
        self,
        _: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        self.leaves(scope);
        Intent::done()
    }

    fn fatal(self, _: Fatal, scope: &mut Scope<'_, C>) {
        self.leaves(scope);
    }

    fn timeout(self, _: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        self.leaves(scope);
        Intent::done()
    }

    fn draining(self, _: Time, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        Intent::done()
    }
}
