//! What an exchange waits for, and what happens when there is room, or at its deadlines.

use rotor_core::{Deadline, Time};

use super::{Exchange, ExchangeFlow, Handler, HandlerDeadline};
use crate::flow::{Flow, Wait};
use crate::semantics::error::BodyError;
use crate::server::counters::Counters;
use crate::server::handler::Server;
use crate::server::io::Io;
use crate::server::request_event::RequestEvent;

impl<S: Server> Exchange<S> {
    /// Returns what the exchange waits for: this number of unread bytes, room in the output, or its
    /// deadline.
    pub(super) fn wait(&mut self, input: Option<usize>, io: &Io<'_, '_, '_, S::Context>) -> Wait {
        let high = io.config.limits_ref().output_high_water;
        let flush = match self.handler {
            // Half of the mark is still to be sent then, which keeps the peer busy while the
            // handler goes on.
            Some(Handler::Own(_)) if self.is_flush_due && self.outgoing.unsent() > high / 2 => {
                Some(high / 2)
            }
            // Called only when everything is sent, and not after each write: so each call of the
            // handler finds at least half of the mark to fill. All of it may be sent by now,
            // because the input with which this step is made goes first.
            Some(Handler::Own(_)) if self.is_flush_due => Some(0),
            // The handler that follows what waits in its place is told.
            _ => None,
        };
        // One byte or the end. If it is a byte, the peer has not ended yet, and from then on the
        // exchange waits for neither.
        let input = input.or_else(|| self.awaits_peer_end(io.unread()).then_some(1));
        Wait::input(input, self.next_deadline(io)).or_flush(flush)
    }

    /// Tells the handler that there is room.
    pub(in crate::server) fn flushed(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        // If something waits in its place, the handler that follows is told.
        if matches!(self.handler, Some(Handler::Own(_))) {
            self.is_flush_due = false;
        }
        self.notify(RequestEvent::Flushed, io)
    }

    /// Returns the earliest of the handler's deadline, the time of its wake-up, and the deadline of
    /// the body.
    pub(in crate::server) fn next_deadline(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Deadline {
        let of_body = self.body_deadline(io);
        match self.handler_deadline().min(self.wake_time()).min(of_body) {
            Time::NEVER => Deadline::Never,
            time => Deadline::At(time),
        }
    }

    /// Returns the time until which more of the body must have arrived.
    fn body_deadline(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Time {
        self.was_gated = io.is_still_gated(self.was_gated);
        self.is_uninvited &= io.unread() == 0 && !self.body.has_received();
        let is_paused = self.was_gated || self.is_held_back || self.is_uninvited;
        self.body.deadline(io.unread(), is_paused, io.config.limits_ref(), io.scope.now())
    }

    /// Extends the deadline of the body to `until` if the body is late; returns whether it is.
    pub(in crate::server) fn extend_body_deadline(
        &mut self,
        until: Time,
        io: &Io<'_, '_, '_, S::Context>,
    ) -> bool {
        let deadline = self.body_deadline(io);
        let is_late = deadline <= io.scope.now();
        if is_late && until > deadline {
            self.body.extend_deadline(until - deadline);
        }
        is_late
    }

    fn handler_deadline(&self) -> Time {
        match (&self.handler, self.deadline) {
            (Some(Handler::Pending(pending)), _) => pending.limit(),
            // A handler is not at fault for a body that arrives slowly, of which the rate is
            // watched.
            (_, HandlerDeadline::FromLimits(_))
                if self.body.is_receiving() && !self.body.may_pause() && !self.is_uninvited =>
            {
                Time::NEVER
            }
            (_, HandlerDeadline::FromLimits(time) | HandlerDeadline::Own(time)) => time,
        }
    }

    /// Returns when the handler is to be woken. If something waits in its place there is no handler
    /// to wake; the handler that follows is woken, at once if the time has passed by then.
    fn wake_time(&self) -> Time {
        match self.handler {
            Some(Handler::Pending(_)) => Time::NEVER,
            _ => self.wake_at,
        }
    }

    /// Restarts the handler's time after it was given something, unless it has a deadline of its
    /// own.
    pub(super) fn renew_deadline(&mut self, io: &Io<'_, '_, '_, S::Context>) {
        if let HandlerDeadline::FromLimits(until) = &mut self.deadline {
            *until = io.scope.now() + io.config.limits_ref().handler_timeout;
        }
    }

    /// Handles a deadline: the handler's, the body's, the time of the handler's wake-up, or one
    /// that was extended in the meantime.
    pub(in crate::server) fn timeout(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        let now = io.scope.now();
        // The handler first: it can still respond, while a late body fails the exchange.
        if self.handler_deadline() <= now {
            if !matches!(self.handler, Some(Handler::Pending(_))) {
                if let HandlerDeadline::FromLimits(_) = self.deadline {
                    Counters::add(&io.config.counters_ref().handler_timeouts);
                }
                // The handler is told once. From here on it sets its own deadline.
                self.deadline = HandlerDeadline::Own(Time::NEVER);
                // It has been called at that time, too. A later time stays.
                if self.wake_at <= now {
                    self.wake_at = Time::NEVER;
                }
            }
            return self
                .notify_waiting(RequestEvent::Timeout, io, |later, r, s| later.timeout(r, s));
        }
        if self.body_deadline(io) <= now {
            return self.fail(BodyError::TooSlow, io);
        }
        if self.wake_time() <= now {
            self.wake_at = Time::NEVER;
            return self.notify(RequestEvent::Wakeup, io);
        }
        // Something has arrived since the deadline was set, and has extended it.
        Flow::Again
    }
}
