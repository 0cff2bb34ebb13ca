//! `Accepted`: machines that a listener can make from its connections.

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
    /// The value that all machines of one listener share; each machine is made with a clone of it.
    /// If `clone` panics, only this one connection is lost, as when `accepted` panics.
    type Shared: Clone;

    /// Makes the machine, which already has its slot.
    ///
    /// `peer` is the address from which the connection comes, if it has one. An answer of `done` or
    /// `error` closes the connection and is logged; the listener goes on.
    fn accepted(
        socket: S,
        peer: Option<SocketAddr>,
        shared: Self::Shared,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self>;
}
