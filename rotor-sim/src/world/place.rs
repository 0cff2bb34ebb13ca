//! Where a socket is, among all hosts.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a socket is, among all hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// An address.
    Inet(SocketAddr),
    /// A path of a host.
    Path(u32, PathBuf),
}
