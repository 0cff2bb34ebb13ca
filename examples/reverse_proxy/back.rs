//! `Back`: the handler that makes a request to the upstream, on a connection of the pool.

use std::marker::PhantomData;
use std::time::Duration;

use rotor::http::client::{Client, ClientError, Head, Http2Config, Next, RecvMode, Request, Scope};
use rotor::http::server;
use rotor::http::{Limits, MessageError, Method, ResponseHeadError, Status, Trailers, Version};
use rotor::stream::Block;
use rotor::{Mailbox, Sender};

use super::fields;
use super::handshake::{RequestKind, UpgradeRequest};
use super::message::{Answer, Lines, MESSAGES_MAX, Message, borrowed};
use super::tunnel::Tunnel;

/// How long the upstream may be silent in the middle of a response while there is room for more.
/// Then the response is cut off. Such a response may be a stream of events or of gRPC's messages,
/// which has long pauses.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Removes from the limits of connections to the upstream the least rate, which would end a stream
/// of events. [`SILENCE_MAX`] replaces it.
pub(crate) fn upstream_limits(limits: Limits) -> Limits {
    limits.body_rate_min(0)
}

/// How much of each response an upstream of HTTP/2 may send before its client takes it, in bytes. A
/// small window, because as many as there are clients may wait. It also bounds how fast a response
/// comes from an upstream that is far away: 3 MB/s at a round trip of 20 ms.
const STREAM_WINDOW: u32 = 64 << 10;

/// How many requests share a connection of HTTP/2.
const STREAMS_MAX: u32 = 100;

/// Gives an HTTP/2 connection a window in which each of its responses has room. A few clients that
/// do not read would use up a smaller one, and so hold up all others.
pub(crate) fn upstream_http2(config: Http2Config) -> Http2Config {
    let config = config.streams_max(STREAMS_MAX).stream_window(STREAM_WINDOW);
    config.connection_window(STREAMS_MAX * STREAM_WINDOW)
}

/// A request that the upstream has not processed, to be made again.
pub(crate) struct Refused<C> {
    pub(crate) back: Box<Back<C>>,
    pub(crate) error: ClientError,
}

/// A request to the upstream, and the channel back to the client's side.
pub(crate) struct Back<C> {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) fields: Lines,
    pub(crate) body: BodyKind,
    pub(crate) expects_continue: bool,
    /// Whether the client accepts trailers, so that the upstream may send some.
    pub(crate) takes_trailers: bool,
    pub(crate) wants_websocket: bool,
    /// The WebSocket handshake with the upstream, if one was sent.
    pub(crate) upgrade_request: Option<UpgradeRequest>,
    pub(crate) front: Sender<Message>,
    /// The messages of the client's side, once there is a connection.
    pub(crate) messages: Option<Mailbox<Message>>,
    /// Whether the client's side was told that the body can be taken.
    pub(crate) wants_body: bool,
    /// Whether the client's side waits for `More`.
    pub(crate) owes_more: bool,
    /// Whether more of the response is waited for.
    pub(crate) reads_body: bool,
    pub(crate) context: PhantomData<fn(C)>,
}

/// What is known about a request's body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// There is none, and the client has not given its length.
    None,
    Length(u64),
    Unknown,
}

impl BodyKind {
    pub(crate) fn of(head: &server::Head<'_>, request_kind: RequestKind) -> BodyKind {
        match head.body_length() {
            Some(0)
                if request_kind.is_for_websocket() || head.field("Content-Length").is_none() =>
            {
                BodyKind::None
            }
            Some(length) => BodyKind::Length(length),
            None => BodyKind::Unknown,
        }
    }

    /// Returns whether a body follows the head of the request.
    pub(crate) fn is_sent(self) -> bool {
        !matches!(self, BodyKind::None | BodyKind::Length(0))
    }
}

