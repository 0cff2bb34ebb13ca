//! The requests of a connection of HTTP/1.1, one after the other, and a handler for each.
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

use super::age::AgeLimit;
use super::counters::Counters;
use super::exchange::{Exchange, ExchangeFlow};
use super::handler::Server;
use super::handler::UpgradeSeed;
use super::io::Io;
use super::unwanted::UnwantedBody;
use crate::flow::{BATCH, Flow, Wait};
use crate::h1::head::HeadReader;

/// The HTTP/1.1 side of a connection.
pub(super) struct Requests<S: Server> {
    seed: S::Seed,
    reader: HeadReader,
    /// The number of requests so far, saturating.
    request_count: u32,
    age: AgeLimit,
    /// The loop drains, or an operator ends this connection: the next response says that it is the
    /// last.
    is_draining: bool,
    state: State<S>,
}

enum State<S: Server> {
    /// Waits for a request.
    Head(HeadWait),
    Exchange(Box<Exchange<S>>),
    /// Reads and drops the rest of a body.
    Unwanted(Box<UnwantedBody>),
}

/// Since when the connection waits for a request.
#[derive(Clone, Copy)]
enum HeadWait {
    /// Nothing of the request has arrived; `NEVER` before the time is known.
    Idle(Time),
    /// A part of the head has arrived. `NEVER` if its time is over and begins again when the
    /// responses are sent that wait.
    Started(Time),
}

impl<S: Server> State<S> {
    /// Between two requests; whether the next one has arrived already is not known yet.
    const HEAD: State<S> = State::Head(HeadWait::Idle(Time::NEVER));
}

/// The result of a step of the requests: the connection is over, or switches to another protocol,
/// or is cut off.
pub(super) type RequestsFlow<S> = Flow<Option<UpgradeSeed<S>>, TruncatedResponse>;

/// The response is incomplete, but would seem complete if the connection were closed. So the
/// connection must be reset.
pub(super) struct TruncatedResponse;

impl<S: Server> Requests<S> {
    pub(super) fn new(seed: S::Seed, age: AgeLimit, is_draining: bool) -> Requests<S> {
        Requests {
            seed,
            reader: HeadReader::new(),
            request_count: 0,
            age,
            is_draining,
            state: State::HEAD,
        }
    }

    /// Returns whether nothing of the first request has arrived yet.
    #[inline]
    pub(super) fn is_untouched(&self) -> bool {
        self.request_count == 0 && self.reader.is_idle()
    }

    /// Called when a part of the preface of HTTP/2 has arrived, which may also be the beginning of
    /// a head. Returns since when.
    #[cfg(feature = "http2")]
    #[cold]
    pub(super) fn head_started_at(&mut self, now: Time) -> Time {
        match &mut self.state {
            State::Head(HeadWait::Started(since)) => *since,
            State::Head(since) => {
                *since = HeadWait::Started(now);
                now
            }
            _ => now,
        }
    }

    /// Returns whether the connection ends after the request that is under way.
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Returns the seed of a handler.
    pub(super) fn seed(&self) -> S::Seed {
        self.seed.clone()
    }

