//! `Server`: what a handler of requests does, and `Next`: what it returns, how its request goes on.
//! How a `Next` is made is in `next`.

use rotor_core::{Deadline, Description, Scope, Time};
use rotor_stream::{Block, Protocol};

use super::error_page::plain_page;
use super::head::Head;
use super::response::Response;
use crate::recv_mode::RecvMode;
use crate::semantics::error::BodyError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::semantics::trailers::Trailers;

/// One request and its response, as a value that is handed what comes and returns how it goes on.
///
/// **One handler at a time for a connection**: the next request is looked at when the response is
/// complete. Each method gets the handler by value, the [`Response`] to write, and the scope.
///
/// A handler of whole requests writes two methods: `headers_received`, which asks for the body
/// ([`RecvMode::Buffered`]), and `request_received`, which answers. One that needs no body writes
/// the first alone.
///
/// # What the connection promises
///
/// * `headers_received` is the first call. The head is well-formed, its framing unambiguous, its
///   `Host` one.
/// * A body is whole, or the handler hears [`bad_request`](Server::bad_request): never a short one
///   taken for all of it.
/// * What a handler writes is a correct message, or refused; see [`Response`].
/// * A handler that panics is gone, and nothing else is: the peer gets 500, or the connection ends
///   where a part of the response has been sent.
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
    /// What the machines of the loop share; a library's handler is generic over it and asks for
    /// traits.
    type Context;

    /// What all requests of a server share; cloned once a request.
    type Seed: Clone;

    /// The protocol that a connection may go on with after a request, or a stream of HTTP/2 (RFC
    /// 8441); [`NoUpgrade`](super::NoUpgrade) where there is none: then none is offered.
    type Upgrade: Protocol<Context = Self::Context>;

    /// Whether the handler hears that its peer has ended its side
    /// ([`peer_ended`](Server::peer_ended)).
    ///
    /// Default: it does not, and nothing is read that nobody waits for.
    const HEARS_END: bool = false;

    /// Returns whether requests of this method come to the handler; others are answered with 501. A
    /// panic here is one of the handler: 500.
    ///
    /// Default: the methods of RFC 9110 §9.3 but CONNECT and TRACE, and PATCH.
    fn supports(method: Method<'_>) -> bool {
        !matches!(method, Method::Connect | Method::Trace | Method::Extension(_))
    }

    /// The head of a request has come. The handler may answer at once, ask for the body, or wait.
    #[doc(alias = "request smuggling")]
    fn headers_received(
        seed: Self::Seed,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// The whole body, which the handler asked for with [`RecvMode::Buffered`]. Trailers are
    /// dropped.
    ///
    /// Default: finishes.
    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (body, response, scope);
        Next::finished()
    }

    /// A part of the body, which the handler asked for with [`RecvMode::Progressive`].
    ///
    /// Default: drops it.
    fn request_chunk(
        self,
        chunk: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (chunk, response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// A part of the body, which the handler asked for with [`RecvMode::Blocks`], with the memory
    /// in which it came.
    ///
    /// Default: [`request_chunk`](Server::request_chunk).
    fn request_block(
        self,
        block: Block,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        self.request_chunk(&block, response, scope)
    }

    /// The body has ended, after the last [`request_chunk`](Server::request_chunk) or
    /// [`request_block`](Server::request_block).
    ///
    /// Default: finishes.
    fn request_end(
        self,
        trailers: &Trailers,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (trailers, response, scope);
        Next::finished()
    }

    /// The whole body as a value, which the handler asked for with
    /// [`RecvMode::Stored`]: in memory, or in a file that is gone with its last clone. With the
    /// feature `body`.
    ///
    /// To read one that is in a file is work for another thread
    /// ([`Scope::offload`](rotor_core::Scope::offload)); to send it back is not
    /// ([`Response::write_stored`]).
    ///
    /// Default: logs that the handler lacks this method, and finishes, which is answered with 500.
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

    /// What waited to be sent when the handler last returned has gone down to half the high-water
    /// mark, or wholly, if it was less than that: there is room for more.
    ///
    /// A handler that waits for room and takes a body in as well (or is woken, or has a deadline)
    /// looks at [`Response::room`] in *every* call: a piece of the body may come when there is room
    /// already, and before this. What waits when that call returns is what this is told of next, so
    /// one that only held the body, or went on, there would wait for ever.
    ///
    /// Default: waits on.
    fn response_flushed(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The handler's deadline has been reached.
    ///
    /// Default: finishes, after 503 by [`emit_error_page`](Server::emit_error_page) where no status
    /// was written; the connection then closes.
    fn timeout(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = scope;
        // A page in the midst of another response would be taken for a part of it: that is cut
        // instead.
        if !response.is_started() {
            response.close_unless_framed();
            Self::emit_error_page(Status::SERVICE_UNAVAILABLE, response);
        }
        Next::finished()
    }

    /// A notifier, port or mailbox that the handler made woke its connection. May be spurious: a
    /// wake-up for the handler of an earlier request looks the same, and so does each
    /// piece that the disk has taken of a body that is stored (`RecvMode::Stored`), right
    /// after `request_stored` too.
    ///
    /// Default: waits on.
    fn wakeup(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The loop is to end: finish before `until`. The connection closes after this response, if its
    /// head is still to be written; else after the next one, which says so, or when the
    /// [grace](rotor_core::Drain::grace) is over.
    ///
    /// Default: goes on.
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

    /// The peer sends no more, behind a whole request: it may still read the response, or be gone.
    /// Called once at most, where [`HEARS_END`](Server::HEARS_END) says so. Not called where the
    /// peer had sent more behind its request, a part of the next one, nor on an orderly stream of
    /// HTTP/2 whose connection goes on. What came while something waited in the handler's place
    /// ([`Next::wait`]) is told to the handler that this goes on as.
    ///
    /// Default: goes on.
    #[doc(alias = "half-close")]
    fn peer_ended(
        self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (response, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Says what the handler is at, for people: the state in a word, what it holds. Default:
    /// nothing, and the connection's word is shown (`receiving`, `handling`). See
    /// [`Machine::describe`](rotor_core::Machine::describe).
    fn describe(&self, to: &mut Description) {
        let _ = to;
    }

    /// The body broke: it is malformed, too large, too slow, there is no room for it
    /// ([`bodies_bytes_max`](super::ServerConfig::bodies_bytes_max)), or the peer has gone (then
    /// also of a request without a body). The last call: the peer gets the error's status, if
    /// nothing of another response was sent, and the connection closes.
    ///
    /// Default: nothing.
    fn bad_request(self, error: BodyError, scope: &mut Scope<'_, Self::Context>) {
        let _ = (error, scope);
    }

    /// Writes the response where no handler does: to a request that was refused, or whose handler
    /// panicked, finished without a response, or left [`timeout`](Server::timeout) to its default.
    /// The connection closes after it.
    ///
    /// A 503 for want of room, or after [`Next::fail`], says `Retry-After: 5` by itself, unless the
    /// page says when. A page that is not whole when this returns is replaced by the default. A
    /// handler may write its own errors by it as well; the connection then persists.
    ///
    /// Default: one line of plain text.
    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        plain_page(status, response);
    }
}

/// How a request goes on: the handler's next state, how much of the request it wants to see, and
/// its deadline.
///
/// Begin with [`recv`](Next::recv) or [`go_on`](Next::go_on) and say the deadline: the builder is
/// not a `Next` before. [`finished`](Next::finished), [`fail`](Next::fail) and
/// [`upgrade`](Next::upgrade) need none. Who waits for one thing and then replies needs no state
/// for that: [`wait`](Next::wait), [`offload`](Next::offload), [`after`](Next::after).
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

    /// Its deadline has been reached.
    fn timeout(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<S>;
}

/// What the protocol is made from that a connection goes on in.
pub(super) type UpgradeSeed<S> = <<S as Server>::Upgrade as Protocol>::Seed;

/// A [`Next`] whose deadline is still to be said.
#[must_use = "say the deadline: .deadline(time), .keep_deadline() or .no_deadline()"]
pub struct NextBuilder<S: Server> {
    pub(super) step: Step<S>,
}
