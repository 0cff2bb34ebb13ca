//! `QueryLink`: what a resolver tells a query while it is under way.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rotor_core::Notifier;

/// What a resolver and one of its queries share.
#[derive(Default)]
pub(crate) struct QueryLink {
    is_awaited: AtomicBool,
    /// Wakes the query, once it has begun.
    query: OnceLock<Notifier>,
}

impl QueryLink {
    /// Makes the link of a question for which a lookup waits.
    pub(crate) fn awaited() -> QueryLink {
        let link = QueryLink::default();
        link.set_awaited(true);
        link
    }

    /// Returns whether any lookup waits for the answer. If none does, it only fills the cache.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Relaxed)
    }

    pub(crate) fn set_awaited(&self, is_awaited: bool) {
        self.is_awaited.store(is_awaited, Relaxed);
    }

    /// Sets how the query is woken.
    pub(crate) fn query_began(&self, query: Notifier) {
        // A query begins once.
        let _ = self.query.set(query);
    }

    /// Wakes the query, if it has begun: it ends if its resolver has ended, and soon if it is not
    /// awaited.
    pub(crate) fn wake_query(&self) {
        if let Some(query) = self.query.get() {
            query.wakeup();
        }
    }
}
