//! `ProxyTarget`: an address to connect to, and the header to send first.

use std::fmt;

use crate::header::ProxyHeader;

/// Where a [`ProxyStream`](crate::ProxyStream) connects to, and the header that it sends there
/// first.
///
/// It is a [`Destination`](rotor_stream::Destination) around an address or the name of a host, so
/// [`Connect`](rotor_stream::Connect) accepts it. It is ordered, so it can be a key in pools of
/// connections. Two targets are equal if both address and header are: a connection that was opened
/// for one client is never used for another.
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; pub use rotor_proxy_protocol as proxy_protocol; }
/// use rotor::proxy_protocol::{ProxyHeader, ProxyTarget, Version};
/// use rotor::stream::{Host, Transport};
///
/// /// Tells the server the client's address, if the connection has addresses.
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
    /// Creates a target from an address and the header to send there.
    pub fn new(address: A, header: ProxyHeader) -> ProxyTarget<A> {
        ProxyTarget { address, header }
    }

    /// Returns the address to connect to.
    pub fn address(&self) -> &A {
        &self.address
    }

    /// Returns the header that is sent first.
    pub fn header(&self) -> &ProxyHeader {
        &self.header
    }

    /// Returns the same header with what `change` makes of the address, if it makes anything.
    pub(crate) fn with_other_address(
        self,
        change: impl FnOnce(A) -> Option<A>,
    ) -> Option<ProxyTarget<A>> {
        let ProxyTarget { address, header } = self;
        change(address).map(|address| ProxyTarget { address, header })
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
