//! One request and its answer: the handler, what is known of the body, and how far the answer is.
//!
//! ```text
//!                headers_received                      recv(mode)
//!   head ──────────────▶ Exchange (body not asked for) ──────────▶ Exchange (receiving) ──▶ body ended
//!                            │                                        │                        │
//!                            └────────────── finished() / upgrade() ──┴────────────────────────┘
//! ```
//!
//! Reading and writing are independent: the handler may answer before the body has come, and go on after it has.

use std::time::Duration;

use rotor_core::{Deadline, Panicked, Scope, Time};
use rotor_stream::{Output, Transport};

use super::connection::unwound;
use super::next::{Next, RecvMode, Step};
use super::response::{Response, Writer};
use super::settings::{Counters, INPUT_BYTES_MAX, Settings};
use super::{Server, settings};
use crate::h1::{
    Body, BodyDecoder, BodyError, Ending, ReplyTo, RequestTerms, ResponseState, Status, Trailers,
};

/// What an answer is, apart from its handler.
pub(super) struct Answer {
    pub(super) state: ResponseState,
    /// What the request needs to be answered anew, with an error page.
    reply: ReplyTo,
    /// Octets of earlier answers that waited before this one when the handler was last called; none once a part of
    /// this one was sent.
    ahead: Option<usize>,
    /// Octets that waited when the handler had last answered.
    left: usize,
    /// Octets of this answer so far.
    pub(super) bytes: u64,
    /// When the head was read.
    pub(super) began: Time,
    pub(super) log: Option<Box<LogLine>>,
}

/// What the log wants to know of a request that is gone from the input by then.
pub(super) struct LogLine {
    pub(super) method: String,
    pub(super) target: String,
}

/// A request that waits: for its body, for room, for its handler.
pub(super) struct Exchange<S: Server> {
    pub(super) handler: S,
    pub(super) answer: Answer,
    pub(super) request: Request,
    /// The handler's deadline; `Time::NEVER` for none.
    deadline: Time,
    /// What was collected of the body for its handler.
    collected: Vec<u8>,
}

/// What is known of a request's body.
pub(super) struct Request {
    body: Body,
    expects_continue: bool,
    receiving: Receiving,
    /// When receiving began, for the least rate.
    since: Time,
}

enum Receiving {
    /// The handler has not asked for the body.
    NotAsked,
    /// The body of this length is handed over from where it stands in the input, once it is there.
    Whole(usize),
    Decoding(BodyDecoder, RecvMode),
    Ended,
}

/// What comes of calling a handler.
pub(super) enum Called<S: Server> {
    Goes(Next<S>),
    Panicked(Panicked),
}

/// How an exchange goes on after a step.
pub(super) enum Flow<S: Server> {
    /// There may be more to do at once.
    On(Exchange<S>),
    /// It waits: for input beyond what is there (this many unread bytes in all), or for anything else.
    Wait(Exchange<S>, Option<usize>),
    /// The handler is done.
    Done(Answer, Request, Option<<S::Upgrade as rotor_stream::Protocol>::Seed>),
    /// Nothing more can be read: the handler is gone, the peer gets this status if it can.
    Failed(Answer, Status),
}

impl Request {
    pub(super) fn new(terms: &RequestTerms<'_>) -> Request {
        let receiving = if terms.body == Body::Empty { Receiving::Ended } else { Receiving::NotAsked };
        Request { body: terms.body, expects_continue: terms.expects_continue, receiving, since: Time::ZERO }
    }

    /// Whether the peer may never send the body, so that nothing can be read behind it.
    pub(super) fn must_close(&self) -> bool {
        self.expects_continue && matches!(self.receiving, Receiving::NotAsked)
    }

    /// What is left of the body when nobody wants it: nothing, something to be read and dropped, or too much.
    pub(super) fn into_rest(self, settings: &Settings) -> Rest {
        let limits = settings.limits_ref();
        let decoder = match self.receiving {
            Receiving::Ended => return Rest::Nothing,
            Receiving::NotAsked if self.expects_continue => return Rest::TooMuch,
            Receiving::NotAsked | Receiving::Whole(_) => {
                match BodyDecoder::new(self.body, limits.drained_body_bytes_max, limits) {
                    Ok(decoder) => decoder,
                    Err(_) => return Rest::TooMuch,
                }
            }
            Receiving::Decoding(decoder, _) if decoder.is_end() => return Rest::Nothing,
            Receiving::Decoding(decoder, _) => decoder,
        };
        if decoder.left() > limits.drained_body_bytes_max {
            return Rest::TooMuch;
        }
        let until = decoder.received().saturating_add(limits.drained_body_bytes_max);
        Rest::Drain(Box::new(decoder), until)
    }
}

