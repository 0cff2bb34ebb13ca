//! `Http2Config`: the limits of a client's HTTP/2 connections, in addition to
//! [`Limits`](crate::Limits).

use std::fmt;
use std::time::Duration;

use crate::h2::{FloodLimits, Rate};

/// What a client allows servers, and requests from them, on HTTP/2 connections.
///
/// The limits of heads, bodies and times in [`Limits`](crate::Limits) apply as well. This type has
/// only the settings that HTTP/1.1 does not need.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::client::{ClientConfig, Http2Config};
///
/// let config = ClientConfig::new().http2(Http2Config::new().prior_knowledge(true));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Http2Config {
    pub(super) prior_knowledge: bool,
    pub(super) streams_max: u32,
    pub(super) stream_window: u32,
    pub(super) connection_window: u32,
    pub(super) continuations_max: u32,
    pub(super) settings_timeout: Duration,
    pub(super) ping_after: Duration,
    pub(super) ping_again_after: Duration,
    pub(super) ping_timeout: Duration,
    pub(super) floods: FloodLimits,
}

impl Http2Config {
    /// Returns the defaults.
    pub const fn new() -> Http2Config {
        Http2Config {
            prior_knowledge: false,
            streams_max: 100,
            stream_window: 256 << 10,
            connection_window: 1 << 20,
            continuations_max: 8,
            settings_timeout: Duration::from_secs(10),
            ping_after: Duration::from_secs(10),
            ping_again_after: Duration::from_secs(310),
            ping_timeout: Duration::from_secs(5),
            floods: FloodLimits {
                resets: Rate { burst: 50, per_second: 1 },
                provoked_resets: Rate { burst: 200, per_second: 10 },
                control_frames: Rate { burst: 1000, per_second: 100 },
                // As much as a server accepts from its clients.
                small_data: Rate { burst: 100_000, per_second: 100_000 },
            },
        }
    }

    /// Sets whether HTTP/2 is used if no protocol was negotiated, above all on plain connections
    /// (RFC 9113 §3.3). Use this for servers that are known to speak HTTP/2, as gRPC servers do. By
    /// default such connections use HTTP/1.1. If a handshake has agreed on `h2`, HTTP/2 is used in
    /// any case.
    #[doc(alias = "h2c")]
    pub fn prior_knowledge(mut self, yes: bool) -> Http2Config {
        self.prior_knowledge = yes;
        self
    }

    /// Sets the maximum number of requests under way on one connection, even if its server accepts
    /// more. At least 1; default 100, the minimum that RFC 9113 §6.5.2 recommends for servers.
    /// Further requests wait, or use another connection. Until the server has told its own limit, a
    /// connection has one request.
    #[doc(alias = "SETTINGS_MAX_CONCURRENT_STREAMS")]
    pub fn streams_max(mut self, streams: u32) -> Http2Config {
        self.streams_max = streams.max(1);
        self
    }

    /// Sets how many bytes of one response's body may wait for its handler. Default 256 KiB, at
    /// least 65,536 and at most 2^31 - 1: what a path of 20 ms carries at 100 Mbit/s.
    #[doc(alias = "SETTINGS_INITIAL_WINDOW_SIZE")]
    pub fn stream_window(mut self, bytes: u32) -> Http2Config {
        self.stream_window = bytes.clamp(64 << 10, crate::h2::frame::U31_MAX);
        self
    }

    /// Sets how many bytes, over all bodies of one connection, may be received that no handler is
    /// waiting for, because it has not asked for its body yet or holds it off. Default 1 MiB, at
    /// least 65,535 and at most 2^31 - 1. With the defaults, four such bodies reach the limit, and
    /// then stop the bodies of all other requests. Bytes that handlers are waiting for are limited
    /// only by [`stream_window`](Http2Config::stream_window).
    ///
    /// In a gateway that passes bodies on as its own clients take them, a few clients that do not
    /// read could stop all others. There, set this to [`streams_max`](Http2Config::streams_max)
    /// times `stream_window`, which may be smaller than the default.
    pub fn connection_window(mut self, bytes: u32) -> Http2Config {
        self.connection_window =
            bytes.clamp(crate::h2::settings::WINDOW_DEFAULT, crate::h2::frame::U31_MAX);
        self
    }

    /// Sets how many CONTINUATION frames one field block may have. Default 8: a block of at most
    /// 16 KiB, the default of [`head_bytes_max`](crate::Limits::head_bytes_max), fits into one
    /// frame. If a block has more of these frames, or more than four times `head_bytes_max` bytes,
    /// the connection ends.
    pub fn continuations_max(mut self, frames: u32) -> Http2Config {
        self.continuations_max = frames;
        self
    }

    /// Sets how long a server may take to send its settings, and to acknowledge ours. Default 10 s.
    /// After that the connection ends with SETTINGS_TIMEOUT. Data that the server had written
    /// before comes ahead of the acknowledgement. So if the server has meanwhile sent as many bytes
    /// as a body must ([`body_rate_min`](crate::Limits::body_rate_min)), the time starts again, but
    /// only within the first MiB that the server sends.
    pub fn settings_timeout(mut self, time: Duration) -> Http2Config {
        self.settings_timeout = time;
        self
    }

