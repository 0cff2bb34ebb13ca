//! `ProxyCounters`: the counters of connections behind a balancer.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

rotor_core::__rotor_counters! {
    /// The counters of connections behind a balancer. Each accepted connection counts in exactly
    /// one of them, when its header has arrived or when it has ended.
    struct ProxyCounters {
        /// Headers that say where a connection comes from.
        proxied,
        /// Headers that say that a connection is the balancer's own.
        #[doc(alias = "LOCAL")]
        local,
        /// Headers that do not say where a connection comes from.
        unknown,
        /// Connections from other networks, served without a header
        /// ([`Untrusted::Direct`](crate::Untrusted)).
        direct,
        /// Connections from other networks, refused ([`Untrusted::Refuse`](crate::Untrusted)).
        untrusted,
        /// Connections whose first bytes are not a header.
        no_header,
        /// Headers of a version that is not accepted.
        unwanted_versions,
        /// Headers longer than the limit.
        too_large,
        /// Headers that violate the rules.
        broken,
        /// Headers that do not match their checksum.
        checksums,
        /// Connections refused because their peer has as many as it may have.
        too_many_of_peer,
        /// Connections that the other side ended before the header was complete, such as checks
        /// whether the port is open; and connections whose inner socket had failed by then, in a
        /// handshake of its own.
        abandoned,
        /// Connections that were closed at this end before the header was complete: it took too
        /// long, or the loop ended.
        #[doc(alias = "slowloris")]
        late,
    }
}

/// A connection that waits for its header. It is counted once, by its outcome.
pub(crate) struct HandshakeGuard {
    counters: Arc<ProxyCounters>,
    is_over: bool,
}

impl HandshakeGuard {
    pub(crate) fn begin(counters: Arc<ProxyCounters>) -> HandshakeGuard {
        HandshakeGuard { counters, is_over: false }
    }

    /// Counts the connection in this counter: the wait is over.
    pub(crate) fn end(&mut self, outcome: impl FnOnce(&ProxyCounters) -> &AtomicU64) {
        self.is_over = true;
        ProxyCounters::add(outcome(&self.counters));
    }
}

impl Drop for HandshakeGuard {
    fn drop(&mut self) {
        if !self.is_over {
            ProxyCounters::add(&self.counters.late);
        }
    }
}
