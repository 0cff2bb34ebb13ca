//! The start of the protocol to which a connection of HTTP/1.1 was upgraded, for servers and
//! clients.

use rotor_core::Scope;
use rotor_stream::{Intent, Protocol, Transport};

/// Creates the protocol, with its own limits. `is_draining` is set if only this connection is to
/// end, which the loop does not know.
#[cold]
pub(crate) fn begin<P: Protocol>(
    seed: P::Seed,
    is_draining: bool,
    transport: &mut Transport<'_>,
    scope: &mut Scope<'_, P::Context>,
) -> Intent<P> {
    transport.set_config(P::config(&seed));
    // `keep` of the new protocol must not mean what HTTP waited for.
    let intent = P::create(seed, transport, scope).as_first();
    let now = is_draining.then(|| scope.now());
    match scope.draining_until().or(now) {
        // The protocol did not exist yet when the others were told of the drain.
        Some(until) => intent.and_then(|protocol| protocol.draining(until, transport, scope)),
        None => intent,
    }
}
