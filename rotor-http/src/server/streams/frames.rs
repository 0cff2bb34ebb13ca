//! Reads the frames of the peer one by one, and passes each to its handler.

use super::blocks::bounds;
use super::end::ANNOUNCEMENT_PING;
use super::{FrameResult, Phase, ShutdownState, Streams, write_frame};
use crate::h2::frame::{FRAME_HEADER_BYTES, Frame, FrameHeader, PREFACE};
use crate::h2::{FieldBlockInfo, GoAwayReason, Nuisance, Priority, Violation, frame_writer};
use crate::server::handler::Server;
use crate::server::io::Io;

impl<S: Server> Streams<S> {
    /// Handles the next frame of the input, if it is complete; returns whether it was.
    pub(super) fn take_frame(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Result<bool, Violation> {
        if self.phase == Phase::Preface {
            return self.take_preface(io);
        }
        let Some(header) = self.reader.whole_frame(io.transport.input)? else { return Ok(false) };
        let unread = io.transport.input.len();
        let taken = self.process_frame(header, io);
        // If the data was passed on, it is no longer in the input.
        let is_left = io.transport.input.len() == unread;
        if is_left {
            io.transport.input.consume(header.frame_len());
        }
        taken.map(|()| true)
    }

    fn take_preface(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Result<bool, Violation> {
        let input = &mut *io.transport.input;
        let len = input.len().min(PREFACE.len());
        if input[..len] != PREFACE[..len] {
            return Err(Violation::protocol("the preface is not that of HTTP/2"));
        }
        if len < PREFACE.len() {
            return Ok(false);
        }
        input.consume(len);
        self.phase = Phase::Settings;
        Ok(true)
    }

    fn process_frame(
        &mut self,
        header: FrameHeader,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> FrameResult {
        let stream = header.stream;
        let payload = &io.transport.input[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + header.len];
        let frame = match Frame::read(header, payload) {
            // If the stream does not exist yet, this is an error of the connection: such a stream
            // must not be reset (RFC 9113 §6.4).
            Err(Violation::Stream(stream, code)) if self.is_idle(stream) => {
                return Err(Violation::Connection(code, "a broken frame on an idle stream"));
            }
            // Malformed DATA is an error of the connection, so the connection's window counts every
            // DATA frame.
            frame => frame?,
        };
        if self.phase == Phase::Settings && !matches!(frame, Frame::Settings { .. }) {
            return Err(Violation::protocol("the first frame is not SETTINGS"));
        }
        match frame {
            Frame::Data { .. } => self.process_data(header, io),
            Frame::Headers { fragment, is_whole: true, is_end } => {
                self.reader
                    .read(fragment, &mut self.space.list, &bounds(io.config))
                    .inspect_err(|violation| Self::count_flood(violation, io.config))?;
                // Consumed before the call, because the frame is not needed any more.
                io.transport.input.consume(FRAME_HEADER_BYTES + header.len);
                self.process_fields(FieldBlockInfo { stream, is_end }, io)
            }
            Frame::Headers { fragment, is_end, .. } => {
                let until = io.scope.now() + io.config.limits_ref().head_timeout;
                self.reader.start_block(FieldBlockInfo { stream, is_end }, fragment, until);
                Ok(())
            }
            Frame::Continuation { fragment, is_last } => {
                let decoded = self
                    .reader
                    .continue_block(fragment, is_last, &mut self.space.list, &bounds(io.config))
                    .inspect_err(|violation| Self::count_flood(violation, io.config))?;
                decoded.map_or(Ok(()), |of| self.process_fields(of, io))
            }
            Frame::Reset { .. } => self.reset_by_peer(stream, io),
            Frame::Settings { payload } => {
                let change = self.frames.apply_settings(payload)?;
                self.phase = Phase::Open;
                self.settings_changed(change, io)
            }
            Frame::SettingsAck => {
                self.settings.stop();
                self.count_nuisance(Nuisance::ControlFrame, io)
            }
            Frame::PushPromise => Err(Violation::protocol("a client does not push")),
            Frame::Ping(data) => {
                self.count_nuisance(Nuisance::ControlFrame, io)?;
                write_frame(io, &frame_writer::ping(data, true));
                Ok(())
            }
            Frame::PingAck(data) => {
                // This ping was sent with the announcement of the end, so the peer knows of that,
                // too.
                if matches!(self.shutdown, ShutdownState::Announced(_)) && data == ANNOUNCEMENT_PING
                {
                    self.send_final_goaway(io);
                }
                self.count_nuisance(Nuisance::ControlFrame, io)
            }
            Frame::WindowUpdate(more) => self.window_grew(stream, more, io),
            Frame::PriorityUpdate { stream, value } => {
                let priority = Priority::read(value);
                self.count_nuisance(Nuisance::ControlFrame, io)?;
                self.prioritize(stream, priority, io.config)
            }
            // It only means that the peer will begin no more streams.
            Frame::GoAway { code, text, .. } => {
                let reason = GoAwayReason { code, text };
                log::debug!("machine {}: its client goes away: {reason}", io.scope.token());
                self.count_nuisance(Nuisance::ControlFrame, io)
            }
            Frame::Priority | Frame::Unknown => self.count_nuisance(Nuisance::ControlFrame, io),
        }
    }

    /// Returns whether the stream was never begun, so that only HEADERS and PRIORITY are allowed on
    /// it.
    pub(super) fn is_idle(&self, stream: u32) -> bool {
        stream > self.last_stream || stream.is_multiple_of(2)
    }
}
