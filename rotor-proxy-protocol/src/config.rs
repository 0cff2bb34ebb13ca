//! `ProxyProtocolConfig`: which networks are trusted, and every limit.

use std::net::IpAddr;
use std::sync::Arc;

use rotor_stream::PeerConnections;

use crate::network::Network;
use crate::version::Version;

/// Which networks are trusted to send headers, and every limit, each with its unit, default and
/// reason.
///
/// ```
/// # mod rotor { pub use rotor_proxy_protocol as proxy_protocol; }
/// use rotor::proxy_protocol::{ProxyProtocol, ProxyProtocolConfig};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = ProxyProtocolConfig::new(["10.1.0.0/16".parse()?, "::1".parse()?]);
/// let behind_the_balancer = ProxyProtocol::new(config);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ProxyProtocolConfig {
    trusted: Vec<Network>,
    pub(crate) trusts_unix: bool,
    pub(crate) untrusted: Untrusted,
    pub(crate) versions: Versions,
    pub(crate) header_bytes_max: usize,
    pub(crate) per_peer: Option<Arc<PeerConnections>>,
}

/// What happens to a connection that does not come from a trusted network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Untrusted {
    /// The connection is closed before any byte of it is read.
    Refuse,
    /// The connection is served without a header: for a port that is used by balancers and others.
    /// If it sends a header all the same, this is taken as the first bytes of the protocol.
    Direct,
}

/// Which versions of the header are accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Versions {
    /// Either version.
    Both,
    /// Only this version.
    Only(Version),
}

impl ProxyProtocolConfig {
    /// Creates a configuration that trusts headers from these networks, and from nowhere else.
    /// Whoever can connect from such a network can claim any address. So list only the networks of
    /// the balancers, and never all addresses.
    pub fn new(trusted: impl IntoIterator<Item = Network>) -> ProxyProtocolConfig {
        ProxyProtocolConfig {
            trusted: trusted.into_iter().collect(),
            trusts_unix: false,
            untrusted: Untrusted::Refuse,
            versions: Versions::Both,
            header_bytes_max: 1_024,
            per_peer: None,
        }
    }

    /// Sets whether to trust connections without an address, which come through a Unix socket.
    /// Default: no. The permissions of the socket's path determine who may connect to it.
    pub fn trusts_unix(mut self, yes: bool) -> ProxyProtocolConfig {
        self.trusts_unix = yes;
        self
    }

    /// Sets what happens to connections that are not trusted. Default: they are refused.
    pub fn untrusted(mut self, untrusted: Untrusted) -> ProxyProtocolConfig {
        self.untrusted = untrusted;
        self
    }

    /// Sets which versions of the header are accepted. Default: both.
    pub fn versions(mut self, versions: Versions) -> ProxyProtocolConfig {
        self.versions = versions;
        self
    }

    /// Sets the maximum length of a header, in bytes; at least 16. Default 1,024, which has room
    /// for addresses, the requested name, an id, and what a balancer says about a client's
    /// certificate. A header of version 1 has at most 107 bytes in any case.
    pub fn header_bytes_max(mut self, bytes: usize) -> ProxyProtocolConfig {
        self.header_bytes_max = bytes;
        self
    }

    /// Sets how many connections a peer may have. The peer is the source that the header names, or
    /// for a connection without a header ([`Untrusted::Direct`]) its own address. A connection
    /// whose header names no source, such as the balancer's own, is not counted. Default: no limit.
    #[doc(alias = "limit_conn")]
    pub fn per_peer(mut self, connections: Option<Arc<PeerConnections>>) -> ProxyProtocolConfig {
        self.per_peer = connections;
        self
    }

    pub(crate) fn trusts(&self, from: Option<IpAddr>) -> bool {
        match from {
            Some(address) => self.trusted.iter().any(|network| network.contains(address)),
            None => self.trusts_unix,
        }
    }

    pub(crate) fn accepts_version(&self, version: Version) -> bool {
        match self.versions {
            Versions::Both => true,
            Versions::Only(wanted) => wanted == version,
        }
    }
}
