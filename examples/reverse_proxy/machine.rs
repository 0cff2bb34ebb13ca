//! `Front`: the handler that takes a request from a client, sends it to the upstream, and passes
//! the response back.
//!
//! ```text
//!   client ──▶ Front ──ask──▶ pool ──▶ Back ──▶ upstream
//!          ◀──       ◀── messages ──▶      ◀──
//! ```
//!
//! Both bodies are passed on piece by piece, each piece when the previous one was taken, so a long
//! body takes as little memory as a short one. Framing is written anew on both sides, by the
//! writers of server and client.

use std::marker::PhantomData;
use std::time::Duration;

use rotor::http::client::ClientResult;
use rotor::http::server::{Head, Next, NextBuilder, RecvMode, Response, Scope, Server};
use rotor::http::{BodyError, MessageError, Method, Status, Trailers};
use rotor::stream::Block;
use rotor::{Future, Mailbox, Outcome, SendError, Sender, Time};

use super::back::{Back, BodyKind, Refused, SILENCE_MAX};
use super::fields::{self, TrailersTaken};
use super::handshake::RequestKind;
use super::message::{Answer, Lines, MESSAGES_MAX, Message, borrowed};
use super::replay::Replay;
use super::tunnel::Tunnel;
use super::upstream::{Upstream, bad_gateway, fail, page, warn};

/// How long a client waits for the beginning of the response. This includes waiting for a free
/// connection to the upstream or making one, and the time of the upstream. It counts from the head
/// of the request and, while the body is arriving, from the last piece that was passed on.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// How long the upstream may be silent after the client has ended its side. Few clients do that and
/// still read; nearly all are gone, and their requests would occupy the upstream for nothing.
pub(crate) const HALF_CLOSED_TIME_MAX: Duration = Duration::from_secs(2);

/// One request in progress.
pub(crate) struct Front<C: Upstream> {
    upstream: C::Origin,
    messages: Mailbox<Message>,
    /// Dropping it cancels the request to the upstream.
    outcome: Option<Future<ClientResult<Back<C>>>>,
    /// The upstream's side, once it can take the body.
    back: Option<Sender<Message>>,
    has_body: bool,
    /// What has arrived of it.
    body: Replay,
    /// Whether more of the body is waited for.
    reads_body: bool,
    /// Whether the client may pause within its body: it makes a call of gRPC.
    is_call: bool,
    expects_continue: bool,
    request_kind: RequestKind,
    trailers_taken: TrailersTaken,
    /// Whether the client accepts trailers after this response.
    passes_trailers: bool,
    /// Whether the upstream's side waits for `More`.
    owes_more: bool,
    is_switched: bool,
    has_ended: bool,
    /// Whether the client has ended its side.
    is_half_closed: bool,
}

impl<C: Upstream> Front<C> {
    /// Makes the request to the upstream.
    fn upstream_request(
        head: &Head<'_>,
        request_kind: RequestKind,
        body: BodyKind,
        upstream: &str,
        front: Sender<Message>,
    ) -> Back<C> {
        let forwards_left = fields::forwards_left(head);
        let is_ours = |name: &str| {
            fields::is_forwarding_field(name) || (forwards_left.is_some() && name == "max-forwards")
        };
        let passes_trailers = body == BodyKind::Unknown;
        let mut lines = fields::end_to_end(head.fields(), passes_trailers, |name| !is_ours(name));
        let mut add =
            |name: &str, value: &str| lines.push((name.to_owned(), value.as_bytes().to_owned()));
        match head.authority() {
            Some(host) => {
                add("Host", host);
                add("X-Forwarded-Host", host);
            }
            // A client of HTTP/1.0 may omit `Host`, or send an empty one; the upstream's HTTP/1.1
            // needs a name.
            None => add("Host", upstream),
        }
        if let Some(peer) = head.peer_address() {
            add("X-Forwarded-For", &peer.ip().to_string());
        }
        add("X-Forwarded-Proto", if head.is_secure() { "https" } else { "http" });
        add("Via", &format!("{} rotor", &head.version().to_string()["HTTP/".len()..]));
        if let Some(left) = forwards_left {
            add("Max-Forwards", &left.saturating_sub(1).to_string());
        }
        Back {
            method: head.method().as_str().to_owned(),
            target: fields::target_of(head),
            fields: lines,
            body,
            expects_continue: body.is_sent() && head.expects_continue(),
            takes_trailers: TrailersTaken::by_client(head) != TrailersTaken::Never,
            wants_websocket: request_kind.is_for_websocket(),
            upgrade_request: None,
            front,
            messages: None,
            wants_body: false,
            owes_more: false,
            reads_body: false,
            context: PhantomData,
        }
    }

