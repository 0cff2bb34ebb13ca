//! Three machines that other threads can reach, each in another way.
//!
//! | machine | reached by | when |
//! |--|--|--|
//! | `Counter` | `Notifier` | something elsewhere has changed, and only the latest state matters |
//! | `Inbox` | `Mailbox` | every message matters, and there may be many |
//! | `Results` | `Port` and `Future` | one value is awaited, or the notice that it will never come |

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rotor::{
    Future, Infallible, Machine, Mailbox, Outcome, Port, ReceiveError, Response, Scope, Sender,
    rotor_compose,
};

/// How many messages are taken in one event before other machines have their turn.
const MESSAGES_PER_EVENT: u32 = 64;

/// The results of the machines when they end.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) counted: u64,
    /// How often the counter was woken for this number: wake-ups coalesce.
    pub(crate) wakeups: u64,
    pub(crate) messages: u64,
    pub(crate) sum_of_results: u64,
    pub(crate) lost_results: u64,
}

rotor_compose! {
    pub(crate) enum Receivers <Report> {
        Counter(Counter),
        Inbox(Inbox),
        Results(Results),
    }
}

/// Follows a number that other threads increment, until it has reached `end`.
pub(crate) struct Counter {
    pub(crate) number: Arc<AtomicU64>,
    pub(crate) end: u64,
}

impl Machine for Counter {
    type Context = Report;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Report>) -> Response<Self, Infallible> {
        scope.wakeups += 1;
        // Everything that was written before a wake-up is visible here, so the last change cannot
        // be missed.
        scope.counted = self.number.load(Relaxed);
        if scope.counted == self.end { Response::done() } else { Response::ok(self) }
    }
}

/// Counts messages until there is no sender any more.
pub(crate) struct Inbox {
    mailbox: Mailbox<u64>,
}

impl Inbox {
    pub(crate) fn new<C>(scope: &Scope<'_, C>) -> (Sender<u64>, Inbox) {
        let (sender, mailbox) = scope.create_mailbox(256);
        (sender, Inbox { mailbox })
    }
}

impl Machine for Inbox {
    type Context = Report;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, Report>) -> Response<Self, Infallible> {
        for _ in 0..MESSAGES_PER_EVENT {
            match self.mailbox.try_receive() {
                Ok(_) => scope.messages += 1,
                Err(ReceiveError::Empty) => return Response::ok(self),
                Err(ReceiveError::Closed) => return Response::done(),
            }
        }
        // There may be more: call again, after the other machines.
        scope.wake_self();
        Response::ok(self)
    }
}

/// Awaits one result of each thread.
pub(crate) struct Results {
    awaited: Vec<Future<u64>>,
}

impl Results {
    pub(crate) fn new<C>(count: usize, scope: &Scope<'_, C>) -> (Vec<Port<u64>>, Results) {
        let (ports, awaited) = (0..count).map(|_| scope.create_future()).unzip();
        (ports, Results { awaited })
    }
}

impl Machine for Results {
    type Context = Report;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, Report>) -> Response<Self, Infallible> {
        for future in mem::take(&mut self.awaited) {
            match future.take() {
                Outcome::Pending(future) => self.awaited.push(future),
                Outcome::Value(result) => scope.sum_of_results += result,
                Outcome::Lost(_) => scope.lost_results += 1,
            }
        }
        if self.awaited.is_empty() { Response::done() } else { Response::ok(self) }
    }
}
