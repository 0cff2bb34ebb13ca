//! `Server`: what a handler of requests does, and `Next`: what it returns, how its request goes on.
//! How a `Next` is made is in `next`.

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

/// One request and its response, as a value that gets what comes in and returns how it goes on.
///
/// **One handler at a time for a connection**: the next request is looked at when the response is
/// complete. Each method gets the handler by value, the [`Response`] to write, and the scope.
///
/// A handler of whole requests implements two methods: `headers_received`, which asks for the body
/// ([`RecvMode::Buffered`]), and `request_received`, which answers. A handler that needs no body
/// implements only the first.
///
/// A server around another one implements [`handle`](Server::handle) for all that comes after the
/// head: see [`Around`](super::Around).
///
/// # What the connection promises
///
/// * `headers_received` is the first call. The head is well-formed, its framing is unambiguous, and
///   it has one `Host`.
/// * A body is complete, or the handler gets [`bad_request`](Server::bad_request): a truncated body
///   is never taken for a whole one.
/// * What a handler writes is a correct message, or is refused; see [`Response`].
/// * If a handler panics, that handler is lost and nothing else: the peer gets 500, or the
///   connection ends if part of the response has been sent.
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
    /// What the machines of the loop share. A handler in a library is generic over it and requires
    /// traits of it.
    type Context;

    /// What all requests of a server share. It is cloned once for each request.
    type Seed: Clone;

    /// The protocol that a connection, or a stream of HTTP/2 (RFC 8441), may go on with after a
    /// request. With [`NoUpgrade`](super::NoUpgrade) there is none, and none is offered.
    type Upgrade: Protocol<Context = Self::Context>;

    /// Whether the handler is told that its peer has ended its side
    /// ([`peer_ended`](Server::peer_ended)).
    ///
    /// The default is `false`, and then nothing is read that nobody waits for.
    const HEARS_END: bool = false;

    /// Returns whether requests with this method are passed to the handler; others are answered
    /// with 501. A panic here counts as one of the handler: 500.
    ///
    /// The default accepts GET, HEAD, POST, PUT, DELETE, OPTIONS and PATCH.
    fn supports(method: Method<'_>) -> bool {
        !matches!(method, Method::Connect | Method::Trace | Method::Extension(_))
    }

    /// Called when the head of a request has come. The handler may answer at once, ask for the
    /// body, or wait.
    #[doc(alias = "request smuggling")]
    fn headers_received(
        seed: Self::Seed,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// Handles what happens after the head has come: the single method through which a connection,
    /// and each server around this one, reaches the handler. The default calls the method named
    /// after the event.
    ///
    /// Implement this for a server around another one: it passes on the event, and converts the
    /// answer ([`Next::map`], [`Next::around`]). It calls `handle` of the inner handler, never a
    /// named method, which an inner one that is around another again does not have. It also passes
    /// on what is no event: [`bad_request`](Server::bad_request), [`describe`](Server::describe),
    /// [`emit_error_page`](Server::emit_error_page), [`supports`](Server::supports),
    /// [`HEARS_END`](Server::HEARS_END). A handler of its own implements the named methods instead.
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

    /// Called with the whole body, which the handler asked for with [`RecvMode::Buffered`].
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

    /// Called with a part of the body, which the handler asked for with [`RecvMode::Progressive`].
    ///
    /// The default drops it.
    fn request_chunk(
        self,
        chunk: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (chunk, response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called with a part of the body, which the handler asked for with [`RecvMode::Blocks`],
    /// together with the memory in which it came.
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

    /// Called with the whole body as a value, which the handler asked for with
    /// [`RecvMode::Stored`]: in memory, or in a file that is deleted with the last clone. With the
    /// feature `body`.
    ///
    /// Read a body that is in a file on another thread
    /// ([`Scope::offload`](rotor_core::Scope::offload)). Sending it back needs none
    /// ([`Response::write_stored`]).
    ///
    /// The default logs that the handler lacks this method, and finishes, which is answered with
    /// 500.
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

    /// Called when there is room for more: what waited to be sent when the handler last returned
    /// has gone down to half the high-water mark, or to nothing if it was less than that.
    ///
    /// A handler that waits for room and also takes a body (or is woken, or has a deadline) must
    /// look at [`Response::room`] in *every* call: a piece of the body may come when there is room
    /// already, and before this is called. What waits when that call returns is what this is called
    /// for next, so a handler that only kept the piece, or went on, would wait for ever.
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

    /// Called when the handler's deadline has been reached. A handler that goes on has no deadline
    /// from then on, unless it sets another one.
    ///
    /// The default finishes, after 503 by [`emit_error_page`](Server::emit_error_page) if no status
    /// was written; the connection then closes.
    fn timeout(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = scope;
        // In the middle of another response, a page would be taken for a part of it. So that
        // response is cut instead.
        if !response.is_started() {
            response.close_unless_framed();
            Self::emit_error_page(Status::SERVICE_UNAVAILABLE, response);
        }
        Next::finished()
    }

    /// Called when a notifier, port or mailbox that the handler made woke its connection.
    ///
    /// It may be spurious: a wake-up for the handler of an earlier request looks the same. So does
    /// each piece of a stored body (`RecvMode::Stored`) that the disk has taken, even right after
    /// `request_stored`.
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

    /// Called when the loop is about to end: finish before `until`. For a request whose head comes
    /// after that, called next after [`headers_received`](Server::headers_received), unless that
    /// has finished. If something waits in the handler's place ([`Next::wait`]), the handler that
    /// follows it is told.
    ///
    /// The connection closes after this response if its head is still to be written; otherwise
    /// after the next one, which says so, or when the [grace](rotor_core::Drain::grace) is over.
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

    /// Called when the peer sends no more after a whole request: it may still read the response, or
    /// be gone. Called at most once, and only if [`HEARS_END`](Server::HEARS_END) says so.
    ///
    /// It is not called if the peer has sent more after its request, such as a part of the next
    /// one, nor on an orderly stream of HTTP/2 whose connection goes on. If something waits in the
    /// handler's place ([`Next::wait`]), the handler that follows it is told.
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

    /// Describes the handler for people: its state in a word, what it holds. The default says
    /// nothing, and the connection's word is shown (`receiving`, `handling`). See
    /// [`Machine::describe`](rotor_core::Machine::describe).
    fn describe(&self, to: &mut Description) {
        let _ = to;
    }

    /// Called when the body is broken: it is malformed, too large or too slow, there is no room for
    /// it ([`bodies_bytes_max`](super::ServerConfig::bodies_bytes_max)), or the peer has gone (this
    /// last also for a request without a body). This is the last call. The peer gets the error's
    /// status, if nothing of another response was sent, and the connection closes.
    ///
    /// The default does nothing.
    fn bad_request(self, error: BodyError, scope: &mut Scope<'_, Self::Context>) {
        let _ = (error, scope);
    }

    /// Writes the response where no handler does: to a request that was refused, or whose handler
    /// panicked, finished without a response, or left [`timeout`](Server::timeout) to its default.
    /// The connection closes after it.
    ///
    /// A 503 for lack of room, or after [`Next::fail`], gets `Retry-After: 5`, unless the page says
    /// when. A page that is not complete when this returns is replaced by the default one. A
    /// handler may also call this to write its own errors; the connection then persists.
    ///
    /// The default writes one line of plain text: the status, and for a head that was refused the
    /// reason ([`Response::refusal`]), `400 Bad Request: Host is missing`.
    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        plain_page(status, response);
    }
}

/// How a request goes on: the handler's next state, how much of the request it wants to see, and
/// its deadline.
///
/// Begin with [`recv`](Next::recv) or [`go_on`](Next::go_on), then set the deadline: before that,
/// the builder is not a `Next`. [`finished`](Next::finished), [`fail`](Next::fail) and
/// [`upgrade`](Next::upgrade) need none. A handler that waits for one thing and then replies needs
/// no state of its own for that: see [`wait`](Next::wait), [`offload`](Next::offload) and
/// [`after`](Next::after).
#[must_use = "a handler whose `Next` is dropped is forgotten: return it"]
pub struct Next<S: Server> {
    pub(super) step: Step<S>,
    pub(super) deadline: Deadline,
}

/// What the connection is to do.
pub(super) enum Step<S: Server> {
    Receive(S, RecvMode),
    Hold(S),
    GoOn(S),
    /// Go on, and be woken at this time.
    WakeAt(S, Time),
    Finished,
    Fail(Status),
    Upgrade(<S::Upgrade as Protocol>::Seed),
    /// Something else waits in the handler's place, which is no more.
    Later(Box<dyn Later<S>>),
}

/// What waits in the place of a handler: see `later`.
pub(super) trait Later<S: Server>: Send {
    /// Until when it waits, whatever deadline the handler has.
    fn limit(&self) -> Time;

    /// Whether what it waits for is there already.
    fn is_ready(&self) -> bool {
        false
    }

    /// Something has woken the connection. May be spurious.
    fn wakeup(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<S>;

    /// Its limit has been reached.
    fn timeout(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<S>;
}

/// What the protocol is made from that a connection goes on in.
pub(super) type UpgradeSeed<S> = <<S as Server>::Upgrade as Protocol>::Seed;

/// A [`Next`] whose deadline is not set yet.
#[must_use = "say the deadline: .deadline(time), .keep_deadline() or .no_deadline()"]
pub struct NextBuilder<S: Server> {
    pub(super) step: Step<S>,
}
