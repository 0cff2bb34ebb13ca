//! `Server`, the trait of request handlers, and `Next`, which a handler returns to say how its
//! request goes on. The constructors of `Next` are in the module `next`.

use rotor_core::{Deadline, Description, Scope, Time};
use rotor_stream::{Block, Protocol};

use super::error_page::plain_page;
use super::head::Head;
use super::request_event::RequestEvent;
use super::response::Response;
use crate::recv_mode::RecvMode;
use crate::semantics::error::BodyError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::semantics::trailers::Trailers;

/// A handler of one request: it receives the request's events and writes its response.
///
/// **A connection of HTTP/1.1 runs one handler at a time**: it does not look at the next request
/// before the response is complete. On HTTP/2, each stream has a handler of its own. Each method
/// takes the handler by value, the [`Response`] to write to, and the scope.
///
/// A handler that needs the whole body implements two methods: `headers_received`, which asks for
/// the body ([`RecvMode::Buffered`]), and `request_received`, which responds. A handler that needs
/// no body implements only the first.
///
/// A server that wraps another one implements [`handle`](Server::handle) for everything that
/// happens after the head; see [`Around`](super::Around).
///
/// # What the connection guarantees
///
/// * `headers_received` is the first call. The head is well-formed, its framing is unambiguous, and
///   it has one `Host`.
/// * The body is complete, or [`bad_request`](Server::bad_request) is called: a truncated body is
///   never passed on as a whole one.
/// * What a handler writes is either a correct message or is refused; see [`Response`].
/// * If a handler panics, only that handler is lost: the peer gets 500, or the connection ends if
///   part of the response has been sent.
/// * On HTTP/2, a request that fails ends only its own stream: where these pages say that the
///   connection closes or is cut off because of a request, the other requests go on.
///
/// # Examples
///
/// Echoing a body of at most 1 MiB:
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
///
/// struct Echo;
///
/// impl Server for Echo {
///     type Context = ();
///     type Seed = ();
///     type Upgrade = NoUpgrade<()>;
///
///     fn headers_received(
///         _: (),
///         _: &Head<'_>,
///         _: &mut Response<'_>,
///         _: &mut Scope<'_, ()>,
///     ) -> Next<Self> {
///         Next::recv(Echo, RecvMode::Buffered(1 << 20)).keep_deadline()
///     }
///     fn request_received(
///         self,
///         body: &[u8],
///         response: &mut Response<'_>,
///         _: &mut Scope<'_, ()>,
///     ) -> Next<Self> {
///         response.reply(Status::OK, "application/octet-stream", body).into()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle HTTP requests",
    label = "a `Connection` runs handlers",
    note = "implement `Server` for it: `Context`, `Seed`, `Upgrade` and `headers_received` are enough"
)]
#[doc(alias = "pipelining")]
#[doc(alias = "keep-alive")]
pub trait Server: Sized {
    /// The context: the value that all machines of the loop share. A handler in a library is
    /// generic over the context and requires traits of it.
    type Context;

    /// The value that all requests of a server share. It is cloned for each request.
    type Seed: Clone;

    /// The protocol that a connection, or a stream of HTTP/2 (RFC 8441), may switch to after a
    /// request. With [`NoUpgrade`](super::NoUpgrade) there is none, and none is offered.
    type Upgrade: Protocol<Context = Self::Context>;

    /// Whether the handler is called when its peer has closed its sending side
    /// ([`peer_ended`](Server::peer_ended)).
    ///
    /// The default is `false`. Then nothing is read from the socket while the handler waits for no
    /// input.
    const HEARS_END: bool = false;

    /// Returns whether requests with this method are passed to the handler. Other requests get 501.
    /// A panic here is treated as a panic of the handler: the peer gets 500.
    ///
    /// The default accepts GET, HEAD, POST, PUT, DELETE, OPTIONS and PATCH.
    fn supports(method: Method<'_>) -> bool {
        !matches!(method, Method::Connect | Method::Trace | Method::Extension(_))
    }

