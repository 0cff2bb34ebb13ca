//! `WebSocketSeed`: what a WebSocket is made from.

use std::fmt;
use std::sync::Arc;

use crate::config::WebSocketConfig;
use crate::deflate::params::AgreedParams;
use crate::handler::Handler;

/// The seed of a WebSocket: the result of the handshake, and the seed of the handler. Made by
/// [`Accepted::seed`](crate::Accepted::seed).
pub struct WebSocketSeed<H: Handler> {
    pub(crate) seed: H::Seed,
    pub(crate) config: Arc<WebSocketConfig>,
    pub(crate) agreed: Option<AgreedParams>,
    pub(crate) is_client: bool,
}

impl<H: Handler> fmt::Debug for WebSocketSeed<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketSeed").field("agreed", &self.agreed).finish_non_exhaustive()
    }
}
