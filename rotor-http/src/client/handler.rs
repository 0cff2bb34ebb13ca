//! `Client`: what a handler of one request does, and `Next`: what it returns, how its request goes
//! on.

use std::fmt;

use rotor_core::{Deadline, Scope, Time};
use rotor_stream::{Block, Protocol};

use super::error::{ClientError, Stage};
use super::head::Head;
use super::request::Request;
use crate::recv_mode::RecvMode;
use crate::semantics::trailers::Trailers;

/// One request and its response, as a value that writes the request, gets the response, and returns
/// how it goes on.
///
/// Each method gets the handler by value, the [`Request`] to write, and the scope. A handler that
/// needs the whole response implements three: [`prepare_request`](Client::prepare_request),
/// [`headers_received`](Client::headers_received), which asks for the body
/// ([`RecvMode::Buffered`]), and [`response_received`](Client::response_received), which finishes.
///
/// # What the connection promises
///
/// * `prepare_request` is the first call. It may come a second time, on another connection, if the
///   first one died unanswered and the request may be made again (see below). After
///   [`bad_response`](Client::bad_response) no call comes.
/// * The head of a response is well-formed and its framing unambiguous. Its body is complete, or
///   the handler gets `bad_response`: a truncated body is never taken for a whole one.
/// * What a handler writes is a correct request, or is refused; see [`Request`].
/// * A response that comes before the request was sent completely is delivered. The rest of the
///   request may still be written, but if the exchange finishes without it, the connection is not
///   used again.
/// * When nobody waits for the outcome any more, the handler is dropped and the connection closed;
///   with HTTP/2, only the stream is reset.
///
/// # Making a request again
///
/// A server may close a connection at the very moment at which it is used again. A request is
/// therefore made a second time, once, on a new connection, if its connection had served another
/// request before, nothing at all of a response came, its method is idempotent (RFC 9110 §9.2.2),
/// and it was written completely in `prepare_request`, so that the handler has lost nothing. On
/// HTTP/2 a server may say that it has not looked at a request (REFUSED_STREAM, or a GOAWAY that
/// leaves it out). Such a request is made again, up to ten times, whatever its method, if it was
/// written completely. One that it answers over HTTP/1.1 only (HTTP_1_1_REQUIRED) a pool makes
/// there, if its connector [knows how](super::Connector::without_http2), nothing of a response
/// came, its method is idempotent, and it was written completely.
///
/// # HTTP/2
///
/// With the feature `http2`, a connection whose handshake has agreed on `h2` has many requests
/// under way. Each has a handler, which gets the same calls as on HTTP/1.1. `Host` becomes
/// `:authority`. Fields that govern a connection of HTTP/1.1 (such as `Upgrade`) are not sent. A
/// body without a length needs no chunks. CONNECT is refused, as is a target that is a URI.
///
/// # Examples
///
/// Asking for the length of a page:
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::client::{Client, Head, Next, NoUpgrade, RecvMode, Request, Scope};
/// use rotor::http::{MessageError, Method};
///
/// struct Length;
///
/// impl Length {
///     fn write(request: &mut Request<'_>) -> Result<(), MessageError> {
///         request.start(Method::Get, "/")?;
///         request.add_header("Host", "example.com")?;
///         request.done_headers()?;
///         request.done()
///     }
/// }
///
/// impl Client for Length {
///     type Context = ();
///     type Output = usize;
///     type Upgrade = NoUpgrade<()>;
///
///     fn prepare_request(self, request: &mut Request<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
///         match Length::write(request) {
///             Ok(()) => Next::go_on(self).no_deadline(),
///             Err(error) => Next::error(error),
///         }
///     }
///     fn headers_received(
///         self,
///         _: &Head<'_>,
///         _: &mut Request<'_>,
///         _: &mut Scope<'_, ()>,
///     ) -> Next<Self> {
///         Next::recv(self, RecvMode::Buffered(1 << 20)).keep_deadline()
///     }
///     fn response_received(
///         self,
///         body: &[u8],
///         _: &mut Request<'_>,
///         _: &mut Scope<'_, ()>,
///     ) -> Next<Self> {
///         Next::finished(body.len())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle HTTP answers",
    label = "a client's `Connection` runs handlers",
    note = "implement `Client` for it: `Context`, `Output`, `Upgrade`, `prepare_request`, `headers_received` and what \
            takes the body it asks for"
)]
pub trait Client: Sized {
    /// What the machines of the loop share. A handler in a library is generic over it and requires
    /// traits of it.
    type Context;

    /// What the requester is given in the end.
    type Output;

