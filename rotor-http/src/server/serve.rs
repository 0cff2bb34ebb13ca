//! `serve`: a whole program that serves HTTP, from opening its address to a graceful end.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor_core::net::{ListenOptions, ListenerLayer};
use rotor_core::service_manager::ServiceManager;
use rotor_core::{Config, Drain, LoopKind, MioKind, Pulses, Scope};
use rotor_stream::AcceptConfig;

use super::config::ServerConfig;
use super::handler::Server;
use super::head::Head;
use super::opened::HandOverSettings;
use super::reply::Reply;
use super::response::Response;
use super::serve_error::ServeError;
use super::server_fn::ServerFn;
use crate::health::{Health, PortSettings};

/// The default time that requests have to finish after the process is asked to end.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// Serves HTTP at `address` with a function, on the calling thread, until the process is asked to
/// end.
///
/// This is short for [`Serve::new(address)`](Serve::new) with all its defaults; see there for what
/// it does and when it returns.
///
/// A `Router` of `rotor-service` is not a function; serve it with its own `run`.
///
/// # Errors
///
/// As [`Serve::run`].
///
/// # Examples
///
/// ```no_run
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Head, Reply, Response, Scope, ServeError, serve};
///
/// fn hello(_: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
///     response.reply(Status::OK, "text/plain", b"Hello, World!")
/// }
///
/// fn main() -> Result<(), ServeError> {
///     serve("127.0.0.1:3000", hello)
/// }
/// ```
pub fn serve<F>(address: impl fmt::Display, function: F) -> Result<(), ServeError>
where
    F: Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, ()>) -> Reply + Clone + Send + 'static,
{
    Serve::new(address).run_fn(function, || ())
}

/// A program that serves HTTP: its address, threads and limits, and how it ends.
///
/// It opens the address, prints `listening on http://ADDRESS/` to the standard output (with the
/// port that the system chose if the address has port 0), and serves. SIGINT or SIGTERM starts a
/// drain: nothing new is accepted, and requests that are under way or on their way finish
/// ([`Drain`]). A second signal stops the program at once
/// ([`drain_on_termination`](rotor_core::signals::drain_on_termination)). If this does not fit, a
/// program can do all of it itself: `Serve` is about a page of code around
/// [`Loop`](rotor_core::Loop), [`Accept::listen`](rotor_stream::Accept::listen),
/// [`LoopGroup`](rotor_core::threads::LoopGroup) and `signals`.
///
/// Its loops are those of mio, or of [another kind](Serve::loop_kind). For HTTPS, or behind a
/// balancer, something is [between HTTP and TCP](Serve::over); the printed line then begins with
/// `listening on https://`.
///
/// # Examples
///
/// Two threads, each of which counts its requests in its loop's context:
///
/// ```no_run
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Head, Reply, Response, Scope, Serve, ServeError};
///
/// fn count(_: &Head<'_>, response: &mut Response<'_>, requests: &mut Scope<'_, u64>) -> Reply {
///     **requests += 1;
///     response.reply(Status::OK, "text/plain", format!("{}\n", **requests).as_bytes())
/// }
///
/// fn main() -> Result<(), ServeError> {
///     Serve::new("127.0.0.1:3000").threads(2).run_fn(count, || 0)
/// }
/// ```
#[derive(Clone)]
#[must_use = "nothing is served before `run`"]
pub struct Serve<K = MioKind, L = ()> {
    kind: K,
    layer: L,
    settings: Settings,
}

/// All settings except the kind of loop.
#[derive(Clone)]
struct Settings {
    address: String,
    /// A listener that is open already, used instead of the address.
    listener: Option<Arc<std::net::TcpListener>>,
    threads: usize,
    listen: ListenOptions,
    accept: AcceptConfig,
    config: Arc<dyn Fn() -> ServerConfig + Send + Sync>,
    loop_config: Config,
    drain: Drain,
    hand_over: HandOverSettings,
    health: Option<Health>,
    /// The port for probes.
    port: Option<PortSettings>,
    /// The service manager, and the loops that it is to know of.
    attended: Option<(ServiceManager, Pulses)>,
}

