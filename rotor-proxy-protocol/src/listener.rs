//! `ProxyListener`: a listener behind balancers.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use rotor_core::Scope;
use rotor_core::backend::Source;
use rotor_core::net::{ListenOptions, Listener, ListenerLayer};

use crate::proxy_protocol::ProxyProtocol;
use crate::stream::ProxyStream;

/// The address of a [`ProxyListener`], with the balancers in front of it; made by
/// [`ProxyProtocol::at`].
#[derive(Clone, Debug)]
pub struct ProxyAddress<A> {
    protocol: ProxyProtocol,
    address: A,
}

/// A listener behind balancers, around a listener of any kind.
///
/// Use `ProxyListener<TcpListener>` in the place of a `TcpListener`, with the address
/// [`behind.at(address)`](ProxyProtocol::at). With TLS, this listener is the inner one:
/// `TlsListener<ProxyListener<TcpListener>>`, at `tls.at(behind.at(address))`.
/// [`behind.over(listener)`](ProxyProtocol::over) wraps a listener that is open already.
///
/// [`AcceptConfig::per_peer`](rotor_stream::AcceptConfig::per_peer) counts by the address of the
/// connection itself, which is the balancer's; to count by client, use
/// [`ProxyProtocolConfig::per_peer`](crate::ProxyProtocolConfig::per_peer).
pub struct ProxyListener<L> {
    protocol: ProxyProtocol,
    listener: L,
}

impl ProxyProtocol {
    /// Returns the address to which a [`ProxyListener`] is bound.
    #[doc(alias = "bind")]
    pub fn at<A>(&self, address: A) -> ProxyAddress<A> {
        ProxyAddress { protocol: self.clone(), address }
    }

    /// Wraps a listener that is open already: one of several that share an address
    /// ([`TcpListeners`](rotor_core::net::TcpListeners)), or one that was passed to the process.
    pub fn over<L>(&self, listener: L) -> ProxyListener<L> {
        ProxyListener { protocol: self.clone(), listener }
    }
}

/// For code that opens the listeners itself, on any kind of loop, such as
/// `rotor::http::server::Serve::over`. With TLS, the pair is `(tls, behind)`.
impl ListenerLayer for ProxyProtocol {
    type Over<L: Listener> = ProxyListener<L>;

    fn over<L: Listener>(&self, listener: L) -> ProxyListener<L> {
        ProxyProtocol::over(self, listener)
    }
}

impl<A> ProxyAddress<A> {
    /// Returns the inner address.
    pub fn inner(&self) -> &A {
        &self.address
    }
}

impl<L> ProxyListener<L> {
    /// Returns the inner listener.
    pub fn inner(&self) -> &L {
        &self.listener
    }
}

impl<L: Source> Source for ProxyListener<L> {
    rotor_core::rotor_forward_source!(listener);
}

impl<L: Listener> Listener for ProxyListener<L> {
    type Address = ProxyAddress<L::Address>;
    type Socket = ProxyStream<L::Socket>;

    fn bind<C>(
        address: &ProxyAddress<L::Address>,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<ProxyListener<L>> {
        let listener = L::bind(&address.address, options, scope)?;
        Ok(address.protocol.over(listener))
    }

    fn accept(&mut self) -> io::Result<(ProxyStream<L::Socket>, Option<SocketAddr>)> {
        let (socket, from) = self.listener.accept()?;
        Ok((self.protocol.wrap(socket, from), from))
    }

    fn has_waiting(&self) -> bool {
        self.listener.has_waiting()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.listener.local_address()
    }
}

impl<L> fmt::Debug for ProxyListener<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyListener").finish_non_exhaustive()
    }
}
