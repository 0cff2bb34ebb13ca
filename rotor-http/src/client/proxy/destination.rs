//! Destinations of tunnels by name: the proxy's name is looked up, the server's is not.

use rotor_core::Scope;
use rotor_core::net::StreamSocket;
use rotor_stream::{Destination, Resolution};

use super::stream::TunnelStream;
use super::target::TunnelTarget;

impl<S, A, C> Destination<TunnelStream<S>, C> for TunnelTarget<A>
where
    S: StreamSocket<Target: 'static>,
    A: Destination<S, C>,
{
    fn resolve(&self, scope: &Scope<'_, C>) -> Resolution<TunnelTarget<S::Target>> {
        let request = self.request().clone();
        let proxy = self.proxy().resolve(scope);
        proxy.map(move |proxy| TunnelTarget::from_request(proxy, request.clone()))
    }
}