    /// Processes the messages of the upstream's side, then checks whether it has ended.
    fn process_messages(
        mut self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let mut asks_for_body = false;
        // After the head of a protocol switch, the messages are for the other protocol.
        while !self.is_switched
            && let Some(message) = self.messages.receive()
        {
            let written = match message {
                Message::Ready(back, has_http2) => {
                    self.back = Some(back);
                    // Over HTTP/1.1, each call would occupy a connection while its client pauses.
                    self.is_call &= has_http2;
                    // Only such an upstream says that it has not processed a request.
                    if has_http2 && self.has_body {
                        self.body.keep();
                    }
                    Ok(())
                }
                Message::Wanted if self.body.has_unsent() => {
                    self.send_next();
                    Ok(())
                }
                Message::Wanted => {
                    if self.awaits_continue(response) {
                        // Handled before a response that arrived together with the upstream's 100,
                        // because afterwards it would be too late.
                        scope.notifier().wakeup();
                        return self.read_on(response).keep_deadline();
                    }
                    // If there is a response already, a client that waits for 100 is not asked for
                    // its body, but may send it all the same (RFC 9110 §10.1.1).
                    asks_for_body = self.has_body;
                    Ok(())
                }
                Message::Interim(status, lines) => {
                    self.owes_more = true;
                    interim(status, &lines, response)
                }
                Message::Head(answer)
                    if self.request_kind.is_wrongly_switched_by(answer.status) =>
                {
                    let status = answer.status;
                    warn(
                        format_args!("asked for a WebSocket, the upstream answers {status}"),
                        scope,
                    );
                    return fail(Status::BAD_GATEWAY, response);
                }
                Message::Head(answer) => {
                    self.body.forget();
                    self.head(*answer, response)
                }
                Message::Piece(piece) => {
                    self.owes_more = true;
                    response.write_block(piece)
                }
                Message::More => {
                    asks_for_body = !self.send_next();
                    Ok(())
                }
                Message::End(trailers) => {
                    self.has_ended = true;
                    self.end(&trailers, response)
                }
                // Only tunnels send this, and there is none yet.
                Message::Broken => return fail(Status::BAD_GATEWAY, response),
            };
            if let Err(error) = written {
                warn(format_args!("the upstream's answer cannot be passed on: {error}"), scope);
                return fail(Status::BAD_GATEWAY, response);
            }
        }
        if self.is_switched
            && let Some(back) = self.back.take()
        {
            return Next::upgrade((back, self.messages));
        }
        if self.has_ended {
            return Next::finished();
        }
        if self.owes_more && response.room() > 0 {
            self.owes_more = false;
            self.send_message(Message::More);
        }
        match self.outcome.take().map(Future::take) {
            Some(Outcome::Pending(future)) => self.outcome = Some(future),
            Some(Outcome::Value(Err(error))) => return bad_gateway(&error, response, scope),
            Some(Outcome::Lost(_)) => return fail(Status::SERVICE_UNAVAILABLE, response),
            Some(Outcome::Value(Ok(Some(refused)))) => return self.again(refused, response, scope),
            Some(Outcome::Value(Ok(None))) | None => {}
        }
        // While output waits for the client, it is the client that must show that it is there.
        let is_leaving = self.is_half_closed && !self.owes_more;
        // The response may have begun while a piece of the body is waited for.
        let next = match asks_for_body || (self.reads_body && response.is_started()) {
            true => self.read_on(response),
            false => Next::go_on(self),
        };
        match response.is_started() {
            _ if is_leaving => next.deadline(scope.now() + HALF_CLOSED_TIME_MAX),
            // The time limits of the connections on both sides apply.
            true => next.no_deadline(),
            false => next.keep_deadline(),
        }
    }