    /// Called when the head of a request has been received. The handler may respond at once, ask
    /// for the body, or wait.
    #[doc(alias = "request smuggling")]
    fn headers_received(
        seed: Self::Seed,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// Handles an event that comes after the head. The connection, and every server that wraps this
    /// one, calls only this method. The default calls the method named after the event.
    ///
    /// Implement this method for a server that wraps another one: pass the event on, and convert
    /// the returned `Next` ([`Next::map`], [`Next::around`]). Call `handle` of the inner handler,
    /// never one of the named methods: an inner handler that is a wrapper itself does not implement
    /// them. Also forward the items that are not events: [`bad_request`](Server::bad_request),
    /// [`describe`](Server::describe), [`emit_error_page`](Server::emit_error_page),
    /// [`supports`](Server::supports), [`HEARS_END`](Server::HEARS_END). A handler that wraps no
    /// other one implements the named methods instead.
    #[doc(alias = "middleware")]
    #[inline(always)]
    fn handle(
        self,
        event: RequestEvent<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        match event {
            RequestEvent::Received(body) => self.request_received(body, response, scope),
            RequestEvent::Chunk(chunk) => self.request_chunk(chunk, response, scope),
            RequestEvent::Block(block) => self.request_block(block, response, scope),
            RequestEvent::End(trailers) => self.request_end(trailers, response, scope),
            #[cfg(feature = "body")]
            RequestEvent::Stored(body) => self.request_stored(body, response, scope),
            RequestEvent::Flushed => self.response_flushed(response, scope),
            RequestEvent::Timeout => self.timeout(response, scope),
            RequestEvent::Wakeup => self.wakeup(response, scope),
            RequestEvent::Draining(until) => self.draining(until, response, scope),
            RequestEvent::PeerEnded => self.peer_ended(response, scope),
        }
    }

    /// Called with the whole body, if the handler asked for it with [`RecvMode::Buffered`].
    /// Trailers are dropped.
    ///
    /// The default finishes.
    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (body, response, scope);
        Next::finished()
    }

