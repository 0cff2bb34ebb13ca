//! One answer: its writer's state, what of it was sent, and the error page that may still take its
//! place.

use std::net::SocketAddr;

use rotor_core::{Panicked, Scope, Time};
use rotor_stream::{Addresses, Output, Transport};

use super::config::ServerConfig;
use super::counters::Counters;
use super::response::Response;
use super::{Server, plain_page};
use crate::h1::{self, Ending, Method, ReplyTo, ResponseState, Status, Version};
use crate::writer::Writer;

/// What a step of the connection works with.
pub(super) struct Io<'a, 't, 's, C> {
    pub(super) transport: &'a mut Transport<'t>,
    pub(super) scope: &'a mut Scope<'s, C>,
    pub(super) config: &'a ServerConfig,
}

impl<C> Io<'_, '_, '_, C> {
    /// Octets that have come and were not dealt with.
    pub(super) fn unread(&self) -> usize {
        self.transport.input.len()
    }

    /// Whether the stream takes nothing in before the peer has taken what waits for it.
    #[inline]
    pub(super) fn is_gated(&self) -> bool {
        self.transport.output.len() > self.config.limits_ref().output_high_water
    }
}

/// What an answer is, apart from its handler.
pub(super) struct Answer {
    pub(super) state: ResponseState,
    /// What the request needs to be answered anew, with an error page.
    reply: ReplyTo,
    /// Octets of earlier answers, and interim ones, that waited before this one when the handler
    /// had last answered; none once a part of this one was sent.
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
    pub(super) peer: Option<SocketAddr>,
    pub(super) method: Box<str>,
    pub(super) target: Box<str>,
    pub(super) version: Option<Version>,
}

impl LogLine {
    #[cold]
    pub(super) fn of(head: Option<&h1::RequestHead<'_>>, addresses: Addresses<'_>) -> Box<LogLine> {
        Box::new(LogLine {
            peer: addresses.peer(),
            method: head.map_or("", |head| head.method().as_str()).into(),
            target: head.map_or("", |head| head.target().as_str()).into(),
            version: head.map(h1::RequestHead::version),
        })
    }
}

impl Answer {
    #[inline]
    pub(super) fn new(
        reply: ReplyTo,
        output: &Output,
        began: Time,
        log: Option<Box<LogLine>>,
    ) -> Answer {
        let left = output.len();
        Answer {
            state: ResponseState::new(reply),
            reply,
            ahead: Some(left),
            left,
            bytes: 0,
            began,
            log,
        }
    }

    /// What the handler has written on seeing the head, behind `ahead` octets of earlier answers.
    pub(super) fn of_head(
        state: ResponseState,
        reply: ReplyTo,
        ahead: usize,
        output: &Output,
        began: Time,
        log: Option<Box<LogLine>>,
    ) -> Answer {
        let left = output.len();
        let bytes = left.saturating_sub(ahead) as u64;
        let mut answer = Answer { state, reply, ahead: Some(ahead), left, bytes, began, log };
        answer.note_interim();
        answer
    }

    /// The answer to a request that no handler will see, read or not.
    #[cold]
    pub(super) fn refusing(
        head: Option<&h1::RequestHead<'_>>,
        addresses: Addresses<'_>,
        output: &Output,
        now: Time,
        config: &ServerConfig,
    ) -> Answer {
        let is_head = head.is_some_and(|head| head.method() == Method::Head);
        let log = config.is_logged().then(|| LogLine::of(head, addresses));
        Answer::new(ReplyTo { is_head, ..ReplyTo::unreadable() }, output, now, log)
    }

    /// Lends the writer to `call`, and keeps account of what was sent before and written in it.
    #[inline]
    pub(super) fn with_response<T>(
        &mut self,
        output: &mut Output,
        config: &ServerConfig,
        closes: bool,
        call: impl FnOnce(&mut Response<'_>) -> T,
    ) -> T {
        let before = output.len();
        let sent = self.left.saturating_sub(before);
        self.ahead = self.ahead.and_then(|ahead| ahead.checked_sub(sent));
        let result = call(&mut Response::new(&mut self.state, output, config, closes));
        self.left = output.len();
        self.bytes += (self.left - before.min(self.left)) as u64;
        self.note_interim();
        result
    }

    /// What was written before the status belongs to no answer: it is never taken back.
    #[inline]
    fn note_interim(&mut self) {
        if self.state.ending() == Ending::Unstarted {
            self.ahead = Some(self.left);
        }
    }

    /// Tells a peer that waits for it to send its body, unless the answer has begun.
    #[cold]
    pub(super) fn send_continue(&mut self, output: &mut Output) {
        // Refused once the status was written, and then the peer does not wait for it any more.
        let _too_late = self.state.interim(&mut Writer(output), Status::CONTINUE, &[]);
        self.left = output.len();
        self.note_interim();
    }

    /// The request has been received whole: if it asked for another protocol, it may get it now.
    pub(super) fn request_ended(&mut self) {
        self.state.allow_switch(self.reply.wants_upgrade);
    }

    /// Takes back what was written, if none of it was sent; else says that it is too late.
    fn take_back(&mut self, output: &mut Output) -> bool {
        let sent = self.left.saturating_sub(output.len());
        let Some(ahead) = self.ahead.and_then(|ahead| ahead.checked_sub(sent)) else {
            return false;
        };
        output.truncate(ahead);
        self.state =
            ResponseState::new(ReplyTo { keep_alive: false, wants_upgrade: false, ..self.reply });
        (self.ahead, self.left, self.bytes) = (Some(ahead), ahead, 0);
        true
    }

    /// Answers with an error page, if that is still possible: not when a part of another answer has
    /// been sent.
    #[cold]
    pub(super) fn error_page<S: Server>(
        &mut self,
        status: Status,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        let Io { transport, scope, config } = io;
        if !self.take_back(transport.output) {
            return;
        }
        config.renew_date(scope);
        let page = |response: &mut Response<'_>| {
            say_when(status, response);
            scope.guard(|_| S::emit_error_page(status, response))
        };
        if let Err(panicked) = self.with_response(transport.output, config, true, page) {
            unwound::<S>(&panicked, config);
        }
        let is_whole = matches!(self.state.ending(), Ending::KeepAlive | Ending::Close);
        if !is_whole && self.take_back(transport.output) {
            self.with_response(transport.output, config, true, |response| {
                say_when(status, response);
                plain_page(status, response);
            });
        }
    }
}

/// A server that has no room now may have some in the time in which a body that stands still is
/// given up.
const RETRY_AFTER_SECONDS: &str = "5";

/// Has an answer that there is no room say when to ask again.
fn say_when(status: Status, response: &mut Response<'_>) {
    if status == Status::SERVICE_UNAVAILABLE {
        response.say_retry_after(RETRY_AFTER_SECONDS);
    }
}

/// A handler has panicked: logged once, counted. The connection goes on without it.
#[cold]
pub(super) fn unwound<S>(panicked: &Panicked, config: &ServerConfig) {
    Counters::add(&config.count().panics);
    log::error!("the handler {} {panicked}", std::any::type_name::<S>());
}
