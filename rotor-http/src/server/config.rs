//! What all connections of a server share: limits, the server's name, the hook for logs, counters,
//! the date.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use rotor_core::Scope;
use rotor_stream::{BytesHeld, StreamConfig};

use super::access_log::AccessLog;
use super::counters::Counters;
use super::finished::Finished;
#[cfg(feature = "http2")]
use super::http2_config::Http2Config;
use super::shared_date::SharedDate;
use crate::limits::Limits;
use crate::recv_mode::INPUT_BYTES_MAX;
use crate::semantics::calendar::unix_seconds;
use crate::semantics::date::DateCache;

/// What the connections of a server share, set once when the server is set up.
///
/// One value serves the connections of one loop. Give each loop its own, so that loops share
/// nothing.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::server::ServerConfig;
/// use rotor::http::Limits;
///
/// let config = ServerConfig::new().limits(Limits::new().head_bytes_max(8 << 10)).server("example");
/// ```
#[doc(alias = "Settings")]
#[must_use]
pub struct ServerConfig {
    limits: Limits,
    #[cfg(feature = "http2")]
    http2: Http2Config,
    server: Option<String>,
    log: Option<LogHook>,
    log_fields: Vec<&'static str>,
    stream: Arc<StreamConfig>,
    counters: Arc<Counters>,
    bodies: Arc<BytesHeld>,
    held: Arc<BytesHeld>,
    budgets: Budgets,
    #[cfg(feature = "body")]
    spool: Option<rotor_body::Spool>,
    date: SharedDate,
    /// Until when, by loop time in nanoseconds, the date is right.
    date_until: AtomicU64,
}

/// Octets that all bodies of a server hold together.
const BODIES_BYTES_MAX: usize = 256 << 20;

/// Bytes that the connections of a server hold together in their inputs and outputs.
const HELD_BYTES_MAX: usize = 512 << 20;

/// What is done for one connection in one event, in bytes.
#[derive(Clone, Copy)]
struct Budgets {
    /// Read of a body that is collected in memory.
    collect: usize,
    /// Written.
    write: usize,
}

const BUDGETS: Budgets = Budgets { collect: 512 << 10, write: 256 << 10 };

