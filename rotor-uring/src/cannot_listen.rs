//! The error of an address that was not opened: it names the address, which the system's error does
//! not.

use std::error::Error;
use std::fmt;
use std::io;

/// An address was not opened, and why: what an [`io::Error`] holds that has the kind of the
/// system's.
#[derive(Debug)]
pub(crate) struct CannotListen {
    address: String,
    cause: io::Error,
}

impl CannotListen {
    /// Puts the address into the system's error.
    pub(crate) fn on(address: &impl fmt::Display) -> impl FnOnce(io::Error) -> io::Error {
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
