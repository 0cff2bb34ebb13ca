//! `Outgoing`: the response to a request while it is being written and sent. It knows how much of
//! it was sent, and replaces it by an error page if necessary.

use std::any::type_name;

use rotor_core::{Scope, Time};
use rotor_stream::{ConnectionInfo, Output};

use super::config::ServerConfig;
use super::counters::Counters;
use super::error_page::{add_retry_after, plain_page};
use super::finished::Finished;
use super::handler::Server;
use super::io::{Io, record_panic};
use super::log_line::LogLine;
use super::persistent_fields::PersistentFields;
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
    pub(super) started_at: Time,
    /// How many bytes may wait, given other responses on the same connection.
    pub(super) room_max: usize,
    log: Option<Box<LogLine>>,
    /// Fields of this response, and of an error page in its place.
    persistent: PersistentFields,
    /// Why the head was refused, for the error page.
    pub(super) refusal: Option<RequestError>,
    /// Whether the end was counted and logged.
    has_ended: bool,
}

impl Outgoing {
    /// Creates a response of which nothing has been written.
    #[inline]
    pub(super) fn new(
        reply: ReplyTo,
        output: &Output,
        started_at: Time,
        log: Option<Box<LogLine>>,
    ) -> Outgoing {
        let unsent = output.len();
        let (state, ahead) = (ResponseState::new(reply), Some(unsent));
        Outgoing {
            state,
            reply,
            ahead,
            unsent,
            started_at,
            room_max: usize::MAX,
            log,
            persistent: PersistentFields::NONE,
            refusal: None,
            has_ended: false,
        }
    }

    /// Creates the response that the handler has begun in `headers_received`, after `ahead` bytes
    /// of earlier responses.
    pub(super) fn from_head(
        state: ResponseState,
        persistent: PersistentFields,
        reply: ReplyTo,
        ahead: usize,
        output: &Output,
        started_at: Time,
        log: Option<Box<LogLine>>,
    ) -> Outgoing {
        let unsent = output.len();
        let bytes = unsent.saturating_sub(ahead);
        let mut outgoing = Outgoing {
            state,
            reply,
            ahead: Some(ahead),
            unsent,
            started_at,
            room_max: usize::MAX,
            log,
            persistent,
            refusal: None,
            has_ended: false,
        };
        outgoing.count_bytes(bytes);
        outgoing.record_interim();
        outgoing
    }

    /// Creates the response to a request that no handler sees, whether its head could be read or
    /// not. The head is at the beginning of the input.
    #[cold]
    pub(super) fn refusal(
        head: Option<&RequestHead<'_>>,
        input: &[u8],
        connection: ConnectionInfo<'_>,
        output: &Output,
        now: Time,
        config: &ServerConfig,
    ) -> Outgoing {
        config.counters_ref().traffic.record_unseen();
        // RFC 9110 §9.3.2: no content in response to HEAD, even if nothing else could be read.
        let is_head = head.map_or_else(
            || input.trim_ascii_start().starts_with(b"HEAD "),
            |head| head.method() == Method::Head,
        );
        // The line copies text from the peer. Without a log these copies would only make a flood of
        // bad requests more expensive.
        let log = config
            .is_logged()
            .then(|| LogLine::from_head(head, config.logged_fields(), connection));
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
        let mut response =
            Response::new(&mut self.state, output, config, &mut self.persistent, closes);
        response.limit_room(self.room_max);
        response.set_under_way(self.ahead.is_none());
        let result = call(&mut response);
        self.unsent = output.len();
        self.count_bytes(self.unsent - before.min(self.unsent));
        self.record_interim();
        result
    }

    /// Returns how much was unsent after the handler's last call, earlier responses included.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Counts the bytes that were written, for the log alone.
    #[inline]
    fn count_bytes(&mut self, bytes: usize) {
        if let Some(line) = &mut self.log {
            line.bytes += bytes as u64;
        }
    }

