//! The place of a socket, among all hosts.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The place of a socket, among all hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// An address and a port.
    Inet(SocketAddr),
    /// A path on a host.
    Path(u32, PathBuf),
}

impl Place {
    /// Checks that there is a route to this place.
    ///
    /// # Errors
    ///
    /// `NetworkUnreachable` for addresses of IPv6: no host has one.
    pub(crate) fn check_route(&self) -> io::Result<()> {
        match self {
            Place::Inet(SocketAddr::V6(_)) => Err(io::ErrorKind::NetworkUnreachable.into()),
            _ => Ok(()),
        }
    }
}