    /// Makes a request again that the upstream has not processed.
    fn again(
        mut self,
        refused: Refused<C>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        // The library has made a request without a body again already.
        if !self.has_body || !self.body.restart() {
            return bad_gateway(&refused.error, response, scope);
        }
        match scope.pool().ask_until(self.upstream.clone(), *refused.back, Time::NEVER, scope) {
            Ok(outcome) => self.outcome = Some(outcome),
            Err(SendError::Full(_) | SendError::Closed(_)) => {
                return fail(Status::SERVICE_UNAVAILABLE, response);
            }
        }
        (self.back, self.reads_body) = (None, false);
        Next::hold(self).keep_deadline()
    }

    /// Goes on, and waits for more of the body. If the response has begun, or if this is a call, the
    /// client may pause, and the upstream's side limits the silence of both; otherwise the body must
    /// arrive at the minimum rate.
    fn read_on(mut self, response: &Response<'_>) -> NextBuilder<Self> {
        self.reads_body = true;
        match self.is_call || response.is_started() {
            true => Next::recv_stream(self, RecvMode::Blocks),
            false => Next::recv(self, RecvMode::Blocks),
        }
    }

    /// Returns until when the response must begin, or the next piece of the body arrive.
    fn deadline(&self, now: Time) -> Time {
        now + if self.is_call { SILENCE_MAX } else { ANSWER_TIME_MAX }
    }

    /// Returns whether the client waits for 100 before it sends its body, and may still be asked
    /// for it.
    fn awaits_continue(&self, response: &Response<'_>) -> bool {
        self.has_body && self.expects_continue && !response.is_started()
    }

    fn head(&mut self, answer: Answer, response: &mut Response<'_>) -> Result<(), MessageError> {
        let Answer { status, fields, names_websocket, length } = answer;
        response.status(status)?;
        self.passes_trailers = self.trailers_taken.may_follow(status, length);
        for (name, value) in &fields {
            if self.passes_trailers || !name.eq_ignore_ascii_case("Trailer") {
                response.add_header(name, value)?;
            }
        }
        if status == Status::SWITCHING_PROTOCOLS {
            self.request_kind.grant(response)?;
            response.done_headers()?;
            self.is_switched = true;
            return response.done();
        }
        if status == Status::UPGRADE_REQUIRED && names_websocket {
            response.add_header("Upgrade", "websocket")?;
        }
        let has_no_length = status.forbids_body() && status != Status::NOT_MODIFIED;
        match length {
            // There is no content, however the upstream expresses that (RFC 9110 §15.3.6): the
            // writer says that the length is 0.
            Some(0) | None if status == Status::RESET_CONTENT => {}
            _ if has_no_length => {}
            Some(length) => response.add_length(length)?,
            None if status == Status::NOT_MODIFIED => {}
            None => response.add_chunked()?,
        }
        response.done_headers()
    }

    /// Ends the response, with trailers if they are allowed.
    fn end(&self, trailers: &Lines, response: &mut Response<'_>) -> Result<(), MessageError> {
        match self.passes_trailers && !trailers.is_empty() {
            true => response.done_with_trailers(&borrowed(trailers)),
            false => response.done(),
        }
    }

    /// Sends the next part of the body that has arrived, and with the last piece the end. Returns
    /// false if there is none.
    fn send_next(&mut self) -> bool {
        let Some(back) = &self.back else { return false };
        let Some(message) = self.body.next() else { return false };
        // If the upstream's side is gone, its outcome reports it.
        let _upstream_is_gone = back.send(message);
        if self.body.is_at_end()
            && let Some(end) = self.body.next()
        {
            let _upstream_is_gone = back.send(end);
        }
        true
    }

    /// Sends a message to the upstream's side. If that is gone, its outcome reports it.
    fn send_message(&self, message: Message) {
        if let Some(back) = &self.back {
            let _upstream_is_gone = back.send(message);
        }
    }
}

