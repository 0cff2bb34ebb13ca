//! The end of a connection, and what happens to the requests under way.

use rotor_core::{Scope, Time};
use rotor_stream::{Exception, Fatal};

use super::child::Child;
use super::loss::Loss;
use super::{Phase, Streams, write_frame};
use crate::client::config::ClientConfig;
use crate::client::counters::Counters;
use crate::client::error::ClientError;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::job::Job;
use crate::client::request_source::RequestSource;
use crate::client::requests::ConnectionFlow;
use crate::flow::Flow;
use crate::h2::{ErrorCode, StreamState, Violation, frame_writer};
use crate::tunnel::{Event, PendingDrain};

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Ends the connection after the requests under way, because the loop is draining, or because
    /// an operator ends only this connection.
    pub(in crate::client) fn drain(
        &mut self,
        until: Time,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        self.is_draining = true;
        self.stop_taking_requests();
        self.tunnel_drain = Some(PendingDrain { until, unread: io.transport.input.len() });
        self.advance(io)
    }

    /// Lets no further request begin on this connection.
    pub(super) fn stop_taking_requests(&mut self) {
        self.is_closing = true;
        self.must_call_feed = true;
    }

    /// Handles GOAWAY: the server accepts no more requests, and has not processed those after
    /// `last`.
    pub(super) fn goaway_received(
        &mut self,
        last: u32,
        code: u32,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        Counters::add(&io.config.counters_ref().goaways);
        self.stop_taking_requests();
        // A request that has not begun cannot begin on this connection any more.
        let is_out = |child: &Child<K>| child.stream.is_none_or(|stream| stream > last);
        let out: Vec<u32> =
            self.children.iter().filter(|child| is_out(child)).map(|child| child.key).collect();
        // The first of the requests gets its outcome here then, so not even a server that goes away
        // after each request is asked without end. A server in distress is not asked more often.
        let is_orderly = code == ErrorCode::NoError.number();
        let was_other_served = is_orderly && last > 0 && self.next_stream > 1;
        // In the order in which they began, so that the oldest are next, even if each server goes
        // away after a few requests.
        for key in out {
            let Some(at) = self.find_child(key) else { continue };
            if self.children[at].tunnel.is_some() {
                self.reset_tunnel(at, io);
            } else if code == ErrorCode::Http11Required.number() {
                self.http1_required(at, true, io);
            } else {
                self.refused(at, was_other_served, io);
            }
        }
    }

    /// Handles a request that the server has not processed: another connection may make it.
    pub(super) fn refused(
        &mut self,
        at: usize,
        was_other_served: bool,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        let child = &mut self.children[at];
        let job = child.step(io.scope, io.config, |exchange, io| {
            exchange.refused(was_other_served, io.config, io.scope)
        });
        if let Some(job) = job.flatten() {
            self.source.return_job(*job, io.scope);
        }
        self.remove_child(at, io);
    }

    /// Handles a request that the server answers over HTTP/1.1 only (RFC 9113 §7): it is made there
    /// if possible. On another connection of HTTP/2, the server would refuse it again.
    /// `is_unprocessed` is whether the server has not processed it.
    pub(super) fn http1_required(
        &mut self,
        at: usize,
        is_unprocessed: bool,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        let exchange = self.children[at].exchange.as_mut().filter(|_| self.source.has_http1());
        let job =
            exchange.and_then(|exchange| exchange.reclaim_for_http1(is_unprocessed, io.config));
        if !self.reroute_to_http1(at, job, io) {
            let error = ClientError::Reset(ErrorCode::Http11Required.number());
            self.fail_and_reset(at, error, ErrorCode::Cancel, io);
        }
    }

    /// Has the request made over HTTP/1.1, if it could be taken out of its exchange. Returns
    /// whether it is made there.
    pub(super) fn reroute_to_http1(
        &mut self,
        at: usize,
        job: Option<Box<Job<K>>>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> bool {
        let Some(job) = job else { return false };
        self.source.return_for_http1(*job, io.scope);
        self.remove_child(at, io);
        true
    }

    /// Ends the connection with an error code.
    #[cold]
    pub(super) fn fail(
        &mut self,
        violation: Violation,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        log::debug!("machine {} ends: {violation}", io.scope.token());
        let code = match violation {
            Violation::Connection(code, _) | Violation::Stream(_, code) => code,
        };
        Counters::add(&io.config.counters_ref().protocol_errors);
        write_frame(io, &frame_writer::go_away(0, code));
        // A server that has sent nothing at all does not respond, whatever it speaks.
        let phase = self.phase;
        let is_silent = code == ErrorCode::SettingsTimeout && phase == Phase::Settings;
        self.end_unless_held(io, |child, source, io| {
            if !return_unsent(child, source, phase, io.config, io.scope) {
                child.step(io.scope, io.config, |exchange, io| match is_silent {
                    true => exchange.fail(ClientError::ResponseTimeout, io),
                    false => exchange.fail(ClientError::Protocol(violation.why()), io),
                });
            }
        })
    }

    /// Ends all requests with `end`, except those that need nothing more of their connection, such as
    /// those whose complete response is held by its handler, and other protocols that hold back what
    /// has arrived: they go on until that has been delivered, and the connection ends with the last
    /// of them.
    fn end_unless_held(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
        mut end: impl FnMut(&mut Child<K>, &mut F, &mut Io<'_, '_, '_, K::Context>),
    ) -> ConnectionFlow<K> {
        self.stop_reading();
        self.stop_taking_requests();
        let is_over = |child: &Child<K>| !child.outlives_connection();
        let over: Vec<u32> =
            self.children.iter().filter(|child| is_over(child)).map(|child| child.key).collect();
        for key in over {
            let Some(at) = self.find_child(key) else { continue };
            if self.children[at].tunnel.is_some() {
                self.reset_tunnel(at, io);
                continue;
            }
            end(&mut self.children[at], &mut self.source, io);
            self.remove_child(at, io);
        }
        // The input before the drain will not be handled.
        self.drain_tunnels(io);
        if self.children.is_empty() {
            return Flow::Done(None);
        }
        for at in 0..self.children.len() {
            self.drop_request(at, io);
        }
        self.proceed(io)
    }

    /// Drops what is left of a request whose response is complete, as if the server did not want
    /// it.
    pub(super) fn drop_request(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) {
        let child = &mut self.children[at];
        if let Some(stream) = child.stream
            && child.state.is_sending()
            && !self.is_read_closed
        {
            write_frame(io, &frame_writer::reset(stream, ErrorCode::Cancel));
        }
        child.state = StreamState::Closed;
        self.update_child(at, io);
    }

    /// Returns whether a handler has or holds a complete response, or another protocol may hold back
    /// what has arrived for it. That is not lost with the connection.
    pub(in crate::client) fn outlives_connection(&self) -> bool {
        let outlives = |child: &Child<K>| child.outlives_connection() || child.tunnel.is_some();
        self.children.iter().any(|child| outlives(child))
    }

    /// Records that the server sends no more, or that it does not matter.
    fn stop_reading(&mut self) {
        self.is_read_closed = true;
        self.must_call_feed = true;
        // The server's settings, its PINGs and the rest of a block cannot arrive any more, and
        // waiting for them must not cost complete responses.
        self.settings_watch.stop();
        self.reader.input_ended();
        self.ping_until = None;
    }

    /// Ends the connection, because it has nothing more to do.
    pub(super) fn close(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ConnectionFlow<K> {
        if !self.is_read_closed {
            write_frame(io, &frame_writer::go_away(0, ErrorCode::NoError));
        }
        Flow::Done(None)
    }

    /// Tells the server that the idle connection ends.
    #[cold]
    pub(in crate::client) fn make_room(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        write_frame(io, &frame_writer::go_away(0, ErrorCode::NoError));
    }

    /// Handles the loss of the connection.
    pub(in crate::client) fn lost(
        mut self,
        error: Fatal,
        config: &ClientConfig,
        scope: &mut Scope<'_, K::Context>,
    ) {
        if let Fatal::NoRoom = error {
            Counters::add(&config.counters_ref().without_room);
        }
        self.fail_all(&error.into(), config, scope);
    }

    pub(super) fn fail_all(
        &mut self,
        loss: &Loss,
        config: &ClientConfig,
        scope: &mut Scope<'_, K::Context>,
    ) {
        for mut child in std::mem::take(&mut self.children) {
            fail_child(&mut child, &mut self.source, self.phase, loss, config, scope);
        }
    }

    /// Handles the loss of the connection while something may not be lost with it.
    pub(super) fn lost_while_held(
        &mut self,
        loss: &Loss,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        let phase = self.phase;
        self.end_unless_held(io, |child, source, io| {
            fail_child(child, source, phase, loss, io.config, io.scope);
        })
    }

    /// Handles the end of the input. Complete responses are still delivered to their handlers.
    pub(in crate::client) fn input_ended(
        &mut self,
        exception: Exception,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ConnectionFlow<K> {
        let loss = match exception {
            Exception::Lost(error) => return self.lost_while_held(&error.into(), io),
            Exception::Read(error) => Some(Loss::Reset(error.into())),
            _ => None,
        };
        self.stop_reading();
        for at in (0..self.children.len()).rev() {
            if self.children[at].tunnel.is_some() && self.children[at].state.is_receiving() {
                self.run_tunnel(at, Event::InputEnded { is_truncated: true }, io);
                continue;
            }
            let child = &mut self.children[at];
            if child.is_handler_done()
                || return_unsent(child, &mut self.source, self.phase, io.config, io.scope)
            {
                self.remove_child(at, io);
            } else if self.children[at].state.is_receiving() {
                let error = loss.as_ref().map(Loss::to_fatal);
                self.step(at, io, |exchange, io| exchange.input_ended_early(error, io));
            }
        }
        self.proceed(io)
    }
}

/// If no part of the request was sent, gives it back so that another connection makes it, and
/// returns true.
pub(super) fn return_unsent<K: Client>(
    child: &mut Child<K>,
    source: &mut impl RequestSource<K>,
    phase: Phase,
    config: &ClientConfig,
    scope: &mut Scope<'_, K::Context>,
) -> bool {
    // If the server's settings did not come, nothing suggests that another connection gets further
    // than this one.
    if child.stream.is_some() || phase == Phase::Settings {
        return false;
    }
    let job = child.exchange.as_mut().and_then(|exchange| exchange.reclaim_job(config));
    let Some(job) = job else { return false };
    source.return_job(*job, scope);
    true
}

/// Ends a request because the connection is lost: fails it, or gives it back.
fn fail_child<K: Client>(
    child: &mut Child<K>,
    source: &mut impl RequestSource<K>,
    phase: Phase,
    loss: &Loss,
    config: &ClientConfig,
    scope: &mut Scope<'_, K::Context>,
) {
    child.lose_tunnel(scope);
    // If there was no room, there is none for another connection.
    if !matches!(loss, Loss::NoRoom) && return_unsent(child, source, phase, config, scope) {
        return;
    }
    let Some(exchange) = child.exchange.take() else { return };
    let mut part = scope.part(child.key);
    if let Some(job) = exchange.lost(loss.to_fatal(), config, &mut part) {
        source.return_job(*job, scope);
    }
}
