//! The error of an address that could not be opened: it names the address, which the system's error
//! does not.

use std::error::Error;
use std::fmt;
use std::io;

/// Why an address could not be opened: what the [`io::Error`] holds that
/// [`Listener::bind`](super::Listener::bind) and
/// [`DatagramSocket::bind`](super::DatagramSocket::bind) return. That has the kind of the system's
/// error, which is the [source](Error::source) of this one.
#[derive(Debug)]
pub struct CannotListen {
    address: String,
    cause: io::Error,
}

impl CannotListen {
    /// Puts an address into the error of whoever could not open it. For those who implement
    /// listeners.
    pub fn on(address: &impl fmt::Display) -> impl FnOnce(io::Error) -> io::Error {
        // With the kind of the cause, since callers decide by that.
        |cause| io::Error::new(cause.kind(), CannotListen { address: address.to_string(), cause })
    }
}

impl fmt::Display for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}", self.address)
    }
}

impl Error for CannotListen {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