impl<C> Back<C> {
    fn write(
        &mut self,
        request: &mut Request<'_>,
        scope: &Scope<'_, C>,
    ) -> Result<(), MessageError> {
        request.start(Method::new(&self.method).ok_or(MessageError::StartLine)?, &self.target)?;
        for (name, value) in &self.fields {
            request.add_header(name, value)?;
        }
        // gRPC needs this; servers of HTTP/1.1 hardly look at it.
        if self.takes_trailers && request.version() == Version::Http2 {
            request.add_header("TE", "trailers")?;
        }
        if self.wants_websocket {
            // Made anew for each attempt: the next one may be on a connection of another version.
            self.upgrade_request = Some(UpgradeRequest::write(request, scope)?);
        }
        match self.body {
            BodyKind::None => {}
            BodyKind::Length(length) => request.add_length(length)?,
            BodyKind::Unknown => request.add_chunked()?,
        }
        if self.expects_continue {
            request.expect_continue();
        }
        request.done_headers()?;
        if self.body.is_sent() { Ok(()) } else { request.done() }
    }

    /// Ends the request, with trailers if its body has no length; other bodies have no trailers.
    fn end(&self, trailers: &Lines, request: &mut Request<'_>) -> Result<(), MessageError> {
        match self.body {
            BodyKind::Unknown if !trailers.is_empty() => {
                request.done_with_trailers(&borrowed(trailers))
            }
            _ => request.done(),
        }
    }

    /// Tells the client's side that the body can be sent.
    fn want_body(&mut self) {
        if !std::mem::replace(&mut self.wants_body, true) {
            self.send_message(Message::Wanted);
        }
    }

    /// Sends a message to the client's side. If that is gone, this side is about to be cancelled.
    fn send_message(&self, message: Message) {
        let _client_is_gone = self.front.send(message);
    }

    /// Goes on, and waits for more of the response.
    fn read_on(mut self, scope: &Scope<'_, C>) -> Next<Self> {
        self.reads_body = true;
        Next::recv(self, RecvMode::Blocks).deadline(scope.now() + SILENCE_MAX)
    }

    /// Processes the messages of the client's side.
    fn process_messages(mut self, request: &mut Request<'_>, scope: &Scope<'_, C>) -> Next<Self> {
        let mut wants_more = false;
        while let Some(message) = self.messages.as_mut().and_then(Mailbox::receive) {
            let written = match message {
                Message::Piece(piece) => {
                    self.owes_more = true;
                    // The upstream may read the request before it goes on with its response.
                    wants_more |= self.reads_body;
                    request.write_block(piece)
                }
                Message::End(trailers) => {
                    wants_more |= self.reads_body;
                    self.end(&trailers, request)
                }
                Message::More => {
                    wants_more = true;
                    Ok(())
                }
                // If the client's side aborts, the request is cancelled.
                Message::Ready(..)
                | Message::Wanted
                | Message::Interim(..)
                | Message::Head(_)
                | Message::Broken => Ok(()),
            };
            if let Err(error) = written {
                return Next::error(error);
            }
        }
        // One piece at a time, and the next one when this one has been sent, so that a slow
        // upstream slows down the client.
        if self.owes_more && request.room() > 0 {
            self.owes_more = false;
            self.send_message(Message::More);
        }
        match wants_more {
            true => self.read_on(scope),
            false => Next::go_on(self).keep_deadline(),
        }
    }
}

impl<C> Client for Back<C> {
    type Context = C;
    /// Present if the request may be made again.
    type Output = Option<Refused<C>>;
    type Upgrade = Tunnel<C>;

