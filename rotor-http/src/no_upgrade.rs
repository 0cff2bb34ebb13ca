//! The protocol of servers and clients that offer no upgrade.

use std::fmt;
use std::marker::PhantomData;

use rotor_core::{Infallible, Scope};
use rotor_stream::{Intent, Matched, Protocol, Transport};

/// Stands where a [`Server`](crate::server::Server) or a [`Client`](crate::client::Client) offers
/// no upgrade: no value of it can be made.
pub struct NoUpgrade<C> {
    never: Infallible,
    context: PhantomData<fn(C)>,
}

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
