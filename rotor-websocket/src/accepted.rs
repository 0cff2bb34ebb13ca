//! `Accepted`: a successful handshake.

use std::fmt;
use std::sync::Arc;

use crate::config::WebSocketConfig;
use crate::deflate::params::AgreedParams;
use crate::handler::Handler;
use crate::websocket_seed::WebSocketSeed;

/// A successful handshake: everything that a WebSocket is made from, except the seed of its
/// handler.
pub struct Accepted {
    pub(crate) config: Arc<WebSocketConfig>,
    pub(crate) agreed: Option<AgreedParams>,
    pub(crate) subprotocol: Option<usize>,
    pub(crate) is_client: bool,
}

impl Accepted {
    /// Returns the agreed subprotocol, if any.
    #[doc(alias = "Sec-WebSocket-Protocol")]
    pub fn subprotocol(&self) -> Option<&str> {
        self.config.subprotocols.get(self.subprotocol?).map(String::as_str)
    }

    /// Returns whether messages may be compressed.
    #[doc(alias = "permessage-deflate")]
    pub fn is_compressed(&self) -> bool {
        self.agreed.is_some()
    }

    /// Returns the seed of the WebSocket, for `Next::upgrade` of a server or a client. The handler
    /// is made from `seed`.
    pub fn seed<H: Handler>(self, seed: H::Seed) -> WebSocketSeed<H> {
        let Accepted { config, agreed, is_client, .. } = self;
        WebSocketSeed { seed, config, agreed, is_client }
    }
}

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepted")
            .field("subprotocol", &self.subprotocol())
            .field("agreed", &self.agreed)
            .finish_non_exhaustive()
    }
}