    fn held_bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| name.capacity() + value.capacity());
        let lines = self.fields.capacity() * size_of::<(String, Vec<u8>)>();
        self.method.capacity() + self.target.capacity() + lines + fields.sum::<usize>()
    }

    fn prepare_request(
        mut self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        if let Err(error) = self.write(request, scope) {
            return Next::error(error);
        }
        // A second attempt is made on another connection, which needs a new mailbox to be woken.
        let (sender, messages) = scope.create_mailbox(MESSAGES_MAX);
        self.messages = Some(messages);
        (self.wants_body, self.owes_more, self.reads_body) = (false, false, false);
        self.send_message(Message::Ready(sender, request.version() == Version::Http2));
        if !self.expects_continue {
            self.want_body();
        }
        Next::go_on(self).no_deadline()
    }

    fn body_wanted(mut self, _: &mut Request<'_>, _: &mut Scope<'_, C>) -> Next<Self> {
        self.want_body();
        Next::go_on(self).keep_deadline()
    }

    fn request_flushed(self, request: &mut Request<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.process_messages(request, scope)
    }

    fn wakeup(self, request: &mut Request<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.process_messages(request, scope)
    }

    fn interim_received(
        self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        // This side has asked for it itself, so it is not passed on to the client.
        if head.status() == Status::CONTINUE {
            return Next::go_on(self).keep_deadline();
        }
        let lines = fields::end_to_end(head.fields(), false, |_| true);
        self.send_message(Message::Interim(head.status(), lines));
        // If the client does not take it, the next one is held back, which may be as large.
        Next::hold(self).keep_deadline()
    }

    fn headers_received(
        mut self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        // The client was promised one protocol. The upstream must not choose another one, or agree
        // to a handshake that was not sent.
        let agrees =
            self.upgrade_request.is_some_and(|upgrade_request| upgrade_request.is_granted_by(head));
        if head.status() == Status::SWITCHING_PROTOCOLS && !agrees {
            return Next::error(ResponseHeadError::UnexpectedSwitch);
        }
        let announced =
            head.fields().get_str("Content-Length").and_then(|length| length.parse().ok());
        // There is no body, and the length is that of the response to GET: it is passed on
        // unchanged.
        let has_length_only = self.method == "HEAD" || head.status() == Status::NOT_MODIFIED;
        let answer = Answer {
            status: head.status(),
            fields: fields::end_to_end(head.fields(), self.takes_trailers, |_| true),
            // HTTP/2 has no `Upgrade`, and no other protocol to switch to (RFC 8441).
            names_websocket: head.version() == Version::Http2
                || fields::names_websocket(head.fields()),
            length: if has_length_only { announced } else { head.body_length() },
        };
        self.send_message(Message::Head(Box::new(answer)));
        // If the upstream responds without asking for the body, the client's side is told all the
        // same.
        self.want_body();
        if head.status() == Status::SWITCHING_PROTOCOLS
            && let Some(messages) = self.messages.take()
        {
            return Next::upgrade((self.front, messages), None);
        }
        self.read_on(scope)
    }

    fn response_block(
        mut self,
        block: Block,
        _: &mut Request<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        // Reading pauses until the client has taken it; meanwhile, the upstream's bytes stay in the
        // socket.
        self.send_message(Message::Piece(block));
        self.reads_body = false;
        Next::hold(self).no_deadline()
    }

    fn response_end(
        self,
        trailers: &Trailers,
        _: &mut Request<'_>,
        _: &mut Scope<'_, C>,
    ) -> Next<Self> {
        self.send_message(Message::End(fields::trailers_of(trailers)));
        Next::finished(None)
    }

    /// A server says that it has not processed a request, or nothing of it was sent before its
    /// connection was lost.
    fn bad_response(
        self,
        error: ClientError,
        _: &mut Scope<'_, C>,
    ) -> Result<Self::Output, ClientError> {
        let is_refused = match &error {
            ClientError::Refused => true,
            ClientError::Unsent(error) => {
                matches!(**error, ClientError::Lost(_) | ClientError::Closed)
            }
            _ => false,
        };
        match is_refused {
            true => Ok(Some(Refused { back: Box::new(self), error })),
            false => Err(error),
        }
    }
}
