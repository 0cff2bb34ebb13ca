//! `NoUpgrade`: the protocol of servers and clients that offer no upgrade.

use std::fmt;
use std::marker::PhantomData;

use rotor_core::{Infallible, Scope};
use rotor_stream::{Intent, Matched, Protocol, Transport};

/// The upgrade of a [`Server`](crate::server::Server) or a [`Client`](crate::client::Client) that
/// offers none. No value of this type can be made.
pub struct NoUpgrade<C> {
    never: Infallible,
    context: PhantomData<fn(C)>,
}

/// Returns whether a value of this protocol can exist. [`NoUpgrade`] is made from a seed that
/// cannot exist, and an `Option` of such a seed takes no space.
#[cfg(feature = "http2")]
pub(crate) const fn is_possible<P: Protocol>() -> bool {
    size_of::<Option<P::Seed>>() > 0
}

#[cfg(feature = "http2")]
const _: () = assert!(!is_possible::<NoUpgrade<()>>(), "who has no upgrade would offer one");

impl<C> Protocol for NoUpgrade<C> {
    type Context = C;
    type Seed = Infallible;

    fn create(seed: Infallible, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        match seed {}
    }

    fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        match self.never {}
    }
}

impl<C> fmt::Debug for NoUpgrade<C> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}
