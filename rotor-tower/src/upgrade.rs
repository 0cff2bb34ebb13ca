//! `Upgrade`: going on in one of rotor's protocols after a response.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Put it into the extensions of a response with status 101: the connection goes on in the protocol
/// that is made from its seed, the `U` of [`TowerServer`](crate::TowerServer). That is a
/// [`Protocol`](rotor_stream::Protocol) of rotor's, for example `rotor_websocket::WebSocket`.
///
/// The response names the protocol in its `Upgrade` field. Without this extension a 101 is answered
/// with 501, since `hyper::upgrade` is not supported.
pub struct Upgrade<T>(Arc<Mutex<Option<T>>>);

impl<T> Upgrade<T> {
    /// Goes on in the protocol that is made from `seed`.
    pub fn to(seed: T) -> Upgrade<T> {
        Upgrade(Arc::new(Mutex::new(Some(seed))))
    }

    pub(crate) fn take(self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Returns the same upgrade: the first that is used has the seed.
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
