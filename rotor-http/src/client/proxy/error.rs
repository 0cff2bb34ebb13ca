//! `TunnelError`: why a proxy made no tunnel.

use std::io::{self, ErrorKind};

use quick_error::quick_error;

use crate::semantics::error::ResponseHeadError;
use crate::semantics::status::Status;

quick_error! {
    /// Why a proxy made no tunnel. It is the inner error of the [`io::Error`] of a
    /// [`TunnelStream`](super::TunnelStream)'s handshake; [`TunnelError::of`] finds it there. A
    /// request for which the connection was made fails with
    /// [`ClientError::NotConnected`](crate::client::ClientError::NotConnected), and was not sent.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum TunnelError {
        /// The proxy refused, with this status. 407: it wants other credentials
        /// ([`TunnelTarget::header`](super::TunnelTarget::header)); 403: it does not make tunnels
        /// to this server, or to this port; 502 or 504: it could not connect to the server. What
        /// else the response says is not read: no byte of it comes from the server.
        Refused(status: Status) { display("the proxy has refused the tunnel: {status}") }
        /// The proxy's response is malformed, or its head is longer than 16 KiB or has more than
        /// 100 fields. The peer's fault; maybe it is no proxy.
        Head(error: ResponseHeadError) {
            display("the proxy's response is malformed")
            source(error)
            from()
        }
        /// The proxy has sent more than 16 interim responses. The proxy's fault.
        TooManyInterim { display("the proxy sends interim responses without end") }
        /// The proxy has closed the connection before its response was complete.
        Closed { display("the proxy has closed the connection before its response was complete") }
    }
}

impl TunnelError {
    /// Returns the error of a [`TunnelStream`](super::TunnelStream) that is inside an
    /// [`io::Error`].
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; pub use rotor_stream as stream; }
    /// use rotor::http::Status;
    /// use rotor::http::client::{ClientError, TunnelError};
    /// use rotor::stream::Fatal;
    ///
    /// fn wants_credentials(error: &ClientError) -> bool {
    ///     let ClientError::NotConnected(Fatal::Handshake(error)) = error else { return false };
    ///     let refused = TunnelError::Refused(Status::PROXY_AUTHENTICATION_REQUIRED);
    ///     TunnelError::of(error) == Some(&refused)
    /// }
    /// ```
    pub fn of(error: &io::Error) -> Option<&TunnelError> {
        error.get_ref()?.downcast_ref()
    }
}

/// The kind determines whose fault a failed request is: `InvalidData` is the peer's. A refusal and
/// an end finish the connection at once, because the proxy has nothing more to learn.
impl From<TunnelError> for io::Error {
    fn from(error: TunnelError) -> io::Error {
        let kind = match error {
            TunnelError::Refused(_) => ErrorKind::ConnectionAborted,
            TunnelError::Head(_) | TunnelError::TooManyInterim => ErrorKind::InvalidData,
            TunnelError::Closed => ErrorKind::UnexpectedEof,
        };
        io::Error::new(kind, error)
    }
}
