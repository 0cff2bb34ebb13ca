//! `Http2Config`: the limits of connections that speak HTTP/2, besides [`Limits`](crate::Limits).

use std::fmt;
use std::time::Duration;

use crate::h2::{FloodLimits, Rate};

/// The limits of connections that speak HTTP/2.
///
/// [`Limits`](crate::Limits) apply there as well: to heads, bodies, handlers and times. The limits
/// here have no meaning for HTTP/1.1.
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
    /// Creates a configuration with the defaults.
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

    /// Sets whether a stream may switch to another protocol (RFC 8441), if the handler has a
    /// [`Server::Upgrade`](super::Server::Upgrade). Default: yes. Say no if something behind the
    /// server does not support this; clients that want another protocol then use HTTP/1.1.
    #[doc(alias = "SETTINGS_ENABLE_CONNECT_PROTOCOL")]
    pub fn connect_protocol(mut self, yes: bool) -> Http2Config {
        self.connect_protocol = yes;
        self
    }

    /// Sets whether a connection that has negotiated no protocol may begin with the preface of
    /// HTTP/2 (RFC 9113 §3.3). This is for clients that are configured to do so, such as proxies
    /// and gRPC on unencrypted connections; all others get HTTP/1.1.
    ///
    /// Default: no. Then the preface is a bad request, and only connections that negotiated `h2` in
    /// their handshake use HTTP/2.
    #[doc(alias = "h2c")]
    pub fn prior_knowledge(mut self, yes: bool) -> Http2Config {
        self.prior_knowledge = yes;
        self
    }

    /// Sets how many requests of one connection may be under way at a time. At least 1; default
    /// 100, the least that RFC 9113 §6.5.2 recommends. Further requests are refused with
    /// REFUSED_STREAM, so that the client may repeat them. A handler that goes on after its
    /// response counts too, but a request that is refused because of it does not count as a
    /// violation by the client. Neither does one that came before the client acknowledged our
    /// settings, since it may not have known the maximum.
    #[doc(alias = "SETTINGS_MAX_CONCURRENT_STREAMS")]
    pub fn streams_max(mut self, streams: u32) -> Http2Config {
        self.streams_max = streams.max(1);
        self
    }

    /// Sets how many bytes of one request's body may wait for its handler. Default and minimum
    /// 65,536, because a body that is passed on whole, from the input, may have that many; at most
    /// 2^31 - 1.
    #[doc(alias = "SETTINGS_INITIAL_WINDOW_SIZE")]
    pub fn stream_window(mut self, bytes: u32) -> Http2Config {
        self.stream_window = bytes.clamp(64 << 10, crate::h2::frame::U31_MAX);
        self
    }

    /// Sets how many bytes one connection may hold of bodies for which no handler waits: the
    /// handler has not asked for its body, or holds it, or the body is stored and waits for the
    /// disk. Default 1 MiB, at least 65,535 and at most 2^31 - 1. With the default, sixteen such
    /// bodies stop the other bodies of the connection. Bodies for which handlers wait are limited
    /// only by [`stream_window`](Http2Config::stream_window).
    pub fn connection_window(mut self, bytes: u32) -> Http2Config {
        self.connection_window =
            bytes.clamp(crate::h2::settings::WINDOW_DEFAULT, crate::h2::frame::U31_MAX);
        self
    }

    /// Sets how many bytes of the bodies of one connection may be in memory for handlers that asked
    /// for the whole body. Default 4 MiB: four bodies of the greatest length at full speed.
    ///
    /// Beyond that, only the window of the body whose request came first is opened further, so that
    /// the bodies arrive one after the other. The time limits of the waiting bodies do not run. In
    /// addition, each body may receive what its window still allows, up to
    /// [`stream_window`](Http2Config::stream_window).
    pub fn collected_bytes_max(mut self, bytes: usize) -> Http2Config {
        self.collected_bytes_max = bytes;
        self
    }

    /// Sets how many bytes of memory the responses of one connection may use while they wait for
    /// their turn or for their windows. Default 1 MiB. Beyond that,
    /// [`Response::room`](super::Response::room) is small.
    pub fn unsent_bytes_max(mut self, bytes: usize) -> Http2Config {
        self.unsent_bytes_max = bytes;
        self
    }

    /// Sets how many bytes of memory the responses of one connection may use in all, even if
    /// handlers write more than there is room for. Default 8 MiB: a little more than a hundred
    /// responses of 64 KiB that were requested at once. Beyond that, further requests are refused
    /// (REFUSED_STREAM) until the peer has read some of the responses. At least 1, because with 0
    /// no request would ever be served.
    pub fn responses_bytes_max(mut self, bytes: usize) -> Http2Config {
        self.responses_bytes_max = bytes.max(1);
        self
    }

    /// Sets how many CONTINUATION frames one field block may have. Default 8. A block of at most
    /// 16 KiB, the default of [`head_bytes_max`](crate::Limits::head_bytes_max), fits into one
    /// frame without any. If a block has more of these frames, or more than four times
    /// `head_bytes_max` bytes, the connection ends (CVE-2024-27316).
    pub fn continuations_max(mut self, frames: u32) -> Http2Config {
        self.continuations_max = frames;
        self
    }

    /// Sets how long a peer may take to acknowledge our settings. Default 10 s. After that the
    /// connection ends with SETTINGS_TIMEOUT.
    ///
    /// Whatever the peer sent before its acknowledgement arrives first. So if it has sent as much
    /// in this time as a body must ([`body_rate_min`](crate::Limits::body_rate_min)), it gets the
    /// same time again, as long as it has sent no more than 1 MiB.
    pub fn settings_timeout(mut self, time: Duration) -> Http2Config {
        self.settings_timeout = time;
        self
    }

    /// Sets how many requests a peer may cancel before their response is complete: `burst` at once,
    /// and `per_second` in each second after that. Default 200 and 33: a browser that leaves a page
    /// cancels all its streams. Beyond that, the connection ends (CVE-2023-44487).
    #[doc(alias = "rapid reset")]
    pub fn resets(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.resets = Rate { burst, per_second };
        self
    }

    /// Sets how many streams a peer may make us reset, by violating the protocol or by beginning
    /// more than [`streams_max`](Http2Config::streams_max). Default 200 at once and 10 a second.
    /// Beyond that, the connection ends (CVE-2025-8671).
    #[doc(alias = "made you reset")]
    pub fn provoked_resets(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.provoked_resets = Rate { burst, per_second };
        self
    }

    /// Sets how many frames may arrive that are neither requests nor bodies: SETTINGS, PING,
    /// PRIORITY, PRIORITY_UPDATE, unknown frames, WINDOW_UPDATE of less than 1,024 bytes. A DATA
    /// frame without bytes counts as ten. Default 1,000 at once and 100 a second. Beyond that, the
    /// connection ends.
    ///
    /// Each HEADERS and DATA frame that we send allows two more, because clients may respond to it
    /// with such frames. (A DATA frame that the peer's window made shorter than 1,024 bytes does
    /// not.)
    #[doc(alias = "PING flood")]
    pub fn control_frames(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.control_frames = Rate { burst, per_second };
        self
    }

    /// Sets how many DATA frames of less than 256 bytes may arrive that do not end their stream. A
    /// frame of less than five bytes, the least that a message of gRPC has, counts as five. Default
    /// 100,000 at once and as many a second: streams of small messages send each in a frame of its
    /// own, and a peer that sends nothing else uses a sixtieth of a core. Beyond that, the
    /// connection ends.
    pub fn small_data(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.small_data = Rate { burst, per_second };
        self
    }
}

impl Http2Config {
    #[inline]
    pub(super) fn allows_prior_knowledge(&self) -> bool {
        self.prior_knowledge
    }
}

impl Default for Http2Config {
    fn default() -> Http2Config {
        Http2Config::new()
    }
}

/// Shows each rate by its burst, in whole numbers.
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
