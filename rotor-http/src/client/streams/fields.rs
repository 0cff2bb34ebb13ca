//! Field blocks: the heads of responses, and their trailers.

use super::Streams;
use crate::client::config::ClientConfig;
use crate::client::counters::Counters;
use crate::client::error::ClientError;
use crate::client::feed::Feed;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::h2::hpack::FieldList;
use crate::h2::response::CheckedResponse;
use crate::h2::trailers::exceeded_trailer_limit;
use crate::h2::{ErrorCode, FieldBlockInfo, FieldBounds, Nuisance, StreamEvent, Violation};
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;

pub(super) type Taken = Result<(), Violation>;

impl<K: Client, F: Feed<K>> Streams<K, F> {
    /// Counts a violation, if it is a field block that is far beyond its limits.
    pub(super) fn note_flood(violation: &Violation, config: &ClientConfig) {
        if violation.is_flood() {
            Counters::add(&config.count().field_floods);
        }
    }

    /// Processes a decoded field block: the head of a response, or its trailers.
    pub(super) fn fields(
        &mut self,
        of: FieldBlockInfo,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Taken {
        // Taken out, because handlers are called with it, which may lead to any other method.
        let mut list = std::mem::take(&mut self.space.list);
        let taken = self.fields_of(of, &mut list, io);
        list.clear();
        self.space.list = list;
        taken
    }

    fn fields_of(
        &mut self,
        of: FieldBlockInfo,
        list: &mut FieldList,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Taken {
        let FieldBlockInfo { stream, is_end } = of;
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
        match child.exchange.as_ref().is_some_and(|exchange| exchange.is_expected()) {
            true => self.head(at, list, is_end, io),
            false => self.trailers(at, list, is_end, io),
        }
    }

    fn head(
        &mut self,
        at: usize,
        list: &mut FieldList,
        is_end: bool,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Taken {
        let child = &mut self.children[at];
        let Some(exchange) = &child.exchange else { return Ok(()) };
        let method = exchange.request().framing_method();
        let mut response = match CheckedResponse::check(list, method, is_end, &io.config.limits) {
            Ok(response) => response,
            Err(error) => {
                self.cut(at, ClientError::Head(error), ErrorCode::ProtocolError, io);
                return self.count(Nuisance::ProvokedReset, io);
            }
        };
        let answers_upgrade = child.asks_protocol;
        if answers_upgrade && response.status.is_success() {
            response.switch();
        } else if !response.terms.is_interim {
            // The request was not upgraded: this is an exchange like any other.
            child.asks_protocol = false;
        }
        child.intake.set_length(response.length);
        let connection = io.transport.connection();
        let is_over = is_end && !response.terms.is_interim;
        self.step(at, io, |exchange, io| {
            let flow = exchange.head_came(list, &response, answers_upgrade, connection, io);
            if is_over {
                exchange.body_ended(Trailers::default());
            }
            flow
        });
        if response.terms.is_interim {
            // Each is small, and needs no answer.
            self.count(Nuisance::ControlFrame, io)?;
        }
        Ok(())
    }

    fn trailers(
        &mut self,
        at: usize,
        list: &FieldList,
        is_end: bool,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Taken {
        let child = &self.children[at];
        let of_stream = |code| Violation::Stream(child.stream.unwrap_or_default(), code);
        if !is_end || !child.intake.may_end() {
            return Err(of_stream(ErrorCode::ProtocolError));
        }
        if let Some(error) = exceeded_trailer_limit(list, &io.config.limits) {
            let error = ClientError::Body(BodyError::Trailer(error));
            self.cut(at, error, ErrorCode::ProtocolError, io);
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
        if self.children[at].is_left() {
            return self.drop_exchange(at, io);
        }
        self.step(at, io, |exchange, io| {
            exchange.body_ended(trailers);
            exchange.receive(io)
        });
    }

    /// Handles a violation of the protocol on one stream: its request fails, the others go on.
    pub(super) fn refuse(
        &mut self,
        stream: u32,
        code: ErrorCode,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Taken {
        log::debug!("machine {} resets stream {stream}: {code:?}", io.scope.token());
        if let Some(at) = self.find_stream(stream) {
            // The response was delivered, so later frames on the stream do not end the connection.
            if self.children[at].is_left() {
                self.drop_exchange(at, io);
                return Ok(());
            }
            let is_begun =
                self.children[at].exchange.as_ref().is_some_and(|own| !own.is_expected());
            let error = match is_begun {
                true => ClientError::Body(BodyError::Truncated),
                false => ClientError::Protocol,
            };
            self.cut(at, error, code, io);
        }
        self.count(Nuisance::ProvokedReset, io)
    }
}

/// The number of pseudo-fields in a response: only the status.
const PSEUDO_FIELDS: usize = 1;

pub(super) fn bounds(config: &ClientConfig) -> FieldBounds {
    FieldBounds::new(&config.limits, config.http2_ref().continuations_max, PSEUDO_FIELDS)
}
