//! Every limit and deadline of an HTTP/1 connection in one value.

use std::time::Duration;

/// Most fields that a head can have, whatever the limits say.
pub(crate) const FIELDS_CAPACITY: usize = 256;

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr $(, within $min:expr, $max:expr)?;)+) => {
        /// The limits and deadlines of a connection, each with a default that fits a public server.
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
    /// Sets how many octets a head may have, from its first line to the empty line that ends it.
    /// Default 16 KiB: twice what browsers and proxies send with large cookies. At most 16 MiB.
    /// Beyond: 431 and close.
    head_bytes_max: usize = 16 << 10, within 64, 16 << 20;
    /// Sets how many octets one field line may have, without its line end. Default 8 KiB, what most
    /// servers take. Beyond: 431 and close.
    field_bytes_max: usize = 8 << 10;
    /// Sets how many field lines a head may have. Default 100, more than any browser sends; at most
    /// 256. Beyond: 431 and close.
    fields_max: usize = 100, within 0, FIELDS_CAPACITY;
    /// Sets how many octets a request target may have. Default 8,190, so that the request line of
    /// 8,000 octets that RFC 9112 §3 asks for is accepted. Beyond: 414 and close.
    target_bytes_max: usize = 8190;
    /// Sets how many empty lines before a request line are skipped. Default 2: old clients send one
    /// after a body. Beyond: 400 and close.
    empty_lines_max: u8 = 2;
    /// Sets how many octets a chunk-size line may have, without its line end. Default 256: a size
    /// has 16 digits, and nobody uses the extensions that may follow. Beyond: 400 and close.
    chunk_line_bytes_max: usize = 256;
    /// Sets how many octets of chunk extensions one body may have. Default 4 KiB: without a limit,
    /// chunks of one byte with large extensions cost a hundred times what they carry. Beyond: 400
    /// and close.
    extension_bytes_max: usize = 4 << 10;
    /// Sets how many octets a trailer section may have, with its line ends and the last empty line.
    /// Default 4 KiB. Beyond: 431 and close.
    trailer_bytes_max: usize = 4 << 10, within 2, 16 << 20;
    /// Sets how many field lines a trailer section may have. Default 32. Beyond: 431 and close.
    trailers_max: usize = 32;
    /// Sets how many octets of a body may be collected before the handler sees it, even if the
    /// handler allows more. Default 1 MiB, because they are held in memory. Beyond: 413 and close.
    buffered_body_bytes_max: u64 = 1 << 20;
    /// Sets how many requests one connection may make. Default unlimited, as are values beyond 32
    /// bits. After the last: `Connection: close`.
    requests_max: u64 = u64::MAX, within 1, u64::MAX;
    /// Sets how old a connection may become, from its beginning to the beginning of its last
    /// request. Default unlimited.
    ///
    /// Each connection gets up to a tenth less, at random, so that connections that began together
    /// do not end together. Behind a balancer that keeps its connections, this gives servers that
    /// came later their share. The first request past the age is the last: it is answered with
    /// `Connection: close`. In HTTP/2 the end is announced (GOAWAY), and the requests under way are
    /// served. A connection that is idle then is closed by its `idle_timeout`, not before: its next
    /// request may be on its way.
    #[doc(alias = "max_connection_age")]
    connection_age_max: Duration = Duration::MAX;
    /// Sets how long a connection may wait between requests. Default 75 s, longer than the 60 s of
    /// usual proxies, so that the proxy closes first. After it: closed without a response.
    #[doc(alias = "keep-alive timeout")]
    idle_timeout: Duration = Duration::from_secs(75);
    /// Sets how long a head may take, from its first byte. What comes meanwhile does not extend it.
    /// Default 10 s. After it: 408 and close.
    #[doc(alias = "slowloris")]
    head_timeout: Duration = Duration::from_secs(10);
    /// Sets how far a body may fall behind its least rate. It is the time that a body has to start,
    /// and the longest silence after that, however much came before. Default 5 s, for a lost packet
    /// or two. A grace below one second also shortens the step in which the rate is measured.
    body_grace: Duration = Duration::from_secs(5);
    /// Sets the least rate of a body while it is being read, in bytes per second. So many bytes buy
    /// one more second; no more than `body_grace` can be bought ahead. Default 1 KiB/s: a slow
    /// phone is faster, a slow-body attack is not. 0: none. Below: 408 and close.
    #[doc(alias = "slow POST")]
    body_rate_min: u64 = 1 << 10;
    /// Sets how long the handshake of a wrapping socket (TLS) may take, from the beginning of a
    /// connection. Default 10 s, for several round trips by satellite. After it: closed. For
    /// servers; a client's is set by [`stream`](crate::client::ClientConfig::stream).
    #[doc(alias = "TLS")]
    handshake_timeout: Duration = Duration::from_secs(10);
    /// Sets how long a handler may take until its response is complete, unless it moves the
    /// deadline. The time begins with the head, and again with each part of the body that the
    /// handler gets, and with what it has waited for (`Next::wait`). Default 60 s. After it: 503 if
    /// nothing was sent, else close.
    handler_timeout: Duration = Duration::from_secs(60);
    /// Sets how long a peer may take for each step of a response that waits to be sent. Default
    /// 10 s, for full buffers on the way.
    #[doc(alias = "answer_grace")]
    response_grace: Duration = Duration::from_secs(10);
    /// Sets the least rate at which a peer takes a response while output waits, in bytes per
    /// second. One step is so many bytes for each second of `response_grace`, or all that waits if
    /// that is less; it must be taken in that time. Default 1 KiB/s. 0: none. Below: closed.
    #[doc(alias = "slow read")]
    #[doc(alias = "answer_rate_min")]
    response_rate_min: u64 = 1 << 10;
    /// Sets how long a peer may take, on a closing connection, to accept one step of what is left
    /// (as for `response_rate_min`). It is also how long a body that nobody wants may take, and, on
    /// HTTP/2, how long a client waits for the end of a stream whose response is whole. Default 5 s.
    /// After it: aborted.
    shutdown_timeout: Duration = Duration::from_secs(5);
    /// Sets how long a closed connection still reads and discards, so that no reset destroys the
    /// last response. Default 2 s.
    #[doc(alias = "lingering close")]
    linger_timeout: Duration = Duration::from_secs(2);
    /// Sets how many octets a closed connection reads and discards at most. Default 32 KiB. Beyond:
    /// aborted.
    linger_bytes_max: u64 = 32 << 10;
    /// Sets how many octets of a body that nobody wants are read and discarded to keep the
    /// connection. Default 64 KiB: for more than that, a new connection is cheaper. Beyond: close.
    drained_body_bytes_max: u64 = 64 << 10;
    /// Sets at how many octets of output a connection stops taking requests and body from its peer
    /// and its handler. Default 64 KiB; at least 1, since a handler that waits for room would wait
    /// for ever.
    #[doc(alias = "backpressure")]
    output_high_water: usize = 64 << 10, within 1, usize::MAX;
    /// Sets how many interim responses (1xx) a client takes before the final one. Default 16.
    /// Beyond: the connection fails.
    #[doc(alias = "interim_answers_max")]
    interim_responses_max: u32 = 16;
    /// Sets how long a server may take until the head of its response has come, from when it has
    /// the whole request. Interim responses do not extend it. Default 60 s, as servers give their
    /// handlers. After it: the request fails.
    #[doc(alias = "answer_timeout")]
    response_timeout: Duration = Duration::from_secs(60);
    /// Sets how long a client that asked for `100 Continue` waits for it before it sends the body
    /// anyway. Default 1 s: servers that do not know it say nothing (RFC 9110 §10.1.1).
    continue_timeout: Duration = Duration::from_secs(1);
    /// Sets how long a client keeps a connection that has nothing to do. Default 30 s, shorter than
    /// most servers wait, so that a request seldom meets a connection that is being closed.
    unused_timeout: Duration = Duration::from_secs(30);
}