/// What is left of a body that nobody wants.
pub(super) enum Rest {
    Nothing,
    /// To be read and dropped, as long as no more than so many octets have been received in all.
    Drain(Box<BodyDecoder>, u64),
    TooMuch,
}

impl Answer {
    pub(super) fn new(reply: ReplyTo, output: &Output, began: Time, log: Option<Box<LogLine>>) -> Answer {
        let left = output.len();
        Answer { state: ResponseState::new(reply), reply, ahead: Some(left), left, bytes: 0, began, log }
    }

    /// Lends the writer to `call`, and keeps account of what was sent before and written in it.
    #[inline]
    pub(super) fn with_response<T>(
        &mut self,
        output: &mut Output,
        settings: &Settings,
        closes: bool,
        call: impl FnOnce(&mut Response<'_>) -> T,
    ) -> T {
        let before = output.len();
        let sent = self.left.saturating_sub(before);
        self.ahead = self.ahead.and_then(|ahead| ahead.checked_sub(sent));
        let result = call(&mut Response::new(&mut self.state, output, settings, closes));
        self.left = output.len();
        self.bytes += (self.left - before.min(self.left)) as u64;
        result
    }

    /// Takes back what was written, if none of it was sent; else says that it is too late.
    pub(super) fn take_back(&mut self, output: &mut Output) -> bool {
        let sent = self.left.saturating_sub(output.len());
        let Some(ahead) = self.ahead.and_then(|ahead| ahead.checked_sub(sent)) else { return false };
        output.truncate(ahead);
        *self = Answer {
            state: ResponseState::new(ReplyTo { keep_alive: false, ..self.reply }),
            ahead: Some(ahead),
            left: ahead,
            bytes: 0,
            log: self.log.take(),
            ..*self
        };
        true
    }

    /// Answers with an error page, if that is still possible: not when a part of another answer has been sent.
    pub(super) fn error_page<S: Server>(
        &mut self,
        status: Status,
        transport: &mut Transport<'_>,
        settings: &Settings,
        scope: &mut Scope<'_, S::Context>,
    ) {
        if self.state.ending() != Ending::Unstarted && !self.take_back(transport.output) {
            return;
        }
        self.state.close();
        settings.renew_date(scope);
        let page = |response: &mut Response<'_>| scope.guard(|_| S::emit_error_page(status, response));
        if let Err(panicked) = self.with_response(transport.output, settings, true, page) {
            unwound::<S>(&panicked, settings);
            self.take_back(transport.output);
        }
    }
}

impl<S: Server> Exchange<S> {
    /// Calls the handler and applies what it answers.
    #[inline]
    pub(super) fn call(
        self,
        transport: &mut Transport<'_>,
        settings: &Settings,
        scope: &mut Scope<'_, S::Context>,
        method: impl FnOnce(S, &mut Response<'_>, &mut Scope<'_, S::Context>, &[u8]) -> Next<S>,
        body: Given,
    ) -> Flow<S> {
        let Exchange { handler, mut answer, request, deadline, collected } = self;
        settings.renew_date(scope);
        let closes = request.must_close();
        let Transport { input, output, .. } = transport;
        let bytes = match body {
            Given::Nothing => &[][..],
            Given::Input(from, to) => &input[from..to],
            Given::Collected => &collected,
        };
        let called = answer.with_response(output, settings, closes, |response| {
            match scope.guard(|scope| method(handler, response, scope, bytes)) {
                Ok(next) => Called::Goes(next),
                Err(panicked) => Called::Panicked(panicked),
            }
        });
        apply(called, answer, request, deadline, collected, transport, settings, scope)
    }

    /// Looks at what has come of the body, and hands it over.
    pub(super) fn receive(
        mut self,
        transport: &mut Transport<'_>,
        settings: &Settings,
        scope: &mut Scope<'_, S::Context>,
    ) -> Flow<S> {
        let unread = transport.input.len();
        let (decoder, mode) = match &mut self.request.receiving {
            Receiving::NotAsked | Receiving::Ended => return Flow::Wait(self, None),
            Receiving::Whole(length) if unread < *length => {
                let length = *length;
                return Flow::Wait(self, Some(length));
            }
            Receiving::Whole(length) => {
                let length = *length;
                self.request.receiving = Receiving::Ended;
                let flow = self.call(
                    transport,
                    settings,
                    scope,
                    |handler, response, scope, body| handler.request_received(body, response, scope),
                    Given::Input(0, length),
                );
                transport.input.consume(length);
                return flow;
            }
            Receiving::Decoding(decoder, mode) => (decoder, *mode),
        };
        let decoded = match decoder.decode(transport.input) {
            Ok(decoded) => decoded,
            Err(error) => return self.fail(error, settings, scope),
        };
        let range = decoded.skip..decoded.consumed();
        if decoded.is_end {
            let ended = std::mem::replace(&mut self.request.receiving, Receiving::Ended);
            if let Receiving::Decoding(decoder, mode) = ended {
                return self.last(decoder, mode, range, transport, settings, scope);
            }
            return Flow::On(self);
        }
        if decoded.needs_input() {
            transport.input.consume(decoded.skip);
            let more = transport.input.len() + 1;
            return Flow::Wait(self, Some(more));
        }
        match mode {
            RecvMode::Progressive(min) if self.collected.is_empty() && decoded.data >= min => {
                let given = Given::Input(range.start, range.end);
                let flow = self.call(transport, settings, scope, chunk::<S>, given);
                transport.input.consume(range.end);
                flow
            }
            RecvMode::Buffered(_) => {
                self.collected.extend_from_slice(&transport.input[range.clone()]);
                transport.input.consume(range.end);
                Flow::On(self)
            }
            RecvMode::Progressive(min) => {
                self.collected.extend_from_slice(&transport.input[range.clone()]);
                transport.input.consume(range.end);
                if self.collected.len() < min {
                    Flow::On(self)
                } else {
                    self.hand_over(transport, settings, scope)
                }
            }
        }
    }

