//! The beginning of what a connection of HTTP/1.1 goes on as. Of servers and of clients.

use rotor_core::Scope;
use rotor_stream::{Intent, Protocol, Transport};

/// Makes the protocol, within its own limits.
#[cold]
pub(crate) fn begin<P: Protocol>(
    seed: P::Seed,
    transport: &mut Transport<'_>,
    scope: &mut Scope<'_, P::Context>,
) -> Intent<P> {
    transport.set_config(P::config(&seed));
    // `keep` of the new protocol must not mean what HTTP waited for.
    let intent = P::create(seed, transport, scope).as_first();
    match scope.draining_until() {
        // It was not there when the others were told.
        Some(until) => intent.and_then(|protocol| protocol.draining(until, transport, scope)),
        None => intent,
    }
}
