//! The end of a connection: in two steps if it is graceful, at once if the peer violated the
//! protocol.

use std::time::Duration;

use rotor_core::{Scope, Time};

use super::{GRACEFUL, STREAM_MAX, ShutdownState, Streams, StreamsFlow, write_frame};
use crate::flow::Flow;
use crate::h2::{ErrorCode, Violation, frame_writer};
use crate::server::config::ServerConfig;
use crate::server::counters::Counters;
use crate::server::handler::Server;
use crate::server::io::Io;
use crate::tunnel::{Event, PendingDrain};

/// How long we wait for the peer to confirm that it knows of the end.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_secs(1);

/// The data of the ping that is sent with the announcement of an end.
pub(super) const ANNOUNCEMENT_PING: [u8; 8] = *b"draining";

impl<S: Server> Streams<S> {
    /// Handles a drain: the connection ends after the requests that are under way.
    pub(in crate::server) fn drain(
        &mut self,
        until: Time,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> StreamsFlow<S> {
        self.is_draining = true;
        self.announce_end(io);
        for at in (0..self.children.len()).rev() {
            if self.children[at].tunnel.is_none() {
                self.step(at, io, |exchange, io| exchange.drain(until, io));
            }
        }
        self.tunnel_drain = Some(PendingDrain { until, unread: io.transport.input.len() });
        if self.is_read_closed {
            self.drain_tunnels(io);
            return self.proceed(io);
        }
        if io.transport.is_input_held() {
            // The frames that had arrived are handled once the peer has taken some of the output.
            self.drain_tunnels_if_due(0, io);
            return self.proceed(io);
        }
        self.advance(io)
    }

    /// Tells the protocols of tunnels of a drain if nothing is left of the input before it, or not
    /// a whole frame. This many bytes of the input were handled.
    pub(super) fn drain_tunnels_if_due(
        &mut self,
        handled: usize,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        let is_rest_partial = io.transport.input.len() < self.needed_input(io.transport.input);
        if PendingDrain::is_due(&mut self.tunnel_drain, handled, is_rest_partial) {
            self.drain_tunnels(io);
        }
    }

    /// Tells the protocols of tunnels of a drain, if they are still to be told.
    pub(super) fn drain_tunnels(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        let Some(drain) = self.tunnel_drain.take() else { return };
        for at in (0..self.children.len()).rev() {
            self.run_tunnel(at, Event::Draining(drain.until), io);
        }
    }

    /// Returns whether no end was announced.
    pub(super) fn is_open(&self) -> bool {
        self.shutdown == ShutdownState::Open
    }

    /// Announces the end of the connection. Requests that are on their way are still served: the
    /// last one is named only when the peer has confirmed the announcement (RFC 9113 §6.8).
    pub(super) fn announce_end(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        if self.shutdown != ShutdownState::Open {
            return;
        }
        self.shutdown = ShutdownState::Announced(io.scope.now() + ANNOUNCEMENT_TIMEOUT);
        write_frame(io, &frame_writer::go_away(STREAM_MAX, GRACEFUL));
        write_frame(io, &frame_writer::ping(ANNOUNCEMENT_PING, false));
    }

    /// Tells the peer which request was the last.
    pub(super) fn send_final_goaway(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        self.shutdown = ShutdownState::Final;
        self.last_announced = self.last_stream;
        write_frame(io, &frame_writer::go_away(self.last_stream, GRACEFUL));
    }

    /// Ends the connection with an error code.
    #[cold]
    pub(super) fn fail(
        &mut self,
        violation: Violation,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> StreamsFlow<S> {
        self.send_error(violation, io);
        self.end_streams(io)
    }

    /// Ends the connection because there is no room for what it holds.
    #[cold]
    pub(super) fn fail_for_room(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> StreamsFlow<S> {
        Counters::add(&io.config.counters_ref().without_room);
        log::debug!("machine {} ends: there is no room beside others", io.scope.token());
        // Which connection is ended is chance, and not the peer's fault.
        self.write_last_goaway(ErrorCode::InternalError, io);
        self.fail_all(io.config, io.scope);
        Flow::Done(None)
    }

    /// Tells the peer of an idle connection which request was the last: one that it sends meanwhile
    /// is not processed, and may be made again whatever it is (RFC 9113 §6.8).
    #[cold]
    pub(in crate::server) fn make_room(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        self.write_last_goaway(ErrorCode::NoError, io);
    }

    fn send_error(&mut self, violation: Violation, io: &mut Io<'_, '_, '_, S::Context>) {
        log::debug!("machine {} ends: {violation}", io.scope.token());
        let code = match violation {
            Violation::Connection(code, _) | Violation::Stream(_, code) => code,
        };
        if code != ErrorCode::NoError {
            Counters::add(&io.config.counters_ref().protocol_errors);
        }
        self.write_last_goaway(code, io);
    }

    fn write_last_goaway(&self, code: ErrorCode, io: &mut Io<'_, '_, '_, S::Context>) {
        write_frame(io, &frame_writer::go_away(self.last_stream.min(self.last_announced), code));
    }

    /// Ends all streams, because the peer has violated the protocol or the connection is lost. The
    /// connection ends with the last protocol that holds back what had arrived for it before.
    pub(super) fn end_streams(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> StreamsFlow<S> {
        self.stop_reading();
        self.shutdown = ShutdownState::Final;
        for at in (0..self.children.len()).rev() {
            self.abort_child(at, io);
        }
        // The input before the drain will not be handled.
        self.drain_tunnels(io);
        match self.children.is_empty() {
            true => Flow::Done(None),
            false => self.proceed(io),
        }
    }

    /// Notes that nothing more is read.
    pub(super) fn stop_reading(&mut self) {
        self.is_read_closed = true;
        // The rest of a frame and the acknowledgement of our settings cannot arrive any more, and
        // waiting for them must not cost responses.
        self.settings.stop();
        self.reader.input_ended();
    }

    /// Returns whether a protocol may hold back what has arrived for it, which is not lost with the
    /// connection.
    pub(in crate::server) fn outlives_connection(&self) -> bool {
        self.children.iter().any(|child| child.tunnel.is_some())
    }

    /// Handles the loss of the connection if no protocol outlives it.
    pub(in crate::server) fn connection_lost(
        mut self,
        config: &ServerConfig,
        scope: &mut Scope<'_, S::Context>,
    ) {
        self.fail_all(config, scope);
    }

    fn fail_all(&mut self, config: &ServerConfig, scope: &mut Scope<'_, S::Context>) {
        for mut child in std::mem::take(&mut self.children) {
            child.step(scope, config, |exchange, io| {
                exchange.abort(io.scope, io.config);
                exchange.outgoing.end(io.scope, io.config);
            });
            child.lose_tunnel(scope);
        }
    }
}
