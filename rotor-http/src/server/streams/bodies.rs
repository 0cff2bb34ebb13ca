//! DATA: the bytes of a body, and its end.

use super::{FrameResult, Streams};
use crate::h2::frame::{FRAME_HEADER_BYTES, Frame, FrameHeader};
use crate::h2::{ErrorCode, Nuisance, StreamEvent, Violation};
use crate::semantics::trailers::Trailers;
use crate::server::handler::Server;
use crate::server::io::Io;
use crate::tunnel::Event;

impl<S: Server> Streams<S> {
    pub(super) fn process_data(
        &mut self,
        header: FrameHeader,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> FrameResult {
        let stream = header.stream;
        if self.is_idle(stream) {
            return Err(Violation::protocol("DATA on a stream that was never begun"));
        }
        let beyond = "more DATA than the window of the connection allows";
        self.inbound.take(header.len).map_err(|code| Violation::Connection(code, beyond))?;
        self.bodies.count_frame(header.len, io.config.limits_ref(), io.scope.now());
        let of_stream = |code| Violation::Stream(stream, code);
        let input = &mut *io.transport.input;
        let payload = &input[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + header.len];
        let Frame::Data { data, is_end } = Frame::read(header, payload)? else { return Ok(()) };
        let Some(at) = self.find_open(stream) else {
            self.inbound.release(header.len);
            let nuisance = Nuisance::from_data(data.len(), is_end);
            if !self.reset_streams.accept_data(stream, header.len, is_end) {
                return Err(of_stream(ErrorCode::StreamClosed));
            }
            return nuisance.map_or(Ok(()), |nuisance| self.count_nuisance(nuisance, io));
        };
        let child = &mut self.children[at];
        child.intake.count_frame(header.len).map_err(of_stream)?;
        child.state = child.state.after(StreamEvent::Received { is_end }).map_err(of_stream)?;
        child.intake.count_body(data.len(), is_end).map_err(of_stream)?;
        let mut nuisance = Nuisance::from_data(data.len(), is_end);
        let is_dropped = child.ignores_input();
        if let Some(tunnel) = &mut child.tunnel {
            nuisance = nuisance.filter(|nuisance| !nuisance.is_message_frame());
            tunnel.extend(data);
        } else if !is_dropped {
            child.input.extend(data);
        }
        input.consume(FRAME_HEADER_BYTES + header.len);
        if let Some(nuisance) = nuisance {
            self.count_nuisance(nuisance, io)?;
        }
        if is_dropped {
            self.handle_unwanted_data(at, io);
        } else if self.children[at].tunnel.is_some() {
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

    pub(super) fn body_ended(
        &mut self,
        at: usize,
        trailers: Trailers,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        if let Some(exchange) = &mut self.children[at].exchange {
            exchange.body.frames_ended(trailers);
        }
        self.step(at, io, |exchange, io| exchange.receive(io));
    }
}
