//! Reads the response: its head, its body, and its end, which may be the end of the connection.

use rotor_core::{Panicked, Scope};
use rotor_stream::{Exception, Fatal, Output, Transport};

use super::{Exchange, ExchangeFlow};
use crate::body_receiver::{BodyReceiver, Part, ReceiveOutcome};
use crate::client::config::ClientConfig;
use crate::client::error::ClientError;
use crate::client::handler::{Client, Next};
use crate::client::head::Head;
use crate::client::io::Io;
use crate::client::request::Request;
use crate::flow::Flow;
use crate::h1::field_storage::FieldStorage;
use crate::h1::head::ResponseHead;
use crate::h1::response_semantics::ResponseSemantics;
use crate::semantics::error::BodyError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::semantics::trailers::Trailers;

impl<K: Client> Exchange<K> {
    /// Reads the head of a response, if it is complete.
    pub(super) fn read_head(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ExchangeFlow<K> {
        let Io { transport, scope, config } = io;
        let connection = transport.connection();
        let Transport { input, output, .. } = &mut **transport;
        let mut storage = FieldStorage::new();
        let head = match self.reader.read_response(input, &mut storage, &config.limits) {
            Ok(Some(head)) => head,
            Ok(None) => {
                let input = input.len() + 1;
                return Flow::Wait(self.wait(Some(input), io));
            }
            Err(error) => return Flow::Fail(error.into()),
        };
        // RFC 9110 §7.8: no switch to another protocol before the request was sent completely.
        let offers_upgrade = self.request.offers_upgrade() && self.request.is_done();
        let terms = match ResponseSemantics::from_head(
            &head,
            self.request.framing_method(),
            offers_upgrade,
        ) {
            Ok(terms) => terms,
            Err(error) => return Flow::Fail(error.into()),
        };
        let len = head.input_len();
        if let Some(flow) = self.intercept_head(&head, &terms, config) {
            return flow;
        }
        let head = Head::new(head, terms, offers_upgrade, connection);
        let Some(next) = self.call_with_head(&head, &terms, output, scope, config) else {
            return Flow::Wait(self.wait(None, io));
        };
        input.consume(len);
        self.apply(next, io)
    }

    /// Checks a complete head for cases that are handled before the handler is called, or instead.
    pub(super) fn intercept_head(
        &mut self,
        head: &ResponseHead<'_>,
        terms: &ResponseSemantics,
        config: &ClientConfig,
    ) -> Option<ExchangeFlow<K>> {
        if terms.is_interim {
            // Each is small, but without a limit the response might never come.
            self.interim += 1;
            let is_over = self.interim > config.limits.interim_responses_max;
            return is_over.then_some(Flow::Fail(ClientError::TooManyInterim));
        }
        let is_late_close =
            head.status() == Status::REQUEST_TIMEOUT && !terms.keep_alive && self.interim == 0;
        // RFC 9110 §15.5.9: the server closed an idle connection just when it was reused.
        (is_late_close && self.may_repeat()).then(|| self.end_by_repeating(config.counters_ref()))
    }

    /// Calls the handler with a head. Returns `None` if the handler is gone.
    pub(super) fn call_with_head(
        &mut self,
        head: &Head<'_>,
        terms: &ResponseSemantics,
        output: &mut Output,
        scope: &mut Scope<'_, K::Context>,
        config: &ClientConfig,
    ) -> Option<Result<Next<K>, Panicked>> {
        let status = head.status();
        let high_water = config.limits.output_high_water;
        // Before the handler is called, because it may finish in the call, and this decides whether
        // the connection is reused. Interim heads count as well: a body that such a head announces,
        // although it cannot have one, may arrive and be taken for the final response, which would
        // then be left for the next request.
        self.keep_alive &= terms.keep_alive;
        if terms.is_interim {
            // A second 100 has no effect.
            let wants_body = status == Status::CONTINUE && self.continue_until.take().is_some();
            let handler = self.handler.take()?;
            let mut request = Request::new(&mut self.request, output, high_water);
            let next = scope.guard(|scope| match wants_body {
                true => handler.body_wanted(&mut request, scope),
                false => handler.interim_received(head, &mut request, scope),
            });
            self.record_unsent(output.len());
            return Some(next);
        }
        self.is_switched = status == Status::SWITCHING_PROTOCOLS
            // RFC 9110 §9.3.6: any 2xx response to CONNECT makes the connection a tunnel.
            || (self.request.framing_method() == Method::Connect && status.is_success());
        self.keep_alive_timeout = terms.keep_alive_timeout;
        // Any final status ends the wait for 100.
        self.continue_until = None;
        match self.request.is_framed() {
            true => self.body = BodyReceiver::framed(terms.body),
            false => self.body.announce(terms.body),
        }
        let handler = self.handler.take()?;
        let mut request = Request::new(&mut self.request, output, high_water);
        let next = scope.guard(|scope| handler.headers_received(head, &mut request, scope));
        self.record_unsent(output.len());
        Some(next)
    }

    /// Processes the received part of the body, and passes it to the handler.
    pub(super) fn read_body(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> ExchangeFlow<K> {
        let config = io.config;
        let received = self.body.next(io.transport.input, &config.limits, config.bodies());
        match received {
            Ok(received) => self.deliver(received, io),
            Err(error) => Flow::Fail(ClientError::from_body_error(error)),
        }
    }

    fn deliver(
        &mut self,
        received: ReceiveOutcome,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        match received {
            ReceiveOutcome::Again => Flow::Again,
            ReceiveOutcome::Wait(input) => Flow::Wait(self.wait(input, io)),
            ReceiveOutcome::Whole(part) => {
                io.transport.set_collecting(false);
                self.call_with_part(part, io, K::response_received)
            }
            #[cfg(feature = "body")]
            ReceiveOutcome::Piece(_, trailers) if self.storing.is_some() => {
                self.store(Vec::new(), trailers.is_some(), io)
            }
            #[cfg(feature = "body")]
            ReceiveOutcome::Block(block, trailers) if self.storing.is_some() => {
                self.store(vec![block], trailers.is_some(), io)
            }
            #[cfg(feature = "body")]
            ReceiveOutcome::Blocks(blocks, trailers) => self.store(blocks, trailers.is_some(), io),
            ReceiveOutcome::Piece(part, trailers) => {
                let flow = match part {
                    // Only the end has come, for which there is another call.
                    Part::Nothing => Flow::Again,
                    part => self.call_with_part(part, io, K::response_chunk),
                };
                flow.on_again(|| self.deliver_end(trailers, io))
            }
            ReceiveOutcome::Block(block, trailers) => {
                let flow = self.call(io, |handler, request, scope| {
                    handler.response_block(block, request, scope)
                });
                flow.on_again(|| self.deliver_end(trailers, io))
            }
        }
    }

    /// Calls the handler for the end of the body, if it has come.
    fn deliver_end(
        &mut self,
        trailers: Option<Trailers>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        let Some(trailers) = trailers else { return Flow::Again };
        self.call(io, |handler, request, scope| handler.response_end(&trailers, request, scope))
    }

    /// Handles the end of the input.
    pub(in crate::client) fn input_ended(
        &mut self,
        exception: Exception,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        // Checked first: a reset is not an orderly end, not even of a body that lasts until close.
        if let Exception::Read(error) = exception {
            return Flow::Fail(ClientError::Lost(Fatal::Reset(error)));
        }
        if self.body.awaits_head() {
            // If part of a head has arrived, the server has begun to process the request.
            if self.may_repeat() && io.transport.input.is_empty() {
                return self.end_by_repeating(io.config.counters_ref());
            }
            return Flow::Fail(ClientError::Closed);
        }
        // Whatever the head said, the connection cannot be reused.
        self.keep_alive = false;
        // RFC 9112 §9.8: without TLS's close alert it is unknown whether a body that lasts until
        // close is complete.
        if matches!(exception, Exception::Truncated) && self.body.is_incomplete() {
            return Flow::Fail(ClientError::from_body_error(BodyError::Truncated));
        }
        match self.body.finish() {
            Ok(received) => self.deliver(received, io),
            Err(error) => Flow::Fail(ClientError::from_body_error(error)),
        }
    }
}