    /// Sets after how much silence the server gets a PING while requests are under way: time in
    /// which not a byte arrives, and none of the waiting output is taken. Default 10 s: shorter
    /// than a handler's patience, longer than most responses take. Once the server has answered,
    /// the next PING is sent after more frames of a response (HEADERS or DATA) and as much silence
    /// again, or after [`ping_again_after`](Http2Config::ping_again_after).
    #[doc(alias = "keep-alive")]
    pub fn ping_after(mut self, time: Duration) -> Http2Config {
        self.ping_after = time;
        self
    }

    /// Sets how long to wait after a PING before the next one, if no part of a response has arrived
    /// since. Default 310 s. gRPC servers ask for five minutes (grpc-go, grpc-java, grpc-core), and
    /// a PING may be delayed on its way while the next one is not. They tolerate two PINGs that
    /// come sooner, and end the connection at the third (ENHANCE_YOUR_CALM, `too_many_pings`); when
    /// they send HEADERS or DATA, their count starts again. The client uses one of the two: if a
    /// request begins after a PING, the next PING may be sent sooner.
    ///
    /// So if a server dies during a call that is silent for long, this is noticed after this time,
    /// at the call's deadline, or by the next request. For servers that are known to tolerate more
    /// PINGs, set a shorter time.
    pub fn ping_again_after(mut self, time: Duration) -> Http2Config {
        self.ping_again_after = time;
        self
    }

    /// Sets how long the server may take to answer a PING. Default 5 s. After that the connection
    /// ends, and the requests under way fail, or are made again.
    ///
    /// A PING is queued behind the output that was written before it, at most
    /// [`output_high_water`](crate::Limits::output_high_water). As long as the system takes some of
    /// that output within each such time, the server is assumed to take it, and the time starts
    /// again. Output that the system has taken but not delivered yet is not visible here. So set a
    /// longer time for a path on which delivering what the system buffers takes longer than
    /// `ping_after` and this time together (for example 64 KiB at 4 KiB a second).
    pub fn ping_timeout(mut self, time: Duration) -> Http2Config {
        self.ping_timeout = time;
        self
    }

    /// Sets how many streams the client may reset on one connection, for whatever reason: the
    /// request is cancelled or late, the response came before the request was sent, or the server
    /// broke the protocol. Default 50 at once (`burst`), and one in each second after that
    /// (`per_second`).
    ///
    /// Beyond that, requests under way go on, and of new ones the connection takes only as many at a
    /// time as may be reset: one more with each reset that `per_second` allows. Others use another
    /// connection, or wait. The requests that are under way when the limit is reached may be reset
    /// in addition, up to [`streams_max`](Http2Config::streams_max).
    ///
    /// Servers end connections with more resets than they allow (CVE-2023-44487), which fails all
    /// requests there. In a proxy, clients that cancel would do that to the others. Netty allows
    /// 200 in 30 seconds: the defaults stay below, with 50, 30 and a hundred. nghttp2 allows 1,000
    /// at once and 33 a second.
    #[doc(alias = "rapid reset")]
    pub fn resets(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.resets = Rate { burst, per_second };
        self
    }

    /// Sets how many streams a server may make us reset by violating the protocol on them. Default
    /// 200 at once and 10 a second. Beyond that, the connection ends.
    pub fn provoked_resets(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.provoked_resets = Rate { burst, per_second };
        self
    }

    /// Sets how many frames may arrive that are no part of a final response or its body: SETTINGS,
    /// PING, GOAWAY, RST_STREAM, PRIORITY, unknown frames, WINDOW_UPDATE of less than 1,024 bytes,
    /// interim responses, and frames of streams that are over. Empty DATA counts as ten. Default
    /// 1,000 at once and 100 a second, and two more for each HEADERS and DATA frame that the client
    /// sends. Beyond that, the connection ends.
    #[doc(alias = "PING flood")]
    pub fn control_frames(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.control_frames = Rate { burst, per_second };
        self
    }

    /// Sets how many DATA frames of less than 256 bytes may arrive that do not end their stream. A
    /// frame of less than five bytes counts as five. Default 100,000 at once and as many a second,
    /// as a server allows its clients. Beyond that, the connection ends.
    pub fn small_data(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.small_data = Rate { burst, per_second };
        self
    }
}

impl Default for Http2Config {
    fn default() -> Http2Config {
        Http2Config::new()
    }
}

/// Prints each rate as its burst, and then all rates in full.
impl fmt::Debug for Http2Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Config")
            .field("prior_knowledge", &self.prior_knowledge)
            .field("streams_max", &self.streams_max)
            .field("stream_window", &self.stream_window)
            .field("connection_window", &self.connection_window)
            .field("continuations_max", &self.continuations_max)
            .field("settings_timeout", &self.settings_timeout)
            .field("ping_after", &self.ping_after)
            .field("ping_again_after", &self.ping_again_after)
            .field("ping_timeout", &self.ping_timeout)
            .field("resets", &self.floods.resets.burst)
            .field("provoked_resets", &self.floods.provoked_resets.burst)
            .field("control_frames", &self.floods.control_frames.burst)
            .field("small_data", &self.floods.small_data.burst)
            .field("floods", &self.floods)
            .finish()
    }
}
