//! The counters of a server's connections.

use rotor_core::Histogram;
use rotor_stream::AbortReason;

use super::traffic::{CLASSES, Traffic};

rotor_core::__rotor_counters! {
    /// The counters of a server's connections: requests, and how often each limit was reached.
    ///
    /// | limits | counter |
    /// |--|--|
    /// | `head_bytes_max`, `field_bytes_max`, `fields_max`, `target_bytes_max`, `empty_lines_max` | [`heads_too_large`](Counters::heads_too_large) |
    /// | `chunk_line_bytes_max`, `extension_bytes_max`, `trailer_bytes_max`, `trailers_max`, `buffered_body_bytes_max` | [`bodies_too_large`](Counters::bodies_too_large) |
    /// | [`bodies_bytes_max`](super::ServerConfig::bodies_bytes_max) | [`bodies_without_room`](Counters::bodies_without_room) |
    /// | [`spool`](super::RecvMode), its disk | [`bodies_without_room`](Counters::bodies_without_room), [`bodies_not_stored`](Counters::bodies_not_stored) |
    /// | [`held_bytes_max`](super::ServerConfig::held_bytes_max) | [`without_room`](Counters::without_room) |
    /// | `drained_body_bytes_max` | [`undrained`](Counters::undrained) |
    /// | `requests_max` | [`used_up`](Counters::used_up) |
    /// | `connection_age_max` | [`aged`](Counters::aged) |
    /// | `output_high_water` | [`held_back`](Counters::held_back) |
    /// | `handshake_timeout` | [`handshake_timeouts`](Counters::handshake_timeouts) |
    /// | the [grace](rotor_core::Drain::grace) of a drain | [`drained_idle`](Counters::drained_idle) |
    /// | `idle_timeout`, `head_timeout`, `handler_timeout` | [`idle_timeouts`](Counters::idle_timeouts), [`head_timeouts`](Counters::head_timeouts), [`handler_timeouts`](Counters::handler_timeouts) |
    /// | `body_rate_min` after `body_grace` | [`body_timeouts`](Counters::body_timeouts) |
    /// | `response_rate_min` after `response_grace` | [`response_timeouts`](Counters::response_timeouts) |
    /// | `Http2Config::streams_max`, `Http2Config::responses_bytes_max` | [`streams_refused`](Counters::streams_refused) |
    /// | `Http2Config::collected_bytes_max` | [`bodies_held_back`](Counters::bodies_held_back) |
    /// | `Http2Config::continuations_max`, `head_bytes_max` on HTTP/2 | [`field_floods`](Counters::field_floods), [`heads_too_large`](Counters::heads_too_large) |
    /// | `Http2Config::resets`, `Http2Config::provoked_resets` | [`reset_floods`](Counters::reset_floods) |
    /// | `Http2Config::control_frames`, `Http2Config::small_data` | [`frame_floods`](Counters::frame_floods) |
    /// | `Http2Config::stream_window`, `Http2Config::connection_window` | [`protocol_errors`](Counters::protocol_errors), [`streams_refused`](Counters::streams_refused) |
    /// | `Http2Config::settings_timeout` | [`settings_timeouts`](Counters::settings_timeouts) |
    /// | `shutdown_timeout`, `linger_timeout`, `linger_bytes_max` | [`shutdown_timeouts`](Counters::shutdown_timeouts), [`linger_timeouts`](Counters::linger_timeouts), [`linger_overruns`](Counters::linger_overruns) |
    struct Counters {
        /// Connections that were made.
        connections,
        /// Connections that have ended, for whatever reason.
        connections_ended,
        /// Handshakes of wrapping sockets (TLS) that failed; they are not counted as connections.
        #[doc(alias = "TLS")]
        handshakes_failed,
        /// Handshakes that took too long
        /// ([`handshake_timeout`](crate::Limits::handshake_timeout)).
        #[doc(alias = "slowloris")]
        handshake_timeouts,
        /// Requests whose head was read.
        requests,
        /// Requests that were refused before a handler saw them, for whatever reason.
        #[doc(alias = "request smuggling")]
        refused,
        /// Heads over a limit (431, 414, 501; 400 for too many empty lines before a head).
        heads_too_large,
        /// Bodies over a limit: data (413), chunk lines and extensions (400) or trailers (431).
        bodies_too_large,
        /// Bodies for which there was no room besides those of other connections (503).
        bodies_without_room,
        /// Bodies that could not be stored on disk (507, 500).
        bodies_not_stored,
        /// Connections that ended because there was no room for their data besides that of the
        /// others ([`held_bytes_max`](super::ServerConfig::held_bytes_max)).
        without_room,
        /// Bodies whose framing or trailers were malformed, or that were truncated (400).
        bodies_broken,
        /// Heads that took too long to arrive (408).
        #[doc(alias = "slowloris")]
        head_timeouts,
        /// Bodies that arrived too slowly (408).
        #[doc(alias = "slowloris")]
        body_timeouts,
        /// Connections that waited too long for a request.
        idle_timeouts,
        /// Connections that waited for a request when the loop drained, and got none within the
        /// [grace](rotor_core::Drain::grace).
        drained_idle,
        /// Handlers that exceeded the connection's deadline (503). A deadline that the handler has
        /// set itself is not counted.
        handler_timeouts,
        /// Peers that read their response too slowly.
        #[doc(alias = "answer_timeouts")]
        response_timeouts,
        /// How often a connection stopped reading requests because its peer did not read the
        /// responses.
        #[doc(alias = "backpressure")]
        held_back,
        /// Handlers that panicked (500), and log hooks that panicked, which costs no response.
        panics,
        /// Handlers that finished without a complete response.
        unfinished,
        /// Connections that were closed before a body was read to its end: no handler wanted it,
        /// and it was too long or too slow.
        undrained,
        /// Connections that reached `requests_max`.
        used_up,
        /// Connections that reached `connection_age_max`, and whose peers were told that the
        /// connection closes.
        aged,
        /// Connections that were aborted because their peer did not read the rest of the last
        /// response, or of a failed handshake, in time.
        shutdown_timeouts,
        /// Connections that were aborted because their peer did not close its side in time after
        /// the last response or a failed handshake.
        linger_timeouts,
        /// Connections that were aborted because their peer sent too much after the last response
        /// or a failed handshake.
        linger_overruns,
        /// Connections that speak HTTP/2.
        #[doc(alias = "h2")]
        http2_connections,
        /// Requests on HTTP/2 that the peer cancelled before their response was complete.
        streams_reset,
        /// Streams that were reset because of what the peer did on them, or because there were too
        /// many of them.
        streams_refused,
        /// Bodies on HTTP/2 that had to wait until other bodies of their connection had been
        /// collected.
        #[doc(alias = "backpressure")]
        bodies_held_back,
        /// Connections of HTTP/2 that ended because the peer violated the protocol or exceeded a
        /// limit. The next four counters count some of them.
        protocol_errors,
        /// Of these: a field block was endless or far too large.
        #[doc(alias = "CONTINUATION flood")]
        field_floods,
        /// Of these: too many requests were cancelled, or too many streams had to be reset.
        #[doc(alias = "rapid reset")]
        reset_floods,
        /// Of these: too many frames were neither requests nor bodies, or carried too little of a
        /// body.
        #[doc(alias = "PING flood")]
        frame_floods,
        /// Of these: our settings were not acknowledged in time.
        settings_timeouts,
    } with traffic: Traffic
}