impl Limits {
    /// Returns the least rate of a body, as so many octets in so much time: steps of a second, or
    /// of the grace if that is less.
    pub(crate) fn body_step(&self) -> (u64, Duration) {
        let time = self.body_grace.min(Duration::from_secs(1));
        (octets_in(self.body_rate_min, time), time)
    }

    /// Returns how many octets a peer must send at least in that time, while it sends a body.
    #[cfg_attr(not(feature = "http2"), expect(dead_code, reason = "of settings"))]
    pub(crate) fn body_octets_in(&self, time: Duration) -> u64 {
        octets_in(self.body_rate_min, time)
    }

    /// Returns how many octets of a response a peer must take in each `response_grace`.
    pub(crate) fn response_step(&self) -> usize {
        usize::try_from(octets_in(self.response_rate_min, self.response_grace))
            .unwrap_or(usize::MAX)
    }
}

/// Returns how many octets that rate is in that time: at least one, unless there is no rate.
fn octets_in(rate: u64, time: Duration) -> u64 {
    let octets = u128::from(rate).saturating_mul(time.as_millis()) / 1000;
    u64::try_from(octets).unwrap_or(u64::MAX).max(u64::from(rate > 0))
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
    fn a_rate_is_a_step_and_a_time_and_none_is_none() {
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
