//! What the connections behind a balancer count.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

rotor_core::__rotor_counters! {
    /// What the connections behind a balancer count. Each that was accepted is in exactly one of
    /// these, once its header is there or it has ended.
    struct ProxyCounters {
        /// Headers that say where a connection comes from.
        proxied,
        /// Headers that say that a connection is the balancer's own.
        #[doc(alias = "LOCAL")]
        local,
        /// Headers that say nothing of where a connection comes from.
        unknown,
        /// Connections from elsewhere, served as they are
        /// ([`Untrusted::Direct`](crate::Untrusted)).
        direct,
        /// Connections from elsewhere, refused ([`Untrusted::Refuse`](crate::Untrusted)).
        untrusted,
        /// Connections that began with something that is no header.
        no_header,
        /// Headers of a version that is not wanted.
        unwanted_versions,
        /// Headers that were longer than they may be.
        too_large,
        /// Headers that break the rules.
        broken,
        /// Headers that are not what their checksum says.
        checksums,
        /// Connections beyond those that a peer may have.
        too_many_of_peer,
        /// Connections that the other side ended before its header was whole, those among them that
        /// only look whether somebody listens; and those whose socket inside had failed by then, in
        /// a handshake of its own.
        abandoned,
        /// Connections that were closed at this end before a header was there: it took too long,
        /// or the loop ended.
        #[doc(alias = "slowloris")]
        late,
    }
}

/// A connection whose header is awaited, and which is counted in the end as what became of it.
pub(crate) struct UnderWay {
    counters: Arc<ProxyCounters>,
    is_over: bool,
}

impl UnderWay {
    pub(crate) fn begin(counters: Arc<ProxyCounters>) -> UnderWay {
        UnderWay { counters, is_over: false }
    }

    /// It is over, and counts as this.
    pub(crate) fn end(&mut self, outcome: impl FnOnce(&ProxyCounters) -> &AtomicU64) {
        self.is_over = true;
        ProxyCounters::add(outcome(&self.counters));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.is_over {
            ProxyCounters::add(&self.counters.late);
        }
    }
}
