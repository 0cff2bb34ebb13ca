//! Events of the connection other than frames: room to write, deadlines, wake-ups.

use rotor_core::{Description, Time};
use rotor_stream::Fatal;

use super::{Phase, Streams, write_frame};
use crate::client::counters::Counters;
use crate::client::error::ClientError;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::request_source::RequestSource;
use crate::client::requests::ConnectionFlow;
use crate::h2::{ErrorCode, Violation, frame_writer};
use crate::tunnel::Event;

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Continues after enough output was sent.
    pub(in crate::client) fn flushed(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        self.proceed(io)
    }

    /// Handles wake-ups: of handlers, or because the source has something new.
    pub(in crate::client) fn wakeup(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        for key in io.scope.woken_parts() {
            if key == 0 {
                self.must_call_feed = true;
                continue;
            }
            // A child that is gone may still be woken.
            let Some(at) = self.find_child(key) else { continue };
            match self.children[at].tunnel.is_some() {
                true => self.run_tunnel(at, Event::Wakeup, io),
                false => self.step(at, io, |exchange, io| exchange.wakeup(io)),
            }
        }
        self.proceed(io)
    }

    pub(in crate::client) fn timeout(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        let (now, counters) = (io.scope.now(), io.config.counters_ref());
        if self.reader.until() <= now {
            let why = "fields came too slowly";
            return self.fail(Violation::Connection(ErrorCode::ProtocolError, why), io);
        }
        if self.is_settings_late(now, io) {
            Counters::add(&counters.settings_timeouts);
            let why = "our settings were not acknowledged in time";
            return self.fail(Violation::Connection(ErrorCode::SettingsTimeout, why), io);
        }
        // A frame may be long and arrive slowly, and the answer to a PING comes after it.
        if io.transport.input.len() > self.partial_frame_len {
            self.record_liveness(io);
        }
        if self.ping_until.is_some_and(|until| until <= now) {
            Counters::add(&counters.ping_timeouts);
            // As if the system had given up the connection.
            let timed_out = Fatal::Reset(std::io::ErrorKind::TimedOut.into()).into();
            write_frame(io, &frame_writer::go_away(0, ErrorCode::NoError));
            return self.lost_while_held(&timed_out, io);
        }
        if self.spare_reset_at <= now {
            self.spare_reset_at = Time::NEVER;
            self.must_call_feed = true;
        }
        self.handle_expired_children(now, io);
        if self.children.is_empty() {
            if self.idle_since + io.config.limits.unused_timeout <= now {
                // The server may close it just as the next request is sent.
                self.stop_taking_requests();
            }
        } else if self.ping_until.is_none()
            && self.ping_at(io.config) <= now
            && !self.is_read_closed
        {
            self.send_ping(io);
        }
        self.proceed(io)
    }

    /// Returns whether our settings should have been acknowledged by now.
    fn is_settings_late(&mut self, now: Time, io: &Io<'_, '_, '_, K::Context>) -> bool {
        let time = io.config.http2_ref().settings_timeout;
        let least = io.config.limits.body_bytes_in(time);
        self.settings_watch.is_late(io.transport.input.len(), least, time, now)
    }

    fn handle_expired_children(&mut self, now: Time, io: &mut Io<'_, '_, '_, K::Context>) {
        if self.until > now {
            return;
        }
        let late: Vec<u32> = self
            .children
            .iter()
            .filter(|child| child.deadline() <= now)
            .map(|child| child.key)
            .collect();
        for key in late {
            let Some(at) = self.find_child(key) else { continue };
            // The window of the connection may have grown since.
            self.watch_sending(at, &io.config.limits, now);
            self.exempt_sending(at, &io.config.limits, now);
            let child = &self.children[at];
            if child.send_watch.until() <= now && child.outlives_connection() {
                self.drop_request(at, io);
            } else if child.send_watch.until() <= now {
                self.fail_and_reset(
                    at,
                    ClientError::Lost(Fatal::FlushTimeout),
                    ErrorCode::Cancel,
                    io,
                );
            } else if child.until <= now && child.tunnel.is_some() {
                self.tunnel_deadline_passed(at, io);
            } else if child.until <= now && child.is_handler_done() {
                self.remove_child(at, io);
            } else if child.until <= now {
                self.exempt_body(at, io);
                let has_discarded = std::mem::take(&mut self.children[at].has_discarded);
                self.step(at, io, |exchange, io| {
                    let flow = exchange.timeout(io);
                    if has_discarded { flow.on_again(|| exchange.flushed(io)) } else { flow }
                });
            }
        }
        self.until =
            self.children.iter().map(|child| child.deadline()).min().unwrap_or(Time::NEVER);
    }

    /// Puts off the deadline of a body that may only have to wait for bodies of other streams. No
    /// body is late while the server sends bodies at the least rate, or while it may not send, or
    /// may not know yet that it may. The request's own deadline limits how long that may last.
    fn exempt_body(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) {
        let now = io.scope.now();
        if self.phase == Phase::Open {
            self.bodies_watch.count_partial(io.transport.input, &io.config.limits, now);
        }
        let (left, unsent) = (self.inbound.left(), io.transport.unsent_len());
        let others = self.bodies_watch.until(left, unsent, &io.config.limits, now);
        if others > now {
            let child = &mut self.children[at];
            child.step(io.scope, io.config, |exchange, io| {
                exchange.extend_body_deadline(others, io)
            });
        }
    }

    /// Returns since when no request has been under way.
    pub(in crate::client) fn idle_since(&self, input: &[u8]) -> Option<Time> {
        let is_idle = self.phase == Phase::Open
            && self.children.is_empty()
            && !self.reader.has_partial_block()
            && input.is_empty();
        is_idle.then_some(self.idle_since)
    }

    /// Reports whether requests are under way, and what they hold.
    pub(in crate::client) fn describe(&self, to: &mut Description) {
        to.set_state(if self.children.is_empty() { "idle (HTTP/2)" } else { "asking (HTTP/2)" });
        to.add_messages(self.served);
        for child in &self.children {
            to.add_held(child.held_bytes());
            if let Some(tunnel) = &child.tunnel {
                tunnel.layered().describe(to);
            }
        }
    }
}
