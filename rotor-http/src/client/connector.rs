//! `Connector`: how a pool makes its connections.

use std::fmt;
use std::marker::PhantomData;

use rotor_core::net::StreamSocket;
use rotor_core::{Machine, Response, Scope};
use rotor_stream::{Connect, Destination, Host, Protocol, Stream};

/// How a pool connects: the type that identifies a server, and the machine that connects to it and
/// runs a protocol there.
///
/// [`ByAddress`] connects to addresses. [`ByName`] connects to host names, and therefore requires
/// more of the context `C`; this is why the context is a parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not connect for a pool whose context is `{C}`",
    note = "`ByAddress<S>` connects sockets of the kind `S` to addresses, `ByName<S>` to hosts where `{C}` has a resolver"
)]
pub trait Connector<C>: 'static {
    /// The type that identifies a server. Requests to equal origins share connections.
    type Origin: Clone + Ord + fmt::Debug;

    /// The type of the connections' machine. The machine calls [`Protocol::create`] when it is
    /// connected, or [`Protocol::not_connected`] if it cannot connect. It spawns no other machine.
    type Connection<P: Protocol<Context = C>>: Machine<Context = C>;

    /// Returns whether a connection to this origin may turn out to speak HTTP/2, because its
    /// handshake offers that. The pool then makes only one connection to a server about which
    /// nothing is known yet; all requests but the first wait for its result. The default returns
    /// false.
    fn may_multiplex(origin: &Self::Origin) -> bool {
        let _ = origin;
        false
    }

    /// Returns an origin under which the same server is reached over HTTP/1.1 alone, because the
    /// handshake offers nothing else. It is used for a request that is to switch to another
    /// protocol if the server's HTTP/2 connections do not support that (RFC 8441 §3), and for a
    /// request that the server answers over HTTP/1.1 only (HTTP_1_1_REQUIRED, RFC 9113 §7).
    ///
    /// Return the same origin each time, so that connections are shared. Limits per origin count it
    /// separately. The default returns `None`: then the first kind of request is made as if it had
    /// not asked for another protocol, and the second kind fails.
    fn without_http2(origin: &Self::Origin) -> Option<Self::Origin> {
        let _ = origin;
        None
    }

    /// Begins to connect. The response is an error if connecting could not even begin.
    fn connect<P: Protocol<Context = C>>(
        origin: &Self::Origin,
        seed: P::Seed,
        scope: &mut Scope<'_, C>,
    ) -> Response<Self::Connection<P>>;
}

/// Connects sockets of the kind `S` to addresses.
pub struct ByAddress<S> {
    socket: PhantomData<fn(S)>,
}

impl<C, S> Connector<C> for ByAddress<S>
where
    S: StreamSocket,
    S::Target: Clone + Ord + fmt::Debug,
{
    type Origin = S::Target;
    type Connection<P: Protocol<Context = C>> = Stream<P, S>;

    fn may_multiplex(origin: &S::Target) -> bool {
        S::may_agree_on(origin, b"h2")
    }

    fn without_http2(origin: &S::Target) -> Option<S::Target> {
        S::without(origin.clone(), b"h2")
    }

    fn connect<P: Protocol<Context = C>>(
        origin: &S::Target,
        seed: P::Seed,
        scope: &mut Scope<'_, C>,
    ) -> Response<Stream<P, S>> {
        Stream::connect(origin, seed, scope)
    }
}

/// Connects sockets of the kind `S` to destinations, which are usually host names. The context's
/// resolver looks up the names ([`HasResolver`](rotor_stream::HasResolver)), and the addresses are
/// tried in turn.
///
/// Requests for the same name share connections, whatever its addresses.
pub struct ByName<S, T = Host> {
    socket: PhantomData<fn(S, T)>,
}

impl<C, S, T> Connector<C> for ByName<S, T>
where
    S: StreamSocket,
    T: Destination<S, C> + Clone + Ord + fmt::Debug,
{
    type Origin = T;
    type Connection<P: Protocol<Context = C>> = Connect<P, S, T>;

    fn may_multiplex(origin: &T) -> bool {
        origin.may_agree_on(b"h2")
    }

    fn without_http2(origin: &T) -> Option<T> {
        origin.clone().without(b"h2")
    }

    fn connect<P: Protocol<Context = C>>(
        origin: &T,
        seed: P::Seed,
        scope: &mut Scope<'_, C>,
    ) -> Response<Connect<P, S, T>> {
        Connect::new(origin, seed, scope)
    }
}

impl<S, T> fmt::Debug for ByName<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByName")
    }
}

impl<S> fmt::Debug for ByAddress<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByAddress")
    }
}