impl Counters {
    /// Returns how many connections are open now: made and not ended.
    #[doc(alias = "gauge")]
    pub fn connections_open(&self) -> u64 {
        // The order matters: a connection that ends between the two reads still counts as open.
        let ended = self.connections_ended();
        self.connections().saturating_sub(ended)
    }

    /// Returns how many requests are open now: their response is not complete.
    #[doc(alias = "in flight")]
    pub fn requests_open(&self) -> u64 {
        let ended: u64 = self.responses().iter().map(|(_, count)| count).sum();
        (self.requests() + self.traffic.unseen_count()).saturating_sub(ended)
    }

    /// Returns how many requests have ended, by the class of their status: `1xx` (switched to
    /// another protocol) to `5xx`, and `none` if the connection was lost before a status.
    #[doc(alias = "status codes")]
    pub fn responses(&self) -> [(&'static str, u64); CLASSES.len()] {
        self.times_by_class().map(|(class, times)| (class, times.count()))
    }

    /// Returns how long requests took, by the class of their status. The time is measured from when
    /// the head was read to when the end of the response was written, by loop time.
    ///
    /// Loop time stands still within a turn, so a request that is answered at once takes no time.
    /// Handlers that hold up a loop show in its [times](rotor_core::LoopTimes).
    #[doc(alias = "latency")]
    pub fn times_by_class(&self) -> [(&'static str, Histogram); CLASSES.len()] {
        let mut classes = CLASSES.into_iter();
        self.traffic.times().map(|times| (classes.next().unwrap_or_default(), times))
    }

    /// Returns how many bytes connections have read, including heads, framing and data that was
    /// dropped, but not the records of TLS.
    pub fn received_bytes(&self) -> u64 {
        self.traffic.bytes().read()
    }

    /// Returns how many bytes connections have written, including heads and framing.
    pub fn sent_bytes(&self) -> u64 {
        self.traffic.bytes().written()
    }

    /// Counts a connection that was aborted while it was closing.
    pub(super) fn add_abort(&self, reason: AbortReason) {
        match reason {
            AbortReason::NotTaken => Counters::add(&self.shutdown_timeouts),
            AbortReason::NotEnded => Counters::add(&self.linger_timeouts),
            AbortReason::StillSending => Counters::add(&self.linger_overruns),
            AbortReason::NoRoom => Counters::add(&self.without_room),
            _ => {}
        }
    }
}
