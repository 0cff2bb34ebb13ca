//! Destinations of a client's connections by name: those of the inner socket, with TLS around them.

use rotor_core::Scope;
use rotor_core::net::StreamSocket;
use rotor_stream::{Destination, Resolution};

use crate::client::TlsTarget;
use crate::stream::TlsStream;

impl<S, A, C> Destination<TlsStream<S>, C> for TlsTarget<A>
where
    S: StreamSocket<Target: 'static>,
    A: Destination<S, C>,
{
    fn may_agree_on(&self, protocol: &[u8]) -> bool {
        self.offers(protocol)
    }

    fn without(self, protocol: &[u8]) -> Option<Self> {
        TlsTarget::without(self, protocol)
    }

    fn resolve(&self, scope: &Scope<'_, C>) -> Resolution<TlsTarget<S::Target>> {
        let server = self.with_address(());
        self.address().resolve(scope).map(move |address| server.with_address(address))
    }
}
