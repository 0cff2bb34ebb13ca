//! How a handler, of a server or a client, wants to get a body.

/// How a handler wants to get the body of its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecvMode {
    /// Whole, in one call. A body of more octets than this, or than
    /// [`Limits::buffered_body_bytes_max`](crate::Limits::buffered_body_bytes_max), is refused: a
    /// server answers 413, and does so before the body is sent if its length was announced; a
    /// client's request fails.
    Buffered(usize),
    /// Piece by piece, then the end. Each piece but the last has at least that many octets (at
    /// least 1, at most half the input's high-water mark).
    Progressive(usize),
    /// Piece by piece as they come, then the end. Each piece is a [`Block`](rotor_stream::Block)
    /// that can be written elsewhere without being copied: for handlers that pass a body on. Each
    /// calls `request_block` of a server, or `response_block` of a client.
    Blocks,
    /// Whole, as one value that can be kept. `request_stored` of a server or `response_stored` of a
    /// client gets it. With the feature `body`.
    ///
    /// The body is in memory up to `ram_max` octets (and
    /// [`Limits::buffered_body_bytes_max`](crate::Limits::buffered_body_bytes_max)). Beyond that it
    /// goes to a file of the [spool](crate::server::ServerConfig::spool), or all of it does if it
    /// was announced to be longer. While the disk is behind, the peer has to wait, and this does
    /// not count against it. It counts against the handler's time, as does the time in which the
    /// last of the body is written and synced. Trailers are dropped.
    ///
    /// | | |
    /// |--|--|
    /// | more than `max` octets; more than `ram_max` without a spool | 413, before the body is sent if its length was announced |
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
        /// How many octets may be in memory.
        ram_max: usize,
        /// How many octets the body may have in all.
        max: u64,
    },
}

/// How much unread input a connection holds at most: bodies up to this are handed to their handlers
/// from where they are.
pub(crate) const INPUT_BYTES_MAX: usize = 64 << 10;
