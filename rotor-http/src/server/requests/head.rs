//! The head of a request: it is read, interpreted or refused, and passed to a handler.

use std::cell::Cell;

use rotor_core::{Deadline, Panicked, Phase, Scope, Time, with_causes};
use rotor_stream::Transport;

use super::{HeadWait, Requests, RequestsFlow, State, wait_until_sent};
use crate::body_receiver::BodyReceiver;
use crate::flow::{Flow, Wait};
use crate::h1::field_storage::FieldStorage;
use crate::h1::framing::Body;
use crate::h1::head::RequestHead;
use crate::h1::request_semantics::RequestSemantics;
use crate::h1::response::{Ending, ResponseState};
use crate::semantics::error::RequestError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::server::config::ServerConfig;
use crate::server::counters::Counters;
use crate::server::exchange::Exchange;
use crate::server::handler::{Next, Server, Step};
use crate::server::head::{EarlyBody, Head};
use crate::server::io::Io;
use crate::server::log_line::LogLine;
use crate::server::outgoing::Outgoing;
use crate::server::persistent_fields::PersistentFields;
use crate::server::response::Response;
use crate::server::unwanted::AnnouncedBody;

impl<S: Server> Requests<S> {
    /// Looks for a head; if it is complete, begins the request.
    #[inline(always)]
    pub(super) fn read_head(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> RequestsFlow<S> {
        let Io { transport, scope, config } = io;
        let config: &ServerConfig = config;
        let connection = transport.connection();
        let Transport { input, output, .. } = &mut **transport;
        let mut storage = FieldStorage::new();
        let (fast, slow) = storage.parts();
        // By reference, because a head has a hundred bytes and comes from one of two places.
        let (whole, in_parts);
        let head = match self.reader.read_whole_request(input, fast, config.limits_ref()) {
            Some(head) => {
                whole = head;
                &whole
            }
            None => match self.reader.read_request_slowly(input, slow, config.limits_ref()) {
                Ok(Some(head)) => {
                    in_parts = head;
                    &in_parts
                }
                Ok(None) => return self.wait_for_head(io),
                Err(error) => return self.refuse_unreadable(error, io),
            },
        };
        let mut semantics = match semantics_of(head) {
            Ok(semantics) => semantics,
            Err(error) => {
                let status = record_refusal(&error, config, scope);
                let outgoing =
                    Outgoing::refusal(Some(head), input, connection, output, scope.now(), config);
                return self.refuse(status, Some(error), outgoing, io);
            }
        };
        // Before the handler is called: the head may be written in the call, and says whether it is
        // the last.
        semantics.keep_alive &= self.allows_next_request(scope, config);
        // The writer has no clock.
        config.renew_date(scope);
        let (reply, mut is_bodiless) =
            (semantics.reply_to(), matches!(semantics.body, Body::Empty));
        let mut state = ResponseState::new(reply);
        if !is_bodiless {
            // No other protocol before the body has arrived.
            state.allow_switch(false);
        }
        let (mut len, ahead) = (head.input_len(), output.len());
        let mut announced = AnnouncedBody::from_semantics(&semantics);
        // A response that is written now must say in its head that it is the last.
        let closes = !is_bodiless && announced.must_close(config.limits_ref());
        let body = match is_bodiless || closes {
            true => None,
            false => complete_body(&semantics, input, len),
        };
        let is_taken = Cell::new(false);
        let mut persistent = PersistentFields::NONE;
        let mut response = Response::new(&mut state, output, config, &mut persistent, closes);
        let seed = &self.seed;
        // The closure does not return this: the return value would take the place of the call's
        // arguments, and so keep them all in memory.
        let (mut next, mut is_supported) = (None, false);
        let result = scope.guard(|scope| {
            // Within the guard, because `supports` is the user's code, too. RFC 9110 §9.1: a method
            // that is not implemented gets 501, whatever its target is.
            is_supported = S::supports(head.method());
            if is_supported {
                Counters::add(&config.counters_ref().requests);
                let body = body.map(|bytes| EarlyBody { bytes, is_taken: &is_taken });
                let head = Head::new(head, &semantics, connection, body);
                next = Some(S::headers_received(seed.clone(), &head, &mut response, scope));
            }
        });
        let next = result.map(|()| next);
        if let Some(body) = body.filter(|_| is_taken.get()) {
            // The handler has taken the body: go on as if there were none.
            len += body.len();
            announced = AnnouncedBody { body: Body::Empty, expects_continue: false };
            is_bodiless = true;
        }
        match next {
            // If the handler responds at once, nothing has to be kept for the rest of the exchange.
            Ok(Some(next @ Next { step: Step::Finished, .. }))
                if state.ending() == Ending::KeepAlive && is_bodiless && !config.is_logged() =>
            {
                // It holds nothing that needs to be dropped; dropping it would only check that.
                std::mem::forget(next);
                config.counters_ref().traffic.record_immediate_end(state.final_status());
                input.consume(len);
                // Nearly always the request was alone, and then the next step would find nothing.
                if io.transport.input.is_empty() && !io.is_gated() {
                    return self.wait_idle(io);
                }
                self.await_next_head();
                Flow::Again
            }
            next => {
                if !is_supported {
                    config.counters_ref().traffic.record_unseen();
                }
                // Before the head is consumed, because the log line copies its text.
                let log = config
                    .is_logged()
                    .then(|| LogLine::from_head(Some(head), config.logged_fields(), connection));
                input.consume(len);
                self.await_next_head();
                let outgoing =
                    Outgoing::from_head(state, persistent, reply, ahead, output, scope.now(), log);
                self.start_exchange(outgoing, announced, next, io)
            }
        }
    }

    /// Returns whether another request may follow this one, which has begun.
    #[inline]
    fn allows_next_request(
        &mut self,
        scope: &Scope<'_, S::Context>,
        config: &ServerConfig,
    ) -> bool {
        // Refused requests are not counted: the connection closes after them anyway.
        self.request_count = self.request_count.saturating_add(1);
        let is_used_up = u64::from(self.request_count) >= config.limits_ref().requests_max;
        if is_used_up {
            Counters::add(&config.counters_ref().used_up);
        }
        let is_old = self.age.has_passed(scope.now());
        if is_old {
            Counters::add(&config.counters_ref().aged);
        }
        // The announcement of a drain is not an event for connections, so the loop's phase is read.
        !is_used_up && !is_old && !self.is_draining && scope.phase() == Phase::Serving
    }

    /// Called when the handler has seen the head and the exchange may go on.
    #[inline(never)]
    fn start_exchange(
        &mut self,
        mut outgoing: Outgoing,
        announced: AnnouncedBody,
        next: Result<Option<Next<S>>, Panicked>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        let next = match next {
            Ok(None) => return self.refuse(Status::NOT_IMPLEMENTED, None, outgoing, io),
            Ok(Some(Next { step: Step::Finished, .. })) => {
                // The response is written; only the rest of the body is left.
                let mut body = BodyReceiver::announced(announced.body);
                return self.finish(&mut outgoing, announced, &mut body, None, io);
            }
            Ok(Some(next)) => Ok(next),
            Err(panicked) => Err(panicked),
        };
        let mut exchange = Exchange::new(outgoing, announced, io.config);
        let flow = exchange.apply(next, io);
        match flow.on_again(|| exchange.notify_earlier_drain(self.is_draining, io)) {
            Flow::Done(upgrade) => {
                let Exchange { outgoing, body, .. } = &mut exchange;
                self.finish(outgoing, announced, body, upgrade, io)
            }
            Flow::Fail(status) => self.fail(&mut exchange.outgoing, status, io),
            flow => {
                // Allocated only now, because most requests are over before.
                exchange.count_end_on_drop(io.config);
                self.state = State::Exchange(Box::new(exchange));
                self.apply_flow(flow, io)
            }
        }
    }

    /// Called when a part of a head has arrived, or only empty lines before one.
    fn wait_for_head(&mut self, io: &Io<'_, '_, '_, S::Context>) -> RequestsFlow<S> {
        if self.reader.is_idle() {
            // An empty line is not the beginning of a request.
            return self.wait_idle(io);
        }
        // The time counts from the first byte of the head, so a peer gains nothing by dripping.
        let since = match self.state {
            State::Head(HeadWait::Started(Time::NEVER)) if !io.transport.output.is_empty() => {
                return Flow::Wait(wait_until_sent(io));
            }
            State::Head(HeadWait::Started(since)) if since != Time::NEVER => since,
            _ => io.scope.now(),
        };
        self.state = State::Head(HeadWait::Started(since));
        let until = since + io.config.limits_ref().head_timeout;
        Flow::Wait(Wait::input(Some(io.unread() + 1), Deadline::At(until)))
    }

    /// Responds to a request whose head cannot be read, or does not end, and closes.
    #[cold]
    pub(super) fn refuse_unreadable(
        &mut self,
        error: RequestError,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        let status = record_refusal(&error, io.config, io.scope);
        let outgoing = Outgoing::refusal(
            None,
            io.transport.input,
            io.transport.connection(),
            io.transport.output,
            io.scope.now(),
            io.config,
        );
        self.refuse(status, Some(error), outgoing, io)
    }

    /// Responds to a request that no handler has seen, and closes.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        status: Status,
        why: Option<RequestError>,
        mut outgoing: Outgoing,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> RequestsFlow<S> {
        Counters::add(&io.config.counters_ref().refused);
        outgoing.refusal = why;
        outgoing.error_page::<S>(status, io);
        outgoing.end(io.scope, io.config);
        // The beginning of the next request is unknown, or cannot be trusted.
        Flow::Done(None)
    }
}

/// Returns the body after a head of this length, if all of it has arrived.
fn complete_body<'a>(
    semantics: &RequestSemantics<'_>,
    input: &'a [u8],
    head: usize,
) -> Option<&'a [u8]> {
    let Body::Length(length) = semantics.body else { return None };
    // A switch is allowed only once the body has ended, and the writer learns that later.
    if semantics.wants_upgrade {
        return None;
    }
    input.get(head..)?.get(..usize::try_from(length).ok()?)
}

/// Interprets a head: what it means for the connection.
#[inline]
fn semantics_of<'a>(head: &RequestHead<'a>) -> Result<RequestSemantics<'a>, RequestError> {
    let semantics = RequestSemantics::from_head(head)?;
    if !matches!(semantics.body, Body::Empty) && matches!(head.method(), Method::Connect) {
        // RFC 9110 §9.3.6: content in CONNECT "has no defined semantics". It might or might not be
        // the first bytes of the tunnel.
        return Err(RequestError::ConnectBody);
    }
    Ok(semantics)
}

/// Counts and logs a request that is refused. Returns the status.
#[cold]
fn record_refusal<C>(error: &RequestError, config: &ServerConfig, scope: &Scope<'_, C>) -> Status {
    if matches!(error, RequestError::Head(error) if error.is_limit()) {
        Counters::add(&config.counters_ref().heads_too_large);
    }
    log::debug!("machine {} refuses a request: {}", scope.token(), with_causes(error));
    error.status()
}
