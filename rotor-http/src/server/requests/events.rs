//! What happens to a connection besides that something comes: room to write, deadlines, wake-ups,
//! the end.

use rotor_core::{Deadline, Scope, Time};

use super::super::Server;
use super::super::answer::{Answer, Io};
use super::super::config::ServerConfig;
use super::super::counters::Counters;
use super::super::turn::{Turn, Wait};
use super::{Requests, Since, State};
use crate::h1::{BodyError, Status};

impl<S: Server> Requests<S> {
    /// The output has gone down as far as was waited for.
    pub(in super::super) fn flushed(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Turn<S> {
        match &mut self.state {
            State::Exchange(exchange) => {
                let flow = exchange.call(io, S::response_flushed);
                self.after(flow, io)
            }
            _ => self.go_on(io),
        }
    }

    pub(in super::super) fn timeout(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Turn<S> {
        let (now, counters) = (io.scope.now(), io.config.count());
        // The peer still takes answers, at a rate that the stream watches; until it has them, it
        // may be slow to send.
        let is_taking = !io.transport.output.is_empty();
        match &mut self.state {
            State::Exchange(exchange) => {
                let flow = exchange.timeout(io);
                self.after(flow, io)
            }
            State::Head(since) if is_taking => {
                if let Since::Begun(since) = since {
                    *since = now;
                }
                Turn::Wait(Wait { input: Some(1), flush: Some(0), deadline: Deadline::Never })
            }
            State::Unwanted(unwanted) if is_taking => {
                unwanted.deadline = now + io.config.limits_ref().shutdown_timeout;
                Turn::Wait(Wait {
                    input: Some(1),
                    flush: None,
                    deadline: Deadline::At(unwanted.deadline),
                })
            }
            State::Head(_) if self.reader.is_idle() => {
                Counters::add(&counters.idle_timeouts);
                Turn::Done
            }
            State::Head(_) => {
                Counters::add(&counters.head_timeouts);
                let answer = Answer::refusing(
                    None,
                    io.transport.addresses(),
                    io.transport.output,
                    now,
                    io.config,
                );
                self.refuse(Status::REQUEST_TIMEOUT, answer, io)
            }
            State::Unwanted(_) => {
                Counters::add(&counters.undrained);
                Turn::Done
            }
        }
    }

    pub(in super::super) fn wakeup(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Turn<S> {
        let State::Exchange(exchange) = &mut self.state else { return Turn::Keep };
        let flow = exchange.call(io, S::wakeup);
        self.after(flow, io)
    }

    /// The loop is to end: so does this connection, after what is under way.
    pub(in super::super) fn drain(
        &mut self,
        until: Time,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Turn<S> {
        self.is_draining = true;
        match &mut self.state {
            State::Head(_) if is_blank(io.transport.input) => Turn::Done,
            State::Head(_) | State::Unwanted(_) => Turn::Keep,
            State::Exchange(exchange) => {
                exchange.answer.state.close();
                let flow = exchange
                    .call(io, |handler, response, scope| handler.draining(until, response, scope));
                self.after(flow, io)
            }
        }
    }

    /// Since when the connection waits for a request of which nothing has come.
    pub(in super::super) fn idle_since(&self, input: &[u8]) -> Option<Time> {
        match self.state {
            State::Head(Since::Idle(since)) if is_blank(input) => Some(since),
            _ => None,
        }
    }

    /// The peer sends no more.
    pub(in super::super) fn input_ended(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Turn<S> {
        match &mut self.state {
            State::Exchange(exchange) => {
                let flow = exchange.fail(BodyError::Truncated, io);
                self.after(flow, io)
            }
            // A head that was cut short gets no answer: nobody waits for one.
            State::Head(_) | State::Unwanted(_) => Turn::Done,
        }
    }

    /// The connection is gone.
    pub(in super::super) fn lost(
        mut self,
        config: &ServerConfig,
        scope: &mut Scope<'_, S::Context>,
    ) {
        if let Some(mut exchange) = self.take_exchange() {
            exchange.lost(scope, config);
            self.log(&exchange.answer, scope, config);
        }
    }
}

/// Whether there is nothing but empty lines, which may precede a request (RFC 9112 §2.2).
fn is_blank(input: &[u8]) -> bool {
    input.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}
