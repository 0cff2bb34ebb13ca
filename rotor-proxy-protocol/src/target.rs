//! `ProxyTarget`: where to connect to, and what to say first.

use std::fmt;

use crate::header::ProxyHeader;

/// Where a [`ProxyStream`](crate::ProxyStream) connects to, and the header that it sends there
/// first.
///
/// It is a [`Destination`](rotor_stream::Destination), so [`Connect`](rotor_stream::Connect) takes
/// it, around an address or the name of a host. It has an order, so pools of connections do. Two
/// are equal where address and header are: what was opened for one client is never used for
/// another.
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; pub use rotor_proxy_protocol as proxy_protocol; }
/// use rotor::proxy_protocol::{ProxyHeader, ProxyTarget, Version};
/// use rotor::stream::{Host, Transport};
///
/// /// Tells the server who its client is, as far as there are addresses.
/// fn target(server: Host, client: &Transport<'_>) -> ProxyTarget<Host> {
///     let header = match (client.peer_address(), client.local_address()) {
///         (Some(source), Some(destination)) => ProxyHeader::proxied(Version::V2, source, destination),
///         _ => ProxyHeader::unknown(Version::V2),
///     };
///     ProxyTarget::new(server, header)
/// }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "send-proxy")]
pub struct ProxyTarget<A> {
    address: A,
    header: ProxyHeader,
}

impl<A> ProxyTarget<A> {
    /// Connects to an address, and sends this header there.
    pub fn new(address: A, header: ProxyHeader) -> ProxyTarget<A> {
        ProxyTarget { address, header }
    }

    /// Returns where it connects to.
    pub fn address(&self) -> &A {
        &self.address
    }

    /// Returns what it says first.
    pub fn header(&self) -> &ProxyHeader {
        &self.header
    }
}

impl<A: fmt::Debug> fmt::Debug for ProxyTarget<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyTarget")
            .field("address", &self.address)
            .field("header", &self.header)
            .finish()
    }
}
