//! `Http2Config`: the limits of connections that speak HTTP/2, beside those of
//! [`Limits`](crate::Limits).

use std::fmt;
use std::time::Duration;

use crate::h2::{FloodLimits, Rate};

/// What a server allows on connections of HTTP/2.
///
/// [`Limits`](crate::Limits) apply there as well: to heads, bodies, handlers and times. These are
/// the limits that HTTP/1.1 has no use for.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::server::{Http2Config, ServerConfig};
///
/// let config = ServerConfig::new().http2(Http2Config::new().prior_knowledge(true));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Http2Config {
    pub(super) prior_knowledge: bool,
    pub(super) connect_protocol: bool,
    pub(super) streams_max: u32,
    pub(super) stream_window: u32,
    pub(super) connection_window: u32,
    pub(super) collected_bytes_max: usize,
    pub(super) unsent_bytes_max: usize,
    pub(super) responses_bytes_max: usize,
    pub(super) continuations_max: u32,
    pub(super) settings_timeout: Duration,
    pub(super) floods: FloodLimits,
}

impl Http2Config {
    /// Returns the defaults.
    pub const fn new() -> Http2Config {
        Http2Config {
            prior_knowledge: false,
            connect_protocol: true,
            streams_max: 100,
            stream_window: 64 << 10,
            connection_window: 1 << 20,
            collected_bytes_max: 4 << 20,
            unsent_bytes_max: 1 << 20,
            responses_bytes_max: 8 << 20,
            continuations_max: 8,
            settings_timeout: Duration::from_secs(10),
            floods: FloodLimits {
                resets: Rate { burst: 200, per_second: 33 },
                provoked_resets: Rate { burst: 200, per_second: 10 },
                control_frames: Rate { burst: 1000, per_second: 100 },
                small_data: Rate { burst: 100_000, per_second: 100_000 },
            },
        }
    }

    /// Sets whether streams may go on in other protocols (RFC 8441), if the handler has a
    /// [`Server::Upgrade`](super::Server::Upgrade). Default: yes. Say no if something behind the
    /// server does not know it; clients that want another protocol then come over HTTP/1.1.
    #[doc(alias = "SETTINGS_ENABLE_CONNECT_PROTOCOL")]
    pub fn connect_protocol(mut self, yes: bool) -> Http2Config {
        self.connect_protocol = yes;
        self
    }

    /// Sets whether a connection that negotiated nothing may begin in HTTP/2 at once, by its
    /// preface (RFC 9113 §3.3). This is for clients that were configured so, as proxies and gRPC
    /// are on plain connections; with all others HTTP/1.1 is spoken.
    ///
    /// Default: no. Then the preface is a bad request, and HTTP/2 is for connections whose
    /// handshake agreed on `h2`.
    #[doc(alias = "h2c")]
    pub fn prior_knowledge(mut self, yes: bool) -> Http2Config {
        self.prior_knowledge = yes;
        self
    }

    /// Sets how many requests of one connection may be under way. Default 100, the least that RFC
    /// 9113 §6.5.2 recommends. Beyond: refused with REFUSED_STREAM, so that the client may make it
    /// again. A handler that goes on after its response counts too, but what is refused for it is
    /// no violation of the client's.
    #[doc(alias = "SETTINGS_MAX_CONCURRENT_STREAMS")]
    pub fn streams_max(mut self, streams: u32) -> Http2Config {
        self.streams_max = streams.max(1);
        self
    }

    /// Sets how many octets of one request's body may wait for its handler. Default 65,536; at
    /// least that, because a body that is handed over whole from the input may have as many, and at
    /// most 2^31 - 1.
    #[doc(alias = "SETTINGS_INITIAL_WINDOW_SIZE")]
    pub fn stream_window(mut self, octets: u32) -> Http2Config {
        self.stream_window = octets.clamp(64 << 10, crate::h2::frame::U31_MAX);
        self
    }

    /// Sets how many octets of bodies that no handler waits for one connection may hold: the
    /// handler has not asked for its body, or holds it off. Default 1 MiB, at least 65,535: sixteen
    /// such bodies stop those of the others. Bodies that handlers wait for are limited by
    /// [`stream_window`](Http2Config::stream_window) alone.
    pub fn connection_window(mut self, octets: u32) -> Http2Config {
        self.connection_window =
            octets.clamp(crate::h2::settings::WINDOW_DEFAULT, crate::h2::frame::U31_MAX);
        self
    }

    /// Sets how many octets of the bodies of one connection may be in memory for handlers that want
    /// them whole. Default 4 MiB: four of the longest at full speed.
    ///
    /// Beyond that, only the body whose request came first gets its window opened further, so that
    /// bodies come one after the other. Those that wait are not late. What their windows allow by
    /// then may come on top: up to [`stream_window`](Http2Config::stream_window) each.
    pub fn collected_bytes_max(mut self, octets: usize) -> Http2Config {
        self.collected_bytes_max = octets;
        self
    }

