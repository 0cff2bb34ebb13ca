//! `Limits`: every limit and deadline of an HTTP connection in one value.

use std::time::Duration;

/// The most fields that a head can have, whatever the limits say.
pub(crate) const FIELDS_CAPACITY: usize = 256;

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr $(, within $min:expr, $max:expr)?;)+) => {
        /// The limits and deadlines of a connection, each with a default that fits a public server.
        ///
        /// "Beyond: 431 and close" means that a server sends a response with this status if the
        /// limit is exceeded, and then closes the connection. On HTTP/2, if only one request is
        /// affected, the others go on. A client fails the request instead.
        ///
        /// ```
        /// # mod rotor { pub use rotor_http as http; }
        /// use rotor::http::Limits;
        ///
        /// let limits = Limits::new().buffered_body_bytes_max(16 << 20).fields_max(50);
        /// ```
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits {
            $(pub(crate) $name: $kind,)+
        }

        impl Limits {
            /// Returns every limit at its default.
            pub const fn new() -> Limits {
                Limits { $($name: $default,)+ }
            }

            $($(#[$doc])*
            #[must_use]
            pub fn $name(mut self, value: $kind) -> Limits {
                self.$name = value$(.clamp($min, $max))?;
                self
            })+
        }
    };
}

limits! {
    /// Sets the maximum number of bytes in a head, from its first line to the empty line that ends
    /// it. Default 16 KiB: twice what browsers and proxies send with large cookies. At most 16 MiB.
    /// Beyond: 431 and close.
    head_bytes_max: usize = 16 << 10, within 64, 16 << 20;
    /// Sets the maximum number of bytes in one field line, without its line end. Default 8 KiB,
    /// which most servers accept. Beyond: 431 and close.
    field_bytes_max: usize = 8 << 10;
    /// Sets the maximum number of field lines in a head. Default 100, more than any browser sends;
    /// at most 256. Beyond: 431 and close.
    fields_max: usize = 100, within 0, FIELDS_CAPACITY;
    /// Sets the maximum number of bytes in a request target. Default 8,190, so that the request
    /// line of 8,000 octets that RFC 9112 §3 recommends is accepted. Beyond: 414 and close.
    target_bytes_max: usize = 8190;
    /// Sets how many empty lines before a request line are skipped. Default 2: old clients send one
    /// after a body. Beyond: 400 and close.
    empty_lines_max: u8 = 2;
    /// Sets the maximum number of bytes in a chunk-size line, without its line end. Default 256: a
    /// size has 16 digits, and nobody uses the extensions that may follow. Beyond: 400 and close.
    chunk_line_bytes_max: usize = 256;
    /// Sets the maximum number of bytes of chunk extensions in one body. Default 4 KiB: without a
    /// limit, chunks of one byte with large extensions would cost a hundred times the data that
    /// they carry. Beyond: 400 and close.
    extension_bytes_max: usize = 4 << 10;
    /// Sets the maximum number of bytes in a trailer section, with its line ends and the last empty
    /// line. Default 4 KiB. Beyond: 431 and close.
    trailer_bytes_max: usize = 4 << 10, within 2, 16 << 20;
    /// Sets the maximum number of field lines in a trailer section. Default 32. Beyond: 431 and
    /// close.
    trailers_max: usize = 32;
    /// Sets how many bytes of a body may be collected before the handler gets it, even if the
    /// handler allows more. Default 1 MiB, because they are held in memory. Beyond: 413 and close.
    buffered_body_bytes_max: u64 = 1 << 20;
    /// Sets how many requests one connection may make. Default unlimited; values above 32 bits are
    /// unlimited too; at least 1. The response to the last one says `Connection: close`. In HTTP/2
    /// the end is announced (GOAWAY), and requests that are on their way are still served.
    requests_max: u64 = u64::MAX, within 1, u64::MAX;
    /// Sets the maximum age of a connection, from its beginning to the beginning of its last
    /// request. Default unlimited.
    ///
    /// The age of each connection is shortened by up to a tenth, at random, so that connections
    /// that began together do not end together. If a balancer keeps its connections for long, this
    /// lets servers that were started later get their share of them. The first request after that
    /// age is the last one: its response says `Connection: close`. In HTTP/2 the end is announced
    /// (GOAWAY), and the requests in progress are served. A connection that is idle at that time is
    /// not closed before its `idle_timeout`, because its next request may be on its way.
    #[doc(alias = "max_connection_age")]
    connection_age_max: Duration = Duration::MAX;
    /// Sets how long a connection may wait for a request, the first or another one. Default 75 s,
    /// longer than the 60 s of usual proxies, so that the proxy closes first. Then: closed without
    /// a response. With zero, only requests that have already come are answered; for one request a
    /// connection, see `requests_max`.
    #[doc(alias = "keep-alive timeout")]
    idle_timeout: Duration = Duration::from_secs(75);
    /// Sets how long a head may take, from its first byte. Bytes that arrive meanwhile do not
    /// extend the time; if an earlier response waits when it is over, it begins again when that is
    /// sent. Default 10 s. Then: 408 and close. On an HTTP/2 server it limits the preface with the
    /// first SETTINGS, each block of fields, and each frame other than DATA; then the connection
    /// ends with GOAWAY. A frame has more time while output waits, as its rest may not be read then.
    #[doc(alias = "slowloris")]
    head_timeout: Duration = Duration::from_secs(10);
    /// Sets how far a body may fall behind its minimum rate: the time that a body has to start, and
    /// the longest pause after that, however much arrived before. Default 5 s, for a lost packet or
    /// two. A grace below one second also shortens the step in which the rate is measured.
    body_grace: Duration = Duration::from_secs(5);
    /// Sets the minimum rate of a body while it is being read, in bytes per second. Each time this
    /// many bytes have arrived, the peer gains one second, but it is never more than `body_grace`
    /// ahead. Default 1 KiB/s: a slow phone is faster, a slow-body attack is not. 0: no minimum.
    /// A server's handler can lift it for one body
    /// ([`recv_stream`](crate::server::Next::recv_stream)). Below: 408 and close.
    #[doc(alias = "slow POST")]
    body_rate_min: u64 = 1 << 10;
    /// Sets how long the handshake of a wrapping socket (TLS) may take, from the beginning of a
    /// connection. Default 10 s, for several round trips by satellite. Then: closed. Applies to
    /// servers; a client's is set by [`stream`](crate::client::ClientConfig::stream).
    #[doc(alias = "TLS")]
    handshake_timeout: Duration = Duration::from_secs(10);
    /// Sets how long a handler may take until its response is complete, unless it sets another
    /// deadline. The time starts with the head. It starts again with each part of the body that the
    /// handler gets, and when the result arrives for which the handler has waited (`Next::wait`).
    /// Default 60 s. Then: 503 if nothing was sent, else close.
    handler_timeout: Duration = Duration::from_secs(60);
    /// Sets how long a peer may take for each step of a response that waits to be sent. Default
    /// 10 s, for full buffers along the path.
    #[doc(alias = "answer_grace")]
    response_grace: Duration = Duration::from_secs(10);
    /// Sets the minimum rate at which a peer must take a response while output waits, in bytes per
    /// second. A step is this many bytes for each second of `response_grace`, or all that waits if
    /// that is less; the peer must take it within `response_grace`. Default 1 KiB/s. 0: no minimum.
    /// Below: closed.
    #[doc(alias = "slow read")]
    #[doc(alias = "answer_rate_min")]
    response_rate_min: u64 = 1 << 10;
    /// Sets how long a peer may take, on a closing connection, to accept one step of the remaining
    /// output (see `response_rate_min`). It is also the time limit for the rest of a body that no
    /// handler takes, from when the response is sent, and, on HTTP/2, how long a client waits for
    /// the end of a stream whose response is complete. Default 5 s. Then: aborted.
    shutdown_timeout: Duration = Duration::from_secs(5);
    /// Sets how long a closed connection still reads and discards input, so that no reset destroys
    /// the last response. Default 2 s.
    #[doc(alias = "lingering close")]
    linger_timeout: Duration = Duration::from_secs(2);
    /// Sets how many bytes a closed connection of a server reads and discards at most. Default
    /// 64 MiB, so that a client that is still sending a body gets the response that refuses it.
    /// Beyond: aborted. A client discards no more than 32 KiB, since there is no response that its
    /// server could lose; after an upgrade, this limit applies to both sides.
    linger_bytes_max: u64 = 64 << 20;
    /// Sets how many bytes of a body that no handler takes are read and discarded to keep the
    /// connection. Default 64 KiB: for more than that, a new connection is cheaper. Beyond: close.
    drained_body_bytes_max: u64 = 64 << 10;
    /// Sets the high-water mark of a connection's output, in bytes. Above it, a server reads no
    /// more requests and no more of a body, and a handler should write no more (`room` returns 0).
    /// Default 64 KiB; at least 1, since a handler that waits for room would otherwise wait for
    /// ever.
    #[doc(alias = "backpressure")]
    output_high_water: usize = 64 << 10, within 1, usize::MAX;
    /// Sets how many interim responses (1xx) a client accepts before the final one. Default 16.
    /// Beyond: the request fails, and in HTTP/1.1 its connection ends.
    #[doc(alias = "interim_answers_max")]
    interim_responses_max: u32 = 16;
    /// Sets how long a server may take until the head of its response has arrived, from when the
    /// whole request was sent. Interim responses do not extend the time, except by the time in which
    /// the handler [holds](crate::client::Next::hold) off what follows them. Default 60 s, as
    /// servers give their handlers. Then: the request fails.
    #[doc(alias = "answer_timeout")]
    response_timeout: Duration = Duration::from_secs(60);
    /// Sets how long a client that has requested `100 Continue` waits for it before it sends the
    /// body anyway. Default 1 s: servers that do not support it send nothing (RFC 9110 §10.1.1).
    continue_timeout: Duration = Duration::from_secs(1);
    /// Sets how long a client keeps an idle connection. Default 30 s, shorter than many servers
    /// wait, so that a request seldom meets a connection that is being closed. If the server waits
    /// less and says so (`Keep-Alive: timeout=5`, in seconds), the client keeps the connection for
    /// one second less than the server, and for at least half as long. Both times begin when the
    /// handler is done. If it has [held](crate::client::Next::hold) off the end of a response, that
    /// is later than for the server, which may then close the connection first.
    unused_timeout: Duration = Duration::from_secs(30);
}

