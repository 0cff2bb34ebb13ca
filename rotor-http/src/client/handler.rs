//! `Client`: the handler of one request. `Next`: what its methods return to say how the request
//! goes on.

use std::fmt;

use rotor_core::{Deadline, Scope, Time};
use rotor_stream::{Block, Protocol};

use super::error::{ClientError, Stage};
use super::head::Head;
use super::request::Request;
use crate::recv_mode::RecvMode;
use crate::semantics::trailers::Trailers;

/// The handler of one request and its response: a value that writes the request, receives the
/// response, and decides how to go on.
///
/// Each method gets the handler by value, the [`Request`] to write to, and the scope. A handler
/// that needs the whole response implements three methods:
/// [`prepare_request`](Client::prepare_request); [`headers_received`](Client::headers_received),
/// which asks for the body ([`RecvMode::Buffered`]); and
/// [`response_received`](Client::response_received), which finishes.
///
/// # What the connection promises
///
/// * `prepare_request` is the first call. It may come a second time, on another connection, if the
///   first connection ended without a response and the request may be made again (see below).
///   [`bad_response`](Client::bad_response) is the last call.
/// * The head of a response is well-formed and its framing unambiguous. Its body is complete, or
///   else the handler gets `bad_response`: a truncated body is never taken for a complete one.
/// * A handler writes a correct request, or gets an error; see [`Request`].
/// * A response that arrives before the request was sent completely is delivered. The rest of the
///   request may still be written, but if the exchange finishes without it, the connection is not
///   reused.
/// * If nobody waits for the outcome any more, the handler is dropped and the connection closed;
///   with HTTP/2, only the stream is reset.
///
/// # Making a request again
///
/// A server may close an idle connection at the very moment at which it is used. A request is
/// therefore made a second time, once, on a new connection, if all of these hold: its connection had
/// served another request before, or had waited for one; no part of a response has arrived; its
/// method is idempotent (RFC 9110 §9.2.2); and it was written completely in `prepare_request`, so
/// that the handler has lost nothing. A request that offers an upgrade is a GET in this sense: the
/// server may switch protocols for it twice, and one of the two ends with its connection.
///
/// An HTTP/2 server may say that it has not processed a request (REFUSED_STREAM, or a GOAWAY that
/// excludes it). Such a request is made again, whatever its method, if it was written completely in
/// `prepare_request`: up to ten times, not counting GOAWAYs without an error of servers that have
/// taken another request on the same connection. If a server answers a request over HTTP/1.1 only
/// (HTTP_1_1_REQUIRED), a pool makes it over HTTP/1.1, provided that its connector supports this
/// ([`without_http2`](super::Connector::without_http2)), no part of a response has arrived, its
/// method is idempotent or a GOAWAY excludes it, and it was written completely in
/// `prepare_request`.
///
/// A request of which `prepare_request` wrote nothing yet is not made again, although the server
/// does not know of it: what its handler waits for would wake the first connection. It fails with
/// an error after which it [may be made again](ClientError::may_have_been_processed).
///
/// # HTTP/2
///
/// With the feature `http2`, a connection whose handshake has agreed on `h2` has many requests
/// under way. Each has a handler, which gets the same calls as with HTTP/1.1. `Host` becomes
/// `:authority`. Fields that govern an HTTP/1.1 connection (such as `Upgrade`) are not sent. A body
/// without a length is sent without chunks. CONNECT is refused, and so is a target that is a URI.
///
/// # Examples
///
/// This handler returns the length of a page:
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
    /// The context: what the machines of the loop share. A handler in a library is generic over it,
    /// and requires traits of it.
    type Context;

    /// What the caller gets in the end.
    type Output;

    /// The protocol to which a connection may be upgraded; [`NoUpgrade`](super::NoUpgrade) if there
    /// is none.
    type Upgrade: Protocol<Context = Self::Context>;

    /// Returns how many bytes the handler holds on the heap until its request is made, above all a
    /// body. They count towards the limit of waiting requests in a pool
    /// ([`PoolConfig::waiting_bytes_max`](super::PoolConfig::waiting_bytes_max)).
    ///
    /// The default is 0. Implement this if the handler holds more than its own size.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Called when there is a connection. Write the request from its beginning, as much of it as is
    /// available.
    ///
    /// The handler may also write nothing yet. If the server then sends anything on an HTTP/1.1
    /// connection, or closes it, before the request has begun, the request fails with
    /// [`ClientError::Unsent`], whose cause is [`ClientError::Closed`].
    fn prepare_request(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// Called when the server wants the body that was announced with [`Request::expect_continue`],
    /// or has not responded in time, or was not asked because the body is empty. Write the body.
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

    /// Called when the request is not complete and there is room for more: output was unsent when
    /// the handler returned, and has gone down to half the high-water mark, or to nothing if it was
    /// less than that. The call stays due until it is made; other calls may come first.
    ///
    /// After its whole response, an HTTP/2 server may say that it wants no more of the request
    /// (RST_STREAM, RFC 9113 §8.1). The output is then dropped instead of sent, so that the handler
    /// can end its request and finish with the response.
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

    /// Called when an interim response (1xx except 101) has arrived.
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

    /// Called when the head of the response has arrived. The handler may ask for the body, wait, or
    /// finish.
    fn headers_received(
        self,
        head: &Head<'_>,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// Called with the whole body, if the handler asked for it with [`RecvMode::Buffered`].
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
        // The caller gets an error, because otherwise it would wait for a body that nobody takes.
        Next::error(ClientError::Unhandled)
    }

    /// Called with a part of the body, if the handler asked for it with [`RecvMode::Progressive`].
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

    /// Called with a part of the body, if the handler asked for it with [`RecvMode::Blocks`],
    /// together with the memory in which it arrived.
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

    /// Called with the whole body as a value, if the handler asked for it with
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

    /// Called when there is no response, or no complete one. This is the last call, and its result
    /// goes to the caller.
    ///
    /// It is also called if the handler has received the complete response but goes on with its
    /// request, and the connection is lost before that is sent. It may then return `Ok`, or it may
    /// finish in [`response_end`](Client::response_end) if the response is all that it wants. Once
    /// nothing is missing of request and response, a loss of the connection is not reported.
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

    /// Called when the handler's own deadline has been reached. The deadline is removed.
    ///
    /// The default fails with [`ClientError::Deadline`], as if the request's deadline had passed.
    fn timeout(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (request, scope);
        Next::error(ClientError::Deadline(Stage::Receiving))
    }

    /// Called when the connection was woken by a notifier, port or mailbox that the handler made.
    /// The call may be spurious.
    ///
    /// The default goes on.
    fn wakeup(self, request: &mut Request<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (request, scope);
        Next::go_on(self).keep_deadline()
    }
}

