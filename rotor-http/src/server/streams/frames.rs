//! The frames that come, one by one, and what each does to the streams.

use super::end::ANNOUNCED;
use super::{Block, GRACEFUL, Going, Phase, Streams, is_too_long, list_bytes_max, put};
use crate::h2::frame::{FRAME_HEADER_BYTES, Frame, FrameHeader, PREFACE, kind};
use crate::h2::hpack::{Bounds, HpackError};
use crate::h2::{ErrorCode, Nuisance, Priority, StreamEvent, Violation, frame_writer};
use crate::semantics::trailers::Trailers;
use crate::server::config::ServerConfig;
use crate::server::counters::Counters;
use crate::server::handler::Server;
use crate::server::io::Io;

/// Windows that grow by less are counted with what no honest peer does often.
const SMALL_UPDATE: u32 = 1024;

/// How much of a block beyond what is kept is decoded, so that it can be answered (431).
const DECODED_TIMES: usize = 4;

type Taken = Result<(), Violation>;

impl<S: Server> Streams<S> {
    /// Takes the next frame out of the input, if it is there whole.
    pub(super) fn take_frame(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Result<bool, Violation> {
        if self.phase == Phase::Preface {
            return self.take_preface(io);
        }
        let Some(header) = FrameHeader::read(io.transport.input) else { return Ok(false) };
        if is_too_long(header) {
            return Err(Violation::size("a frame of more octets than were allowed"));
        }
        let len = FRAME_HEADER_BYTES + header.len;
        if io.transport.input.len() < len {
            return Ok(false);
        }
        // Before anything else: a block that is broken off leaves the tables out of step.
        if self
            .block
            .as_ref()
            .is_some_and(|block| (header.kind, header.stream) != (kind::CONTINUATION, block.stream))
        {
            return Err(Violation::protocol("a block of fields is broken off"));
        }
        let unread = io.transport.input.len();
        let taken = self.frame(header, io);
        // Where it was handed over, it is out already.
        let is_left = io.transport.input.len() == unread;
        if is_left {
            io.transport.input.consume(len);
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

    fn frame(&mut self, header: FrameHeader, io: &mut Io<'_, '_, '_, S::Context>) -> Taken {
        let stream = header.stream;
        let payload = &io.transport.input[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + header.len];
        let frame = match Frame::read(header, payload) {
            // Of a stream that does not exist yet, it is the connection's.
            Err(Violation::Stream(stream, code))
                if self.is_idle(stream) && header.kind != kind::PRIORITY =>
            {
                return Err(Violation::Connection(code, "a broken frame on an idle stream"));
            }
            // The window of the connection counts it whatever it is.
            frame => frame?,
        };
        if self.phase == Phase::Settings && !matches!(frame, Frame::Settings { .. }) {
            return Err(Violation::protocol("the first frame is not SETTINGS"));
        }
        match frame {
            Frame::Data { .. } => self.data(header, io),
            Frame::Headers { fragment, is_whole: true, is_end } => {
                let decoded = self.decoder.decode(fragment, &mut self.list, &bounds(io.config));
                self.decoded(decoded, io)?;
                // The handler may write as much as it likes: the frame is not needed any more.
                io.transport.input.consume(FRAME_HEADER_BYTES + header.len);
                self.fields(stream, is_end, io)
            }
            Frame::Headers { fragment, is_end, .. } => {
                let until = io.scope.now() + io.config.limits_ref().head_timeout;
                let octets = fragment.to_vec();
                self.block = Some(Block { stream, is_end, octets, continuations: 0, until });
                Ok(())
            }
            Frame::Continuation { fragment, is_last } => {
                let config = io.config;
                let Some(block) = &mut self.block else {
                    return Err(Violation::protocol("CONTINUATION of nothing"));
                };
                block.continuations += 1;
                let len = block.octets.len() + fragment.len();
                if len > config.limits_ref().head_bytes_max
                    || block.continuations > config.http2_ref().continuations_max
                {
                    Counters::add(&config.count().field_floods);
                    return Err(Violation::flood("a block of fields without end"));
                }
                block.octets.extend_from_slice(fragment);
                if is_last { self.block_ended(io) } else { Ok(()) }
            }
            Frame::Reset { .. } => self.reset_by_peer(stream, io),
            Frame::Settings { payload } => {
                let change = self.peer.apply(payload)?;
                self.phase = Phase::Open;
                self.settings_changed(change, io)
            }
            Frame::SettingsAck => {
                self.settings_until = rotor_core::Time::NEVER;
                self.count(Nuisance::ControlFrame, io)
            }
            Frame::PushPromise => Err(Violation::protocol("a client does not push")),
            Frame::Ping(data) => {
                self.count(Nuisance::ControlFrame, io)?;
                put(io, &frame_writer::ping(data, true));
                Ok(())
            }
            Frame::PingAck(data) => {
                // It was sent with the announcement of the end: the peer has heard that, too.
                if matches!(self.going, Going::Announced(_)) && data == ANNOUNCED {
                    self.say_last(io);
                }
                self.count(Nuisance::ControlFrame, io)
            }
            Frame::WindowUpdate(more) => self.window_grew(stream, more, io),
            Frame::PriorityUpdate { stream, value } => {
                let priority = Priority::read(value);
                self.count(Nuisance::ControlFrame, io)?;
                self.prioritize(stream, priority, io.config)
            }
            // A GOAWAY of the peer only says that it will begin no more.
            Frame::Priority | Frame::GoAway { .. } | Frame::Unknown => {
                self.count(Nuisance::ControlFrame, io)
            }
        }
    }

    /// Whether the stream was never begun, and no frame but HEADERS and PRIORITY may come on it.
    fn is_idle(&self, stream: u32) -> bool {
        stream > self.last || stream.is_multiple_of(2)
    }

    /// What no honest peer does too often was done once more.
    pub(super) fn count(&mut self, nuisance: Nuisance, io: &Io<'_, '_, '_, S::Context>) -> Taken {
        if self.floods.count(nuisance, &io.config.http2_ref().floods, io.scope.now()) {
            return Ok(());
        }
        let counters = io.config.count();
        let (counter, why) = match nuisance {
            Nuisance::Reset => (&counters.reset_floods, "too many requests are taken back"),
            Nuisance::ProvokedReset => (&counters.reset_floods, "too many streams had to be reset"),
            Nuisance::ControlFrame => (&counters.frame_floods, "too many frames of no use"),
            Nuisance::EmptyData => (&counters.frame_floods, "too much DATA of no octets"),
        };
        Counters::add(counter);
        Err(Violation::flood(why))
    }

    fn decoded(&self, decoded: Result<(), HpackError>, io: &Io<'_, '_, '_, S::Context>) -> Taken {
        decoded.map_err(|error| {
            log::debug!("machine {}: {error}", io.scope.token());
            if error == HpackError::TooLarge {
                Counters::add(&io.config.count().field_floods);
                return Violation::flood("a block of fields is far too large");
            }
            Violation::Connection(ErrorCode::CompressionError, "a block of fields is broken")
        })
    }

    fn block_ended(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Taken {
        let Some(block) = self.block.take() else { return Ok(()) };
        let decoded = self.decoder.decode(&block.octets, &mut self.list, &bounds(io.config));
        self.decoded(decoded, io)?;
        self.fields(block.stream, block.is_end, io)
    }

    /// A block of fields was decoded: a request, or the trailers of one.
    fn fields(&mut self, stream: u32, is_end: bool, io: &mut Io<'_, '_, '_, S::Context>) -> Taken {
        let taken = if let Some(at) = self.find(stream) {
            self.trailers(at, is_end, io)
        } else if stream.is_multiple_of(2) {
            Err(Violation::protocol("a client begins streams of odd numbers"))
        } else if stream > self.last {
            self.request(stream, is_end, io)
        } else if self.forgotten.fields(stream) {
            // They were on their way when we reset the stream.
            Ok(())
        } else {
            Err(Violation::Connection(ErrorCode::StreamClosed, "HEADERS on a stream that is over"))
        };
        self.list.clear();
        taken
    }

    fn trailers(&mut self, at: usize, is_end: bool, io: &mut Io<'_, '_, '_, S::Context>) -> Taken {
        let child = &mut self.children[at];
        let stream = child.id;
        let of_stream = |code| Violation::Stream(stream, code);
        child.state = child.state.after(StreamEvent::Received { is_end }).map_err(of_stream)?;
        let is_short = child.length.is_some_and(|length| length != child.received);
        if !is_end || is_short || self.list.is_over() {
            return Err(of_stream(ErrorCode::ProtocolError));
        }
        let trailers = crate::h2::trailers_of(&self.list).map_err(|why| {
            log::debug!("machine {}: {why}", io.scope.token());
            of_stream(ErrorCode::ProtocolError)
        })?;
        self.body_ended(at, trailers, io);
        Ok(())
    }

    fn body_ended(&mut self, at: usize, trailers: Trailers, io: &mut Io<'_, '_, '_, S::Context>) {
        if let Some(exchange) = &mut self.children[at].exchange {
            exchange.body.frames_ended(trailers);
        }
        self.step(at, io, |exchange, io| exchange.receive(io));
    }

    fn data(&mut self, header: FrameHeader, io: &mut Io<'_, '_, '_, S::Context>) -> Taken {
        let stream = header.stream;
        if self.is_idle(stream) {
            return Err(Violation::protocol("DATA on a stream that was never begun"));
        }
        let beyond = "more DATA than the window of the connection allows";
        self.inbound.take(header.len).map_err(|code| Violation::Connection(code, beyond))?;
        self.count_body(header.len, io);
        self.counted = 0;
        let of_stream = |code| Violation::Stream(stream, code);
        let input = &mut *io.transport.input;
        let payload = &input[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + header.len];
        let Frame::Data { data, is_end } = Frame::read(header, payload)? else { return Ok(()) };
        let Some(at) = self.find(stream) else {
            self.inbound.release(header.len);
            let is_nothing = data.is_empty() && !is_end;
            if !self.forgotten.data(stream, header.len, is_end) {
                return Err(of_stream(ErrorCode::StreamClosed));
            }
            return if is_nothing { self.count(Nuisance::EmptyData, io) } else { Ok(()) };
        };
        let child = &mut self.children[at];
        // From here on the child answers for the octets: they are released with it, or by it.
        let received = child.inbound.take(header.len);
        child.held += header.len;
        child.held_shared += header.len;
        received.map_err(of_stream)?;
        child.state = child.state.after(StreamEvent::Received { is_end }).map_err(of_stream)?;
        child.received += data.len() as u64;
        // RFC 9113 §8.1.1: else a server of HTTP/1.1 behind sees another request in what is over.
        let is_wrong = child
            .length
            .is_some_and(|length| child.received > length || (is_end && child.received < length));
        if is_wrong {
            return Err(of_stream(ErrorCode::ProtocolError));
        }
        let is_nothing = data.is_empty() && !is_end;
        let is_dropped = child.exchange.is_none();
        if !is_dropped {
            child.input.extend(data);
        }
        input.consume(FRAME_HEADER_BYTES + header.len);
        if is_nothing {
            self.count(Nuisance::EmptyData, io)?;
        }
        if is_dropped {
            self.dropped(at, io);
        } else if is_end {
            self.body_ended(at, Trailers::default(), io);
        } else {
            self.step(at, io, |exchange, io| exchange.receive(io));
        }
        Ok(())
    }

    fn reset_by_peer(&mut self, stream: u32, io: &mut Io<'_, '_, '_, S::Context>) -> Taken {
        if self.is_idle(stream) {
            return Err(Violation::protocol("RST_STREAM of a stream that was never begun"));
        }
        let Some(at) = self.find(stream) else {
            return self.count(Nuisance::ControlFrame, io);
        };
        // Of a response that is whole, it says only that the rest of the request will not come.
        let nuisance = match self.children[at].has_ended() {
            true => Nuisance::ControlFrame,
            false => {
                Counters::add(&io.config.count().streams_reset);
                Nuisance::Reset
            }
        };
        self.forget(at, io);
        self.count(nuisance, io)
    }

    fn settings_changed(&mut self, change: i64, io: &mut Io<'_, '_, '_, S::Context>) -> Taken {
        self.count(Nuisance::ControlFrame, io)?;
        self.encoder.set_table_max(self.peer.header_table_size as usize);
        put(io, &frame_writer::settings_ack());
        if change == 0 {
            return Ok(());
        }
        for child in &mut self.children {
            let changed = child.outbound.change(change);
            changed.map_err(|code| Violation::Connection(code, "a window beyond 2^31 - 1"))?;
        }
        self.look_at_all(io);
        Ok(())
    }

    fn window_grew(
        &mut self,
        stream: u32,
        more: u32,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Taken {
        if more < SMALL_UPDATE {
            self.count(Nuisance::ControlFrame, io)?;
        }
        if stream == 0 {
            let was_shut = self.outbound.octets() == 0;
            let changed = self.outbound.change(i64::from(more));
            changed.map_err(|code| Violation::Connection(code, "a window beyond 2^31 - 1"))?;
            if was_shut {
                self.look_at_all(io);
            }
            return Ok(());
        }
        if self.is_idle(stream) {
            return Err(Violation::protocol("WINDOW_UPDATE of a stream that was never begun"));
        }
        let Some(at) = self.find(stream) else {
            // It may have been on its way, and is of no use.
            let is_counted = more < SMALL_UPDATE;
            return if is_counted { Ok(()) } else { self.count(Nuisance::ControlFrame, io) };
        };
        let changed = self.children[at].outbound.change(i64::from(more));
        changed.map_err(|code| Violation::Stream(stream, code))?;
        self.settle(at, io);
        Ok(())
    }

    fn prioritize(&mut self, stream: u32, priority: Priority, config: &ServerConfig) -> Taken {
        if stream.is_multiple_of(2) {
            return Err(Violation::protocol("PRIORITY_UPDATE of a stream that no client begins"));
        }
        if let Some(at) = self.find(stream) {
            let child = &mut self.children[at];
            if child.is_scheduled {
                self.schedule.remove(stream, child.priority);
                self.schedule.insert(stream, priority);
            }
            child.priority = priority;
        } else if stream > self.last {
            self.wishes.retain(|(own, _)| *own != stream);
            // RFC 9218 §7.1: of more streams than there may be, nothing need be kept.
            if self.wishes.len() < config.http2_ref().streams_max as usize {
                self.wishes.push((stream, priority));
            }
        }
        Ok(())
    }

    /// Refuses a stream: a breach of the protocol, which the peer may not commit too often.
    pub(super) fn refuse(
        &mut self,
        stream: u32,
        code: ErrorCode,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Taken {
        log::debug!("machine {} resets stream {stream}: {code:?}", io.scope.token());
        Counters::add(&io.config.count().streams_refused);
        self.reset(stream, code, io);
        if code == GRACEFUL { Ok(()) } else { self.count(Nuisance::ProvokedReset, io) }
    }
}

fn bounds(config: &ServerConfig) -> Bounds {
    let list_bytes_max = list_bytes_max(config);
    Bounds {
        list_bytes_max,
        // Beside the four pseudo-fields.
        fields_max: config.limits_ref().fields_max + 4,
        decoded_bytes_max: list_bytes_max.saturating_mul(DECODED_TIMES),
    }
}