impl Limits {
    /// Returns the minimum rate of a body as a number of bytes and the time in which they must
    /// arrive: one second, or the grace if that is less.
    pub(crate) fn body_step(&self) -> (u64, Duration) {
        let time = self.body_grace.min(Duration::from_secs(1));
        (bytes_in(self.body_rate_min, time), time)
    }

    /// Returns how many bytes a peer must send at least in this time, while it sends a body.
    #[cfg_attr(not(feature = "http2"), expect(dead_code, reason = "of settings"))]
    pub(crate) fn body_bytes_in(&self, time: Duration) -> u64 {
        bytes_in(self.body_rate_min, time)
    }

    /// Returns how many bytes of a response a peer must take in each `response_grace`.
    pub(crate) fn response_step(&self) -> usize {
        usize::try_from(bytes_in(self.response_rate_min, self.response_grace)).unwrap_or(usize::MAX)
    }
}

/// Returns how many bytes this rate makes in this time: at least one, unless the rate is 0.
fn bytes_in(rate: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate).saturating_mul(time.as_millis()) / 1000;
    u64::try_from(bytes).unwrap_or(u64::MAX).max(u64::from(rate > 0))
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_becomes_a_number_of_bytes_and_a_time() {
        let second = Duration::from_secs(1);
        for (rate, grace, expected) in [
            (1024, second * 5, (1024, second)),
            (1, second, (1, second)),
            (1024, second / 4, (256, second / 4)),
            (1, second / 4, (1, second / 4)),
            (0, second / 4, (0, second / 4)),
            (1024, Duration::ZERO, (1, Duration::ZERO)),
        ] {
            let limits = Limits::new().body_rate_min(rate).body_grace(grace);
            assert_eq!(limits.body_step(), expected, "{rate} {grace:?}");
        }
        for (rate, grace, expected) in [
            (1024, second * 10, 10_240),
            (1, second / 4, 1),
            (0, second, 0),
            (u64::MAX, second * 10, usize::MAX),
        ] {
            let limits = Limits::new().response_rate_min(rate).response_grace(grace);
            assert_eq!(limits.response_step(), expected, "{rate} {grace:?}");
        }
    }
}
