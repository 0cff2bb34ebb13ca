//! The requests of a connection, one after the other, and a handler for each.
//!
//! ```text
//!          head complete            handler done, body ended           upgrade
//!   Head ───────────────▶ Exchange ───────────────────────────▶ Head   ───────▶ another protocol
//!    │                      │  └─ handler done, body not wanted ─▶ Unwanted ──▶ Head
//!    └── refused ──▶ end ◀──┴── failed, closes
//! ```

mod events;
mod finish;
mod head;

use std::fmt;

use rotor_core::{Deadline, Time};

use super::age::Age;
use super::counters::Counters;
use super::exchange::{Exchange, Exchanged};
use super::handler::Server;
use super::handler::UpgradeSeed;
use super::io::Io;
use super::unwanted::Unwanted;
use crate::flow::{BATCH, Flow, Wait};
use crate::h1::head::HeadReader;

/// The HTTP side of a connection.
pub(super) struct Requests<S: Server> {
    seed: S::Seed,
    reader: HeadReader,
    /// How many, as far as this counts.
    begun: u32,
    age: Age,
    /// The loop drains, or an operator ends this connection: the next response says that it is the
    /// last.
    is_draining: bool,
    state: State<S>,
}

enum State<S: Server> {
    /// Waits for a request.
    Head(Since),
    Exchange(Box<Exchange<S>>),
    /// Reads and drops the rest of a body.
    Unwanted(Box<Unwanted>),
}

/// Since when a request is waited for.
#[derive(Clone, Copy)]
enum Since {
    /// Nothing has come of it; `NEVER` before that is known.
    Idle(Time),
    /// A part of its head has come.
    Begun(Time),
}

impl<S: Server> State<S> {
    /// Between two requests; whether the next one is there already is still to be seen.
    const HEAD: State<S> = State::Head(Since::Idle(Time::NEVER));
}

/// How a step of the requests ends: the connection is over, or goes on in another protocol; or it is
/// cut off.
pub(super) type Served<S> = Flow<Option<UpgradeSeed<S>>, CutOff>;

/// A response that only the end of its connection completes is incomplete. So the connection must
/// not come to an end that looks like one.
pub(super) struct CutOff;

impl<S: Server> Requests<S> {
    pub(super) fn new(seed: S::Seed, age: Age, is_draining: bool) -> Requests<S> {
        Requests { seed, reader: HeadReader::new(), begun: 0, age, is_draining, state: State::HEAD }
    }

    /// Whether nothing has come yet of the first request.
    #[inline]
    pub(super) fn is_untouched(&self) -> bool {
        self.begun == 0 && self.reader.is_idle()
    }

    /// A part of the preface of HTTP/2 has come, which may be the beginning of a head as well;
    /// returns since when.
    #[cfg(feature = "http2")]
    #[cold]
    pub(super) fn begun_since(&mut self, now: Time) -> Time {
        match &mut self.state {
            State::Head(Since::Begun(since)) => *since,
            State::Head(since) => {
                *since = Since::Begun(now);
                now
            }
            _ => now,
        }
    }

    /// What handlers are made of.
    pub(super) fn seed(&self) -> S::Seed {
        self.seed.clone()
    }

