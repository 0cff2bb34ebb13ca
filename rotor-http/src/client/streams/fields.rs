//! Field blocks: the heads of responses, and their trailers.

use super::Streams;
use super::held_heads::ReceivedHead;
use crate::client::config::ClientConfig;
use crate::client::counters::Counters;
use crate::client::error::ClientError;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::request_source::RequestSource;
use crate::h2::hpack::FieldList;
use crate::h2::response::CheckedResponse;
use crate::h2::trailers::exceeded_trailer_limit;
use crate::h2::{ErrorCode, FieldBlockInfo, FieldBounds, Nuisance, StreamEvent, Violation};
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;

pub(super) type FrameResult = Result<(), Violation>;

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Counts a violation, if it is a field block that is far beyond its limits.
    pub(super) fn count_flood(violation: &Violation, config: &ClientConfig) {
        if violation.is_flood() {
            Counters::add(&config.counters_ref().field_floods);
        }
    }

    /// Processes a decoded field block: the head of a response, or its trailers.
    pub(super) fn process_fields(
        &mut self,
        info: FieldBlockInfo,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        // Taken out, because handlers are called with it, which may lead to any other method.
        let mut list = std::mem::take(&mut self.space.list);
        let taken = self.process_field_list(info, &mut list, io);
        list.clear();
        self.space.list = list;
        taken
    }

    fn process_field_list(
        &mut self,
        info: FieldBlockInfo,
        list: &mut FieldList,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        let FieldBlockInfo { stream, is_end } = info;
        if self.is_idle(stream) {
            return Err(Violation::protocol("HEADERS on a stream that was never begun"));
        }
        let Some(at) = self.find_stream(stream) else {
            // They may have been sent before this side reset the stream.
            if self.reset_streams.accept_fields(stream, is_end) {
                return self.count(Nuisance::ControlFrame, io);
            }
            let why = "HEADERS on a stream that is over";
            return Err(Violation::Connection(ErrorCode::StreamClosed, why));
        };
        let child = &mut self.children[at];
        if child.tunnel.is_some() {
            // RFC 9113 §8.5: in a tunnel only DATA is allowed.
            return Err(Violation::Stream(stream, ErrorCode::ProtocolError));
        }
        child.state = child
            .state
            .after(StreamEvent::Received { is_end })
            .map_err(|code| Violation::Connection(code, "HEADERS behind the end of a stream"))?;
        match child.awaits_head() {
            true => self.process_head(at, list, is_end, io),
            false => self.process_trailers(at, list, is_end, io),
        }
    }

    fn process_head(
        &mut self,
        at: usize,
        list: &mut FieldList,
        is_end: bool,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        let child = &mut self.children[at];
        let Some(exchange) = &child.exchange else { return Ok(()) };
        let method = exchange.request().framing_method();
        let mut response = match CheckedResponse::check(list, method, is_end, &io.config.limits) {
            Ok(response) => response,
            Err(error) => {
                self.fail_and_reset(at, ClientError::Head(error), ErrorCode::ProtocolError, io);
                return self.count(Nuisance::ProvokedReset, io);
            }
        };
        let answers_upgrade = child.is_extended_connect;
        if answers_upgrade && response.status.is_success() {
            response.switch();
        } else if !response.terms.is_interim {
            // The request was not upgraded: this is an exchange like any other.
            child.is_extended_connect = false;
        }
        child.intake.set_length(response.length);
        let is_interim = response.terms.is_interim;
        let end = (is_end && !is_interim).then(Trailers::default);
        let mut head = ReceivedHead { list: std::mem::take(list), response, answers_upgrade, end };
        if child.holds_head() {
            // The exchange counts them only when it gets them.
            if child.hold_head(head) > io.config.limits.interim_responses_max {
                self.fail_and_reset(at, ClientError::TooManyInterim, ErrorCode::Cancel, io);
            }
        } else {
            let connection = io.transport.connection();
            self.step(at, io, |exchange, io| head.deliver(connection, exchange, io));
            // Its memory serves for the next one.
            *list = head.list;
        }
        if is_interim {
            // Each is small, and needs no answer.
            self.count(Nuisance::ControlFrame, io)?;
        }
        Ok(())
    }

    fn process_trailers(
        &mut self,
        at: usize,
        list: &FieldList,
        is_end: bool,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        let child = &self.children[at];
        let of_stream = |code| Violation::Stream(child.stream.unwrap_or_default(), code);
        if !is_end || !child.intake.may_end() {
            return Err(of_stream(ErrorCode::ProtocolError));
        }
        if let Some(error) = exceeded_trailer_limit(list, &io.config.limits) {
            let error = ClientError::Body(BodyError::Trailer(error));
            self.fail_and_reset(at, error, ErrorCode::ProtocolError, io);
            return self.count(Nuisance::ProvokedReset, io);
        }
        let trailers = crate::h2::to_trailers(list).map_err(|why| {
            log::debug!("machine {}: {why}", io.scope.token());
            of_stream(ErrorCode::ProtocolError)
        })?;
        self.body_ended(at, trailers, io);
        Ok(())
    }

    pub(super) fn body_ended(
        &mut self,
        at: usize,
        trailers: Trailers,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        if self.children[at].is_handler_done() {
            return self.remove_child(at, io);
        }
        let Some(trailers) = self.children[at].end_behind_held_heads(trailers) else {
            return self.update_child(at, io);
        };
        self.step(at, io, |exchange, io| {
            exchange.body_ended(trailers);
            exchange.receive(io)
        });
    }

    /// Handles a violation of the protocol on one stream: its request fails, the others go on.
    pub(super) fn fail_stream(
        &mut self,
        stream: u32,
        code: ErrorCode,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> FrameResult {
        log::debug!("machine {} resets stream {stream}: {code:?}", io.scope.token());
        if let Some(at) = self.find_stream(stream) {
            // The response was delivered, so later frames on the stream do not end the connection.
            if self.children[at].is_handler_done() {
                self.remove_child(at, io);
                return Ok(());
            }
            if self.children[at].tunnel.is_some() {
                self.children[at].code = code;
                self.reset_tunnel(at, io);
                return self.count(Nuisance::ProvokedReset, io);
            }
            let has_response =
                self.children[at].exchange.as_ref().is_some_and(|own| !own.awaits_head());
            let error = match has_response {
                true => ClientError::Body(BodyError::Truncated),
                false => ClientError::Protocol(Violation::Stream(stream, code).why()),
            };
            self.fail_and_reset(at, error, code, io);
        }
        self.count(Nuisance::ProvokedReset, io)
    }
}

pub(super) fn bounds(config: &ClientConfig) -> FieldBounds {
    FieldBounds::new(&config.limits, config.http2_ref().continuations_max)
}
