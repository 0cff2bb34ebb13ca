//! `ListenError`: the error of an address that could not be opened. It names the address, which
//! the system's error does not.

use std::error::Error;
use std::fmt;
use std::io;

/// The reason why an address could not be opened. [`Listener::bind`](super::Listener::bind) and
/// [`DatagramSocket::bind`](super::DatagramSocket::bind) return it inside an [`io::Error`] that has
/// the kind of the system's error. The system's error is the [source](Error::source) of this one.
#[doc(alias = "CannotListen")]
#[derive(Debug)]
pub struct ListenError {
    address: String,
    cause: io::Error,
}

impl ListenError {
    /// Adds an address to the error of a failed attempt to open it. For implementations of
    /// listeners.
    pub fn on(address: &impl fmt::Display) -> impl FnOnce(io::Error) -> io::Error {
        // The kind of the cause is kept, because callers decide by it.
        |cause| io::Error::new(cause.kind(), ListenError { address: address.to_string(), cause })
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}", self.address)
    }
}

impl Error for ListenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
