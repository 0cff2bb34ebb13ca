//! `Shared`: what a connection has of its server, and that it is one of its connections.

use std::ops::Deref;
use std::sync::Arc;

use super::config::ServerConfig;
use super::counters::Counters;

/// The config of a connection, which counts it: as made, and as ended, however it ends.
pub(super) struct Shared(Arc<ServerConfig>);

impl Shared {
    /// A connection is made.
    pub(super) fn new(config: Arc<ServerConfig>) -> Shared {
        Counters::add(&config.count().connections);
        Shared(config)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        Counters::add(&self.0.count().connections_ended);
    }
}

impl Deref for Shared {
    type Target = ServerConfig;

    fn deref(&self) -> &ServerConfig {
        &self.0
    }
}
