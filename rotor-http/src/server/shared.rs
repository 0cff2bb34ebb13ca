//! `CountedConfig`: the config of a connection, which also counts the connection.

use std::ops::Deref;
use std::sync::Arc;

use super::config::ServerConfig;
use super::counters::Counters;

/// The config of a connection. It counts the connection when it is made, and again when it ends, in
/// whatever way.
pub(super) struct CountedConfig(Arc<ServerConfig>);

impl CountedConfig {
    /// Counts a new connection.
    pub(super) fn new(config: Arc<ServerConfig>) -> CountedConfig {
        Counters::add(&config.counters_ref().connections);
        CountedConfig(config)
    }
}

impl Drop for CountedConfig {
    fn drop(&mut self) {
        Counters::add(&self.0.counters_ref().connections_ended);
    }
}

impl Deref for CountedConfig {
    type Target = ServerConfig;

    fn deref(&self) -> &ServerConfig {
        &self.0
    }
}
