//! The settings that all connections of a server share: limits, the server's name, the log hook,
//! counters, the date.

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

/// The settings that the connections of a server share. They are set once, when the server is set
/// up.
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
    /// The loop time, in nanoseconds, at which the next second begins.
    date_until: AtomicU64,
}

/// The most bytes that all bodies of a server hold together.
const BODIES_BYTES_MAX: usize = 256 << 20;

/// The most bytes that the connections of a server hold together in their inputs and outputs.
const HELD_BYTES_MAX: usize = 512 << 20;

/// How much is done for one connection in one event, in bytes.
#[derive(Clone, Copy)]
struct Budgets {
    /// How much of a body that is collected in memory is read.
    collect: usize,
    /// How much is written.
    write: usize,
}

const BUDGETS: Budgets = Budgets { collect: 512 << 10, write: 256 << 10 };

type LogHook = Box<dyn Fn(&Finished<'_>) + Send + Sync>;

impl ServerConfig {
    /// Creates a configuration with the defaults.
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

    /// Sets the limits of connections that speak HTTP/2, and whether unencrypted connections may
    /// speak it. Default: [`Http2Config::new`].
    #[cfg(feature = "http2")]
    pub fn http2(mut self, config: Http2Config) -> ServerConfig {
        self.http2 = config;
        self
    }

    /// Sets the `Server` field. Default: no such field, because it is of more use to an attacker
    /// than to a user.
    ///
    /// If the name is not a valid field value (because it contains a control byte), the field is
    /// left out and an error is logged: the responses matter more.
    pub fn server(mut self, name: impl Into<String>) -> ServerConfig {
        let name = name.into();
        let is_good = !name.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t');
        if !is_good {
            log::error!("{name:?} is not a valid value of the Server field and is left out");
        }
        self.server = is_good.then_some(name);
        self
    }

    /// Sets a function that is called for each finished request, on the loop's thread; it must not
    /// block. If it panics, that is counted with the panics of handlers, and no response is lost.
    /// It is not called for requests that are cut off when their loop ends or an operator ends their
    /// machine; [`Counters::responses`] counts these as `none`. Default: no function; nothing is
    /// stored for a log then.
    pub fn log(mut self, hook: impl Fn(&Finished<'_>) + Send + Sync + 'static) -> ServerConfig {
        self.log = Some(Box::new(hook));
        self
    }

    /// Sets which fields of a request the log can read
    /// ([`Finished::field`](super::Finished::field)). Default: none. Each of these fields is
    /// copied, for each request that has it.
    pub fn log_fields(mut self, names: &[&'static str]) -> ServerConfig {
        self.log_fields = names.to_vec();
        self
    }

    /// Writes a line to an access log for each finished request. This sets
    /// [`log`](ServerConfig::log), and [`log_fields`](ServerConfig::log_fields) to the fields of
    /// the log's format.
    pub fn access_log(self, log: &AccessLog) -> ServerConfig {
        self.log_fields(log.format().fields()).log(log.hook())
    }

    /// Sets the counters. They may be shared, for example with the other loops of a group. Default:
    /// counters of this configuration alone.
    pub fn count_with(mut self, counters: Arc<Counters>) -> ServerConfig {
        self.stream = stream_config(&self.limits, &counters, &self.held, self.budgets);
        self.counters = counters;
        self
    }

    /// Sets how many bytes of memory all bodies together may use while they are collected for their
    /// handlers. Default 256 MiB: 256 bodies of the greatest length that
    /// [`buffered_body_bytes_max`](Limits::buffered_body_bytes_max) allows.
    ///
    /// This counts the bodies of all connections of this loop (and [of
    /// others](ServerConfig::bodies_with), if you share the counter), whether they are collected as
    /// a whole ([`RecvMode::Buffered`](super::RecvMode)) or up to the least size of a piece. It
    /// counts the memory that is allocated, which may be twice the bytes that were received.
    ///
    /// A body of known length, at most 64 KiB, that arrived with its head is not counted, so small
    /// bodies still pass when there is no room for large ones. If there is no room for a body, the
    /// peer gets 503 with `Retry-After: 5`, the connection closes, and the handler gets
    /// [`BodyError::NoRoom`](crate::BodyError::NoRoom);
    /// [`bodies_without_room`](Counters::bodies_without_room) counts these. Bodies keep the memory
    /// that they have already.
    pub fn bodies_bytes_max(mut self, bytes: usize) -> ServerConfig {
        self.bodies = BytesHeld::new(bytes);
        self
    }

    /// Shares the counter of the memory of bodies with others, for example with the other loops of
    /// a group. The limit of `held` then applies to all of them together.
    pub fn bodies_with(mut self, held: Arc<BytesHeld>) -> ServerConfig {
        self.bodies = held;
        self
    }

    /// Returns the counter of the memory that bodies use now. Any thread may read it.
    pub fn bodies_held(&self) -> Arc<BytesHeld> {
        self.bodies.clone()
    }

    /// Sets how many bytes of memory all connections together may use in their inputs and outputs
    /// while they wait. Default 512 MiB: 8,000 connections whose peers leave 64 KiB each unread.
    ///
    /// This counts the connections of this loop (and [of others](ServerConfig::held_with), if you
    /// share the counter) that wait for the rest of a head or of a body, or for peers to read their
    /// responses. Parts of responses that are files use no memory.
    ///
    /// A connection that would exceed the limit while it waits ends with
    /// [`Fatal::NoRoom`](rotor_stream::Fatal::NoRoom), and without another response, for which
    /// there would be no room either; [`without_room`](Counters::without_room) counts these.
    /// Connections that need no more memory, and those that are served at once, go on. Bodies that
    /// are collected have [a limit of their own](ServerConfig::bodies_bytes_max).
    pub fn held_bytes_max(self, bytes: usize) -> ServerConfig {
        self.held_with(BytesHeld::new(bytes))
    }

    /// Shares the counter of the memory of inputs and outputs with others, for example with the
    /// other loops of a group.
    pub fn held_with(mut self, held: Arc<BytesHeld>) -> ServerConfig {
        // The configuration of the streams is shared and cannot be changed, so it is made again.
        self.stream = stream_config(&self.limits, &self.counters, &held, self.budgets);
        self.held = held;
        self
    }

    /// Returns the counter of the memory that inputs and outputs use now. Any thread may read it.
    pub fn held(&self) -> Arc<BytesHeld> {
        self.held.clone()
    }

    /// Sets how many bytes of a body are read in one turn if the body is collected in memory as a
    /// whole. Default 512 KiB: most bodies are read, and handled, while they are in the processor's
    /// caches, and fewer are in memory at a time. A value below 64 KiB has no effect, because that
    /// much is read of any body.
    ///
    /// It applies to [`RecvMode::Buffered`](super::RecvMode), and to `Stored` if the announced
    /// length is short enough for memory or there is no spool. While so many bytes are read, the
    /// other connections wait: with 64 KiB they wait for an eighth of the time, eight times as
    /// often.
    pub fn collect_budget(mut self, bytes: usize) -> ServerConfig {
        self.budgets.collect = bytes;
        self.stream = stream_config(&self.limits, &self.counters, &self.held, self.budgets);
        self
    }

    /// Sets how many bytes are written to a connection in one turn. Default 256 KiB: a peer that
    /// reads a file as fast as it is sent does not hold up the others.
    ///
    /// A server that sends large responses to hundreds of connections at a time needs less CPU time
    /// with 1 MiB per turn, because the peer then reads while the bytes are in the processor's
    /// caches. The other connections wait four times as long, a quarter as often.
    pub fn write_budget(mut self, bytes: usize) -> ServerConfig {
        self.budgets.write = bytes;
        self.stream = stream_config(&self.limits, &self.counters, &self.held, self.budgets);
        self
    }

    /// Sets where bodies are stored that are too long for memory, if their handlers ask for
    /// [`RecvMode::Stored`](super::RecvMode). The loops of a group may share one spool. Default:
    /// none; such a body is too large then (413). With the feature `body`.
    #[cfg(feature = "body")]
    pub fn spool(mut self, spool: rotor_body::Spool) -> ServerConfig {
        self.spool = Some(spool);
        self
    }

    /// Returns the counters of these connections. Any thread may read them.
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

    pub(super) fn counters_ref(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn server_name(&self) -> Option<&str> {
        self.server.as_deref()
    }

    pub(super) fn stream(&self) -> Arc<StreamConfig> {
        self.stream.clone()
    }

    /// Renews the date when the next second begins, so that it is that of the current second. So
    /// no `Last-Modified` is later (RFC 9110 §8.8.2.1 forbids that). Called before handlers are.
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
        let since_1970 = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let left = 1_000_000_000 - since_1970.subsec_nanos();
        // Relaxed: if loops that share the config both renew it, that costs a lock and does no
        // harm.
        self.date_until.store(now.saturating_add(left.into()), Relaxed);
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

/// How many calls (pipelined requests, chunks of a body, frames of HTTP/2) are made in one event of
/// a connection; up to a batch more may be made. Most take less than a microsecond, so a peer that
/// floods holds up the others no longer than a few ordinary peers do.
const CALLS_BUDGET: u32 = 128;

/// Returns the stream's part of the limits.
fn stream_config(
    limits: &Limits,
    counters: &Arc<Counters>,
    held: &Arc<BytesHeld>,
    budgets: Budgets,
) -> Arc<StreamConfig> {
    let counters = counters.clone();
    StreamConfig::new()
        // A whole head has to fit, because its handler reads it in the input.
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
        .count_bytes(counters.traffic.bytes().clone())
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
