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
    /// Shared by all machines of one listener; each is made with a clone. If `clone` panics, only
    /// this one connection is lost, as with a panic of `accepted`.
    type Shared: Clone;

    /// Makes the machine, which has its own slot already.
    ///
    /// `peer` is the address that the connection comes from, if it has one. An answer of `done` or
    /// `error` closes the connection and is logged; the listener goes on.
    fn accepted(
        socket: S,
        peer: Option<SocketAddr>,
        shared: Self::Shared,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self>;
}