type LogHook = Box<dyn Fn(&Finished<'_>) + Send + Sync>;

impl ServerConfig {
    /// Returns the defaults.
    pub fn new() -> ServerConfig {
        let (limits, counters) = (Limits::new(), Arc::default());
        let held = BytesHeld::new(HELD_BYTES_MAX);
        ServerConfig {
            stream: stream_config(&limits, &counters, &held, BUDGETS),
            limits,
            #[cfg(feature = "http2")]
            http2: Http2Config::new(),
            server: None,
            log: None,
            log_fields: Vec::new(),
            counters,
            bodies: BytesHeld::new(BODIES_BYTES_MAX),
            held,
            budgets: BUDGETS,
            #[cfg(feature = "body")]
            spool: None,
            date: SharedDate::new(),
            date_until: AtomicU64::new(0),
        }
    }

    /// Sets every limit of a connection. Default: [`Limits::new`].
    pub fn limits(mut self, limits: Limits) -> ServerConfig {
        self.stream = stream_config(&limits, &self.counters, &self.held, self.budgets);
        self.limits = limits;
        self
    }

    /// Sets the limits of connections that speak HTTP/2, and whether plain ones may. Default:
    /// [`Http2Config::new`].
    #[cfg(feature = "http2")]
    pub fn http2(mut self, config: Http2Config) -> ServerConfig {
        self.http2 = config;
        self
    }

    /// Sets the `Server` field. Default: there is none, because it tells an attacker more than a
    /// user.
    ///
    /// A name that cannot stand in a field (because it has a control byte) is left out, and that is
    /// logged: the responses matter more.
    pub fn server(mut self, name: impl Into<String>) -> ServerConfig {
        let name = name.into();
        let is_good = !name.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t');
        if !is_good {
            log::error!("{name:?} cannot stand in the Server field, and is left out");
        }
        self.server = is_good.then_some(name);
        self
    }

    /// Sets a function that is called for each finished request, on the loop's thread; it must not
    /// block. If it panics, that is counted with the panics of handlers, and costs no response.
    /// Default: none, and then nothing is kept for it.
    pub fn log(mut self, hook: impl Fn(&Finished<'_>) + Send + Sync + 'static) -> ServerConfig {
        self.log = Some(Box::new(hook));
        self
    }

    /// Sets which fields of a request are passed to the log
    /// ([`Finished::field`](super::Finished::field)). Default: none. Each is copied for each
    /// request that has it.
    pub fn log_fields(mut self, names: &[&'static str]) -> ServerConfig {
        self.log_fields = names.to_vec();
        self
    }

    /// Has each finished request written to an access log: this sets [`log`](ServerConfig::log) and
    /// [`log_fields`](ServerConfig::log_fields) as its format needs them.
    pub fn access_log(self, log: &AccessLog) -> ServerConfig {
        self.log_fields(log.format().fields()).log(log.hook())
    }

    /// Sets the counters, which may be shared: for example with the other loops of a group.
    /// Default: counters of its own.
    pub fn count_with(mut self, counters: Arc<Counters>) -> ServerConfig {
        self.stream = stream_config(&self.limits, &counters, &self.held, self.budgets);
        self.counters = counters;
        self
    }

    /// Sets how many octets of memory bodies may hold at a time while they are collected for their
    /// handlers. Default 256 MiB: 256 bodies of the most that
    /// [`buffered_body_bytes_max`](Limits::buffered_body_bytes_max) allows one of them.
    ///
    /// It counts the bodies of all connections of this loop together (and [of
    /// others](ServerConfig::bodies_with) if you want that), whether they are collected whole
    /// ([`RecvMode::Buffered`](super::RecvMode)) or up to the least size of a piece. What counts is
    /// the memory, which may be twice what has come.
    ///
    /// A body of known length, at most 64 KiB, that came with its head needs none of it, so small
    /// bodies pass where large ones find no room. A body that finds none ends with 503,
    /// `Retry-After: 5` and close, and its handler gets
    /// [`BodyError::NoRoom`](crate::BodyError::NoRoom); it is counted in
    /// [`bodies_without_room`](Counters::bodies_without_room). Bodies that are under way keep what
    /// they have.
    pub fn bodies_bytes_max(mut self, bytes: usize) -> ServerConfig {
        self.bodies = BytesHeld::new(bytes);
        self
    }

    /// Counts what bodies hold together with others, for example the other loops of a group, so
    /// that the limit of `held` is that of all.
    pub fn bodies_with(mut self, held: Arc<BytesHeld>) -> ServerConfig {
        self.bodies = held;
        self
    }

    /// Returns the counter of what bodies hold now; any thread may read it.
    pub fn bodies_held(&self) -> Arc<BytesHeld> {
        self.bodies.clone()
    }

    /// Sets how many bytes of memory the connections may hold together in their inputs and outputs
    /// while they wait. Default 512 MiB: 8,000 connections whose peers leave 64 KiB each.
    ///
    /// It counts the connections of this loop (and [of others](ServerConfig::held_with) if you want
    /// that) that wait for the rest of a head or of a body, or for peers to take their responses
    /// (the parts that are files hold none).
    ///
    /// A connection that would wait with more ends, with
    /// [`Fatal::NoRoom`](rotor_stream::Fatal::NoRoom) and without another response, for which there
    /// would be no room either; it is counted in [`without_room`](Counters::without_room). Those
    /// that have what they need, and those that are served at once, go on. Bodies that are
    /// collected have [a total of their own](ServerConfig::bodies_bytes_max).
    pub fn held_bytes_max(self, bytes: usize) -> ServerConfig {
        self.held_with(BytesHeld::new(bytes))
    }

    /// Counts what waits in inputs and outputs together with others, for example the other loops of
    /// a group.
    pub fn held_with(mut self, held: Arc<BytesHeld>) -> ServerConfig {
        // The configuration of the streams is shared and cannot change. A part of it has, so it is
        // made again.
        self.stream = stream_config(&self.limits, &self.counters, &held, self.budgets);
        self.held = held;
        self
    }

    /// Returns the counter of what inputs and outputs hold now; any thread may read it.
    pub fn held(&self) -> Arc<BytesHeld> {
        self.held.clone()
    }

    /// Sets how many bytes are read in one turn of a body that is collected in memory as a whole,
    /// if that is more than the 64 KiB that are read of any other. Default 512 KiB: most bodies are
    /// read, and handled, while they are in the processor's caches, and fewer are held at a time.
    ///
    /// This applies to [`RecvMode::Buffered`](super::RecvMode), and to `Stored` if the body was
    /// announced to be short enough for it. While so many bytes are read, the other connections
    /// wait: with 64 KiB they wait for an eighth of that, eight times as often.
    pub fn collect_budget(mut self, bytes: usize) -> ServerConfig {
        self.budgets.collect = bytes;
        self.stream = stream_config(&self.limits, &self.counters, &self.held, self.budgets);
        self
    }

    /// Sets how many bytes are written to a connection in one turn. Default 256 KiB: a peer that
    /// takes a file as fast as it is sent does not hold up the others.
    ///
    /// A server that sends large responses to hundreds of connections at a time does it with less
    /// CPU time if each gets 1 MiB in a turn: the peer then reads while what was written is in the
    /// processor's caches. The other connections wait four times as long, a quarter as often.
    pub fn write_budget(mut self, bytes: usize) -> ServerConfig {
        self.budgets.write = bytes;
        self.stream = stream_config(&self.limits, &self.counters, &self.held, self.budgets);
        self
    }

    /// Sets where bodies go that are too long for memory, if their handlers ask for
    /// [`RecvMode::Stored`](super::RecvMode). The loops of a group may share one. Default: none,
    /// and such a body is too large (413). With the feature `body`.
    #[cfg(feature = "body")]
    pub fn spool(mut self, spool: rotor_body::Spool) -> ServerConfig {
        self.spool = Some(spool);
        self
    }

    /// Returns the counters of these connections; any thread may read them.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    pub(super) fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    pub(super) fn logged_fields(&self) -> &[&'static str] {
        &self.log_fields
    }

    pub(super) fn write_log(&self, finished: &Finished<'_>) {
        if let Some(log) = &self.log {
            log(finished);
        }
    }

    pub(super) fn limits_ref(&self) -> &Limits {
        &self.limits
    }

    #[cfg(feature = "http2")]
    pub(super) fn http2_ref(&self) -> &Http2Config {
        &self.http2
    }

    pub(super) fn bodies(&self) -> &Arc<BytesHeld> {
        &self.bodies
    }

    #[cfg(feature = "body")]
    pub(super) fn spool_ref(&self) -> Option<&rotor_body::Spool> {
        self.spool.as_ref()
    }

    pub(super) fn count(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn server_name(&self) -> Option<&str> {
        self.server.as_deref()
    }

    pub(super) fn stream(&self) -> Arc<StreamConfig> {
        self.stream.clone()
    }

    /// Renews the date once a second of loop time; so a date is at most a second old. Called before
    /// handlers are.
    #[inline]
    pub(super) fn renew_date<C>(&self, scope: &Scope<'_, C>) {
        let now = scope.now().as_nanos();
        if now >= self.date_until.load(Relaxed) {
            self.renew_date_now(now, scope.wall_time());
        }
    }

    #[cold]
    fn renew_date_now(&self, now: u64, wall: SystemTime) {
        self.date.update(unix_seconds(wall));
        // Relaxed: loops that share the config may both renew it, which costs a lock and does no
        // harm.
        self.date_until.store(now.saturating_add(1_000_000_000), Relaxed);
    }

    #[inline]
    pub(super) fn date(&self) -> DateCache {
        self.date.read()
    }
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig::new()
    }
}

/// Requests that are pipelined, chunks of a body, and frames of HTTP/2, in one event of a
/// connection, and up to a batch more. At less than a microsecond for most, one that floods holds
/// up the others no longer than a few honest ones do.
const CALLS_BUDGET: u32 = 128;

/// The stream's part of the limits.
fn stream_config(
    limits: &Limits,
    counters: &Arc<Counters>,
    held: &Arc<BytesHeld>,
    budgets: Budgets,
) -> Arc<StreamConfig> {
    let counters = counters.clone();
    StreamConfig::new()
        // A head has to fit in whole: its handler gets it from where it lies in the input.
        .input_max(INPUT_BYTES_MAX.max(limits.head_bytes_max))
        .handshake_timeout(limits.handshake_timeout)
        .output_high_water(limits.output_high_water)
        .collect_budget(budgets.collect)
        .write_budget(budgets.write)
        .calls_budget(CALLS_BUDGET)
        .flush_timeout(limits.response_grace)
        .flush_step(limits.response_step())
        .close_timeout(limits.shutdown_timeout)
        .linger_timeout(limits.linger_timeout)
        .linger_bytes(limits.linger_bytes_max)
        .held(Some(held.clone()))
        .count_octets(counters.traffic.octets().clone())
        .on_abort(move |reason| counters.add_abort(reason))
        .share()
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("limits", &self.limits)
            .field("server", &self.server)
            .field("bodies", &self.bodies)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}