/// Passes an interim response on, if the client supports them.
fn interim(
    status: Status,
    lines: &[(String, Vec<u8>)],
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    let lines: Vec<(&str, &[u8])> =
        lines.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    match response.interim(status, &lines) {
        Err(MessageError::InterimNotAllowed) => Ok(()),
        other => other,
    }
}

impl<C: Upstream> Server for Front<C> {
    type Context = C;
    type Seed = C::Origin;
    type Upgrade = Tunnel<C>;

    fn supports(method: Method<'_>) -> bool {
        !matches!(method, Method::Connect | Method::Trace)
    }

    fn headers_received(
        upstream: C::Origin,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        if fields::nominates_protected_field(head.fields()) {
            response.close();
            return fail(Status::BAD_REQUEST, response);
        }
        if fields::forwards_left(head) == Some(0) {
            // The request is for the proxy itself, which can only say that it is there.
            page(Status::OK, response);
            return Next::finished();
        }
        let Some(request_kind) = RequestKind::of(head) else {
            return fail(Status::BAD_REQUEST, response);
        };
        let (front, messages) = scope.create_mailbox(MESSAGES_MAX);
        let body = BodyKind::of(head, request_kind);
        let back = Front::<C>::upstream_request(head, request_kind, body, scope.authority(), front);
        let outcome = match scope.pool().ask_until(upstream.clone(), back, Time::NEVER, scope) {
            Ok(outcome) => outcome,
            Err(SendError::Full(_) | SendError::Closed(_)) => {
                return fail(Status::SERVICE_UNAVAILABLE, response);
            }
        };
        let front = Front {
            upstream,
            messages,
            outcome: Some(outcome),
            back: None,
            has_body: body.is_sent(),
            body: Replay::new(),
            reads_body: false,
            is_call: body == BodyKind::Unknown && fields::is_grpc(head),
            expects_continue: head.expects_continue(),
            request_kind,
            trailers_taken: TrailersTaken::by_client(head),
            passes_trailers: false,
            owes_more: false,
            is_switched: false,
            has_ended: false,
            is_half_closed: false,
        };
        // The client is asked for its body when the upstream can take it; until then the body waits
        // in the client's socket.
        let deadline = front.deadline(scope.now());
        Next::go_on(front).deadline(deadline)
    }

    fn request_block(
        mut self,
        block: Block,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        self.body.add_piece(block);
        self.send_next();
        self.reads_body = false;
        let deadline = self.deadline(scope.now());
        let next = Next::hold(self);
        if response.is_started() { next.no_deadline() } else { next.deadline(deadline) }
    }

    fn request_end(
        mut self,
        trailers: &Trailers,
        _: &mut Response<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        self.reads_body = false;
        // Behind pieces that wait to be sent again, it waits as well.
        let is_next = !self.body.has_unsent();
        self.body.add_end(fields::trailers_of(trailers));
        if is_next {
            self.send_next();
        }
        Next::go_on(self).keep_deadline()
    }

    const HEARS_END: bool = true;

    fn peer_ended(mut self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.is_half_closed = true;
        self.process_messages(response, scope)
    }

    fn response_flushed(self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.process_messages(response, scope)
    }

    fn wakeup(self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.process_messages(response, scope)
    }

    fn timeout(self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        // A client can leave as often as it likes, and the upstream is not at fault.
        if !self.is_half_closed {
            warn("the upstream does not answer in time", scope);
        }
        fail(Status::GATEWAY_TIMEOUT, response)
    }

    /// Replaces a response that was begun and not sent: it is the upstream's, and incomplete.
    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        let is_ours = status != Status::INTERNAL_SERVER_ERROR;
        page(if is_ours { status } else { Status::BAD_GATEWAY }, response);
    }

    /// The client is gone, or its body is malformed. The request to the upstream is cancelled,
    /// because its future is dropped with this value.
    fn bad_request(self, error: BodyError, _: &mut Scope<'_, C>) {
        log::debug!("a request ends early: {error}");
    }
}
