//! The error of an address that was not opened: it names the address, which the system's error does
//! not.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::unix::net::SocketAddr;

/// An address was not opened, and why. It is what an [`io::Error`] holds that has the kind of the
/// system's.
#[derive(Debug)]
pub(super) struct CannotListen {
    address: String,
    cause: io::Error,
}

impl CannotListen {
    /// Puts the address into the system's error.
    pub(super) fn on(address: &impl fmt::Display) -> impl FnOnce(io::Error) -> io::Error {
        // With the kind of the cause: callers decide by that, whatever names the address.
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

/// Prints the address of a Unix socket: its path, where it has one.
pub(super) struct UnixName<'a>(pub(super) &'a SocketAddr);

impl fmt::Display for UnixName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_pathname() {
            Some(path) => path.display().fmt(f),
            None => write!(f, "{:?}", self.0),
        }
    }
}
