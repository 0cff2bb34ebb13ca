//! The error of an address that was not opened: it names the address, which the stack's error does
//! not.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// An address was not opened, and why: what an [`io::Error`] holds that has the kind of the
/// stack's.
#[derive(Debug)]
pub(crate) struct CannotListen {
    address: SocketAddr,
    cause: io::Error,
}

impl CannotListen {
    /// Puts the address into the stack's error.
    pub(crate) fn on(address: &SocketAddr) -> impl FnOnce(io::Error) -> io::Error {
        |cause| io::Error::new(cause.kind(), CannotListen { address: *address, cause })
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