    /// Does what can be done with what is there.
    ///
    /// One function with all its steps, the handlers' first call among them, apart from those that
    /// call it.
    #[inline(never)]
    pub(super) fn advance(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Served<S> {
        // Not by `Flow::batch`, because the compiler does not reliably inline its closure.
        let mut left = BATCH;
        loop {
            let flow = self.step(io);
            left -= 1;
            if left == 0 || !matches!(flow, Flow::Again) {
                return flow;
            }
        }
    }

    #[inline(always)]
    fn step(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Served<S> {
        match &mut self.state {
            // A peer that does not take its responses gets no more of them. Without this, small
            // pipelined requests would cost as much memory as their responses.
            State::Head(_) if io.is_gated() => {
                Counters::add(&io.config.count().held_back);
                Flow::Wait(wait_for_room())
            }
            State::Head(_) if io.transport.input.is_empty() && self.reader.is_idle() => {
                self.idle(io)
            }
            State::Head(_) => self.read_head(io),
            State::Exchange(_) => self.receive(io),
            State::Unwanted(_) => self.skip_body(io),
        }
    }

    /// Hands over what has come of a body.
    ///
    /// Not inlined, nor is what drops one: most requests have none, and come to their end faster
    /// where nothing else is.
    #[inline(never)]
    fn receive(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Served<S> {
        let State::Exchange(exchange) = &mut self.state else { return Flow::Again };
        let flow = exchange.receive(io);
        self.follow(flow, io)
    }

    /// There is more to do with what is there: has the stream call again at once, under its
    /// budgets.
    #[cold]
    pub(super) fn wait_for_turn(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Wait {
        let deadline = match &mut self.state {
            State::Head(_) if io.is_gated() => return wait_for_room(),
            // Only until the next turn, in which the step sets the right deadline.
            State::Head(_) => Deadline::At(io.scope.now() + io.config.limits_ref().idle_timeout),
            State::Exchange(exchange) => exchange.next_deadline(io),
            State::Unwanted(unwanted) => Deadline::At(unwanted.deadline),
        };
        // What has come already is enough to be called at once.
        Wait::input(Some(io.unread().min(1)), deadline)
    }

    /// Waits for a request that has not begun.
    pub(super) fn wait_for_request(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Wait {
        let now = io.scope.now();
        if let State::Head(since) = &mut self.state {
            *since = Since::Idle(now);
        }
        let until = now + io.config.limits_ref().idle_timeout;
        Wait::input(Some(io.unread() + 1), Deadline::At(until))
    }

    /// Nothing has come since the last request, or nothing but empty lines.
    #[inline]
    fn idle(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Served<S> {
        if self.is_draining {
            return self.idle_in_drain(io);
        }
        Flow::Wait(self.wait_for_request(io))
    }

    /// Waits for a request of a peer that was not told that there will be no other: it may be on
    /// its way.
    #[cold]
    fn idle_in_drain(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Served<S> {
        let until = self.grace_until(io);
        if until <= io.scope.now() {
            Counters::add(&io.config.count().drained_idle);
            return Flow::Done(None);
        }
        Flow::Wait(Wait::input(Some(io.unread() + 1), Deadline::At(until)))
    }

    /// Until when a connection that is idle in a drain may be so.
    fn grace_until(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Time {
        let now = io.scope.now();
        // There is no grace if it is not the loop that drains: nobody else serves its peers.
        let grace = io.scope.grace_until().unwrap_or(now);
        let State::Head(since) = &mut self.state else { return grace };
        let since = match *since {
            Since::Idle(since) if since != Time::NEVER => since,
            _ => now,
        };
        self.state = State::Head(Since::Idle(since));
        grace.min(since + io.config.limits_ref().idle_timeout)
    }

    /// Waits for the first request, whose peer has just connected.
    #[inline]
    pub(super) fn wait_for_first(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Wait {
        let mut wait = self.wait_for_request(io);
        if self.is_draining {
            // It does not end here, even without a grace: what the peer has sent may lie in the
            // socket.
            wait = Wait::input(Some(io.unread() + 1), Deadline::At(self.grace_until(io)));
        }
        wait
    }

    /// Where heads are read: the next one has not begun.
    #[inline]
    fn begin_anew(&mut self) {
        // The whole state is not assigned: that would drop the old one, and the compiler checks for
        // something to drop although there is nothing.
        if let State::Head(since) = &mut self.state {
            *since = Since::Idle(Time::NEVER);
        }
    }

    /// Reads and drops what is left of a body.
    #[inline(never)]
    fn skip_body(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Served<S> {
        let State::Unwanted(unwanted) = &mut self.state else { return Flow::Again };
        // The response was sent; where the next request begins after a broken body is unknown.
        let Ok(decoded) = unwanted.decoder.decode(io.transport.input) else {
            return Flow::Done(None);
        };
        io.transport.input.consume(decoded.consumed());
        if decoded.is_end {
            self.state = State::HEAD;
            return Flow::Again;
        }
        // Chunks announce no length, but what is read only to be dropped needs a limit.
        if unwanted.decoder.received() > unwanted.received_max {
            Counters::add(&io.config.count().undrained);
            return Flow::Done(None);
        }
        if !decoded.needs_input() {
            return Flow::Again;
        }
        // One deadline for all of it: a new one for each piece would let a peer drip for ever.
        let deadline = Deadline::At(unwanted.deadline);
        Flow::Wait(Wait::input(Some(io.unread() + 1), deadline))
    }

    /// Follows a step of the exchange, then does what else can be done.
    fn follow_on(&mut self, flow: Exchanged<S>, io: &mut Io<'_, '_, '_, S::Context>) -> Served<S> {
        let flow = self.follow(flow, io);
        flow.and_again(|| self.advance(io))
    }

    /// What a step of the exchange means for the connection.
    fn follow(&mut self, flow: Exchanged<S>, io: &mut Io<'_, '_, '_, S::Context>) -> Served<S> {
        match flow {
            Flow::Wait(wait) => Flow::Wait(wait),
            Flow::Again => Flow::Again,
            Flow::Done(upgrade) => {
                // Taken out of the state, because the rest of the body may take its place there.
                let Some(mut exchange) = self.take_exchange() else { return Flow::Done(None) };
                let announced = exchange.announced();
                let Exchange { outgoing, body, .. } = &mut *exchange;
                self.finish(outgoing, announced, body, upgrade, io)
            }
            Flow::Fail(status) => {
                let Some(mut exchange) = self.take_exchange() else { return Flow::Done(None) };
                self.fail(&mut exchange.outgoing, status, io)
            }
        }
    }

    fn take_exchange(&mut self) -> Option<Box<Exchange<S>>> {
        match std::mem::replace(&mut self.state, State::HEAD) {
            State::Exchange(exchange) => Some(exchange),
            _ => None,
        }
    }
}

/// The stream hands out no input before the peer has taken what waits for it; and while nothing is
/// taken in, nothing can be late.
fn wait_for_room() -> Wait {
    Wait::input(Some(1), Deadline::Never).or_flush(Some(0))
}

impl<S: Server> fmt::Debug for Requests<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Head(_) => "Head",
            State::Exchange(_) => "Exchange",
            State::Unwanted(_) => "Unwanted",
        };
        f.debug_struct("Requests")
            .field("state", &state)
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}