impl Serve {
    /// Creates a server at `address` with the defaults: one thread, loops of mio,
    /// [`ServerConfig::new`], [`AcceptConfig::new`], [`Config::new`], 10 s for draining.
    ///
    /// `address` is a host and a port, such as `127.0.0.1:3000`, `[::]:80` or `localhost:0`.
    /// [`run`](Serve::run) parses it, and has the system look up a name. If a name has several
    /// addresses, the first one that can be opened is used.
    pub fn new(address: impl fmt::Display) -> Serve {
        let settings = Settings {
            address: address.to_string(),
            listener: None,
            threads: 1,
            listen: ListenOptions::new(),
            accept: AcceptConfig::new(),
            config: Arc::new(ServerConfig::new),
            loop_config: Config::new(),
            drain: Drain::new(DRAIN_TIME_MAX),
            hand_over: HandOverSettings::default(),
            health: None,
            port: None,
            attended: None,
        };
        Serve { kind: MioKind, layer: (), settings }
    }

    /// Creates a server with the defaults on a listener that is open already: a runtime opened it,
    /// or the process that started this one.
    ///
    /// [Its options](Serve::listen_options) stay as they are. Several [threads](Serve::threads)
    /// share its queue. In a drain it is closed; if somebody else has a copy (the process that
    /// opened it, a clone of this value), it stays open, and clients wait in its queue. It cannot be
    /// [handed over](Serve::hand_over): with both, [`run`](Serve::run) fails.
    pub fn on(listener: std::net::TcpListener) -> Serve {
        let address = listener.local_addr().map_or_else(|_| String::new(), |own| own.to_string());
        let mut serve = Serve::new(address);
        serve.settings.listener = Some(Arc::new(listener));
        serve
    }
}

impl<K> Serve<K> {
    /// Sets what is between HTTP and TCP: `TlsServer` of rotor-tls for HTTPS, `ProxyProtocol` of
    /// rotor-proxy-protocol behind a balancer that sends its header, both as a pair, the outermost
    /// first (`(tls, behind)`), or a [layer of your own](ListenerLayer#a-layer-of-your-own).
    /// Default: nothing.
    ///
    /// The layer is put around each listener: of each thread, [given](Serve::on), or [handed
    /// over](Serve::hand_over). With one that [encrypts](ListenerLayer::is_secure), the printed URL
    /// is `https`, and so is the name of the listeners in a hand-over.
    ///
    /// Clients of TLS get HTTP/2 if the server has the feature `http2` and they agree on `h2`, so
    /// let `TlsServerConfig::alpn` offer it, before `http/1.1`. If it offers no protocol, all get
    /// HTTP/1.1. If it offers one that this server does not speak (`h2` without the feature, or a
    /// misspelled name), [`run`](Serve::run) fails.
    ///
    /// # Examples
    ///
    /// With `tls` of rotor-tls:
    ///
    /// ```text
    /// let identity = Identity::from_pem_files("site.crt", "site.key")?;
    /// let tls = TlsServer::new(TlsServerConfig::new(identity).alpn(&[b"h2", b"http/1.1"]))?;
    /// ```
    ///
    /// ```no_run
    /// # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
    /// use rotor::http::Status;
    /// use rotor::http::server::{Head, Reply, Response, Scope, Serve, ServeError};
    /// # use rotor::net::ListenerLayer;
    ///
    /// fn hello(_: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    ///     response.reply(Status::OK, "text/plain", b"Hello, World!")
    /// }
    ///
    /// # fn serve(tls: impl ListenerLayer) -> Result<(), ServeError> {
    /// // listening on https://0.0.0.0:443/ with 4 threads
    /// Serve::new("0.0.0.0:443").over(tls).threads(4).run_fn(hello, || ())
    /// # }
    /// ```
    #[doc(alias = "https")]
    #[doc(alias = "tls")]
    #[doc(alias = "ssl")]
    #[doc(alias = "listen_with")]
    #[doc(alias = "proxy_protocol")]
    pub fn over<L: ListenerLayer>(self, layer: L) -> Serve<K, L> {
        Serve { kind: self.kind, layer, settings: self.settings }
    }
}

