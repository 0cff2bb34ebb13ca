//! `ListenOptions`: how a listener is opened.

/// Options for opening a listener.
#[derive(Clone, Debug)]
#[must_use]
pub struct ListenOptions {
    pub(crate) backlog: u32,
    pub(crate) reuse_port: bool,
    pub(crate) unix_mode: Option<u32>,
}

impl ListenOptions {
    /// Returns the default options.
    pub fn new() -> ListenOptions {
        ListenOptions { backlog: 4096, reuse_port: false, unix_mode: None }
    }

    /// Sets how many connections the system keeps until they are accepted. Default 4,096, which is
    /// also Linux's default limit: a client that finds the queue full tries again a second later at
    /// the earliest. The system may keep fewer (`net.core.somaxconn`; listen(2)).
    #[doc(alias = "somaxconn")]
    pub fn backlog(mut self, connections: u32) -> ListenOptions {
        self.backlog = connections;
        self
    }

    /// Sets whether several listeners may share the address, so that the system distributes
    /// connections among them (`SO_REUSEPORT`). Default: no. On a system without this option,
    /// binding fails with `Unsupported`.
    #[doc(alias = "SO_REUSEPORT")]
    pub fn reuse_port(mut self, yes: bool) -> ListenOptions {
        self.reuse_port = yes;
        self
    }

    /// Sets who may connect to a Unix socket, by the mode of its file, reduced by the process's
    /// umask: `0o600` allows only its user. The file has that mode from the start, so at no moment
    /// could others connect. Default: everything that the umask allows. Other listeners ignore it.
    /// On systems other than Linux, and for a name in the abstract namespace, which has no mode,
    /// binding fails with `Unsupported`.
    #[doc(alias = "chmod")]
    pub fn unix_mode(mut self, mode: u32) -> ListenOptions {
        self.unix_mode = Some(mode);
        self
    }

    /// Returns the [`backlog`](ListenOptions::backlog), for implementations of listeners.
    pub fn backlog_len(&self) -> u32 {
        self.backlog
    }

    /// Returns the setting of [`reuse_port`](ListenOptions::reuse_port), for implementations of
    /// listeners.
    pub fn is_reuse_port(&self) -> bool {
        self.reuse_port
    }

    /// Returns the [`unix_mode`](ListenOptions::unix_mode), for implementations of listeners.
    pub fn unix_mode_bits(&self) -> Option<u32> {
        self.unix_mode
    }
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions::new()
    }
}
