//! The place of a socket, among all hosts.

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
