//! `Connector`: how a pool makes its connections.

use std::fmt;
use std::marker::PhantomData;

use rotor_core::net::StreamSocket;
use rotor_core::{Machine, Response, Scope};
use rotor_stream::{Connect, Destination, Host, Protocol, Stream};

/// How a pool connects: the type that names a server, and the machine that connects to it and runs
/// a protocol there.
///
/// [`ByAddress`] takes addresses. [`ByName`] takes names, and for these requires more of the
/// context `C`; that is why the context is a parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not connect for a pool whose context is `{C}`",
    note = "`ByAddress<S>` connects sockets of the kind `S` to addresses, `ByName<S>` to hosts where `{C}` has a resolver"
)]
pub trait Connector<C>: 'static {
    /// The type that names a server: connections to equal origins are shared.
    type Origin: Clone + Ord + fmt::Debug;

    /// The machine. It calls [`Protocol::create`] when it is connected, or
    /// [`Protocol::not_connected`] if it cannot connect. It spawns no other machine.
    type Connection<P: Protocol<Context = C>>: Machine<Context = C>;

    /// Returns whether a connection to this origin may turn out to speak HTTP/2, because its
    /// handshake offers that. The pool then makes only one connection to a server of which nothing
    /// is known yet; all requests but the first wait for its result. The default is no.
    fn may_multiplex(origin: &Self::Origin) -> bool {
        let _ = origin;
        false
    }

    /// Returns the origin under which the same server is reached over HTTP/1.1 alone, because the
    /// handshake offers nothing else. This is for a request that is to go on in another protocol,
    /// if the connections that speak HTTP/2 have none (RFC 8441 §3), and for one that the server
    /// answers over HTTP/1.1 only (HTTP_1_1_REQUIRED, RFC 9113 §7).
    ///
    /// Return the same origin each time, so that connections are shared; it counts by itself for
    /// limits per origin. The default is `None`: the first is made as if it had not asked for
    /// another protocol, the second fails.
    fn without_http2(origin: &Self::Origin) -> Option<Self::Origin> {
        let _ = origin;
        None
    }

    /// Begins to connect. The answer has an error if connecting could not even begin.
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

/// Connects sockets of the kind `S` to destinations: hosts by their names. The context's resolver
/// looks them up ([`HasResolver`](rotor_stream::HasResolver)), and their addresses are tried in
/// turn.
///
/// Requests for one name share connections, whatever addresses it has.
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
