//! `Accepted`: what a listener can make a machine of its connections from.

use std::net::SocketAddr;

use crate::machine::Machine;
use crate::response::Response;
use crate::scope::Scope;

/// A machine that can be made from an accepted socket.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from an accepted `{S}`",
    label = "an `Accept` makes machines of this type",
    note = "`Stream<P, S>` can, if the seed of its protocol is `Clone`: a listener for the protocol `P` is \
            `Accept<Stream<P, {S}>, _>`"
)]
pub trait Accepted<S>: Machine {
    /// What all machines of one listener are made with; each gets a clone. Should `clone` panic,
    /// that costs this one connection, as a panic of `accepted` does.
    type Shared: Clone;

    /// Makes the machine, in its own slot already.
    ///
    /// `peer` is where the connection comes from, where that has an address. An answer of `done` or
    /// `error` closes the connection and is logged; the listener goes on.
    fn accepted(
        socket: S,
        peer: Option<SocketAddr>,
        shared: Self::Shared,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self>;
}
