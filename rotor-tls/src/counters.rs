//! Counters of the connections of a server or a client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

rotor_core::__rotor_counters! {
    /// Counters of the connections of a server or a client: how each handshake ended, and how often
    /// each limit was reached.
    ///
    /// Each accepted connection is in exactly one counter of the first group once its handshake is
    /// over.
    struct TlsCounters {
        /// Handshakes that succeeded in full, with certificates.
        full,
        /// Handshakes that succeeded with a ticket of an earlier session.
        #[doc(alias = "session tickets")]
        resumed,
        /// Handshakes that failed because of the peer: it violated the protocol, its certificate is
        /// not accepted, or the two ends have nothing in common.
        failed_by_peer,
        /// Handshakes that failed because of something at this end.
        failed_here,
        /// Handshakes that the peer ended with an alert, for example because it does not accept our
        /// certificate.
        refused_by_peer,
        /// Handshakes during which the peer closed the connection, or the network lost it.
        abandoned,
        /// Handshakes whose connection was closed at this end: they took too long, or the loop
        /// ended.
        #[doc(alias = "slowloris")]
        #[doc(alias = "handshake_timeouts")]
        late,
        /// Plain HTTP requests, answered with 400; for a client, servers that answered in plain
        /// HTTP.
        plain_http,
        /// Peers that began with something that is neither TLS nor HTTP.
        not_tls,
        /// Hellos that were too long.
        hellos_too_large,
        /// Clients that requested a name that is not served
        /// ([`UnknownName::Refuse`](crate::UnknownName::Refuse)).
        unknown_names,

        /// Handshakes that had to wait because the limit was reached
        /// ([`handshakes_max`](crate::TlsServerConfig::handshakes_max)).
        waited,
        /// Handshakes that had a step done by another thread
        /// ([`offload`](crate::TlsServerConfig::offload)).
        offloaded,
        /// Steps for which the pool had no room, so that the loop did them itself.
        not_offloaded,
        /// Connections that ended after their handshake because something could not be read.
        broken,
        /// Connections that the peer ended or reset, or the network lost, after their handshake and
        /// without the peer's `close_notify`.
        #[doc(alias = "close_notify")]
        truncated,
    } with under_way: AtomicU64
}

impl TlsCounters {
    /// Returns how many handshakes are under way now. Unlike the counters it also decreases, so it
    /// is not in [`iter`](TlsCounters::iter): on a page of metrics it is a gauge.
    #[doc(alias = "gauge")]
    pub fn handshakes_now(&self) -> u64 {
        self.under_way.load(Relaxed)
    }
}

/// A handshake that is counted as under way, and at its end by its outcome.
pub(crate) struct HandshakeGuard {
    counters: Arc<TlsCounters>,
    is_over: bool,
}

impl HandshakeGuard {
    pub(crate) fn begin(counters: Arc<TlsCounters>) -> HandshakeGuard {
        TlsCounters::add(&counters.under_way);
        HandshakeGuard { counters, is_over: false }
    }

    pub(crate) fn counters(&self) -> &Arc<TlsCounters> {
        &self.counters
    }

    /// Ends the handshake and counts its outcome.
    pub(crate) fn end(mut self, outcome: impl FnOnce(&TlsCounters) -> &AtomicU64) {
        self.is_over = true;
        TlsCounters::add(outcome(&self.counters));
    }
}

impl Drop for HandshakeGuard {
    fn drop(&mut self) {
        self.counters.under_way.fetch_sub(1, Relaxed);
        if !self.is_over {
            TlsCounters::add(&self.counters.late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_for_a_page_of_metrics_never_decrease() {
        let counters = Arc::<TlsCounters>::default();
        let handshake = HandshakeGuard::begin(counters.clone());
        assert_eq!(counters.handshakes_now(), 1);
        let before: Vec<_> = counters.iter().collect();
        handshake.end(|counters| &counters.full);
        assert_eq!(counters.handshakes_now(), 0);
        for ((name, before), (_, after)) in before.into_iter().zip(counters.iter()) {
            assert!(before <= after, "{name}: {before}, then {after}");
        }
    }
}