impl<K, L> Serve<K, L> {
    /// Sets the kind of loop. Default: [`MioKind`].
    ///
    /// Each thread opens a loop of its own. If the system does not allow this kind, for example
    /// io_uring, [`run`](Serve::run) fails. To fall back to loops of mio, check in advance, as
    /// `rotor_uring::UringKind` allows.
    #[doc(alias = "backend")]
    #[doc(alias = "io_uring")]
    pub fn loop_kind<N: LoopKind>(self, kind: N) -> Serve<N, L> {
        Serve { kind, layer: self.layer, settings: self.settings }
    }

    /// Sets the number of threads, each with a loop, a listener and a context of its own. 0 counts
    /// as 1. Default: 1, the calling thread.
    ///
    /// The system assigns each connection to one of the threads. Several threads share the port
    /// (`SO_REUSEPORT`), which another process of the same user can also do; a single thread has
    /// the port to itself.
    pub fn threads(mut self, threads: usize) -> Serve<K, L> {
        self.settings.threads = threads.max(1);
        self
    }

    /// Sets the options of the listening sockets. Default: [`ListenOptions::new`].
    pub fn listen_options(mut self, options: ListenOptions) -> Serve<K, L> {
        self.settings.listen = options;
        self
    }

    /// Sets the limits on accepting connections. Default: [`AcceptConfig::new`].
    pub fn accept_config(mut self, config: AcceptConfig) -> Serve<K, L> {
        self.settings.accept = config;
        self
    }

    /// Sets the limits of HTTP, the log and the counters. Default: [`ServerConfig::new`]. `make` is
    /// called once by each thread, so that loops share only what `make` captures.
    pub fn config(
        mut self,
        make: impl Fn() -> ServerConfig + Send + Sync + 'static,
    ) -> Serve<K, L> {
        self.settings.config = Arc::new(make);
        self
    }

    /// Sets the limits of each loop. One of them, [`Config::machines_max`], limits how many
    /// connections there are at a time. Default: [`Config::new`].
    pub fn loop_config(mut self, config: Config) -> Serve<K, L> {
        self.settings.loop_config = config;
        self
    }

    /// Sets how long requests may take to finish once the process is asked to end. Those that have
    /// not finished by then are cut off. Default: 10 s. This keeps the other settings of
    /// [`drain`](Serve::drain), such as an announcement or another grace.
    #[doc(alias = "graceful shutdown")]
    pub fn drain_time_max(mut self, time: Duration) -> Serve<K, L> {
        self.settings.drain = self.settings.drain.time_max(time);
        self
    }

    /// Sets the phases in which the server ends once the process is asked to: for example with an
    /// announcement first, or with another grace for idle connections. This replaces the time set
    /// by [`drain_time_max`](Serve::drain_time_max). After a [hand-over](Serve::hand_over) only its
    /// time applies, without the announcement.
    pub fn drain(mut self, drain: Drain) -> Serve<K, L> {
        self.settings.drain = drain;
        self
    }

    /// Lets `health` watch the loops, and reports to it that the process is ready once it listens.
    /// Probes are answered elsewhere: with [`health_at`](Serve::health_at) or
    /// [`serve_at`](Health::serve_at) on a port of their own, or by a handler
    /// ([`answer`](Health::answer)). Default: none.
    ///
    /// When the server ends, or cannot start, it reports that the process is not ready, also if
    /// another one with the same `health` still serves. If a process has several servers, give
    /// `health` to the one that starts last, and ends with the others.
    ///
    /// This replaces what was set before, also for the port of [`health_at`](Serve::health_at).
    #[doc(alias = "readiness")]
    pub fn health(mut self, health: Health) -> Serve<K, L> {
        if let Some(port) = &mut self.settings.port {
            // Nothing would be reported to the earlier one.
            port.health = health.clone();
        }
        self.settings.health = Some(health);
        self
    }

