//! `ListenOptions`: how a listener is opened.

/// How a listener is opened.
#[derive(Clone, Debug)]
#[must_use]
pub struct ListenOptions {
    pub(crate) backlog: u32,
    pub(crate) reuse_port: bool,
}

impl ListenOptions {
    /// The defaults.
    pub fn new() -> ListenOptions {
        ListenOptions { backlog: 4096, reuse_port: false }
    }

    /// How many connections the system keeps until they are accepted. Default 4,096, as much as
    /// Linux allows by default: one that finds the queue full tries again a second later at the
    /// earliest. The system may keep fewer (`net.core.somaxconn`; listen(2)).
    pub fn backlog(mut self, connections: u32) -> ListenOptions {
        self.backlog = connections;
        self
    }

    /// Whether several listeners may share the address, so that the system spreads connections over
    /// them (`SO_REUSEPORT`). Default: no. Where the system has no such option, binding answers
    /// `Unsupported`.
    pub fn reuse_port(mut self, yes: bool) -> ListenOptions {
        self.reuse_port = yes;
        self
    }

    /// The number of [`backlog`](ListenOptions::backlog), for those who implement listeners.
    pub fn backlog_len(&self) -> u32 {
        self.backlog
    }

    /// Whether [`reuse_port`](ListenOptions::reuse_port) was asked for, for those who implement
    /// listeners.
    pub fn is_reuse_port(&self) -> bool {
        self.reuse_port
    }
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions::new()
    }
}
