//! `Outgoing`: the response to a request while it is being written and sent. It knows how much of
//! it was sent, and replaces it by an error page if necessary.

use std::any::type_name;

use rotor_core::{Scope, Time};
use rotor_stream::{ConnectionInfo, Output};

use super::config::ServerConfig;
use super::counters::Counters;
use super::error_page::{plain_page, say_when};
use super::finished::Finished;
use super::handler::Server;
use super::io::{Io, note_panic};
use super::kept_fields::KeptFields;
use super::log_line::LogLine;
use super::response::Response;
use crate::h1::head::RequestHead;
use crate::h1::response::{Ending, ReplyTo, ResponseState};
use crate::semantics::calendar::unix_seconds;
use crate::semantics::error::RequestError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::writer::Writer;

/// A response that is being written and sent.
///
/// It remembers how much of the output was unsent when it last looked, so that it can tell later
/// how much of that has been sent since.
///
/// ```text
///   output:  │ ahead: earlier responses, interim ones │ this response │
///            └───────────────── unsent ───────────────────────────┘
/// ```
pub(super) struct Outgoing {
    pub(super) state: ResponseState,
    /// What the request requires of its response; an error page needs this, too.
    reply: ReplyTo,
    /// Unsent bytes before this response. `None` once a part of this response was sent: then it
    /// cannot be taken back any more.
    ahead: Option<usize>,
    /// Unsent bytes in all.
    unsent: usize,
    /// When the head of the request was read.
    pub(super) began: Time,
    /// How many bytes may wait, given other responses on the same connection.
    pub(super) room_max: usize,
    log: Option<Box<LogLine>>,
    /// Fields of this response, and of an error page in its place.
    kept: KeptFields,
    /// Whether the end was counted and logged.
    is_over: bool,
}

impl Outgoing {
    /// Creates a response of which nothing has been written.
    #[inline]
    pub(super) fn new(
        reply: ReplyTo,
        output: &Output,
        began: Time,
        log: Option<Box<LogLine>>,
    ) -> Outgoing {
        let unsent = output.len();
        let (state, ahead) = (ResponseState::new(reply), Some(unsent));
        let (room_max, kept, is_over) = (usize::MAX, KeptFields::NONE, false);
        Outgoing { state, reply, ahead, unsent, began, room_max, log, kept, is_over }
    }

    /// Creates the response that the handler has begun in `headers_received`, after `ahead` bytes
    /// of earlier responses.
    pub(super) fn of_head(
        state: ResponseState,
        kept: KeptFields,
        reply: ReplyTo,
        ahead: usize,
        output: &Output,
        began: Time,
        log: Option<Box<LogLine>>,
    ) -> Outgoing {
        let unsent = output.len();
        let bytes = unsent.saturating_sub(ahead);
        let (ahead, room_max, is_over) = (Some(ahead), usize::MAX, false);
        let mut outgoing =
            Outgoing { state, reply, ahead, unsent, began, room_max, log, kept, is_over };
        outgoing.count(bytes);
        outgoing.note_interim();
        outgoing
    }

    /// Creates the response to a request that no handler sees, whether its head could be read or
    /// not.
    #[cold]
    pub(super) fn refusing(
        head: Option<&RequestHead<'_>>,
        connection: ConnectionInfo<'_>,
        output: &Output,
        now: Time,
        config: &ServerConfig,
    ) -> Outgoing {
        config.count().traffic.unseen();
        let is_head = head.is_some_and(|head| head.method() == Method::Head);
        // The line copies text from the peer. Without a log these copies would only make a flood of
        // bad requests more expensive.
        let log = config.is_logged().then(|| LogLine::of(head, config.logged_fields(), connection));
        Outgoing::new(ReplyTo { is_head, ..ReplyTo::unreadable() }, output, now, log)
    }