    /// Does the same as [`health`](Serve::health), and answers probes at `address`, on a separate
    /// thread, as long as [`run`](Serve::run) runs. `run` fails if the address cannot be opened.
    /// Default: no port.
    ///
    /// With a [hand-over](Serve::hand_over), the port is handed over as well, under the name
    /// `health`. Its predecessor answers until this process serves, and then this one does. So
    /// probes find the service ready all the time, also while the predecessor drains. Of sockets
    /// that a service manager gives to the process without names, the first is that of the service,
    /// and the second is that of this port.
    // Inlined, like `Health::serve_at` (decision 54).
    #[inline]
    #[doc(alias = "liveness")]
    pub fn health_at(self, health: Health, address: SocketAddr) -> Serve<K, L> {
        let open = |health: &Health, source| health.serve_on(source);
        let mut serve = self.health(health.clone());
        serve.settings.port = Some(PortSettings { health, address, open });
        serve
    }

    /// Keeps the service manager that has started the process informed
    /// ([`attend`](ServiceManager::attend)): that it serves, that it ends and how long this may take,
    /// and, if the manager watches it, that all loops make turns. Default: it is not told anything.
    ///
    /// In a [hand-over](Serve::hand_over), the successor reports itself as the main process of the
    /// service, once it serves and before its predecessor begins to drain, and the predecessor ends
    /// without a word. For systemd, the unit
    /// needs `NotifyAccess=all` for that. Without this, systemd takes the end of the predecessor
    /// for that of the service, and kills the successor.
    ///
    /// If the manager cannot be told, this is logged, and the server serves.
    #[doc(alias = "systemd")]
    #[doc(alias = "sd_notify")]
    pub fn service_manager(mut self, manager: ServiceManager) -> Serve<K, L> {
        self.settings.attended = Some((manager, Pulses::new()));
        self
    }
}

impl<K: LoopKind, L: ListenerLayer> Serve<K, L> {
    /// Serves with a function; see [`ServerFn`]. `context` makes the context of a loop, which its
    /// requests share; it is called once by each thread.
    ///
    /// # Errors
    ///
    /// As [`run`](Serve::run).
    pub fn run_fn<F, C: 'static>(
        self,
        function: F,
        context: impl Fn() -> C + Clone + Send + 'static,
    ) -> Result<(), ServeError>
    where
        F: Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, C>) -> Reply + Clone + Send + 'static,
    {
        self.run::<ServerFn<F, C>>(move || (function.clone(), context()))
    }

    /// Serves with handlers of type `S`. Returns when the process was asked to end and all requests
    /// have finished or their time is over. A handler that does not return holds this up; a third
    /// signal ends the process nevertheless.
    ///
    /// `parts` makes the seed of a loop's handlers and the loop's context. It is called once by
    /// each thread.
    ///
    /// # Errors
    ///
    /// If the address is invalid, or is a name that the system cannot resolve; if it is in use or
    /// is not an address of this machine; if no thread or descriptor is left; if the standard
    /// output is closed; if the system refuses loops of this [kind](Serve::loop_kind); if clients of
    /// the [layer](Serve::over) may agree on a protocol that is not served; if the
    /// [hand-over](Serve::hand_over) failed; or if a loop failed while it ran, after which the
    /// others were stopped. Nothing is left open.
    pub fn run<S: Server + 'static>(
        self,
        parts: impl Fn() -> (S::Seed, S::Context) + Clone + Send + 'static,
    ) -> Result<(), ServeError> {
        let address = self.settings.address.clone();
        self.serve::<S>(parts).map_err(|cause| ServeError { address, cause })
    }
}

impl<K: fmt::Debug, L: fmt::Debug> fmt::Debug for Serve<K, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { address, threads, drain, .. } = &self.settings;
        f.debug_struct("Serve")
            .field("kind", &self.kind)
            .field("layer", &self.layer)
            .field("address", address)
            .field("threads", threads)
            .field("drain", drain)
            .finish_non_exhaustive()
    }
}

mod handing_over;
mod running;
#[cfg(test)]
mod tests;
