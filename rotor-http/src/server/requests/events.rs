//! The events of a connection other than input: room to write, deadlines, wake-ups, drains, the
//! end.

use rotor_core::{Description, Scope, Time};

use super::{HeadWait, Requests, RequestsFlow, State, wait_until_sent};
use crate::flow::{Flow, Wait};
use crate::semantics::error::{BodyError, RequestError};
use crate::server::config::ServerConfig;
use crate::server::counters::Counters;
use crate::server::handler::Server;
use crate::server::io::Io;

impl<S: Server> Requests<S> {
    /// Called when the output has gone down as far as was waited for.
    pub(in crate::server) fn flushed(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        match &mut self.state {
            State::Exchange(exchange) => {
                let flow = exchange.flushed(io);
                self.apply_and_advance(flow, io)
            }
            // There is room again for requests that were held back.
            _ => self.advance(io),
        }
    }

    pub(in crate::server) fn timeout(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        let (now, counters) = (io.scope.now(), io.config.counters_ref());
        // The peer still reads responses, at a rate that the stream checks. Until it has read them,
        // it may be slow to send.
        let has_unsent = !io.transport.output.is_empty();
        match &mut self.state {
            State::Exchange(exchange) => {
                let flow = exchange.timeout(io);
                self.apply_and_advance(flow, io)
            }
            State::Head(since) if has_unsent => {
                // The peer could not send the rest while its own responses were in the way. Its
                // time begins when they are sent: see `wait_for_head`.
                if let HeadWait::Started(since) = since {
                    *since = Time::NEVER;
                }
                Flow::Wait(wait_until_sent(io))
            }
            // Without a 408, although RFC 9110 §15.5.9 allows one: a client that sends its next
            // request at this moment would take it for the response.
            State::Head(HeadWait::Idle(since)) if self.reader.is_idle() => {
                let is_late = *since + io.config.limits_ref().idle_timeout <= now;
                Counters::add(if self.is_draining && !is_late {
                    &counters.drained_idle
                } else {
                    &counters.idle_timeouts
                });
                Flow::Done(None)
            }
            State::Head(_) => {
                Counters::add(&counters.head_timeouts);
                self.refuse_unreadable(RequestError::TooSlow, io)
            }
            // The response is complete and was sent, so no handler is left to be told.
            State::Unwanted(_) => {
                Counters::add(&counters.undrained);
                Flow::Done(None)
            }
        }
    }

    pub(in crate::server) fn wakeup(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        // Otherwise the wake-up was meant for the handler of an earlier request.
        let State::Exchange(exchange) = &mut self.state else { return Flow::Wait(Wait::UNCHANGED) };
        let flow = exchange.wakeup(io);
        self.apply_and_advance(flow, io)
    }

    /// Handles a drain: the connection ends after the request that is under way.
    pub(in crate::server) fn drain(
        &mut self,
        until: Time,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        self.is_draining = true;
        match &mut self.state {
            // The peer does not read its responses, and requests that it pipelined have not been
            // read yet.
            State::Head(_) if io.is_gated() => Flow::Wait(Wait::UNCHANGED),
            // The peer does not know that the connection ends: its next request may be on its way.
            State::Head(_) if is_blank(io.transport.input) => self.wait_idle(io),
            // A request has begun to arrive, or will be found after the body that is dropped. Its
            // response has `Connection: close`.
            State::Head(_) | State::Unwanted(_) => Flow::Wait(Wait::UNCHANGED),
            State::Exchange(exchange) => {
                // Before the call, so that a head that is written in it has `Connection: close`. A
                // head that was written before has promised that a request may follow; then the
                // response to that one has it.
                if !exchange.outgoing.state.has_promised_keep_alive() {
                    exchange.outgoing.state.close();
                }
                let flow = exchange.drain(until, io);
                self.apply_and_advance(flow, io)
            }
        }
    }

    /// Returns since when the connection waits for a request of which nothing has arrived.
    pub(in crate::server) fn idle_since(&self, input: &[u8]) -> Option<Time> {
        match self.state {
            // A connection on which only empty lines have arrived can end unnoticed; a part of a
            // head is a request.
            State::Head(HeadWait::Idle(since)) if is_blank(input) => Some(since),
            _ => None,
        }
    }

    /// Describes the state: waiting for a request, reading one, or responding to it.
    pub(in crate::server) fn describe(&self, to: &mut Description) {
        to.add_messages(self.request_count.into());
        match &self.state {
            State::Head(HeadWait::Idle(_)) => to.set_state("idle"),
            State::Head(HeadWait::Started(_)) => to.set_state("reading a head"),
            State::Exchange(exchange) => exchange.describe(to),
            State::Unwanted(_) => to.set_state("dropping a body"),
        }
    }

    /// Handles the end of the peer's input.
    pub(in crate::server) fn input_ended(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        match &mut self.state {
            State::Exchange(exchange) => {
                // Only a handler that still waits for input, or for the end, gets here. A peer may
                // close its sending side after a complete request, and still gets its response.
                if !exchange.awaits_peer_end(io.unread()) {
                    let flow = exchange.fail(BodyError::Truncated, io);
                    return self.apply_and_advance(flow, io);
                }
                let flow = exchange.peer_ended(io);
                match self.apply_flow(flow, io) {
                    // The handler has responded, and no other request can come.
                    Flow::Again if matches!(self.state, State::Head(_)) => Flow::Done(None),
                    flow => flow.on_again(|| self.advance(io)),
                }
            }
            // A truncated head gets no response, because no peer waits for one.
            State::Head(_) | State::Unwanted(_) => Flow::Done(None),
        }
    }

    /// Handles the loss of the connection.
    pub(in crate::server) fn connection_lost(
        mut self,
        config: &ServerConfig,
        scope: &mut Scope<'_, S::Context>,
    ) {
        if let Some(mut exchange) = self.take_exchange() {
            exchange.abort(scope, config);
            exchange.outgoing.end(scope, config);
        }
    }
}

/// Returns whether the input has only empty lines, which may precede a request (RFC 9112 §2.2).
fn is_blank(input: &[u8]) -> bool {
    input.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}
