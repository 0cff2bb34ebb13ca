//! `Upgrade`: continues with one of rotor's protocols after a response.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Continues the connection with another protocol. Put it into the extensions of a response with
/// status 101. The protocol is the `U` of [`TowerServer`](crate::TowerServer), a
/// [`Protocol`](rotor_stream::Protocol) of rotor's, for example `rotor_websocket::WebSocket`.
///
/// The response must name the protocol in its `Upgrade` field. A 101 without this extension or
/// without that field becomes a 501, since `hyper::upgrade` is not supported.
pub struct Upgrade<T>(Arc<Mutex<Option<T>>>);

impl<T> Upgrade<T> {
    /// Makes an upgrade to the protocol that is made from `seed`.
    pub fn to(seed: T) -> Upgrade<T> {
        Upgrade(Arc::new(Mutex::new(Some(seed))))
    }

    pub(crate) fn take(self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Returns another handle to the same upgrade. The first handle that is used takes the seed.
impl<T> Clone for Upgrade<T> {
    fn clone(&self) -> Upgrade<T> {
        Upgrade(self.0.clone())
    }
}

impl<T> fmt::Debug for Upgrade<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}