    /// Hands over what was collected of a body that comes piece by piece.
    fn hand_over(
        self,
        transport: &mut Transport<'_>,
        settings: &Settings,
        scope: &mut Scope<'_, S::Context>,
    ) -> Flow<S> {
        match self.call(transport, settings, scope, chunk::<S>, Given::Collected) {
            Flow::On(mut exchange) => {
                exchange.collected.clear();
                Flow::On(exchange)
            }
            other => other,
        }
    }

    /// Hands over the end of the body.
    fn last(
        mut self,
        decoder: BodyDecoder,
        mode: RecvMode,
        range: std::ops::Range<usize>,
        transport: &mut Transport<'_>,
        settings: &Settings,
        scope: &mut Scope<'_, S::Context>,
    ) -> Flow<S> {
        self.collected.extend_from_slice(&transport.input[range.clone()]);
        transport.input.consume(range.end);
        let trailers = decoder.into_trailers();
        if let RecvMode::Buffered(_) = mode {
            return self.call(
                transport,
                settings,
                scope,
                |handler, response, scope, body| handler.request_received(body, response, scope),
                Given::Collected,
            );
        }
        if self.collected.is_empty() {
            return self.end(&trailers, transport, settings, scope);
        }
        match self.hand_over(transport, settings, scope) {
            Flow::On(exchange) => exchange.end(&trailers, transport, settings, scope),
            other => other,
        }
    }

    fn end(
        self,
        trailers: &Trailers,
        transport: &mut Transport<'_>,
        settings: &Settings,
        scope: &mut Scope<'_, S::Context>,
    ) -> Flow<S> {
        self.call(
            transport,
            settings,
            scope,
            |handler, response, scope, _| handler.request_end(trailers, response, scope),
            Given::Nothing,
        )
    }

    /// The body cannot be had: the handler hears of it and is gone.
    pub(super) fn fail(
        self,
        error: BodyError,
        settings: &Settings,
        scope: &mut Scope<'_, S::Context>,
    ) -> Flow<S> {
        let counters = settings.count();
        match error {
            BodyError::TooSlow => Counters::add(&counters.body_timeouts),
            BodyError::TooLarge
            | BodyError::ChunkLineTooLong
            | BodyError::ExtensionsTooLong
            | BodyError::Trailer(_) => Counters::add(&counters.bodies_too_large),
            _ => {}
        }
        let Exchange { handler, answer, .. } = self;
        if let Err(panicked) = scope.guard(|scope| handler.bad_request(error, scope)) {
            unwound::<S>(&panicked, settings);
        }
        Flow::Failed(answer, error.status())
    }

    /// Whether the body is being received: the peer is to send.
    pub(super) fn is_receiving(&self) -> bool {
        matches!(self.request.receiving, Receiving::Whole(_) | Receiving::Decoding(..))
    }

    /// The handler's deadline and that of the body, whichever comes first.
    pub(super) fn next_deadline(&self, unread: usize, settings: &Settings) -> Deadline {
        match self.deadline.min(self.body_deadline(unread, settings)) {
            Time::NEVER => Deadline::Never,
            time => Deadline::At(time),
        }
    }

    /// Until when more of the body must have come: the grace, and the time that what has come may have taken at the
    /// least rate.
    fn body_deadline(&self, unread: usize, settings: &Settings) -> Time {
        let received = match &self.request.receiving {
            Receiving::NotAsked | Receiving::Ended => return Time::NEVER,
            Receiving::Whole(_) => unread as u64,
            Receiving::Decoding(decoder, _) => decoder.received(),
        };
        let limits = settings.limits_ref();
        let millis = received.saturating_mul(1000) / limits.body_rate_min.max(1);
        self.request.since + limits.body_grace + Duration::from_millis(millis)
    }