    /// Passes the writer to `call`, and keeps track of what was sent before and written in the
    /// call.
    #[inline]
    pub(super) fn with_response<T>(
        &mut self,
        output: &mut Output,
        config: &ServerConfig,
        closes: bool,
        call: impl FnOnce(&mut Response<'_>) -> T,
    ) -> T {
        let before = output.len();
        let sent = self.unsent.saturating_sub(before);
        // `None` once the first byte of this response was sent.
        self.ahead = self.ahead.and_then(|ahead| ahead.checked_sub(sent));
        // On HTTP/2 no response ends its connection.
        let closes = closes && !self.state.is_framed();
        let mut response = Response::new(&mut self.state, output, config, &mut self.kept, closes);
        response.limit_room(self.room_max);
        response.set_under_way(self.ahead.is_none());
        let result = call(&mut response);
        self.unsent = output.len();
        self.count(self.unsent - before.min(self.unsent));
        self.note_interim();
        result
    }

    /// Counts the bytes that were written, for the log alone.
    #[inline]
    fn count(&mut self, octets: usize) {
        if let Some(line) = &mut self.log {
            line.bytes += octets as u64;
        }
    }

    /// Treats what was written before the status as sent: interim responses are never taken back.
    #[inline]
    fn note_interim(&mut self) {
        if self.state.ending() == Ending::Unstarted {
            self.ahead = Some(self.unsent);
        }
    }

    /// Sends `100 Continue` to a peer that waits for it, unless the response has begun.
    #[cold]
    pub(super) fn send_continue(&mut self, output: &mut Output) {
        // This fails if the status was written; then the peer no longer waits.
        let _too_late = self.state.interim(&mut Writer(output), Status::CONTINUE, &[]);
        self.unsent = output.len();
        self.note_interim();
    }

    /// Called when the whole request has arrived. Allows a switch of protocols, if the request
    /// asked for one.
    pub(super) fn request_ended(&mut self) {
        self.state.allow_switch(self.reply.wants_upgrade);
    }

    /// Takes back what was written, if none of it was sent. Returns `false` if it is too late.
    fn take_back(&mut self, output: &mut Output) -> bool {
        let sent = self.unsent.saturating_sub(output.len());
        let Some(ahead) = self.ahead.and_then(|ahead| ahead.checked_sub(sent)) else {
            return false;
        };
        // Earlier responses stay.
        output.truncate(ahead);
        // This response is the last of its connection, because it is unknown how much of the
        // request the handler would have read. In frames that is known.
        let keep_alive = self.state.is_framed();
        self.state = ResponseState::new(ReplyTo { keep_alive, wants_upgrade: false, ..self.reply });
        (self.ahead, self.unsent) = (Some(ahead), ahead);
        // The log counts what the peer gets, and it gets none of this.
        if let Some(line) = &mut self.log {
            line.bytes = 0;
        }
        true
    }

    /// Responds with an error page, unless a part of another response has been sent. `refusal` is
    /// the reason if the head was refused.
    #[cold]
    pub(super) fn error_page<S: Server>(
        &mut self,
        status: Status,
        refusal: Option<RequestError>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        let Io { transport, scope, config } = io;
        if !self.take_back(transport.output) {
            return;
        }
        config.renew_date(scope);
        let page = |response: &mut Response<'_>| {
            // First, because a page that sets `Retry-After` itself replaces this.
            say_when(status, response);
            response.because(refusal);
            scope.guard(|_| S::emit_error_page(status, response))
        };
        if let Err(panicked) = self.with_response(transport.output, config, true, page) {
            note_panic::<S>(&panicked, config);
        }
        // A user's page that panics or stops halfway is replaced by one that cannot. And a handler
        // may fail with a status that has no page, such as 204, or none by itself, such as 426.
        for own in [status, Status::INTERNAL_SERVER_ERROR] {
            let is_whole = matches!(self.state.ending(), Ending::KeepAlive | Ending::Close);
            if is_whole || !self.take_back(transport.output) {
                return;
            }
            if own != status {
                log::error!("{} fails with {status}, which has no page", type_name::<S>());
            }
            self.with_response(transport.output, config, true, |response| {
                say_when(own, response);
                response.because(refusal);
                plain_page(own, response);
            });
        }
    }

    /// Returns whether the end was counted and logged.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Counts the response in its present state, and logs it. A panic of the log hook costs no
    /// response.
    #[inline]
    pub(super) fn end<C>(&mut self, scope: &mut Scope<'_, C>, config: &ServerConfig) {
        self.is_over = true;
        let time = scope.now() - self.began;
        config.count().traffic.ended(self.state.final_status(), time);
        let Some(line) = &self.log else { return };
        let finished = Finished {
            peer: line.peer,
            method: &line.method,
            target: &line.target,
            version: line.version,
            status: self.state.final_status(),
            bytes: line.bytes,
            time,
            unix_seconds: unix_seconds(scope.wall_time()),
            fields: &line.fields,
        };
        if let Err(panicked) = scope.guard(|_| config.write_log(&finished)) {
            Counters::add(&config.count().panics);
            log::error!("the log hook {panicked}");
        }
    }
}
