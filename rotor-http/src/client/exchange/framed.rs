//! An exchange on an HTTP/2 stream. Its head comes as a list of fields, the end of its body in a
//! frame, and its end does not affect the connection.

use rotor_core::Time;
use rotor_stream::{ConnectionInfo, Fatal};

use super::{Exchange, ExchangeFlow};
use crate::client::config::ClientConfig;
use crate::client::counters::Counters;
use crate::client::error::ClientError;
use crate::client::handler::Client;
use crate::client::head::Head;
use crate::client::io::Io;
use crate::client::job::{self, Job};
use crate::flow::Flow;
use crate::h1::head::ResponseHead;
use crate::h1::request::RequestState;
use crate::h2::ErrorCode;
use crate::h2::hpack::FieldList;
use crate::h2::response::CheckedResponse;
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;

/// How often a request is made again that servers refuse without processing it, and without serving
/// another one on the same connection. The limit is for a server that refuses all of them.
const REFUSALS_MAX: u8 = 10;

impl<K: Client> Exchange<K> {
    /// Makes the exchange for a request on a stream.
    pub(in crate::client) fn framed(job: Job<K>, is_reused: bool) -> Box<Exchange<K>> {
        let mut exchange = Exchange::new(job, is_reused);
        exchange.request = RequestState::framed();
        exchange
    }

    /// Returns the request, as far as it was written.
    pub(in crate::client) fn request(&self) -> &RequestState {
        &self.request
    }

    /// Returns whether the handler waits for the server to send the body.
    pub(in crate::client) fn is_receiving(&self) -> bool {
        self.body.is_receiving()
    }

    /// Returns whether the head of the response is still to come.
    pub(in crate::client) fn awaits_head(&self) -> bool {
        self.body.awaits_head()
    }

    /// Returns how many interim heads the exchange has got.
    pub(in crate::client) fn interim_count(&self) -> u32 {
        self.interim
    }

    /// Passes on the head of a response, final or interim. `answers_upgrade` is whether the request
    /// asked for another protocol.
    pub(in crate::client) fn head_received(
        &mut self,
        list: &FieldList,
        response: &CheckedResponse,
        answers_upgrade: bool,
        connection: ConnectionInfo<'_>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        let head = ResponseHead::framed(response.status, list.fields());
        if let Some(flow) = self.intercept_head(&head, &response.terms, io.config) {
            return flow;
        }
        let head = Head::new(head, response.terms, answers_upgrade, connection);
        let output = &mut *io.transport.output;
        let Some(next) = self.call_with_head(&head, &response.terms, output, io.scope, io.config)
        else {
            return Flow::Wait(self.wait(None, io));
        };
        self.apply(next, io)
    }

    /// Records that the head of the request is sent.
    pub(in crate::client) fn head_sent(&mut self, io: &Io<'_, '_, '_, K::Context>) {
        self.sent.on_this_connection = true;
        self.update_continue_wait(io);
    }

    /// Records that the last frame of the response has arrived.
    pub(in crate::client) fn body_ended(&mut self, trailers: Trailers) {
        self.body.frames_ended(trailers);
    }

    /// Returns whether the body is late. If so, it gets time until `until`.
    pub(in crate::client) fn extend_body_deadline(
        &mut self,
        until: Time,
        io: &Io<'_, '_, '_, K::Context>,
    ) -> bool {
        let late = self.body_deadline(io);
        let is_late = late <= io.scope.now();
        if is_late && until > late {
            self.body.extend_deadline(until - late);
        }
        is_late
    }

    /// Handles the end of the input before the response is complete. `error` is why nothing more
    /// can be read, unless the server has ended the connection.
    pub(in crate::client) fn input_ended_early(
        &mut self,
        error: Option<Fatal>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> ExchangeFlow<K> {
        if let Some(error) = error {
            return Flow::Fail(ClientError::Lost(error));
        }
        if !self.body.awaits_head() {
            return Flow::Fail(ClientError::from_body_error(BodyError::Truncated));
        }
        if self.may_repeat() {
            return self.end_by_repeating(io.config.counters_ref());
        }
        Flow::Fail(ClientError::Closed)
    }

    /// Takes back a request of which nothing was sent, so that it can be made again, whatever its
    /// method. Returns `None` if that is not possible; the exchange is then unchanged.
    pub(in crate::client) fn reclaim_job(&mut self, config: &ClientConfig) -> Option<Box<Job<K>>> {
        // Parts that were written earlier are gone, so they cannot be sent again.
        if self.refusals >= REFUSALS_MAX || !self.was_written_in_one_call {
            return None;
        }
        self.refusals += 1;
        self.take_for_repeat(config.counters_ref())
    }

    /// Like `reclaim_job`, for another way to the server: no connection was lost during the
    /// request.
    pub(in crate::client) fn reclaim_for_rerouting(
        &mut self,
        config: &ClientConfig,
    ) -> Option<Box<Job<K>>> {
        let is_repeated = self.is_repeated;
        let mut job = self.reclaim_job(config)?;
        job.is_repeated = is_repeated;
        Some(job)
    }

    /// Like `reclaim_for_rerouting`, for a request that its server answers over HTTP/1.1 only.
    /// Unless the server says that it has not acted on the request (`is_unprocessed`), only
    /// idempotent methods may be repeated (RFC 9110 §9.2.2).
    pub(in crate::client) fn reclaim_for_http1(
        &mut self,
        is_unprocessed: bool,
        config: &ClientConfig,
    ) -> Option<Box<Job<K>>> {
        // A server that has begun to respond has processed the request, whatever it says now.
        let has_no_response = self.body.awaits_head() && self.interim == 0;
        if !has_no_response || !(is_unprocessed || self.request.is_idempotent()) {
            return None;
        }
        let was_sent_before = self.sent.on_earlier_connection;
        let mut job = self.reclaim_for_rerouting(config)?;
        if is_unprocessed {
            job.was_sent = was_sent_before;
        }
        Some(job)
    }

    /// Handles the server's message that it has not processed the request: returns the request to
    /// be made again, or fails it. `was_other_served` is whether it has taken another one on this
    /// connection. Then the refusal does not count: a server that serves few requests on each
    /// connection refuses the last of many requests very often.
    pub(in crate::client) fn refused(
        &mut self,
        was_other_served: bool,
        config: &ClientConfig,
        scope: &mut rotor_core::Scope<'_, K::Context>,
    ) -> Option<Box<Job<K>>> {
        // A server that has begun to respond has processed the request, whatever it says now.
        let is_unprocessed = self.body.awaits_head() && self.interim == 0;
        self.sent.on_this_connection &= !is_unprocessed;
        // RFC 9113 §8.7: whatever its method. Parts that were written earlier cannot be sent again.
        let may_repeat = is_unprocessed
            && (was_other_served || self.refusals < REFUSALS_MAX)
            && self.was_written_in_one_call;
        self.refusals = self.refusals.saturating_add(u8::from(!was_other_served));
        if may_repeat && let Some(job) = self.take_for_repeat(config.counters_ref()) {
            return Some(job);
        }
        let (handler, port) = (self.handler.take()?, self.port.take()?);
        let error = if is_unprocessed {
            Counters::add(&config.counters_ref().refused);
            ClientError::Refused
        } else {
            ClientError::Reset(ErrorCode::RefusedStream.number())
        };
        job::fail(handler, port, error.with_send_history(self.sent), config.counters_ref(), scope);
        None
    }
}