    /// A deadline has been reached: the handler's, the body's, or none any more.
    pub(super) fn timeout(
        mut self,
        transport: &mut Transport<'_>,
        settings: &Settings,
        scope: &mut Scope<'_, S::Context>,
    ) -> Flow<S> {
        let now = scope.now();
        if self.deadline <= now {
            Counters::add(&settings.count().handler_timeouts);
            self.deadline = Time::NEVER;
            return self.call(
                transport,
                settings,
                scope,
                |handler, response, scope, _| handler.timeout(response, scope),
                Given::Nothing,
            );
        }
        if self.body_deadline(transport.input.len(), settings) <= now {
            return self.fail(BodyError::TooSlow, settings, scope);
        }
        Flow::On(self)
    }
}

/// What a handler is shown of the body.
pub(super) enum Given {
    Nothing,
    /// From where it stands in the input.
    Input(usize, usize),
    Collected,
}

fn chunk<S: Server>(
    handler: S,
    response: &mut Response<'_>,
    scope: &mut Scope<'_, S::Context>,
    bytes: &[u8],
) -> Next<S> {
    handler.request_chunk(bytes, response, scope)
}

/// Applies what a handler has answered.
#[expect(clippy::too_many_arguments, reason = "the parts of an exchange, whose handler may be gone")]
#[inline]
pub(super) fn apply<S: Server>(
    called: Called<S>,
    answer: Answer,
    mut request: Request,
    deadline: Time,
    collected: Vec<u8>,
    transport: &mut Transport<'_>,
    settings: &Settings,
    scope: &mut Scope<'_, S::Context>,
) -> Flow<S> {
    let next = match called {
        Called::Goes(next) => next,
        Called::Panicked(panicked) => {
            unwound::<S>(&panicked, settings);
            return Flow::Failed(answer, Status::INTERNAL_SERVER_ERROR);
        }
    };
    let deadline = match next.deadline {
        Deadline::Keep => deadline,
        Deadline::Never => Time::NEVER,
        Deadline::At(time) => time,
    };
    match next.step {
        Step::Finished => Flow::Done(answer, request, None),
        Step::Upgrade(seed) => Flow::Done(answer, request, Some(seed)),
        Step::GoOn(handler) => Flow::On(Exchange { handler, answer, request, deadline, collected }),
        Step::Receive(handler, mode) => {
            let begun = begin::<S>(&mut request, mode, &answer, transport, settings, scope);
            let mut exchange = Exchange { handler, answer, request, deadline, collected };
            match begun {
                Ok(()) => {
                    exchange.answer.left = transport.output.len();
                    Flow::On(exchange)
                }
                Err(error) => exchange.fail(error, settings, scope),
            }
        }
    }
}

/// Begins to receive the body, as the handler asked; a peer that waits for it is told.
fn begin<S: Server>(
    request: &mut Request,
    mode: RecvMode,
    answer: &Answer,
    transport: &mut Transport<'_>,
    settings: &Settings,
    scope: &mut Scope<'_, S::Context>,
) -> Result<(), BodyError> {
    if !matches!(request.receiving, Receiving::NotAsked) {
        // A request without a body has one of no octets.
        let is_empty = request.body == Body::Empty && request.since == Time::ZERO;
        if !is_empty {
            return Ok(());
        }
    }
    request.since = scope.now().max(Time::from_nanos(1));
    let max = match mode {
        RecvMode::Buffered(max) => max as u64,
        RecvMode::Progressive(_) => u64::MAX,
    };
    request.receiving = match (request.body, mode) {
        (Body::Length(length), RecvMode::Buffered(_))
            if length <= max && length <= INPUT_BYTES_MAX as u64 =>
        {
            Receiving::Whole(length as usize)
        }
        (Body::Empty, RecvMode::Buffered(_)) => Receiving::Whole(0),
        (body, mode) => {
            let decoder = BodyDecoder::new(body, max, settings.limits_ref())?;
            let mode = match mode {
                RecvMode::Progressive(min) => RecvMode::Progressive(min.clamp(1, INPUT_BYTES_MAX / 2)),
                buffered => buffered,
            };
            Receiving::Decoding(decoder, mode)
        }
    };
    if request.expects_continue && transport.input.is_empty() {
        let mut state = answer.state;
        // Refused where the status was written already, and then it is not needed.
        let _too_late = state.interim(&mut Writer(transport.output), Status::CONTINUE, &[]);
    }
    Ok(())
}

/// Seconds since 1970, for the log.
pub(super) fn wall_seconds<C>(scope: &Scope<'_, C>) -> i64 {
    settings::unix_seconds(scope.wall_time())
}