    /// Does all that can be done with the input at hand.
    ///
    /// All its steps are inlined into this one function, including the first call of the handler;
    /// the function itself is not inlined into its callers.
    #[inline(never)]
    pub(super) fn advance(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> RequestsFlow<S> {
        // `Flow::batch` is not used, because the compiler does not reliably inline its closure.
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
    fn step(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> RequestsFlow<S> {
        match &mut self.state {
            // A peer that does not read its responses gets no more of them. Without this, small
            // pipelined requests would use as much memory as their responses.
            State::Head(_) if io.is_gated() => {
                Counters::add(&io.config.counters_ref().held_back);
                Flow::Wait(wait_for_room())
            }
            State::Head(_) if io.transport.input.is_empty() && self.reader.is_idle() => {
                self.wait_idle(io)
            }
            State::Head(_) => self.read_head(io),
            State::Exchange(_) => self.receive(io),
            State::Unwanted(_) => self.skip_body(io),
        }
    }

    /// Passes on what has arrived of a body.
    ///
    /// Not inlined, and neither is `skip_body`: most requests have no body, and finish faster if
    /// the code for bodies is elsewhere.
    #[inline(never)]
    fn receive(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> RequestsFlow<S> {
        let State::Exchange(exchange) = &mut self.state else { return Flow::Again };
        let flow = exchange.receive(io);
        self.apply_flow(flow, io)
    }

    /// Called if more can be done with the input at hand: makes the stream call again at once,
    /// within its budgets.
    #[cold]
    pub(super) fn wait_for_turn(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Wait {
        let deadline = match &mut self.state {
            State::Head(_) if io.is_gated() => return wait_for_room(),
            // The next turn sets the right one. Before that, a request that has come is not late.
            State::Head(_) => Deadline::Never,
            State::Exchange(exchange) => exchange.next_deadline(io),
            State::Unwanted(unwanted) => Deadline::At(unwanted.deadline),
        };
        // One byte that has arrived already is enough to be called at once.
        Wait::input(Some(io.unread().min(1)), deadline)
    }

    /// Waits for a request that has not begun.
    pub(super) fn wait_for_request(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Wait {
        let now = io.scope.now();
        if let State::Head(since) = &mut self.state {
            *since = HeadWait::Idle(now);
        }
        let until = now + io.config.limits_ref().idle_timeout;
        Wait::input(Some(io.unread() + 1), Deadline::At(until))
    }

    /// Called if nothing has arrived since the last request, or only empty lines.
    #[inline]
    fn wait_idle(&mut self, io: &Io<'_, '_, '_, S::Context>) -> RequestsFlow<S> {
        if self.is_draining {
            return self.wait_idle_in_drain(io);
        }
        Flow::Wait(self.wait_for_request(io))
    }

    /// Waits for another request of a peer that was not told that the connection ends: the request
    /// may be on its way.
    #[cold]
    fn wait_idle_in_drain(&mut self, io: &Io<'_, '_, '_, S::Context>) -> RequestsFlow<S> {
        let until = self.grace_until(io);
        if until <= io.scope.now() {
            Counters::add(&io.config.counters_ref().drained_idle);
            return Flow::Done(None);
        }
        Flow::Wait(Wait::input(Some(io.unread() + 1), Deadline::At(until)))
    }

    /// Returns the time until which a connection that is idle in a drain may stay open.
    fn grace_until(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Time {
        let now = io.scope.now();
        // There is no grace if only this connection is to end, and not its loop: then no other
        // server takes over its peers.
        let grace = io.scope.grace_until().unwrap_or(now);
        let State::Head(since) = &mut self.state else { return grace };
        let since = match *since {
            HeadWait::Idle(since) if since != Time::NEVER => since,
            _ => now,
        };
        self.state = State::Head(HeadWait::Idle(since));
        grace.min(since + io.config.limits_ref().idle_timeout)
    }

    /// Waits for the first request of a peer that has just connected.
    #[inline]
    pub(super) fn wait_for_first(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Wait {
        let mut wait = self.wait_for_request(io);
        if self.is_draining {
            // The connection does not end here, even without a grace: a request may already be in
            // the socket.
            wait = Wait::input(Some(io.unread() + 1), Deadline::At(self.grace_until(io)));
        }
        wait
    }

    /// Begins to wait for the next head.
    #[inline]
    fn await_next_head(&mut self) {
        // Only `since` is assigned, not the whole state: the compiler would check whether the old
        // state needs to be dropped, although it never does.
        if let State::Head(since) = &mut self.state {
            *since = HeadWait::Idle(Time::NEVER);
        }
    }

    /// Reads and drops what is left of a body.
    #[inline(never)]
    fn skip_body(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> RequestsFlow<S> {
        let State::Unwanted(unwanted) = &mut self.state else { return Flow::Again };
        // The response was sent, and after a broken body the beginning of the next request is
        // unknown.
        let Ok(decoded) = unwanted.decoder.decode(io.transport.input) else {
            return Flow::Done(None);
        };
        io.transport.input.consume(decoded.consumed());
        if decoded.is_end {
            self.state = State::HEAD;
            return Flow::Again;
        }
        // Chunks announce no length, so there is a limit for what is read only to be dropped.
        if unwanted.decoder.received() > unwanted.received_max {
            Counters::add(&io.config.counters_ref().undrained);
            return Flow::Done(None);
        }
        if !decoded.needs_input() {
            return Flow::Again;
        }
        // One deadline for all of it: with a new one for each piece, a peer could drip forever. It
        // begins when the responses are sent: until then the peer may be slow to send.
        if unwanted.deadline == Time::NEVER {
            if !io.transport.output.is_empty() {
                return Flow::Wait(wait_until_sent(io));
            }
            unwanted.deadline = io.scope.now() + io.config.limits_ref().shutdown_timeout;
        }
        Flow::Wait(Wait::input(Some(io.unread() + 1), Deadline::At(unwanted.deadline)))
    }

    /// Applies the result of a step of the exchange, then does what else can be done.
    fn apply_and_advance(
        &mut self,
        flow: ExchangeFlow<S>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        let flow = self.apply_flow(flow, io);
        flow.on_again(|| self.advance(io))
    }

    /// Applies the result of a step of the exchange to the connection.
    fn apply_flow(
        &mut self,
        flow: ExchangeFlow<S>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
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

/// Waits until the peer has read what waits for it: the stream passes on no input before that.
/// Meanwhile nothing can be late.
fn wait_for_room() -> Wait {
    Wait::input(Some(1), Deadline::Never).or_flush(Some(0))
}

/// Waits until the peer has read what waits for it, or has sent more than was looked at. Meanwhile
/// nothing can be late.
fn wait_until_sent<C>(io: &Io<'_, '_, '_, C>) -> Wait {
    Wait::input(Some(io.unread() + 1), Deadline::Never).or_flush(Some(0))
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
            .field("request_count", &self.request_count)
            .finish_non_exhaustive()
    }
}