    /// The protocol that a connection may go on with; [`NoUpgrade`](super::NoUpgrade) if there is
    /// none.
    type Upgrade: Protocol<Context = Self::Context>;

    /// Returns how many bytes the handler holds on the heap until its request is made, above all a
    /// body. It counts against what may wait in a pool
    /// ([`PoolConfig::waiting_bytes_max`](super::PoolConfig::waiting_bytes_max)).
    ///
    /// The default is 0. Implement this for a handler that holds more than its own size.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Called when there is a connection: write the request from its beginning, as much as is at
    /// hand.
    ///
    /// It may be nothing. Whatever the server says or does on a connection of HTTP/1.1 before the
    /// request has begun then fails it with [`ClientError::Closed`], as the cause of
    /// [`ClientError::Unsent`].
    fn prepare_request(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// Called when the server wants the body that was announced with [`Request::expect_continue`],
    /// or has said nothing for too long: write the body.
    ///
    /// The default goes on.
    fn body_wanted(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when the request is not complete and there is room for more: what waited to be sent
    /// when the handler last returned has gone down to half the high-water mark, or to nothing if
    /// it was less than that.
    ///
    /// The default goes on.
    fn request_flushed(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when an interim response has come (1xx except 101).
    ///
    /// The default goes on.
    fn interim_received(
        self,
        head: &Head<'_>,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (head, request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called when the head of the response has come. The handler may ask for its body, wait, or
    /// finish.
    fn headers_received(
        self,
        head: &Head<'_>,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// Called with the whole body, which the handler asked for with [`RecvMode::Buffered`].
    /// Trailers are dropped.
    ///
    /// The default fails with [`ClientError::Unhandled`].
    fn response_received(
        self,
        body: &[u8],
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (body, request, scope);
        // The requester is told, because it would wait for a body that nobody takes.
        Next::error(ClientError::Unhandled)
    }

    /// Called with a part of the body, which the handler asked for with [`RecvMode::Progressive`].
    ///
    /// The default drops it.
    fn response_chunk(
        self,
        chunk: &[u8],
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (chunk, request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// Called with a part of the body, which the handler asked for with [`RecvMode::Blocks`],
    /// together with the memory in which it came.
    ///
    /// The default calls [`response_chunk`](Client::response_chunk).
    fn response_block(
        self,
        block: Block,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        self.response_chunk(&block, request, scope)
    }

    /// Called when the body has ended, after the last [`response_chunk`](Client::response_chunk) or
    /// [`response_block`](Client::response_block).
    ///
    /// The default fails with [`ClientError::Unhandled`].
    fn response_end(
        self,
        trailers: &Trailers,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (trailers, request, scope);
        Next::error(ClientError::Unhandled)
    }

    /// Called with the whole body as a value, which the handler asked for with
    /// [`RecvMode::Stored`]: in memory, or in a file that is deleted with the last clone. With the
    /// feature `body`.
    ///
    /// The default fails with [`ClientError::Unhandled`].
    #[cfg(feature = "body")]
    fn response_stored(
        self,
        body: rotor_body::Body,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (body, request, scope);
        Next::error(ClientError::Unhandled)
    }

    /// Called when there is no response, or no complete one: the last call. The requester is given
    /// what it returns.
    ///
    /// It is also called for a request that never had a connection. The default returns the error.
    fn bad_response(
        self,
        error: ClientError,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Result<Self::Output, ClientError> {
        let _ = scope;
        Err(error)
    }

    /// Called when the handler's own deadline has been reached; the deadline is gone.
    ///
    /// The default fails as when the request's deadline passes, with [`ClientError::Deadline`].
    fn timeout(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (request, scope);
        Next::error(ClientError::Deadline(Stage::Receiving))
    }

    /// Called when a notifier, port or mailbox that the handler made woke its connection. It may be
    /// spurious.
    ///
    /// The default goes on.
    fn wakeup(self, request: &mut Request<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (request, scope);
        Next::go_on(self).keep_deadline()
    }
}

/// How a request goes on: the handler's next state, how much of the response it wants to see, and
/// its deadline.
///
/// Begin with [`recv`](Next::recv), [`hold`](Next::hold) or [`go_on`](Next::go_on), then set the
/// deadline: before that, the builder is not a `Next`. The others need none.
#[must_use = "a handler whose `Next` is dropped is forgotten: return it"]
pub struct Next<K: Client> {
    pub(super) step: Step<K>,
    pub(super) deadline: Deadline,
}

/// What the connection is to do.
pub(super) enum Step<K: Client> {
    Receive(K, RecvMode),
    Hold(K),
    GoOn(K),
    Finished(K::Output),
    Upgrade(<K::Upgrade as Protocol>::Seed, K::Output),
    Error(ClientError),
}

/// A [`Next`] whose deadline is not set yet.
#[must_use = "say the deadline: .deadline(time), .keep_deadline() or .no_deadline()"]
pub struct NextBuilder<K: Client> {
    step: Step<K>,
}

impl<K: Client> Step<K> {
    /// Whether the handler goes on after it.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self, Step::Receive(..) | Step::Hold(_) | Step::GoOn(_))
    }
}

impl<K: Client> Next<K> {
    /// Goes on as `state`, and receives the body of the response as `mode` says. After
    /// [`hold`](Next::hold) it receives more of the body, in the mode that was set first.
    ///
    /// Before the head of the response has come it means [`go_on`](Next::go_on).
    pub fn recv(state: K, mode: RecvMode) -> NextBuilder<K> {
        NextBuilder { step: Step::Receive(state, mode) }
    }

    /// Goes on as `state`, and gets no more of the body until the handler returns
    /// [`recv`](Next::recv). What comes stays in the socket, and the server has to wait. The
    /// handler decides how long that lasts; the server is not timed.
    ///
    /// The end of the body is reported all the same: [`response_end`](super::Client::response_end),
    /// which delivers no data, follows the last piece at once.
    #[doc(alias = "backpressure")]
    pub fn hold(state: K) -> NextBuilder<K> {
        NextBuilder { step: Step::Hold(state) }
    }

    /// Goes on as `state`: the handler waits for what it asked for, for room to write, for a
    /// wake-up or its deadline.
    pub fn go_on(state: K) -> NextBuilder<K> {
        NextBuilder { step: Step::GoOn(state) }
    }

    /// Ends the exchange with this outcome, which the requester is given.
    ///
    /// If the request was sent completely and the response has ended, the connection is used again.
    /// Otherwise it is closed.
    pub fn finished(output: K::Output) -> Next<K> {
        Next { step: Step::Finished(output), deadline: Deadline::Never }
    }

    /// Ends the exchange and goes on in another protocol, because the server has agreed to switch
    /// (101, or 2xx to CONNECT). From here on the connection speaks the protocol that is made from
    /// `seed`, beginning with what was read already. The requester is given the output now.
    ///
    /// If the server has not agreed, this means [`finished`](Next::finished), and is logged.
    pub fn upgrade(seed: <K::Upgrade as Protocol>::Seed, output: K::Output) -> Next<K> {
        Next { step: Step::Upgrade(seed, output), deadline: Deadline::Never }
    }

    /// Gives up: the requester is given the error, and the connection is closed, unless nothing of
    /// the request was written.
    pub fn error(error: impl Into<ClientError>) -> Next<K> {
        Next { step: Step::Error(error.into()), deadline: Deadline::Never }
    }
}

impl<K: Client> NextBuilder<K> {
    /// Sets the deadline: [`timeout`](Client::timeout) is called once the loop's time has reached
    /// it. The request's own deadline, and those of the connection, stay in force.
    pub fn deadline(self, time: Time) -> Next<K> {
        self.with(Deadline::At(time))
    }

    /// Sets this deadline; `None` is [`no_deadline`](NextBuilder::no_deadline).
    pub fn deadline_opt(self, time: Option<Time>) -> Next<K> {
        self.with(time.map_or(Deadline::Never, Deadline::At))
    }

    /// Keeps the handler's deadline; at first it has none.
    pub fn keep_deadline(self) -> Next<K> {
        self.with(Deadline::Keep)
    }

    /// Removes the handler's own deadline.
    pub fn no_deadline(self) -> Next<K> {
        self.with(Deadline::Never)
    }

    /// Sets a deadline that was decided elsewhere.
    pub fn with(self, deadline: Deadline) -> Next<K> {
        Next { step: self.step, deadline }
    }
}

impl<K: Client> fmt::Debug for Step<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Receive(_, mode) => write!(f, "Receive({mode:?})"),
            Step::Hold(_) => f.write_str("Hold"),
            Step::GoOn(_) => f.write_str("GoOn"),
            Step::Finished(_) => f.write_str("Finished"),
            Step::Upgrade(..) => f.write_str("Upgrade"),
            Step::Error(error) => write!(f, "Error({error})"),
        }
    }
}

impl<K: Client> fmt::Debug for Next<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("step", &self.step).field("deadline", &self.deadline).finish()
    }
}

impl<K: Client> fmt::Debug for NextBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NextBuilder").field(&self.step).finish()
    }
}
