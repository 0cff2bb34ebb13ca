//! `Shared`: the config of a connection, which also counts the connection.

use std::ops::Deref;
use std::sync::Arc;

use super::config::ServerConfig;
use super::counters::Counters;

/// The config of a connection. It counts the connection when it is made, and again when it ends, in
/// whatever way.
pub(super) struct Shared(Arc<ServerConfig>);

impl Shared {
    /// Counts a new connection.
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
