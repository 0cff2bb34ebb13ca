//! Field blocks: requests and trailers, and their limits.

use super::{FrameResult, Streams};
use crate::h2::request::StreamPurpose;
use crate::h2::trailers::exceeded_trailer_limit;
use crate::h2::{ErrorCode, FieldBlockInfo, FieldBounds, StreamEvent, Violation};
use crate::semantics::error::BodyError;
use crate::server::config::ServerConfig;
use crate::server::counters::Counters;
use crate::server::handler::Server;
use crate::server::io::Io;

const HEADERS_AFTER_END: &str = "HEADERS behind the end of a stream";

impl<S: Server> Streams<S> {
    /// Counts a field block that is far beyond the limits.
    pub(super) fn count_flood(violation: &Violation, config: &ServerConfig) {
        if violation.is_flood() {
            Counters::add(&config.counters_ref().field_floods);
        }
    }

    /// Handles a decoded field block: a request, or the trailers of one.
    pub(super) fn process_fields(
        &mut self,
        of: FieldBlockInfo,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> FrameResult {
        let FieldBlockInfo { stream, is_end } = of;
        let taken = if let Some(at) = self.find_open(stream) {
            self.process_trailers(at, is_end, io)
        } else if stream.is_multiple_of(2) {
            Err(Violation::protocol("a client begins streams of odd numbers"))
        } else if stream > self.last_stream {
            let taken = self.process_request(stream, is_end, io);
            if !is_end && self.find(stream).is_none() {
                // The stream is refused, and the peer does not know that yet.
                self.reset_streams.record(stream, io.config.http2_ref().stream_window);
            }
            taken
        } else if self.reset_streams.accept_fields(stream, true) {
            // These frames were on their way when we reset the stream.
            Ok(())
        } else {
            Err(Violation::Connection(ErrorCode::StreamClosed, HEADERS_AFTER_END))
        };
        self.space.list.clear();
        taken
    }

    fn process_trailers(
        &mut self,
        at: usize,
        is_end: bool,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> FrameResult {
        let child = &mut self.children[at];
        let stream = child.id;
        let of_stream = |code| Violation::Stream(stream, code);
        if !child.state.is_receiving() {
            // RFC 9113 §5.1 makes this an error of the stream until our response is sent, and one
            // of the connection afterwards; §5.4.1 allows the latter before as well. With two
            // results, timing would decide.
            return Err(Violation::Connection(ErrorCode::StreamClosed, HEADERS_AFTER_END));
        }
        if child.purpose != StreamPurpose::Response {
            // RFC 9113 §8.5: a tunnel has DATA, and nothing but DATA.
            return Err(of_stream(ErrorCode::ProtocolError));
        }
        child.state = child.state.after(StreamEvent::Received { is_end }).map_err(of_stream)?;
        if !is_end || !child.intake.may_end() {
            return Err(of_stream(ErrorCode::ProtocolError));
        }
        if let Some(error) = exceeded_trailer_limit(&self.space.list, io.config.limits_ref()) {
            self.step(at, io, |exchange, io| exchange.fail(BodyError::Trailer(error), io));
            return Ok(());
        }
        let trailers = crate::h2::to_trailers(&self.space.list).map_err(|why| {
            log::debug!("machine {}: {why}", io.scope.token());
            of_stream(ErrorCode::ProtocolError)
        })?;
        self.body_ended(at, trailers, io);
        Ok(())
    }
}

pub(super) fn bounds(config: &ServerConfig) -> FieldBounds {
    FieldBounds::new(config.limits_ref(), config.http2_ref().continuations_max)
}
