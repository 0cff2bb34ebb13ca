//! Processes the received frames, one by one.

use rotor_core::{LogLimit, Time};

use super::fields::{FrameResult, bounds};
use super::{Phase, Streams, write_frame};
use crate::client::counters::Counters;
use crate::client::error::ClientError;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::request_source::RequestSource;
use crate::h2::frame::{FRAME_HEADER_BYTES, Frame, FrameHeader, flag, kind};
use crate::h2::settings::setting;
use crate::h2::{
    ErrorCode, FieldBlockInfo, GoAwayReason, Nuisance, StreamEvent, Violation, frame_writer,
};
use crate::semantics::trailers::Trailers;
use crate::tunnel::Event;

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Takes the next frame out of the input, if it is complete.
    pub(super) fn take_frame(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Result<bool, Violation> {
        // An HTTP/1.1 server is recognized by the first bytes of its response, whatever length they
        // would mean.
        if self.phase == Phase::Settings
            && FrameHeader::read(io.transport.input).is_some_and(|header| {
                header.kind != kind::SETTINGS || header.flags & flag::ACK != 0
            })
        {
            return Err(Violation::protocol(match io.transport.input.starts_with(b"HTTP/1") {
                true => "it speaks HTTP/1",
                false => "the first frame is not SETTINGS",
            }));
        }
        let Some(header) = self.reader.whole_frame(io.transport.input)? else { return Ok(false) };
        let unread = io.transport.input.len();
        let taken = self.process_frame(header, io);
        // If it was passed on, it was already removed from the input.
        let is_unconsumed = io.transport.input.len() == unread;
        if is_unconsumed {
            io.transport.input.consume(header.frame_len());
        }
        taken.map(|()| true)
    }

    fn process_frame(
        &mut self,
        header: FrameHeader,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        let stream = header.stream;
        let payload = &io.transport.input[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + header.len];
        let frame = match Frame::read(header, payload) {
            // If the stream does not exist yet, this is an error of the connection.
            Err(Violation::Stream(stream, code))
                if self.is_idle(stream) && header.kind != kind::PRIORITY =>
            {
                return Err(Violation::Connection(code, "a broken frame on an idle stream"));
            }
            frame => frame?,
        };
        if matches!(frame, Frame::Data { .. } | Frame::Headers { .. }) {
            // A server that sends part of a response tolerates another PING.
            (self.next_ping, self.has_spare_ping) = (Time::ZERO, true);
        }
        match frame {
            Frame::Data { .. } => self.process_data(header, io),
            Frame::Headers { fragment, is_whole: true, is_end } => {
                self.reader
                    .read(fragment, &mut self.space.list, &bounds(io.config))
                    .inspect_err(|violation| Self::count_flood(violation, io.config))?;
                self.process_fields(FieldBlockInfo { stream, is_end }, io)
            }
            Frame::Headers { fragment, is_end, .. } => {
                let until = io.scope.now() + io.config.limits.head_timeout;
                self.reader.start_block(FieldBlockInfo { stream, is_end }, fragment, until);
                Ok(())
            }
            Frame::Continuation { fragment, is_last } => {
                let decoded = self
                    .reader
                    .continue_block(fragment, is_last, &mut self.space.list, &bounds(io.config))
                    .inspect_err(|violation| Self::count_flood(violation, io.config))?;
                decoded.map_or(Ok(()), |info| self.process_fields(info, io))
            }
            Frame::Reset { code } => self.reset_by_peer(stream, code, io),
            Frame::Settings { payload } => {
                // RFC 9113 §6.5.2: "A server MUST NOT explicitly set this value to 1".
                let pushes = [&setting::ENABLE_PUSH.to_be_bytes()[..], &[0, 0, 0, 1]].concat();
                if payload.chunks_exact(6).any(|pair| pair == pushes) {
                    return Err(Violation::protocol("a server that wants to be pushed to"));
                }
                let change = self.frames.apply_settings(payload)?;
                let is_first = std::mem::replace(&mut self.phase, Phase::Open) == Phase::Settings;
                self.settings_changed(change, is_first, io)
            }
            Frame::SettingsAck => {
                self.settings_watch.stop();
                self.count(Nuisance::ControlFrame, io)
            }
            Frame::PushPromise => Err(Violation::protocol("a push that was not allowed")),
            Frame::Ping(data) => {
                self.count(Nuisance::ControlFrame, io)?;
                write_frame(io, &frame_writer::ping(data, true));
                Ok(())
            }
            Frame::PingAck(_) => self.count(Nuisance::ControlFrame, io),
            Frame::WindowUpdate(more) => self.window_grew(stream, more, io),
            Frame::PriorityUpdate { .. } => {
                // RFC 9218 §7.1: only clients send it.
                Err(Violation::protocol("PRIORITY_UPDATE of a server"))
            }
            Frame::GoAway { last, code, text } => {
                log_goaway(&GoAwayReason { code, text }, io);
                self.goaway_received(last, code, io);
                self.count(Nuisance::ControlFrame, io)
            }
            Frame::Priority | Frame::Unknown => self.count(Nuisance::ControlFrame, io),
        }
    }

    /// Returns whether the stream was never begun, so that no frame but PRIORITY is allowed on it.
    pub(super) fn is_idle(&self, stream: u32) -> bool {
        stream >= self.next_stream || stream.is_multiple_of(2)
    }

    /// Counts something that honest servers do not do too often.
    pub(super) fn count(
        &mut self,
        nuisance: Nuisance,
        io: &Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        self.floods
            .count(nuisance, &io.config.http2_ref().floods, io.scope.now())
            .inspect_err(|_| Counters::add(&io.config.counters_ref().frame_floods))
    }

    fn process_data(
        &mut self,
        header: FrameHeader,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        let stream = header.stream;
        if self.is_idle(stream) {
            return Err(Violation::protocol("DATA on a stream that was never begun"));
        }
        let beyond = "more DATA than the window of the connection allows";
        self.inbound.take(header.len).map_err(|code| Violation::Connection(code, beyond))?;
        self.bodies_watch.count_frame(header.len, &io.config.limits, io.scope.now());
        let of_stream = |code| Violation::Stream(stream, code);
        let input = &mut *io.transport.input;
        let payload = &input[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + header.len];
        let Frame::Data { data, is_end } = Frame::read(header, payload)? else { return Ok(()) };
        let mut nuisance = Nuisance::from_data(data.len(), is_end);
        let Some(at) = self.find_stream(stream) else {
            self.inbound.release(header.len);
            if !self.reset_streams.accept_data(stream, header.len, is_end) {
                let why = "DATA on a stream that is over";
                return Err(Violation::Connection(ErrorCode::StreamClosed, why));
            }
            return nuisance.map_or(Ok(()), |nuisance| self.count(nuisance, io));
        };
        let child = &mut self.children[at];
        child.intake.count_frame(header.len).map_err(of_stream)?;
        child.state = child
            .state
            .after(StreamEvent::Received { is_end })
            .map_err(|code| Violation::Connection(code, "DATA behind the end of a stream"))?;
        if child.awaits_head() {
            return Err(of_stream(ErrorCode::ProtocolError));
        }
        child.intake.count_body(data.len(), is_end).map_err(of_stream)?;
        if let Some(tunnel) = &mut child.tunnel {
            nuisance = nuisance.filter(|nuisance| !nuisance.is_message_frame());
            tunnel.extend(data);
        } else {
            child.input.extend(data);
        }
        input.consume(FRAME_HEADER_BYTES + header.len);
        if let Some(nuisance) = nuisance {
            self.count(nuisance, io)?;
        }
        if self.children[at].tunnel.is_some() {
            let event = match is_end {
                true => Event::InputEnded { is_truncated: false },
                false => Event::Pass,
            };
            self.run_tunnel(at, event, io);
        } else if is_end {
            self.body_ended(at, Trailers::default(), io);
        } else {
            self.step(at, io, |exchange, io| exchange.receive(io));
        }
        Ok(())
    }

    fn reset_by_peer(
        &mut self,
        stream: u32,
        code: u32,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        if self.is_idle(stream) {
            return Err(Violation::protocol("RST_STREAM of a stream that was never begun"));
        }
        self.count(Nuisance::ControlFrame, io)?;
        // It may have been sent before the stream ended.
        let Some(at) = self.find_stream(stream) else { return Ok(()) };
        let child = &mut self.children[at];
        let is_answered = !child.state.is_receiving();
        child.state = child.state.after(StreamEvent::Reset).unwrap_or(child.state);
        if child.is_handler_done() {
            self.remove_child(at, io);
            return Ok(());
        }
        if is_answered && child.tunnel.is_none() {
            // RFC 9113 §8.1: "Clients MUST NOT discard responses as a result of receiving such a
            // RST_STREAM". The server only refuses the rest of the request.
            self.update_child(at, io);
            return Ok(());
        }
        Counters::add(&io.config.counters_ref().streams_reset);
        if child.tunnel.is_some() {
            self.reset_tunnel(at, io);
            return Ok(());
        }
        // RFC 9113 §8.7: only this code promises that the request was not processed.
        if code == ErrorCode::RefusedStream.number() {
            self.refused(at, false, io);
        } else if code == ErrorCode::Http11Required.number() {
            self.http1_required(at, false, io);
        } else {
            self.fail_and_reset(at, ClientError::Reset(code), ErrorCode::Cancel, io);
        }
        Ok(())
    }

    fn settings_changed(
        &mut self,
        change: i64,
        is_first: bool,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        self.count(Nuisance::ControlFrame, io)?;
        self.must_call_feed = true;
        write_frame(io, &frame_writer::settings_ack());
        self.return_excess(io);
        // A request may have waited for the first settings.
        if change == 0 && !is_first {
            return Ok(());
        }
        for child in &mut self.children {
            child.outbound.change_or_fail_connection(change)?;
        }
        self.update_all_children(io);
        Ok(())
    }

    fn window_grew(
        &mut self,
        stream: u32,
        more: u32,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        let nuisance = Nuisance::from_window_update(more);
        if let Some(nuisance) = nuisance {
            self.count(nuisance, io)?;
        }
        if stream == 0 {
            self.grant_watch.count_granted(more, &io.config.limits, io.scope.now());
            if self.frames.grow_window(more)? {
                self.update_all_children(io);
            }
            return Ok(());
        }
        if self.is_idle(stream) {
            return Err(Violation::protocol("WINDOW_UPDATE of a stream that was never begun"));
        }
        let Some(at) = self.find_stream(stream) else {
            // It may have been sent before the stream ended, and has no effect.
            let is_counted = nuisance.is_some();
            return if is_counted { Ok(()) } else { self.count(Nuisance::ControlFrame, io) };
        };
        let child = &mut self.children[at];
        let changed = child.outbound.change(i64::from(more));
        changed.map_err(|code| Violation::Stream(stream, code))?;
        self.update_child(at, io);
        Ok(())
    }
}

/// Logs why a server ends the connection. An error is for the operator, who has chosen the server:
/// it may be this side's (ENHANCE_YOUR_CALM for too many PINGs), and requests under way fail with no
/// other reason than the end of their connection.
#[cold]
fn log_goaway<C>(reason: &GoAwayReason<'_>, io: &Io<'_, '_, '_, C>) {
    static ERRORS: LogLimit = LogLimit::new();
    let is_error = reason.code != ErrorCode::NoError.number();
    let token = io.scope.token();
    match is_error.then(|| ERRORS.try_pass(io.scope.now())).flatten() {
        Some(others) => log::warn!(
            "machine {token}: {} ends its connection: {reason} (before, {others} more were ended)",
            match io.transport.connection().peer_address() {
                Some(address) => address.to_string(),
                None => "the server".to_owned(),
            },
        ),
        None => log::debug!("machine {token} is told to go away: {reason}"),
    }
}
