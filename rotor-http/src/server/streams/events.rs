//! The events of the connection other than frames: room to write, deadlines, wake-ups.

use rotor_core::{Description, Time};
use rotor_stream::Exception;

use super::{Phase, ShutdownState, Streams, StreamsFlow};
use crate::h2::{ErrorCode, Violation};
use crate::semantics::error::BodyError;
use crate::server::counters::Counters;
use crate::server::handler::Server;
use crate::server::io::Io;
use crate::tunnel::Event;

impl<S: Server> Streams<S> {
    /// Called when the output has gone down as far as was waited for.
    pub(in crate::server) fn flushed(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> StreamsFlow<S> {
        self.proceed(io)
    }

    /// Passes a wake-up to the woken handlers: the part number is the stream number.
    pub(in crate::server) fn wakeup(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> StreamsFlow<S> {
        for stream in io.scope.woken_parts() {
            // A stream that is over may still be woken.
            let Some(at) = self.find(stream) else { continue };
            if self.children[at].tunnel.is_some() {
                self.run_tunnel(at, Event::Wakeup, io);
            } else {
                self.step(at, io, |exchange, io| exchange.wakeup(io));
            }
        }
        self.proceed(io)
    }

    pub(in crate::server) fn timeout(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> StreamsFlow<S> {
        let (now, counters) = (io.scope.now(), io.config.counters_ref());
        if !io.transport.output.is_empty() {
            // While responses wait, the peer's bytes may not be read. The stream watches the rate.
            self.reader.postpone_frame(now, now + io.config.limits_ref().head_timeout);
        }
        let is_head_late = self.reader.until() <= now
            || (self.phase != Phase::Open
                && self.idle_since + io.config.limits_ref().head_timeout <= now);
        if is_head_late {
            Counters::add(&counters.head_timeouts);
            return self
                .fail(Violation::Connection(ErrorCode::NoError, "fields came too slowly"), io);
        }
        if self.is_settings_late(now, io) {
            Counters::add(&counters.settings_timeouts);
            let why = "our settings were not acknowledged in time";
            return self.fail(Violation::Connection(ErrorCode::SettingsTimeout, why), io);
        }
        if let ShutdownState::Announced(until) = self.shutdown
            && until <= now
        {
            self.send_final_goaway(io);
        }
        self.handle_expired_children(now, io);
        if self.children.is_empty() && self.idle_since + io.config.limits_ref().idle_timeout <= now
        {
            if !io.transport.output.is_empty() {
                // The peer still reads responses, at a rate that the stream checks.
                self.idle_since = now;
            } else {
                Counters::add(&counters.idle_timeouts);
                return self
                    .fail(Violation::Connection(ErrorCode::NoError, "nothing was asked for"), io);
            }
        }
        self.proceed(io)
    }

    /// Returns whether our settings should have been acknowledged by now.
    fn is_settings_late(&mut self, now: Time, io: &Io<'_, '_, '_, S::Context>) -> bool {
        let time = io.config.http2_ref().settings_timeout;
        if io.transport.is_input_held() {
            // The acknowledgement may have arrived. The stream watches how fast the output is taken.
            self.settings.postpone(now, now + time);
        }
        let least = io.config.limits_ref().body_bytes_in(time);
        self.settings.is_late(io.transport.input.len(), least, time, now)
    }

    /// Extends the deadline of a late body if that is not the peer's fault. A body may have to
    /// wait for those of other streams, and for the rest of a frame: while the connection as a
    /// whole receives bodies at the required rate, none is late. Nor is one late while the peer may
    /// not send, or may not know yet that it may.
    fn exempt_body(&mut self, at: usize, io: &mut Io<'_, '_, '_, S::Context>) {
        let now = io.scope.now();
        if self.phase == Phase::Open {
            self.bodies.count_partial(io.transport.input, io.config.limits_ref(), now);
        }
        let (left, unsent) = (self.inbound.left(), io.transport.unsent_len());
        let others = self.bodies.until(left, unsent, io.config.limits_ref(), now);
        if others <= now {
            return;
        }
        let child = &mut self.children[at];
        let before = child.exemption.clone();
        let until = child.exempt(others, io.config.limits_ref(), now);
        let extended = child
            .step(io.scope, io.config, |exchange, io| exchange.extend_body_deadline(until, io));
        if extended != Some(true) {
            // Here it is the handler that is late.
            child.exemption = before;
        }
    }

    fn handle_expired_children(&mut self, now: Time, io: &mut Io<'_, '_, '_, S::Context>) {
        if self.until > now {
            return;
        }
        let is_late = |time: Time| time <= now;
        let late: Vec<u32> = self
            .children
            .iter()
            .filter(|child| is_late(child.deadline()))
            .map(|child| child.id)
            .collect();
        for stream in late {
            let Some(at) = self.find(stream) else { continue };
            // The window of the connection may have grown in the meantime.
            self.watch(at, io.config.limits_ref(), now);
            self.exempt_sending(at, io.config.limits_ref(), now);
            let child = &self.children[at];
            if !is_late(child.deadline()) {
                continue;
            }
            if is_late(child.send_watch.until()) {
                Counters::add(&io.config.counters_ref().response_timeouts);
                self.reset_stream(stream, ErrorCode::Cancel, io);
            } else if child.tunnel.is_some() && (!child.ignores_input() || child.state.is_sending())
            {
                self.run_tunnel(at, Event::Due, io);
            } else if child.exchange.is_some() {
                self.exempt_body(at, io);
                self.step(at, io, |exchange, io| exchange.timeout(io));
            } else {
                Counters::add(&io.config.counters_ref().undrained);
                self.reset_stream(stream, ErrorCode::NoError, io);
            }
        }
        self.until =
            self.children.iter().map(|child| child.deadline()).min().unwrap_or(Time::NEVER);
    }

    /// Handles the end of the peer's input. Complete requests still get their response, unless the
    /// connection is lost.
    pub(in crate::server) fn input_ended(
        &mut self,
        exception: &Exception,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> StreamsFlow<S> {
        if let Exception::Lost(_) = exception {
            return self.end_streams(io);
        }
        self.stop_reading();
        for at in (0..self.children.len()).rev() {
            if self.children[at].tunnel.is_some() && self.children[at].state.is_receiving() {
                self.run_tunnel(at, Event::InputEnded { is_truncated: true }, io);
            } else if self.children[at].state.is_receiving() {
                self.step(at, io, |exchange, io| exchange.fail(BodyError::Truncated, io));
            } else if S::HEARS_END {
                self.step(at, io, |exchange, io| exchange.peer_ended(io));
            }
        }
        self.proceed(io)
    }

    /// Returns since when nothing is under way; `None` if something is.
    pub(in crate::server) fn idle_since(&self, input: &[u8]) -> Option<Time> {
        let is_idle = self.phase == Phase::Open
            && self.children.is_empty()
            && !self.reader.has_partial_block()
            && input.is_empty();
        is_idle.then_some(self.idle_since)
    }
    /// Describes whether requests are under way, and how much memory they hold.
    pub(in crate::server) fn describe(&self, to: &mut Description) {
        to.set_state(if self.children.is_empty() { "idle (HTTP/2)" } else { "handling (HTTP/2)" });
        to.add_messages(u64::from(self.last_stream.div_ceil(2)));
        for child in &self.children {
            to.add_held(child.input.capacity() + child.output.held_bytes());
            if let Some(tunnel) = &child.tunnel {
                tunnel.layered().describe(to);
            }
        }
    }
}
