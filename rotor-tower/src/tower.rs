//! `Tower`: a service with its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Extensions;
use rotor_async::Tokio;
use rotor_http::server::Head;

/// A service with its settings: the seed of [`TowerServer`](crate::TowerServer).
///
/// The service is cloned for each request. It need not be `Send`, except for [`run`](Tower::run),
/// which may use several loops.
#[derive(Clone)]
pub struct Tower<S> {
    pub(crate) service: S,
    pub(crate) settings: Arc<Settings>,
}

/// How long a response may be silent, by default, after its peer has ended its side. This is longer
/// than it takes to read the next part of a file, or to get an answer from a database.
pub const HALF_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings that all requests share.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) tokio: Option<Tokio>,
    pub(crate) half_close_timeout: Duration,
    extend: Option<Arc<Extend>>,
    is_stream: Option<Arc<IsStream>>,
}

type Extend = dyn Fn(&Head<'_>, &mut Extensions) + Send + Sync;
type IsStream = dyn Fn(&Head<'_>) -> bool + Send + Sync;

impl<S> Tower<S> {
    /// Takes a service with the default settings. Its futures are polled outside of any tokio
    /// runtime, unless [one is set](Tower::tokio).
    pub fn new(service: S) -> Tower<S> {
        let settings = Settings {
            tokio: None,
            half_close_timeout: HALF_CLOSE_TIMEOUT,
            extend: None,
            is_stream: None,
        };
        Tower { service, settings: Arc::new(settings) }
    }

    /// Sets a tokio runtime, so that tokio's timers, sockets and tasks work in the service's
    /// futures and bodies. These are still polled on the loops.
    pub fn tokio(mut self, tokio: Tokio) -> Tower<S> {
        Arc::make_mut(&mut self.settings).tokio = Some(tokio);
        self
    }

    /// Sets how long the body of a response may be silent after its peer has ended its side. Such a
    /// peer may still read, or it may be gone, which only the next write would show. After this
    /// time the connection is closed, and the body dropped. Default: 10 s. With zero it is dropped
    /// at once, as by hyper, unless that is configured to allow half-closed connections. hyper also
    /// drops a service that has not responded yet; here such a service goes on.
    pub fn half_close_timeout(mut self, time: Duration) -> Tower<S> {
        Arc::make_mut(&mut self.settings).half_close_timeout = time;
        self
    }

    /// Sets a function that is called for each request, and can put data of the connection into the
    /// request's extensions. Default: none.
    ///
    /// ```
    /// use axum::extract::ConnectInfo;
    /// use rotor_tower::Tower;
    ///
    /// # let routes = axum::Router::<()>::new();
    /// // For routes that use `ConnectInfo<SocketAddr>`. It costs a system call.
    /// let tower = Tower::new(routes).extend(|head, extensions| {
    ///     if let Some(address) = head.peer_address() {
    ///         extensions.insert(ConnectInfo(address));
    ///     }
    /// });
    /// ```
    #[doc(alias = "ConnectInfo")]
    pub fn extend(
        mut self,
        extend: impl Fn(&Head<'_>, &mut Extensions) + Send + Sync + 'static,
    ) -> Tower<S> {
        Arc::make_mut(&mut self.settings).extend = Some(Arc::new(extend));
        self
    }

    /// Sets which requests have a body that is a stream of messages, whose peer may pause between
    /// two of them. Default: none.
    ///
    /// Until the head of the response is complete, other bodies must arrive at the rate of
    /// [`body_rate_min`](rotor_http::Limits::body_rate_min), 1 KiB/s with at most 5 s of silence. A
    /// service that reads several messages before it responds, as for the client-streaming calls of
    /// gRPC, needs this function; then a peer may be silent for
    /// [`handler_timeout`](rotor_http::Limits::handler_timeout) after each piece, and may send as
    /// slowly as it likes. Once the response has begun, the peer of any request may pause, for as
    /// long as the service waits.
    ///
    /// ```
    /// use rotor_tower::Tower;
    ///
    /// # let routes = axum::Router::<()>::new();
    /// let tower = Tower::new(routes).stream_requests(|head| {
    ///     head.field("Content-Type").is_some_and(|kind| kind.starts_with(b"application/grpc"))
    /// });
    /// ```
    #[doc(alias = "gRPC")]
    pub fn stream_requests(
        mut self,
        is_stream: impl Fn(&Head<'_>) -> bool + Send + Sync + 'static,
    ) -> Tower<S> {
        Arc::make_mut(&mut self.settings).is_stream = Some(Arc::new(is_stream));
        self
    }
}

impl Settings {
    /// Calls `f` in the context of the tokio runtime, if one is set.
    pub(crate) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let _guard = self.tokio.as_ref().map(|tokio| tokio.handle().enter());
        f()
    }

    pub(crate) fn extend(&self, head: &Head<'_>, extensions: &mut Extensions) {
        if let Some(extend) = &self.extend {
            extend(head, extensions);
        }
    }

    /// Returns whether the peer may pause within the body of this request.
    pub(crate) fn is_stream(&self, head: &Head<'_>) -> bool {
        self.is_stream.as_ref().is_some_and(|is_stream| is_stream(head))
    }
}

impl<S> fmt::Debug for Tower<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tower").field("tokio", &self.settings.tokio).finish_non_exhaustive()
    }
}