/// How a request goes on: the handler's next state, how it wants to receive the response, and its
/// deadline.
///
/// Begin with [`recv`](Next::recv), [`hold`](Next::hold) or [`go_on`](Next::go_on), then set the
/// deadline: before that, the builder is not a `Next`. The other functions need no deadline.
#[must_use = "a handler whose `Next` is dropped is forgotten: return it"]
pub struct Next<K: Client> {
    pub(super) step: Step<K>,
    pub(super) deadline: Deadline,
}

/// What the connection does next.
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
    /// Returns whether the handler lives on.
    pub(super) fn continues(&self) -> bool {
        matches!(self, Step::Receive(..) | Step::Hold(_) | Step::GoOn(_))
    }
}

impl<K: Client> Next<K> {
    /// Continues as `state`, and receives the body of the response as `mode` says. After
    /// [`hold`](Next::hold) it receives more of the body, in the mode that was set first.
    ///
    /// Before the head of the response has arrived, this is the same as [`go_on`](Next::go_on).
    pub fn recv(state: K, mode: RecvMode) -> NextBuilder<K> {
        NextBuilder { step: Step::Receive(state, mode) }
    }

    /// Continues as `state`, and receives no more of the body until the handler returns
    /// [`recv`](Next::recv). Further data stays in the socket, and the server has to wait. The
    /// handler decides how long that lasts: no limit of time applies to the server meanwhile.
    ///
    /// Before the first head of the response, this has no effect until that has arrived. After an
    /// interim head, the next head is held off, too. Over HTTP/2 the server goes on sending heads
    /// and as much of the body as the windows allow, and the connection keeps what arrives.
    ///
    /// What has arrived is not lost with its connection: over HTTP/1.1, a reset or a failed write is
    /// reported only once the handler receives again, after what arrived before. Until then what it
    /// writes is dropped, as if it were sent. The same holds before the handler asks for the body.
    /// Over HTTP/2, a complete response is delivered even if its connection has ended meanwhile, for
    /// whatever reason; a request whose response is incomplete fails at once.
    ///
    /// The end of the body is reported all the same: [`response_end`](super::Client::response_end),
    /// which delivers no data, follows the last piece at once. And a body that is stored
    /// (`RecvMode::Stored`) is delivered once it is on the disk, if all of it had arrived before
    /// the handler held it, or the connection was lost.
    #[doc(alias = "backpressure")]
    pub fn hold(state: K) -> NextBuilder<K> {
        NextBuilder { step: Step::Hold(state) }
    }

