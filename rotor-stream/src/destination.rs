//! `Destination`: where a connection leads; `Host`: a name and a port.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use rotor_core::net::{Either, StreamSocket};
use rotor_core::{Future, Scope, SendError};

use crate::resolve::{HasResolver, HostName, ResolveError, ResolveResult};

/// Where a connection leads: an address, or a name whose addresses are looked up first.
///
/// Addresses and paths are destinations of the sockets that connect to them. [`Host`] is one if the
/// context has a resolver. A wrapping socket with its own type of target implements this trait for
/// that type: with [`Resolution::Known`], or with the [`map`](Resolution::map) of what a
/// destination of the inner socket resolves to.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a destination of `{S}` in a loop with the context `{C}`",
    note = "an address is one for the sockets that connect to it: of a generic socket, say so with `S: StreamSocket<Target = SocketAddr>`",
    note = "a `Host` is one if the context has a resolver: implement `HasResolver` for it"
)]
pub trait Destination<S: StreamSocket, C>: 'static {
    /// Returns whether a connection to this destination may agree on this protocol in its
    /// handshake, like [`StreamSocket::may_agree_on`] for targets. Default: no.
    fn may_agree_on(&self, protocol: &[u8]) -> bool {
        let _ = protocol;
        false
    }

    /// Returns the same destination for connections that do not offer this protocol but another
    /// one, like [`StreamSocket::without`] for targets. Default: `None`.
    fn without(self, protocol: &[u8]) -> Option<Self>
    where
        Self: Sized,
    {
        let _ = protocol;
        None
    }

    /// Begins to resolve the destination. Called for each new attempt to connect, so a name is
    /// looked up anew each time.
    #[doc(alias = "find")]
    fn resolve(&self, scope: &Scope<'_, C>) -> Resolution<S::Target>;
}

/// What is known about the addresses of a destination.
#[derive(Debug)]
#[non_exhaustive]
#[doc(alias = "Way")]
pub enum Resolution<T> {
    /// The target, which is known without a resolver.
    Known(T),
    /// A resolver was asked.
    Asked {
        /// The future answer of the resolver, for the machine that asked.
        addresses: Future<ResolveResult>,
        /// The port to connect to.
        port: u16,
        /// Makes a target from an address.
        target: ToTarget<T>,
    },
    /// There is no address to connect to.
    #[doc(alias = "None")]
    Failed(ResolveError),
}

impl<T: 'static> Resolution<T> {
    /// Converts this into the resolution of a wrapping socket, by making its targets from the inner
    /// ones.
    pub fn map<U>(self, wrap: impl Fn(T) -> U + Send + 'static) -> Resolution<U> {
        match self {
            Resolution::Known(target) => Resolution::Known(wrap(target)),
            Resolution::Asked { addresses, port, target } => {
                let target = ToTarget::new(move |address| wrap(target.convert(address)));
                Resolution::Asked { addresses, port, target }
            }
            Resolution::Failed(error) => Resolution::Failed(error),
        }
    }
}

/// Makes targets from the addresses that a resolver finds.
pub struct ToTarget<T> {
    // A closure that captures nothing is boxed without an allocation.
    make: Box<dyn Fn(SocketAddr) -> T + Send>,
}

impl<T> ToTarget<T> {
    /// Wraps a function, which is called once for each address.
    pub fn new(make: impl Fn(SocketAddr) -> T + Send + 'static) -> ToTarget<T> {
        ToTarget { make: Box::new(make) }
    }

    pub(crate) fn convert(&self, address: SocketAddr) -> T {
        (self.make)(address)
    }
}

impl<T> fmt::Debug for ToTarget<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToTarget")
    }
}

/// A host, as a name and a port: a [`Destination`] for loops whose context [has a
/// resolver](HasResolver).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Host {
    /// The name, or an address as text.
    pub name: HostName,
    /// The port.
    pub port: u16,
}

impl Host {
    /// Makes the host with this name.
    pub fn new(name: impl Into<HostName>, port: u16) -> Host {
        Host { name: name.into(), port }
    }
}

/// A host whose name is an address as text, for destinations of which some have a name. The scope
/// id of a link-local IPv6 address is lost: only a `SocketAddr` leads there.
impl From<SocketAddr> for Host {
    fn from(address: SocketAddr) -> Host {
        Host::new(address.ip().to_string(), address.port())
    }
}

/// Writes the host like the authority of a URI (RFC 3986 §3.2): `db.example:5432`, `[::1]:5432`.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Host { name, port } = self;
        match name.contains(':') && !name.starts_with('[') {
            true => write!(f, "[{name}]:{port}"),
            false => write!(f, "{name}:{port}"),
        }
    }
}

impl<S: StreamSocket<Target = SocketAddr>, C> Destination<S, C> for SocketAddr {
    fn resolve(&self, _: &Scope<'_, C>) -> Resolution<SocketAddr> {
        Resolution::Known(*self)
    }
}

impl<S: StreamSocket<Target = PathBuf>, C> Destination<S, C> for PathBuf {
    fn resolve(&self, _: &Scope<'_, C>) -> Resolution<PathBuf> {
        Resolution::Known(self.clone())
    }
}

impl<S: StreamSocket, C: HasResolver> Destination<S, C> for Host
where
    S::Target: From<SocketAddr> + 'static,
{
    fn resolve(&self, scope: &Scope<'_, C>) -> Resolution<S::Target> {
        match scope.addresses().ask(self.name.clone(), scope) {
            Ok(addresses) => {
                let target = ToTarget::new(S::Target::from);
                Resolution::Asked { addresses, port: self.port, target }
            }
            Err(SendError::Full(_)) => Resolution::Failed(ResolveError::Busy),
            Err(SendError::Closed(_)) => Resolution::Failed(ResolveError::Gone),
        }
    }
}

/// A destination for either of two kinds of sockets, for example with and without TLS.
impl<A, B, D, E, C> Destination<Either<A, B>, C> for Either<D, E>
where
    A: StreamSocket<Target: 'static>,
    B: StreamSocket<Target: 'static>,
    D: Destination<A, C>,
    E: Destination<B, C>,
{
    fn may_agree_on(&self, protocol: &[u8]) -> bool {
        match self {
            Either::A(destination) => destination.may_agree_on(protocol),
            Either::B(destination) => destination.may_agree_on(protocol),
        }
    }

    fn without(self, protocol: &[u8]) -> Option<Self> {
        Some(match self {
            Either::A(destination) => Either::A(destination.without(protocol)?),
            Either::B(destination) => Either::B(destination.without(protocol)?),
        })
    }

    fn resolve(&self, scope: &Scope<'_, C>) -> Resolution<Either<A::Target, B::Target>> {
        match self {
            Either::A(destination) => destination.resolve(scope).map(Either::A),
            Either::B(destination) => destination.resolve(scope).map(Either::B),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_displayed_as_a_uri_authority() {
        for (name, expected) in [
            ("db.example", "db.example:80"),
            ("10.0.0.7", "10.0.0.7:80"),
            ("::1", "[::1]:80"),
            ("[::1]", "[::1]:80"),
        ] {
            assert_eq!(Host::new(name, 80).to_string(), expected);
        }
    }
}