    /// Sets how many bytes of memory the responses of one connection may hold while they wait, for
    /// their turn or for their windows. Default 1 MiB. Beyond,
    /// [`Response::room`](super::Response::room) is small.
    pub fn unsent_bytes_max(mut self, bytes: usize) -> Http2Config {
        self.unsent_bytes_max = bytes;
        self
    }

    /// Sets how many bytes of memory the responses of one connection may hold in all, even if
    /// handlers write more than there is room for. Default 8 MiB: some more than a hundred
    /// responses of 64 KiB that were asked for at once. Beyond, further requests are refused
    /// (REFUSED_STREAM) until the peer has taken some. At least 1, since none would ever be served.
    pub fn responses_bytes_max(mut self, bytes: usize) -> Http2Config {
        self.responses_bytes_max = bytes.max(1);
        self
    }

    /// Sets how many CONTINUATION frames one block of fields may have. Default 8. A block of
    /// [`head_bytes_max`](crate::Limits::head_bytes_max) octets at most fits into one frame. Beyond
    /// either limit the connection ends (CVE-2024-27316).
    pub fn continuations_max(mut self, frames: u32) -> Http2Config {
        self.continuations_max = frames;
        self
    }

    /// Sets how long a peer may take to acknowledge our settings. Default 10 s. After it the
    /// connection ends with SETTINGS_TIMEOUT.
    ///
    /// What the peer had written before comes ahead of the acknowledgement. So if in this time it
    /// has sent as much as a body needs ([`body_rate_min`](crate::Limits::body_rate_min)), it gets
    /// the same time again, within the first MiB that it sends.
    pub fn settings_timeout(mut self, time: Duration) -> Http2Config {
        self.settings_timeout = time;
        self
    }

    /// Sets how many requests a peer may cancel before their response is complete: so many at once,
    /// and so many in each second after that. Default 200 and 33: a browser that leaves a page
    /// cancels as many as there are streams. Beyond, the connection ends (CVE-2023-44487).
    #[doc(alias = "rapid reset")]
    pub fn resets(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.resets = Rate { burst, per_second };
        self
    }

    /// Sets how many streams a peer may make us reset, by violating the protocol or by beginning
    /// more than [`streams_max`](Http2Config::streams_max). Default 200 at once and 10 a second.
    /// Beyond, the connection ends (CVE-2025-8671).
    #[doc(alias = "made you reset")]
    pub fn provoked_resets(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.provoked_resets = Rate { burst, per_second };
        self
    }

    /// Sets how many frames may come that are neither request nor body: SETTINGS, PING, PRIORITY,
    /// PRIORITY_UPDATE, unknown ones, WINDOW_UPDATE of less than 1,024 octets. A DATA without
    /// octets counts as ten. Default 1,000 at once and 100 a second. Beyond, the connection ends.
    ///
    /// Each HEADERS and DATA that we send allows two more, because clients may answer it with such
    /// frames. (A DATA that the peer's window made shorter than 1,024 octets does not.)
    #[doc(alias = "PING flood")]
    pub fn control_frames(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.control_frames = Rate { burst, per_second };
        self
    }

    /// Sets how many DATA of less than 256 octets may come that do not end their stream. One of
    /// less than five, which no message of gRPC has, counts as five. Default 100,000 at once and as
    /// many a second: streams of small messages have each in a frame of its own, and a peer that
    /// does nothing else costs a sixtieth of a core. Beyond, the connection ends.
    pub fn small_data(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.small_data = Rate { burst, per_second };
        self
    }
}

impl Http2Config {
    #[inline]
    pub(super) fn may_begin_plain(&self) -> bool {
        self.prior_knowledge
    }
}

impl Default for Http2Config {
    fn default() -> Http2Config {
        Http2Config::new()
    }
}

/// Prints the rates as their bursts, in whole numbers.
impl fmt::Debug for Http2Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Config")
            .field("prior_knowledge", &self.prior_knowledge)
            .field("connect_protocol", &self.connect_protocol)
            .field("streams_max", &self.streams_max)
            .field("stream_window", &self.stream_window)
            .field("connection_window", &self.connection_window)
            .field("collected_bytes_max", &self.collected_bytes_max)
            .field("unsent_bytes_max", &self.unsent_bytes_max)
            .field("responses_bytes_max", &self.responses_bytes_max)
            .field("continuations_max", &self.continuations_max)
            .field("settings_timeout", &self.settings_timeout)
            .field("resets", &self.floods.resets.burst)
            .field("provoked_resets", &self.floods.provoked_resets.burst)
            .field("control_frames", &self.floods.control_frames.burst)
            .field("small_data", &self.floods.small_data.burst)
            .field("floods", &self.floods)
            .finish()
    }
}