    /// Continues as `state`. The handler waits for the data that it asked for, for room to write,
    /// for a wake-up, or for its deadline.
    pub fn go_on(state: K) -> NextBuilder<K> {
        NextBuilder { step: Step::GoOn(state) }
    }

    /// Ends the exchange with this outcome, which goes to the caller.
    ///
    /// If the request was sent completely and the response has ended, the connection is reused.
    /// Otherwise it is closed.
    pub fn finished(output: K::Output) -> Next<K> {
        Next { step: Step::Finished(output), deadline: Deadline::Never }
    }

    /// Ends the exchange and upgrades the connection to another protocol, because the server has
    /// agreed to switch (101, or 2xx to CONNECT). The protocol is made from `seed`, and begins with
    /// the input that was already read. The output goes to the caller at once.
    ///
    /// If the server has not agreed, this is the same as [`finished`](Next::finished), and an error
    /// is logged.
    pub fn upgrade(seed: <K::Upgrade as Protocol>::Seed, output: K::Output) -> Next<K> {
        Next { step: Step::Upgrade(seed, output), deadline: Deadline::Never }
    }

    /// Gives up. The error goes to the caller, and the connection is closed, unless no part of the
    /// request was written.
    pub fn error(error: impl Into<ClientError>) -> Next<K> {
        Next { step: Step::Error(error.into()), deadline: Deadline::Never }
    }
}

impl<K: Client> NextBuilder<K> {
    /// Sets the deadline: [`timeout`](Client::timeout) is called once the loop's time has reached
    /// it. The request's own deadline, and those of the connection, remain in force.
    pub fn deadline(self, time: Time) -> Next<K> {
        self.with(Deadline::At(time))
    }

    /// Sets the deadline. `None` is the same as [`no_deadline`](NextBuilder::no_deadline).
    pub fn deadline_opt(self, time: Option<Time>) -> Next<K> {
        self.with(time.map_or(Deadline::Never, Deadline::At))
    }

    /// Keeps the handler's deadline. At first there is none.
    pub fn keep_deadline(self) -> Next<K> {
        self.with(Deadline::Keep)
    }

    /// Removes the handler's own deadline.
    pub fn no_deadline(self) -> Next<K> {
        self.with(Deadline::Never)
    }

    /// Sets a deadline that was decided elsewhere, as a value.
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
