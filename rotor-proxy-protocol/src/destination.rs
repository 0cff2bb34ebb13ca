//! Destinations by name: those of the inner socket, with a header sent first.

use rotor_core::Scope;
use rotor_core::net::StreamSocket;
use rotor_stream::{Destination, Resolution};

use crate::stream::ProxyStream;
use crate::target::ProxyTarget;

impl<S, A, C> Destination<ProxyStream<S>, C> for ProxyTarget<A>
where
    S: StreamSocket<Target: 'static>,
    A: Destination<S, C>,
{
    fn may_agree_on(&self, protocol: &[u8]) -> bool {
        self.address().may_agree_on(protocol)
    }

    fn without(self, protocol: &[u8]) -> Option<Self> {
        self.with_other_address(|address| address.without(protocol))
    }

    fn resolve(&self, scope: &Scope<'_, C>) -> Resolution<ProxyTarget<S::Target>> {
        let header = self.header().clone();
        self.address().resolve(scope).map(move |address| ProxyTarget::new(address, header.clone()))
    }
}
