//! `RecvMode`: how a handler of a server or a client receives a body.

/// How a handler wants to receive the body of its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecvMode {
    /// The whole body, in one call. A body of more bytes than this, or than
    /// [`Limits::buffered_body_bytes_max`](crate::Limits::buffered_body_bytes_max), is refused. A
    /// server responds with 413, before the body is sent if its length was announced; a client's
    /// request fails.
    Buffered(usize),
    /// The body in pieces, then its end. Each piece but the last has at least this many bytes: 0
    /// counts as 1, and a value above 32 KiB as 32 KiB.
    Progressive(usize),
    /// The body in pieces as they arrive, then its end. Each piece is a
    /// [`Block`](rotor_stream::Block) that can be written elsewhere without a copy, for handlers
    /// that pass a body on. Each piece is a call of `request_block` (server) or `response_block`
    /// (client).
    Blocks,
    /// The whole body, as one value that can be kept. The handler gets it in `request_stored`
    /// (server) or `response_stored` (client). Requires the feature `body`.
    ///
    /// The body is held in memory up to `ram_max` bytes, and no further than
    /// [`Limits::buffered_body_bytes_max`](crate::Limits::buffered_body_bytes_max) (default 1 MiB)
    /// and [`SpoolConfig::ram_bytes_max`](rotor_body::SpoolConfig::ram_bytes_max) (192 KiB) allow.
    /// Beyond that it goes to a file of the [spool](crate::server::ServerConfig::spool); a body
    /// whose announced length is greater goes to the file from its beginning. While the disk is
    /// behind, the peer has to wait, and this time does not count against the peer. It counts
    /// against the handler's time, and so does the time in which the last part of the body is
    /// written and synced. Trailers are dropped.
    ///
    /// | | |
    /// |--|--|
    /// | more than `max` bytes, or than [`SpoolConfig::body_bytes_max`](rotor_body::SpoolConfig::body_bytes_max) (1 GiB); more than `ram_max` without a spool | 413, before the body is sent if its length was announced |
    /// | the spool's files hold as much as they may; no descriptor is left | 503, likewise |
    /// | the disk is full | 507, likewise |
    /// | the disk fails | 500 |
    /// | a body waits for the disk longer than [`handler_timeout`](crate::Limits::handler_timeout), or the handler's own deadline | 503, by [`timeout`](crate::server::Server::timeout) |
    ///
    /// For a client, the request fails instead: `ClientError::Body`, `BodiesFull` or `NotStored`.
    #[cfg(feature = "body")]
    #[doc(alias = "tempfile")]
    #[doc(alias = "client_body_in_file_only")]
    Stored {
        /// The most bytes that are held in memory.
        ram_max: usize,
        /// The most bytes that the whole body may have.
        max: u64,
    },
}

/// The most unread input that a connection holds. Bodies up to this size are passed to their
/// handlers from the input, without a copy.
pub(crate) const INPUT_BYTES_MAX: usize = 64 << 10;
