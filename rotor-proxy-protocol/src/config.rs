//! `ProxyProtocolConfig`: whom to believe, and every limit.

use std::net::IpAddr;
use std::sync::Arc;

use rotor_stream::PeerConnections;

use crate::network::Network;
use crate::version::Version;

/// Whom to believe what they say of their connections, and every limit, each with its unit, default
/// and reason.
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

/// What becomes of a connection that comes from nowhere that is trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Untrusted {
    /// It is closed before a byte of it was read.
    Refuse,
    /// It is served as what it is, without a header: for a port that balancers and others use. A
    /// header that it sends all the same is taken for the first bytes of the protocol.
    Direct,
}

/// Which headers are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Versions {
    /// Of either version.
    Both,
    /// Of this one.
    Only(Version),
}

impl ProxyProtocolConfig {
    /// Believes what comes from these networks, and nobody else. Whoever can connect from there can
    /// say of any address that it is its own: so only where the balancers are, and never all
    /// addresses.
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

    /// Whether to believe what has no address: what comes by a Unix socket. Default: no. Who may
    /// connect to one is said by the modes of its path.
    pub fn trusts_unix(mut self, yes: bool) -> ProxyProtocolConfig {
        self.trusts_unix = yes;
        self
    }

    /// What becomes of others. Default: they are refused.
    pub fn untrusted(mut self, untrusted: Untrusted) -> ProxyProtocolConfig {
        self.untrusted = untrusted;
        self
    }

    /// Which versions are wanted. Default: both.
    pub fn versions(mut self, versions: Versions) -> ProxyProtocolConfig {
        self.versions = versions;
        self
    }

    /// The longest header, in bytes; at least 16. Default 1,024: addresses, the name that was asked
    /// for, an id, and what a balancer tells of a client's certificate have room in it. One of
    /// version 1 has 107 at most in any case.
    pub fn header_bytes_max(mut self, bytes: usize) -> ProxyProtocolConfig {
        self.header_bytes_max = bytes;
        self
    }

    /// How many connections a peer may have: whom a header names, or who comes without one
    /// ([`Untrusted::Direct`]). A connection whose header names nobody, the balancer's own say, is
    /// not counted. Default: any number.
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

    pub(crate) fn wants(&self, version: Version) -> bool {
        match self.versions {
            Versions::Both => true,
            Versions::Only(wanted) => wanted == version,
        }
    }
}