    /// Treats what was written before the status as sent: interim responses are never taken back.
    #[inline]
    fn record_interim(&mut self) {
        if self.state.ending() == Ending::Unstarted {
            self.ahead = Some(self.unsent);
        }
    }

    /// Sends `100 Continue` to a peer that waits for it, unless the response has begun. Returns
    /// whether it is sent.
    #[cold]
    pub(super) fn send_continue(&mut self, output: &mut Output) -> bool {
        // This fails if the status was written; then the peer no longer waits. What was sent of the
        // response since the last look is still to be recorded, so `unsent` stays.
        let is_sent = self.state.interim(&mut Writer(output), Status::CONTINUE, &[]).is_ok();
        if is_sent {
            self.unsent = output.len();
            self.record_interim();
        }
        is_sent
    }

    /// Called when the whole request has arrived. Allows a switch of protocols, if the request
    /// asked for one.
    pub(super) fn request_ended(&mut self) {
        self.state.allow_switch(self.reply.wants_upgrade);
    }

    /// Takes back what was written, if none of it was sent. Returns `false` if it is too late.
    fn discard_unsent(&mut self, output: &mut Output) -> bool {
        let sent = self.unsent.saturating_sub(output.len());
        let Some(ahead) = self.ahead.and_then(|ahead| ahead.checked_sub(sent)) else {
            return false;
        };
        // The log counts what the peer gets: interim responses, and nothing of this.
        if let Some(line) = &mut self.log {
            line.bytes = line.bytes.saturating_sub((output.len() - ahead) as u64);
        }
        // Earlier responses stay.
        output.truncate(ahead);
        // This response is the last of its connection, because it is unknown how much of the
        // request the handler would have read. In frames that is known.
        let keep_alive = self.state.is_framed();
        self.state = ResponseState::new(ReplyTo { keep_alive, wants_upgrade: false, ..self.reply });
        (self.ahead, self.unsent) = (Some(ahead), ahead);
        true
    }

    /// Responds with an error page, unless a part of another response has been sent.
    #[cold]
    pub(super) fn error_page<S: Server>(
        &mut self,
        status: Status,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        let Io { transport, scope, config } = io;
        let refusal = self.refusal;
        if !self.discard_unsent(transport.output) {
            return;
        }
        config.renew_date(scope);
        let page = |response: &mut Response<'_>| {
            // First, because a page that sets `Retry-After` itself replaces this.
            add_retry_after(status, response);
            response.set_refusal(refusal);
            scope.guard(|_| S::emit_error_page(status, response))
        };
        if let Err(panicked) = self.with_response(transport.output, config, true, page) {
            record_panic::<S>(&panicked, config);
        }
        // A user's page that panics or stops halfway is replaced by one that cannot. And a handler
        // may fail with a status that has no page, such as 204, or none by itself, such as 426.
        for own in [status, Status::INTERNAL_SERVER_ERROR] {
            let is_whole = matches!(self.state.ending(), Ending::KeepAlive | Ending::Close);
            if is_whole || !self.discard_unsent(transport.output) {
                return;
            }
            if own != status {
                log::error!("{} fails with {status}, which has no page", type_name::<S>());
            }
            self.with_response(transport.output, config, true, |response| {
                add_retry_after(own, response);
                response.set_refusal(refusal);
                plain_page(own, response);
            });
        }
    }

    /// Returns whether the end was counted and logged.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Counts the response in its present state, and logs it. A panic of the log hook costs no
    /// response.
    #[inline]
    pub(super) fn end<C>(&mut self, scope: &mut Scope<'_, C>, config: &ServerConfig) {
        self.has_ended = true;
        let time = scope.now() - self.started_at;
        config.counters_ref().traffic.record_end(self.state.final_status(), time);
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
            Counters::add(&config.counters_ref().panics);
            log::error!("the log hook {panicked}");
        }
    }
}