    /// Called with a part of the body, if the handler asked for it with [`RecvMode::Progressive`].
    ///
    /// The default drops the part.
    fn request_chunk(
        self,
        chunk: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (chunk, response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called with a part of the body, if the handler asked for it with [`RecvMode::Blocks`]. The
    /// handler gets the memory into which the part was read, without a copy.
    ///
    /// The default calls [`request_chunk`](Server::request_chunk).
    fn request_block(
        self,
        block: Block,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        self.request_chunk(&block, response, scope)
    }

    /// Called when the body has ended, after the last [`request_chunk`](Server::request_chunk) or
    /// [`request_block`](Server::request_block).
    ///
    /// The default finishes.
    fn request_end(
        self,
        trailers: &Trailers,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (trailers, response, scope);
        Next::finished()
    }

    /// Called with the whole body as a value, if the handler asked for it with
    /// [`RecvMode::Stored`]. The body is in memory, or in a file that is deleted with the last
    /// clone. With the feature `body`.
    ///
    /// Reading a body that is in a file blocks, so do that on another thread
    /// ([`Scope::offload`](rotor_core::Scope::offload)). Sending the body back needs no other
    /// thread ([`Response::write_stored`]).
    ///
    /// The default logs an error, because the handler does not implement this method, and fails the
    /// request with 500.
    #[cfg(feature = "body")]
    fn request_stored(
        self,
        body: rotor_body::Body,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (body, response, scope);
        let handler = std::any::type_name::<Self>();
        log::error!("{handler} asks for a stored body and has no `request_stored`");
        Next::fail(Status::INTERNAL_SERVER_ERROR)
    }

    /// Called when there is room for more output: output was unsent when the handler returned, and
    /// has gone down to half the high-water mark, or to nothing if it was less than that.
    ///
    /// The call stays due until it is made: other calls, such as that for a piece of the body, may
    /// come first and find room already. A handler that uses it there is called again for what it
    /// has written; one that writes nothing there still gets this call. It comes once for each time
    /// that output was left unsent, and not merely because there is room.
    ///
    /// The default goes on waiting.
    fn response_flushed(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when the handler's deadline has been reached. If the handler goes on, it has no
    /// deadline from then on, unless it sets another one.
    ///
    /// The default responds with 503 through [`emit_error_page`](Server::emit_error_page) if no
    /// status was written, and finishes; the connection then closes.
    fn timeout(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = scope;
        // In the middle of another response, the peer would take an error page for a part of that
        // response. So the response is cut off instead.
        if !response.is_started() {
            response.close_unless_framed();
            Self::emit_error_page(Status::SERVICE_UNAVAILABLE, response);
        }
        Next::finished()
    }

    /// Called when a notifier, port or mailbox that the handler made has woken its connection.
    ///
    /// The wake-up may be spurious: one that was meant for the handler of an earlier request looks
    /// the same. So does each completed write of a stored body (`RecvMode::Stored`) to the disk,
    /// even right after `request_stored`.
    ///
    /// The default goes on waiting.
    fn wakeup(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when the loop is about to end: the handler should finish before `until`. If the head
    /// of a request arrives when the drain has begun already, this is called right after
    /// [`headers_received`](Server::headers_received), unless that has finished the request. If
    /// something waits in the handler's place ([`Next::wait`]), the handler that follows it gets
    /// this call.
    ///
    /// If the head of this response is still to be written, the connection closes after this
    /// response. Otherwise it closes after the next response, whose head says so, or when the
    /// [grace](rotor_core::Drain::grace) is over.
    ///
    /// The default goes on.
    #[doc(alias = "graceful shutdown")]
    fn draining(
        self,
        until: Time,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (until, response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when the peer has closed its sending side after a complete request: the peer may
    /// still read the response, or it may be gone. This is called at most once, and only if
    /// [`HEARS_END`](Server::HEARS_END) is `true`.
    ///
    /// It is not called if the peer has sent more after the request, such as a part of the next
    /// one. It is not called either when the peer ends only its side of a stream of HTTP/2 and the
    /// connection goes on. If something waits in the handler's place ([`Next::wait`]), the handler
    /// that follows it gets this call.
    ///
    /// The default goes on.
    #[doc(alias = "half-close")]
    fn peer_ended(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Describes the handler to people: its state in a word, and what it holds. The default adds
    /// nothing, and the state that the connection reports is shown (`receiving`, `handling`). See
    /// [`Machine::describe`](rotor_core::Machine::describe).
    fn describe(&self, to: &mut Description) {
        let _ = to;
    }

    /// Called when the request cannot be completed: its body is malformed, too large or too slow,
    /// there is no room for it ([`bodies_bytes_max`](super::ServerConfig::bodies_bytes_max)), or
    /// the peer has gone (this last also if the request has no body). This is the last call of the
    /// handler. The peer gets the error's status, if nothing of another response was sent, and the
    /// connection closes.
    ///
    /// The default does nothing.
    fn bad_request(self, error: BodyError, scope: &mut Scope<'_, Self::Context>) {
        let _ = (error, scope);
    }

    /// Writes the error page that the connection sends if there is no response of a handler:
    /// because the request was refused, or because its handler panicked, finished without a
    /// response, or did not implement [`timeout`](Server::timeout). The connection closes after it.
    ///
    /// A 503 for lack of room, or after [`Next::fail`], gets `Retry-After: 5`, unless the page sets
    /// this field itself. If the page is not complete when this function returns, the default page
    /// is sent instead. A handler may also call this to write its own errors; the connection then
    /// persists.
    ///
    /// The default writes one line of plain text: the status, and the reason if the head or the body
    /// was refused ([`Response::refusal`]), for example `400 Bad Request: Host is missing`.
    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        plain_page(status, response);
    }
}

/// What a handler returns: its next state, how much of the request it wants to receive, and its
/// deadline.
///
/// Begin with [`recv`](Next::recv), [`recv_stream`](Next::recv_stream) or [`go_on`](Next::go_on),
/// then set the deadline; only then is the builder a `Next`. [`finished`](Next::finished),
/// [`fail`](Next::fail) and [`upgrade`](Next::upgrade) need no deadline. A handler that only waits
/// for one thing and then replies needs no state of its own for that: see [`wait`](Next::wait),
/// [`offload`](Next::offload) and [`after`](Next::after).
#[must_use = "a handler whose `Next` is dropped is forgotten: return it"]
pub struct Next<S: Server> {
    pub(super) step: Step<S>,
    pub(super) deadline: Deadline,
}

/// What the connection does next.
pub(super) enum Step<S: Server> {
    Receive(S, RecvMode, Pauses),
    Hold(S),
    GoOn(S),
    /// Go on, and wake the handler at this time.
    WakeAt(S, Time),
    Finished,
    Fail(Status),
    Upgrade(<S::Upgrade as Protocol>::Seed),
    /// Something else waits in the place of the handler, which no longer exists.
    Pending(Box<dyn PendingReply<S>>),
}

/// Whether a peer may pause while it sends a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pauses {
    /// As long as the minimum rate is kept.
    ByRate,
    /// As long as the handler waits.
    Any,
}

/// Waits in the place of a handler; see the module `later`.
pub(super) trait PendingReply<S: Server>: Send {
    /// The time until which it waits. It replaces the handler's deadline.
    fn limit(&self) -> Time;

    /// Returns whether the awaited value is already there.
    fn is_ready(&self) -> bool {
        false
    }

    /// Called when the connection was woken. May be spurious.
    fn wakeup(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<S>;

    /// Called when the limit has been reached.
    fn timeout(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<S>;
}

/// The seed of the protocol that a connection switches to.
pub(super) type UpgradeSeed<S> = <<S as Server>::Upgrade as Protocol>::Seed;

/// A [`Next`] whose deadline is not set yet.
#[must_use = "say the deadline: .deadline(time), .keep_deadline() or .no_deadline()"]
pub struct NextBuilder<S: Server> {
    pub(super) step: Step<S>,
}
