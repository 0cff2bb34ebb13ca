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

/// One request and its response, as a value that writes the one, is handed the other, and returns
/// how it goes on.
///
/// Each method gets the handler by value, the [`Request`] to write, and the scope. A handler that
/// needs the whole response writes three: [`prepare_request`](Client::prepare_request),
/// [`headers_received`](Client::headers_received), which asks for the body
/// ([`RecvMode::Buffered`]), and [`response_received`](Client::response_received), which finishes.
///
/// # What the connection promises
///
/// * `prepare_request` is the first call; it may come a second time, on another connection, if the
///   first one died unanswered and the request may be made again (below). After
///   [`bad_response`](Client::bad_response) none comes.
/// * The head of a response is well-formed and its framing unambiguous. Its body is whole, or the
///   handler hears `bad_response`: never a short one taken for all of it.
/// * What a handler writes is a correct request, or refused; see [`Request`].
/// * A response that comes before the request was sent whole is handed over; the rest of the
///   request may still be written, but when the exchange finishes without it, the connection is not
///   used again.
/// * When nobody waits for the outcome any more, the handler is dropped and the connection closed;
///   of one of HTTP/2, the stream alone is reset.
///
/// # Making a request again
///
/// A server may close a connection at the very moment at which it is used again. A request is
/// therefore made a second time, once, on a new connection, if its connection had served another
/// one before, nothing at all of a response came, its method is idempotent (RFC 9110 §9.2.2), and
/// it was written whole in `prepare_request`, so that the handler has lost nothing. On HTTP/2 a
/// server may say that it has not looked at a request (REFUSED_STREAM, or a GOAWAY that leaves it
/// out): then that is made again, up to ten times, whatever its method, if it was written whole.
///
/// # HTTP/2
///
/// With the feature `http2`, a connection whose handshake has agreed on `h2` has many requests
/// under way, each with a handler that is told what it is told on HTTP/1.1. `Host` becomes
/// `:authority`; what governs a connection of HTTP/1.1 (`Upgrade` with it) is not sent; a body
/// without a length needs no chunks, and CONNECT is refused, as is a target that is a URI.
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
    /// What the machines of the loop share; a library's handler is generic over it and asks for
    /// traits.
    type Context;

    /// What whoever made the request is given in the end.
    type Output;

    /// The protocol that a connection may go on with; [`NoUpgrade`](super::NoUpgrade) where there
    /// is none.
    type Upgrade: Protocol<Context = Self::Context>;

    /// Returns what the handler holds on the heap until its request is made, in bytes: a body,
    /// above all. It counts against what may wait in a pool
    /// ([`PoolConfig::waiting_bytes_max`](super::PoolConfig::waiting_bytes_max)).
    ///
    /// Default: 0. A handler that holds more than its own size had better say so.
    fn held_bytes(&self) -> usize {
        0
    }

    /// There is a connection: write the request, from its beginning, as much as is at hand.
    fn prepare_request(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// The server wants the body that was announced with [`Request::expect_continue`], or has said
    /// nothing for too long: write it.
    ///
    /// Default: goes on.
    fn body_wanted(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The request is not complete, and what waited to be sent when the handler last returned has
    /// gone down to half the high-water mark, or wholly, if it was less than that: there is room
    /// for more.
    ///
    /// Default: goes on.
    fn request_flushed(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// An interim response has come (1xx but 101).
    ///
    /// Default: goes on.
    fn interim_received(
        self,
        head: &Head<'_>,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (head, request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// The head of the response has come. The handler may ask for its body, wait, or finish.
    fn headers_received(
        self,
        head: &Head<'_>,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self>;

    /// The whole body, which the handler asked for with [`RecvMode::Buffered`]. Trailers are
    /// dropped.
    ///
    /// Default: fails with [`ClientError::Unhandled`].
    fn response_received(
        self,
        body: &[u8],
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (body, request, scope);
        // Whoever asked is told: it would wait for a body that nobody takes.
        Next::error(ClientError::Unhandled)
    }

    /// A part of the body, which the handler asked for with [`RecvMode::Progressive`].
    ///
    /// Default: drops it.
    fn response_chunk(
        self,
        chunk: &[u8],
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (chunk, request, scope);
        Next::go_on(self).keep_deadline()
    }

    /// A part of the body, which the handler asked for with [`RecvMode::Blocks`], with the memory
    /// in which it came.
    ///
    /// Default: [`response_chunk`](Client::response_chunk).
    fn response_block(
        self,
        block: Block,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        self.response_chunk(&block, request, scope)
    }

    /// The body has ended, after the last [`response_chunk`](Client::response_chunk) or
    /// [`response_block`](Client::response_block).
    ///
    /// Default: fails with [`ClientError::Unhandled`].
    fn response_end(
        self,
        trailers: &Trailers,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (trailers, request, scope);
        Next::error(ClientError::Unhandled)
    }

    /// The whole body as a value, which the handler asked for with
    /// [`RecvMode::Stored`]: in memory, or in a file that is gone with its last clone. With the
    /// feature `body`.
    ///
    /// Default: fails with [`ClientError::Unhandled`].
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

    /// There is no response, or none that is whole. The last call: what it returns is what whoever
    /// made the request is given.
    ///
    /// Also called for a request that never had a connection. Default: the error.
    fn bad_response(
        self,
        error: ClientError,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Result<Self::Output, ClientError> {
        let _ = scope;
        Err(error)
    }

    /// The handler's own deadline has been reached; it is gone.
    ///
    /// Default: fails as when the request's deadline passes.
    fn timeout(
        self,
        request: &mut Request<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let _ = (request, scope);
        Next::error(ClientError::Deadline(Stage::Receiving))
    }

    /// A notifier, port or mailbox that the handler made woke its connection. May be spurious.
    ///
    /// Default: goes on.
    fn wakeup(self, request: &mut Request<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let _ = (request, scope);
        Next::go_on(self).keep_deadline()
    }
}

/// How a request goes on: the handler's next state, how much of the response it wants to see, and
/// its deadline.
///
/// Begin with [`recv`](Next::recv), [`hold`](Next::hold) or [`go_on`](Next::go_on) and say the
/// deadline: the builder is not a `Next` before. The others need none.
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

/// A [`Next`] whose deadline is still to be said.
#[must_use = "say the deadline: .deadline(time), .keep_deadline() or .no_deadline()"]
pub struct NextBuilder<K: Client> {
    step: Step<K>,
}

impl<K: Client> Next<K> {
    /// Go on as `state`, and see the body of the response as `mode` says. After
    /// [`hold`](Next::hold): see more of it; the mode is what was said first.
    ///
    /// Before the head of the response it means [`go_on`](Next::go_on).
    pub fn recv(state: K, mode: RecvMode) -> NextBuilder<K> {
        NextBuilder { step: Step::Receive(state, mode) }
    }

    /// Go on as `state`, and be handed no more of the body until the handler says
    /// [`recv`](Next::recv): what comes stays in the socket, and the server has to wait. How long
    /// that lasts is the handler's to say; the server is not timed.
    ///
    /// That the body has ended is told all the same: [`response_end`](super::Client::response_end),
    /// which hands nothing over, follows the last piece at once.
    #[doc(alias = "backpressure")]
    pub fn hold(state: K) -> NextBuilder<K> {
        NextBuilder { step: Step::Hold(state) }
    }

    /// Go on as `state`: the handler waits for what it asked for, for room to write, for a wake-up
    /// or its deadline.
    pub fn go_on(state: K) -> NextBuilder<K> {
        NextBuilder { step: Step::GoOn(state) }
    }

    /// The exchange is over, and this is what came of it: whoever made the request is given it.
    ///
    /// If the request was sent whole and the response has ended, the connection is used again.
    /// Otherwise it is closed.
    pub fn finished(output: K::Output) -> Next<K> {
        Next { step: Step::Finished(output), deadline: Deadline::Never }
    }

    /// The server has agreed to switch (101, or 2xx to CONNECT): from here on the connection speaks
    /// the protocol that is made from `seed`, beginning with what was read already. Whoever made
    /// the request is given the output now.
    ///
    /// Where the server has not, it means [`finished`](Next::finished), and is logged.
    pub fn upgrade(seed: <K::Upgrade as Protocol>::Seed, output: K::Output) -> Next<K> {
        Next { step: Step::Upgrade(seed, output), deadline: Deadline::Never }
    }

    /// The handler gives up: whoever made the request is given the error, and the connection is
    /// closed, unless nothing of the request was written.
    pub fn error(error: impl Into<ClientError>) -> Next<K> {
        Next { step: Step::Error(error.into()), deadline: Deadline::Never }
    }
}

impl<K: Client> NextBuilder<K> {
    /// [`timeout`](Client::timeout) is called once the loop's time has reached this. The request's
    /// own deadline, and those of the connection, stay in force.
    pub fn deadline(self, time: Time) -> Next<K> {
        self.with(Deadline::At(time))
    }

    /// The same with a time, or as [`no_deadline`](NextBuilder::no_deadline) without one.
    pub fn deadline_opt(self, time: Option<Time>) -> Next<K> {
        self.with(time.map_or(Deadline::Never, Deadline::At))
    }

    /// The handler's deadline stays as it was; at first it has none.
    pub fn keep_deadline(self) -> Next<K> {
        self.with(Deadline::Keep)
    }

    /// The handler has no deadline of its own any more.
    pub fn no_deadline(self) -> Next<K> {
        self.with(Deadline::Never)
    }

    /// The deadline is what was decided elsewhere.
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
