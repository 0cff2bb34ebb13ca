//! How a handler wants to see a body, of servers and clients.

/// How a handler wants to see the body of the message that it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecvMode {
    /// Whole, in one call. A body of more octets than this, or than
    /// [`Limits::buffered_body_bytes_max`](crate::Limits::buffered_body_bytes_max), is refused:
    /// by a server with 413, before it is sent, where its length was announced; by a client with an
    /// error.
    Buffered(usize),
    /// Piece by piece, each of at least that many octets but the last (at least 1, at most half the
    /// input's high-water mark); then the end.
    Progressive(usize),
    /// Piece by piece, as they come, each as a [`Block`](rotor_stream::Block) that can be written
    /// elsewhere without being copied: for handlers that pass a body on. `request_block` of a
    /// server and `response_block` of a client are called for each; then the end.
    Blocks,
    /// Whole, as one value that can be kept: `request_stored` of a server and `response_stored` of
    /// a client get it. With the feature `body`.
    ///
    /// It is in memory up to `ram_max` octets (and
    /// [`Limits::buffered_body_bytes_max`](crate::Limits::buffered_body_bytes_max)), else in a file
    /// of the [spool](crate::server::ServerConfig::spool) from there on, or from its beginning
    /// where it was announced to be longer. While the disk is behind, the peer has to wait,
    /// and is not timed; the handler is, also while the last of the body is written and
    /// synced. Trailers are dropped.
    ///
    /// | | |
    /// |--|--|
    /// | more than `max` octets; more than `ram_max` where there is no spool | 413, before it is sent where it was announced |
    /// | the spool's files hold as much as they may; no descriptor is left | 503, the same |
    /// | the disk is full | 507, the same |
    /// | the disk fails | 500 |
    /// | a body waits for the disk longer than [`handler_timeout`](crate::Limits::handler_timeout), or the handler's own deadline | 503, by [`timeout`](crate::server::Server::timeout) |
    ///
    /// A client's request fails instead: `ClientError::Body`, `BodiesFull` or `NotStored`.
    #[cfg(feature = "body")]
    #[doc(alias = "tempfile")]
    #[doc(alias = "client_body_in_file_only")]
    Stored {
        /// Octets that it may have in memory.
        ram_max: usize,
        /// Octets that it may have at all.
        max: u64,
    },
}

/// Unread input that a connection holds at most: bodies up to this are handed to their handlers
/// from where they are.
pub(crate) const INPUT_BYTES_MAX: usize = 64 << 10;
