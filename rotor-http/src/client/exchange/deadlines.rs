//! Until when an exchange waits, and for what.

use rotor_core::{Deadline, Time};

use super::{Exchange, ExchangeFlow};
use crate::client::error::{ClientError, Stage};
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::flow::{Flow, Wait};
use crate::semantics::error::BodyError;

impl<K: Client> Exchange<K> {
    /// Handles a deadline, which may have been extended meanwhile.
    pub(in crate::client) fn timeout(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        let now = io.scope.now();
        // The caller's deadline comes first: after it, nothing else matters.
        if self.deadline <= now {
            Flow::Fail(ClientError::Deadline(self.stage(io)))
        } else if self.handler_deadline <= now {
            // The handler is called only once for it.
            self.handler_deadline = Time::NEVER;
            self.call(io, K::timeout)
        } else if self.body_deadline(io) <= now {
            Flow::Fail(BodyError::TooSlow.into())
        } else if self.continue_until.is_some_and(|until| until <= now) {
            // RFC 9110 §10.1.1: a client "SHOULD NOT wait for an indefinite period".
            self.continue_until = None;
            self.call(io, K::body_wanted)
        } else if self.head_deadline() <= now {
            Flow::Fail(ClientError::ResponseTimeout)
        } else {
            // Input since the deadline was set has extended it.
            Flow::Again
        }
    }

    /// Returns how far a request has got of which something was sent.
    pub(super) fn stage(&self, io: &Io<'_, '_, '_, K::Context>) -> Stage {
        if self.is_sent(io) {
            if self.waits_to_be_taken() { Stage::Taking } else { Stage::Receiving }
        } else if self.waits_for_handler(io) {
            Stage::Writing
        } else {
            Stage::Sending
        }
    }

    /// Returns whether only the handler can go on: as far as is known here, the server has all of
    /// the request that was written; it was not asked whether it wants the rest; and it has not
    /// responded.
    fn waits_for_handler(&self, io: &Io<'_, '_, '_, K::Context>) -> bool {
        !self.request.is_done()
            && io.transport.output.is_empty()
            && self.continue_until.is_none()
            && self.body.awaits_head()
    }

    /// Returns whether nobody waits for the server: the handler holds the response off, has not asked
    /// for its body, or has all of it; or the disk is behind.
    fn waits_to_be_taken(&self) -> bool {
        self.holds_head() || !(self.body.awaits_head() || self.body.is_receiving())
    }

    /// Returns whether the server has the whole request, as far as is known here.
    fn is_sent(&self, io: &Io<'_, '_, '_, K::Context>) -> bool {
        self.request.is_done() && io.transport.output.is_empty()
    }

    /// Returns what the exchange waits for: this number of unread bytes, room in the output, or the
    /// earliest of its deadlines.
    pub(in crate::client) fn wait(
        &mut self,
        input: Option<usize>,
        io: &Io<'_, '_, '_, K::Context>,
    ) -> Wait {
        let (limits, now) = (&io.config.limits, io.scope.now());
        self.put_off_held_head(now);
        // The time for the response begins when the server has the request.
        if self.is_sent(io) && self.head_until.is_none() {
            self.head_until = Some(now + limits.response_timeout);
        }
        let high = limits.output_high_water;
        // All that was unsent may be sent by now, and the handler not have been told yet, because
        // the input with which this step is made goes first.
        let flush = match self.unsent {
            _ if !self.is_flush_due => None,
            0 if self.request.is_done() => None,
            // Half of the mark is still to be sent then, which keeps the server busy while the
            // handler goes on.
            unsent if unsent > high / 2 && !self.request.is_done() => Some(high / 2),
            // Even if nothing more is to be written, because the time for the response begins then.
            _ => Some(0),
        };
        let deadline = self.next_deadline(io);
        let wait = match input {
            // A response that arrives before the connection is lost is not lost with it.
            None if self.outlives_connection(!io.transport.output.is_empty()) => {
                Wait::held(deadline)
            }
            input => Wait::input(input, deadline),
        };
        wait.or_flush(flush)
    }

    fn next_deadline(&mut self, io: &Io<'_, '_, '_, K::Context>) -> Deadline {
        let earliest = self
            .deadline
            .min(self.handler_deadline)
            .min(self.body_deadline(io))
            .min(self.continue_until.unwrap_or(Time::NEVER))
            .min(self.head_deadline());
        match earliest {
            Time::NEVER => Deadline::Never,
            time => Deadline::At(time),
        }
    }

    /// Returns until when more of the body must have arrived.
    pub(super) fn body_deadline(&mut self, io: &Io<'_, '_, '_, K::Context>) -> Time {
        // Input is read even while the server takes nothing, so it is never held off by output.
        let is_gated = false;
        let unread = io.transport.input.len();
        self.body.deadline(unread, is_gated, &io.config.limits, io.scope.now())
    }

    /// Adds the time in which the handler has held off the next head to the server's time for it.
    fn put_off_held_head(&mut self, now: Time) {
        if let (Some(since), Some(until)) = (self.head_held.take(), &mut self.head_until) {
            *until += now - since;
        }
        self.head_held = self.holds_head().then_some(now);
    }

    /// Returns until when the head of the response must have arrived.
    fn head_deadline(&self) -> Time {
        let is_awaited = self.body.awaits_head() && self.head_held.is_none();
        if is_awaited { self.head_until.unwrap_or(Time::NEVER) } else { Time::NEVER }
    }
}
