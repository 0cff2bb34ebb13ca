//! `Http2Config`: the limits of a client's connections that speak HTTP/2, beside those of
//! [`Limits`](crate::Limits).

use std::fmt;
use std::time::Duration;

use crate::h2::{FloodLimits, Rate};

/// What a client allows, and asks of servers, on connections of HTTP/2.
///
/// [`Limits`](crate::Limits) hold there as well: of heads, bodies and times. These are those that
/// HTTP/1.1 has no use for.
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
    /// The defaults.
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
                resets: Rate { burst: 0, per_second: 0 },
                provoked_resets: Rate { burst: 200, per_second: 10 },
                control_frames: Rate { burst: 1000, per_second: 100 },
                // As many as a server takes of its clients.
                small_data: Rate { burst: 100_000, per_second: 100_000 },
            },
        }
    }

    /// Whether HTTP/2 is spoken where nothing was negotiated, on plain connections above all (RFC
    /// 9113 §3.3): for servers that are known to speak it, as gRPC's are. Default: no, and then
    /// HTTP/1.1 is; where a handshake has agreed on `h2`, HTTP/2 is spoken in any case.
    #[doc(alias = "h2c")]
    pub fn prior_knowledge(mut self, yes: bool) -> Http2Config {
        self.prior_knowledge = yes;
        self
    }

    /// Requests that one connection has under way at most, also where its server takes more.
    /// Default 100, the least that RFC 9113 §6.5.2 recommends servers to take. Further ones wait,
    /// or take another connection. Before the server has said how many it takes there is one.
    #[doc(alias = "SETTINGS_MAX_CONCURRENT_STREAMS")]
    pub fn streams_max(mut self, streams: u32) -> Http2Config {
        self.streams_max = streams.max(1);
        self
    }

    /// Octets of one response's body that wait for its handler at most. Default 256 KiB, at least
    /// 65,536 and at most 2^31 - 1: what a path of 20 ms carries at 100 Mbit/s.
    #[doc(alias = "SETTINGS_INITIAL_WINDOW_SIZE")]
    pub fn stream_window(mut self, octets: u32) -> Http2Config {
        self.stream_window = octets.clamp(64 << 10, crate::h2::frame::U31_MAX);
        self
    }

    /// Octets of all bodies of one connection that no handler waits for, because it has not asked
    /// for its body or holds it off, at most. Default 1 MiB, at least 65,535: four such bodies stop
    /// those of the others. What handlers wait for is bounded by
    /// [`stream_window`](Http2Config::stream_window) alone.
    pub fn connection_window(mut self, octets: u32) -> Http2Config {
        self.connection_window =
            octets.clamp(crate::h2::settings::WINDOW_DEFAULT, crate::h2::frame::U31_MAX);
        self
    }

    /// CONTINUATION frames that one block of fields may have. Default 8: the block, with at most
    /// [`head_bytes_max`](crate::Limits::head_bytes_max) octets, fits into one frame. Beyond either
    /// the connection ends.
    pub fn continuations_max(mut self, frames: u32) -> Http2Config {
        self.continuations_max = frames;
        self
    }

    /// How long a server may take for its settings, and to acknowledge ours. Default 10 s. Then the
    /// connection ends with SETTINGS_TIMEOUT. What the server had written before stands ahead of
    /// the acknowledgement: if in this time it has sent as much as a body needs
    /// ([`body_rate_min`](crate::Limits::body_rate_min)), it has as long again, within
    /// the first MiB that it sends.
    pub fn settings_timeout(mut self, time: Duration) -> Http2Config {
        self.settings_timeout = time;
        self
    }

    /// How long nothing may come, not an octet, nor anything be taken of what waits to be sent,
    /// while requests are under way, until the server is asked whether it is still there (PING).
    /// Default 10 s: shorter than a handler's patience, longer than most answers take. Once it has
    /// said so, it is asked anew when a response has gone on since (HEADERS or DATA), or after
    /// [`ping_again_after`](Http2Config::ping_again_after).
    #[doc(alias = "keep-alive")]
    pub fn ping_after(mut self, time: Duration) -> Http2Config {
        self.ping_after = time;
        self
    }

    /// How long after a PING the next may be sent to a server of whose responses nothing has come
    /// since. Default 310 s: servers of gRPC ask for five minutes (grpc-go, grpc-java, grpc-core),
    /// and a PING may be late on its way, and the next not. Of those that come sooner they bear
    /// two, and at the third the connection ends (ENHANCE_YOUR_CALM, `too_many_pings`); any HEADERS
    /// or DATA of theirs wipes the slate. One of the two is used here, for a request that begins
    /// after a PING: it may be asked after sooner as well.
    ///
    /// So a server that dies behind a call that is silent for long is found out after this, by the
    /// time of the call, or by the next request. For servers that are known to bear more, say less.
    pub fn ping_again_after(mut self, time: Duration) -> Http2Config {
        self.ping_again_after = time;
        self
    }

    /// How long the server may take to say so. Default 5 s. Then the connection ends, and what was
    /// under way is lost, or made again.
    ///
    /// A PING stands behind what was written before it, at most
    /// [`output_high_water`](crate::Limits::output_high_water). While the system takes some of that
    /// within each such time, so does the server, and it has as long again. What the system has
    /// taken and not yet delivered is not seen here: on a path that needs more than `ping_after`
    /// and this for as much as the system holds (64 KiB at 4 KiB a second), say more.
    pub fn ping_timeout(mut self, time: Duration) -> Http2Config {
        self.ping_timeout = time;
        self
    }

    /// Streams that a server may make us reset by breaking the protocol on them. Default 200 at
    /// once and 10 a second. Beyond, the connection ends.
    pub fn provoked_resets(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.provoked_resets = Rate { burst, per_second };
        self
    }

    /// Frames that are no response: SETTINGS, PING, RST_STREAM, unknown ones, WINDOW_UPDATE of less
    /// than 1,024 octets, frames of streams that are over; a DATA without octets counts as ten.
    /// Default 1,000 at once and 100 a second, and two more for each HEADERS and DATA that is sent.
    /// Beyond, the connection ends.
    #[doc(alias = "PING flood")]
    pub fn control_frames(mut self, burst: u32, per_second: u32) -> Http2Config {
        self.floods.control_frames = Rate { burst, per_second };
        self
    }

    /// DATA of less than 256 octets that do not end their stream; one of less than five counts as
    /// five. Default 100,000 at once and as many a second, as for the clients of a server. Beyond,
    /// the connection ends.
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

/// With the rates as their bursts, and whole.
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
            .field("provoked_resets", &self.floods.provoked_resets.burst)
            .field("control_frames", &self.floods.control_frames.burst)
            .field("small_data", &self.floods.small_data.burst)
            .field("floods", &self.floods)
            .finish()
    }
}
