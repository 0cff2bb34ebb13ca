//! `TlsListener`: a listener whose connections speak TLS.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use rotor_core::Scope;
use rotor_core::backend::Source;
use rotor_core::net::{ListenOptions, Listener, ListenerLayer};

use super::tls_server::TlsServer;
use crate::stream::TlsStream;

/// An address with a TLS server, for a [`TlsListener`]; [`TlsServer::at`] makes one.
#[derive(Clone, Debug)]
pub struct TlsAddress<A> {
    server: TlsServer,
    address: A,
}

/// A listener whose connections speak TLS, around a listener of any kind.
///
/// Use `TlsListener<TcpListener>` in place of a `TcpListener`, with the address
/// [`tls.at(address)`](TlsServer::at). If listeners wrap each other, their addresses are wrapped in
/// the same order: `tls.at(behind.at(address))` for `TlsListener<ProxyListener<TcpListener>>`.
/// [`tls.over(listener)`](TlsServer::over) wraps a listener that is open already.
pub struct TlsListener<L> {
    server: TlsServer,
    listener: L,
}

impl TlsServer {
    /// Returns this server with an address, to which a [`TlsListener`] can be bound.
    #[doc(alias = "bind")]
    pub fn at<A>(&self, address: A) -> TlsAddress<A> {
        TlsAddress { server: self.clone(), address }
    }

    /// Wraps a listener that is open already: one of several that share an address
    /// ([`TcpListeners`](rotor_core::net::TcpListeners)), or one that was passed to the process.
    pub fn over<L>(&self, listener: L) -> TlsListener<L> {
        TlsListener { server: self.clone(), listener }
    }
}

/// For code that opens the listeners itself, on any kind of loop, such as
/// `rotor::http::server::Serve::over`.
impl ListenerLayer for TlsServer {
    type Over<L: Listener> = TlsListener<L>;

    fn over<L: Listener>(&self, listener: L) -> TlsListener<L> {
        TlsServer::over(self, listener)
    }

    fn is_secure(&self) -> bool {
        true
    }

    /// Returns those of [`TlsServerConfig::alpn`](crate::TlsServerConfig::alpn).
    fn protocols(&self) -> Vec<Vec<u8>> {
        self.shared.protocols()
    }
}

impl<A> TlsAddress<A> {
    /// Returns the inner address.
    pub fn inner(&self) -> &A {
        &self.address
    }
}

impl<L> TlsListener<L> {
    /// Returns the inner listener.
    pub fn inner(&self) -> &L {
        &self.listener
    }
}

impl<L: Source> Source for TlsListener<L> {
    rotor_core::rotor_forward_source!(listener);
}

impl<L: Listener> Listener for TlsListener<L> {
    type Address = TlsAddress<L::Address>;
    type Socket = TlsStream<L::Socket>;

    fn bind<C>(
        address: &TlsAddress<L::Address>,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<TlsListener<L>> {
        let listener = L::bind(&address.address, options, scope)?;
        Ok(address.server.over(listener))
    }

    fn accept(&mut self) -> io::Result<(TlsStream<L::Socket>, Option<SocketAddr>)> {
        let (socket, from) = self.listener.accept()?;
        Ok((self.server.wrap(socket), from))
    }

    fn has_waiting(&self) -> bool {
        self.listener.has_waiting()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.listener.local_address()
    }
}

impl<L> fmt::Debug for TlsListener<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsListener").finish_non_exhaustive()
    }
}
