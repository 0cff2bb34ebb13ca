//! `ServerFn`: a server that is a function.

use std::fmt;
use std::marker::PhantomData;

use rotor_core::{Infallible, Scope};

use super::handler::{Next, Server};
use super::head::Head;
use super::reply::Reply;
use super::response::Response;
use crate::no_upgrade::NoUpgrade;

/// A server made of one function, which gets the request's head and replies at once.
///
/// The function is the seed and is cloned for each request, so shared data that it captures must be
/// behind an `Rc` or `Arc`, or be in the context. If a request has a body, the body is read and
/// dropped; if it is long, or if the peer waits for `100 Continue`, the connection closes after the
/// response instead. Methods that [`Server::supports`] does not accept get 501 before the function
/// is called. If you need more (a body, a response in parts or at a later time, an upgrade),
/// implement [`Server`] for a type of your own.
///
/// There is never a value of this type: a request is over when the function returns.
///
/// # Examples
///
/// If [`serve`](super::serve) does not fit, use a function pointer, so that the type of the machine
/// can be named:
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
/// use rotor::net::TcpListener;
/// use rotor::{Config, Loop};
/// use rotor::http::Status;
/// use rotor::http::server::{
///     self, Head, HttpAccept, HttpSeed, Reply, Response, Scope, ServerConfig, ServerFn,
/// };
///
/// fn count(_: &Head<'_>, response: &mut Response<'_>, requests: &mut Scope<'_, u64>) -> Reply {
///     **requests += 1;
///     response.reply(Status::OK, "text/plain", format!("{}\n", **requests).as_bytes())
/// }
///
/// type Count = ServerFn<fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, u64>) -> Reply, u64>;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = Loop::<HttpAccept<Count, TcpListener>>::new(&Config::new())?;
/// let address = "127.0.0.1:0".parse()?;
/// creator.add_machine_with(|scope| {
///     server::bind(&address, HttpSeed::<Count>::new(count, ServerConfig::new()), scope)
/// })?;
/// # Ok(())
/// # }
/// ```
pub struct ServerFn<F, C> {
    never: Infallible,
    types: PhantomData<fn(F, C)>,
}

impl<F, C> Server for ServerFn<F, C>
where
    F: Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, C>) -> Reply + Clone,
{
    type Context = C;
    type Seed = F;
    type Upgrade = NoUpgrade<C>;

    // The function is all that this server does, so it should be inlined into its caller.
    #[inline(always)]
    fn headers_received(
        function: F,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        function(head, response, scope).into()
    }
}

impl<F, C> fmt::Debug for ServerFn<F, C> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}
