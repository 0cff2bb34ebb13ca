//! One side of a conversation: it sends messages of all lengths, and checks those that it gets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rotor::Scope;
use rotor::http::client::Pool;
use rotor::websocket::{Cause, Closed, Code, Dial, Handler, Kind, Message, Next, Sender};

use crate::stack::Target;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a side has seen the end of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) code: Code,
    pub(crate) cause: Cause,
    pub(crate) sent: u32,
    pub(crate) received: u32,
}

impl End {
    /// Returns whether the other side did not end it.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.cause, Cause::Lost | Cause::PongTimeout | Cause::CloseTimeout)
    }
}

/// The ends of one conversation: the client's, the server's.
pub(crate) type Ends = [Option<End>; 2];

#[derive(Default)]
pub(crate) struct Log {
    pub(crate) ends: BTreeMap<u32, Ends>,
    pub(crate) wrong: Vec<String>,
    pub(crate) asked: u32,
    pub(crate) refused: Vec<String>,
}

pub(crate) type SharedLog = Arc<Mutex<Log>>;

pub(crate) trait HasLog {
    fn log(&self) -> &SharedLog;
}

pub(crate) struct ServerWorld {
    pub(crate) log: SharedLog,
}

pub(crate) struct ClientWorld {
    pub(crate) log: SharedLog,
    pub(crate) pool: Pool<Dial<Talks<ClientWorld>>, Target>,
}

impl HasLog for ServerWorld {
    fn log(&self) -> &SharedLog {
        &self.log
    }
}

impl HasLog for ClientWorld {
    fn log(&self) -> &SharedLog {
        &self.log
    }
}

/// How many messages each side sends.
pub(crate) fn messages(conversation: u32) -> u32 {
    1 + conversation % 7
}

/// The message of a side of a conversation.
pub(crate) fn content(conversation: u32, side: usize, number: u32, large: bool) -> Vec<u8> {
    // One side alone sends long messages: two that send them without reading hold up each other.
    let lens: &[usize] = match large && conversation as usize % 2 == side {
        true => &[0, 1, 125, 126, 5_000, 40_000, 65_535, 65_536, 130_000, 300_000],
        false => &[0, 1, 125, 126, 300, 1_100],
    };
    let mixed = conversation.wrapping_mul(31) + number.wrapping_mul(7) + side as u32 * 3;
    let len = lens[mixed as usize % lens.len()];
    let seed = format!("{conversation} {side} {number} ");
    let mut bytes = seed.into_bytes();
    // Not compressible in some conversations.
    let mut state = mixed | 1;
    while bytes.len() < len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.push(if conversation.is_multiple_of(3) {
            (state >> 24) as u8
        } else {
            b'a' + (state >> 30) as u8
        });
    }
    bytes
}

/// One side of a conversation.
pub(crate) struct Talks<C> {
    conversation: u32,
    side: usize,
    large: bool,
    sent: u32,
    /// The message that is being sent in pieces, and how much of it was sent.
    partial: Option<(Vec<u8>, usize)>,
    received: u32,
    is_held: bool,
    context: std::marker::PhantomData<fn(C)>,
}

impl<C: HasLog> Talks<C> {
    fn new(conversation: u32, side: usize, large: bool) -> Talks<C> {
        let context = std::marker::PhantomData;
        Talks {
            conversation,
            side,
            large,
            sent: 0,
            partial: None,
            received: 0,
            is_held: false,
            context,
        }
    }

    fn complain(&self, what: String, scope: &Scope<'_, C>) {
        let text = format!("conversation {} side {}: {what}", self.conversation, self.side);
        lock(scope.log()).wrong.push(text);
    }

    /// Sends what there is room for.
    fn send(&mut self, out: &mut Sender<'_>, scope: &Scope<'_, C>) {
        while out.room() > 0 {
            if let Some((bytes, done)) = &mut self.partial {
                let piece = (1 + scope.random_u64() as usize % 20_000).min(bytes.len() - *done);
                if out.piece(&bytes[*done..*done + piece]).is_err() {
                    return self.complain("a piece was refused".to_owned(), scope);
                }
                *done += piece;
                if *done == bytes.len() {
                    if out.end().is_err() {
                        return self.complain("the end was refused".to_owned(), scope);
                    }
                    self.partial = None;
                }
                continue;
            }
            if self.sent == messages(self.conversation) {
                return;
            }
            let bytes = content(self.conversation, self.side, self.sent, self.large);
            self.sent += 1;
            let sent = match scope.random_u64() % 4 {
                0 => {
                    let begun = out.begin(Kind::Binary);
                    self.partial = Some((bytes, 0));
                    begun
                }
                1 => out.ping(&bytes[..bytes.len().min(100)]).and_then(|()| match out.room() {
                    0 => {
                        self.partial = None;
                        self.sent -= 1;
                        Ok(())
                    }
                    _ => out.binary(&bytes),
                }),
                _ => out.binary(&bytes),
            };
            if let Err(error) = sent {
                return self.complain(format!("not sent: {error}"), scope);
            }
            // It goes on at another time.
            if scope.random_u64().is_multiple_of(4) {
                return;
            }
        }
    }

    fn proceed(mut self, out: &mut Sender<'_>, scope: &Scope<'_, C>) -> Next<Self> {
        self.send(out, scope);
        let all = messages(self.conversation);
        let is_all = self.sent == all && self.partial.is_none() && self.received == all;
        if is_all && self.side == 0 {
            return Next::close(self, Code::NORMAL, "all was said");
        }
        let pause = Duration::from_millis(scope.random_u64() % 3_000);
        let deadline = scope.now() + pause;
        match scope.random_u64() % 5 {
            // Not twice in a row: who takes nothing for ten seconds is too slow.
            0 if !self.is_held => {
                self.is_held = true;
                Next::hold(self).deadline(deadline)
            }
            _ => {
                self.is_held = false;
                Next::messages(self).deadline(deadline)
            }
        }
    }
}

impl<C: HasLog> Handler for Talks<C> {
    type Context = C;
    type Seed = (u32, usize, bool);

    fn opened(
        (conversation, side, large): (u32, usize, bool),
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        Talks::new(conversation, side, large).proceed(out, scope)
    }

    fn message(
        mut self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let expected = content(self.conversation, 1 - self.side, self.received, self.large);
        if self.is_held {
            self.complain("a message while held".to_owned(), scope);
        }
        if message.as_bytes() != expected {
            let len = message.as_bytes().len();
            self.complain(format!("message {} of {len} is another", self.received), scope);
        }
        self.received += 1;
        self.proceed(out, scope)
    }

    fn flushed(self, out: &mut Sender<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.proceed(out, scope)
    }

    fn timeout(self, out: &mut Sender<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.proceed(out, scope)
    }

    fn closed(self, end: Closed<'_>, scope: &mut Scope<'_, C>) {
        let seen =
            End { code: end.code, cause: end.cause, sent: self.sent, received: self.received };
        let mut log = lock(scope.log());
        let end = &mut log.ends.entry(self.conversation).or_default()[self.side];
        match end {
            // A request whose connection was lost before the response came may be made again, so
            // the server opens the conversation again. One of the two is lost there, too.
            Some(earlier) if self.side == 1 && (earlier.is_lost() || seen.is_lost()) => {
                if earlier.is_lost() {
                    *earlier = seen;
                }
            }
            Some(_) => {
                drop(log);
                self.complain("two ends".to_owned(), scope);
            }
            None => *end = Some(seen),
        }
    }
}
