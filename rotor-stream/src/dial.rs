//! Finding a way to a peer: `Destination` says where, `Dial` tries its addresses the way of RFC 8305.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use rotor_core::net::StreamSocket;
use rotor_core::{Future, Interest, Outcome, Scope, SendError, Time};

use crate::error::Fatal;
use crate::resolve::{HasResolver, HostName, ResolveError, ResolveResult};

/// How long one attempt has a lead over the next (the Connection Attempt Delay of RFC 8305 §5: 250
/// ms recommended).
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// How many addresses of a host are tried. Whatever a resolver answers, a connection costs no more
/// sockets than this.
pub const ATTEMPTS_MAX: usize = 16;

/// Where a connection goes to: an address, or a name whose addresses are found first.
///
/// Addresses and paths are destinations of the sockets that connect to such; [`Host`] is one where
/// the context has a resolver. A wrapping socket with a target of its own kind implements this for
/// that kind, with [`Way::Known`].
pub trait Destination<S: StreamSocket, C>: 'static {
    /// Begins to look for the way. Called for each new attempt to connect, so a name is asked for
    /// anew each time.
    fn find(&self, scope: &Scope<'_, C>) -> Way<S::Target>;
}

/// What is known of the way to a destination.
#[derive(Debug)]
#[non_exhaustive]
pub enum Way<T> {
    /// There is one, and it is known.
    Known(T),
    /// A resolver was asked.
    Asked {
        /// What it will answer, to the machine that asked.
        addresses: Future<ResolveResult>,
        /// The port to connect to.
        port: u16,
        /// Makes a target of an address.
        target: fn(SocketAddr) -> T,
    },
    /// There is none.
    None(ResolveError),
}

/// A host by its name, and a port: a [`Destination`] for loops whose context [has a
/// resolver](HasResolver).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Host {
    /// The name, or an address as text.
    pub name: HostName,
    /// The port.
    pub port: u16,
}

impl Host {
    /// The host of this name.
    pub fn new(name: impl Into<HostName>, port: u16) -> Host {
        Host { name: name.into(), port }
    }
}

impl<S: StreamSocket<Target = SocketAddr>, C> Destination<S, C> for SocketAddr {
    fn find(&self, _: &Scope<'_, C>) -> Way<SocketAddr> {
        Way::Known(*self)
    }
}

impl<S: StreamSocket<Target = PathBuf>, C> Destination<S, C> for PathBuf {
    fn find(&self, _: &Scope<'_, C>) -> Way<PathBuf> {
        Way::Known(self.clone())
    }
}

impl<S: StreamSocket, C: HasResolver> Destination<S, C> for Host
where
    S::Target: From<SocketAddr>,
{
    fn find(&self, scope: &Scope<'_, C>) -> Way<S::Target> {
        match scope.addresses().ask(self.name.clone(), scope) {
            Ok(addresses) => Way::Asked { addresses, port: self.port, target: S::Target::from },
            Err(SendError::Full(_)) => Way::None(ResolveError::Busy),
            Err(SendError::Closed(_)) => Way::None(ResolveError::Gone),
        }
    }
}

/// An attempt to connect somewhere; not a machine itself, but what one holds until it has its
/// socket.
///
/// ```text
///   Asking ──addresses──▶ Racing ──first that connects──▶ the socket
///      └── none, lost        └── all failed ──▶ Fatal
/// ```
pub(crate) enum Dial<S: StreamSocket> {
    Asking { addresses: Future<ResolveResult>, port: u16, target: fn(SocketAddr) -> S::Target },
    Racing(Race<S>),
}

/// The attempts under way, and those to come.
pub(crate) struct Race<S: StreamSocket> {
    sockets: Vec<S>,
    /// Those to come, the next one last.
    left: Vec<S::Target>,
    /// When the next one begins if nothing is decided before.
    next: Time,
    /// Why the latest of the failed ones did.
    failure: Option<io::Error>,
}

/// What dialling has come to.
pub(crate) enum Dialled<S: StreamSocket> {
    /// Goes on, and is to be called at this time at the latest.
    On(Dial<S>, Time),
    /// A socket that is registered and connected.
    Connected(S),
    Failed(Fatal),
}

impl<S: StreamSocket> Dial<S> {
    pub(crate) fn begin<C>(way: Way<S::Target>, scope: &Scope<'_, C>) -> Dialled<S> {
        match way {
            Way::Known(target) => Race::begin(vec![target], scope),
            Way::None(error) => Dialled::Failed(Fatal::Resolve(error)),
            Way::Asked { addresses, port, target } => {
                Dial::Asking { addresses, port, target }.go_on(scope)
            }
        }
    }

    /// Looks at everything: after an event, a wake-up, or the time that was asked for.
    pub(crate) fn go_on<C>(self, scope: &Scope<'_, C>) -> Dialled<S> {
        match self {
            Dial::Racing(race) => race.go_on(scope),
            Dial::Asking { addresses, port, target } => match addresses.take() {
                Outcome::Pending(addresses) => {
                    Dialled::On(Dial::Asking { addresses, port, target }, Time::NEVER)
                }
                Outcome::Value(Ok(addresses)) => {
                    let order = interleave(&addresses);
                    let targets =
                        order.into_iter().rev().map(|ip| target(SocketAddr::new(ip, port)));
                    Race::begin(targets.collect(), scope)
                }
                Outcome::Value(Err(error)) => Dialled::Failed(Fatal::Resolve(error)),
                Outcome::Lost(_) => Dialled::Failed(Fatal::Resolve(ResolveError::Gone)),
            },
        }
    }
}

impl<S: StreamSocket> Race<S> {
    fn begin<C>(left: Vec<S::Target>, scope: &Scope<'_, C>) -> Dialled<S> {
        let race = Race { sockets: Vec::new(), left, next: scope.now(), failure: None };
        race.start_due(scope)
    }

    /// Sees who has connected, who has failed. Which of the sockets an event was for is not known,
    /// and it may have been one that is gone by now; so all are asked, and what the event says
    /// decides nothing.
    fn go_on<C>(mut self, scope: &Scope<'_, C>) -> Dialled<S> {
        let mut index = 0;
        while let Some(socket) = self.sockets.get_mut(index) {
            match socket.has_connected() {
                Ok(true) => return Dialled::Connected(self.sockets.swap_remove(index)),
                Ok(false) => index += 1,
                Err(error) => self.fails(index, error, scope),
            }
        }
        self.start_due(scope)
    }

    /// The next one need not wait for one that has failed (RFC 8305 §5).
    fn fails<C>(&mut self, index: usize, error: io::Error, scope: &Scope<'_, C>) {
        drop(self.sockets.remove(index));
        self.failure = Some(error);
        self.next = scope.now();
    }

    fn start_due<C>(mut self, scope: &Scope<'_, C>) -> Dialled<S> {
        while self.next <= scope.now() {
            let Some(target) = self.left.pop() else { break };
            match connect::<S, C>(&target, scope) {
                Ok(socket) => {
                    self.sockets.push(socket);
                    self.next = scope.now() + ATTEMPT_DELAY;
                }
                Err(error) => self.failure = Some(error),
            }
        }
        if self.sockets.is_empty() && self.left.is_empty() {
            let none =
                || io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no addresses");
            return Dialled::Failed(Fatal::Connect(self.failure.unwrap_or_else(none)));
        }
        let next = if self.left.is_empty() { Time::NEVER } else { self.next };
        Dialled::On(Dial::Racing(self), next)
    }
}

fn connect<S: StreamSocket, C>(target: &S::Target, scope: &Scope<'_, C>) -> io::Result<S> {
    let mut socket = S::connect(target, scope)?;
    scope.register(&mut socket, Interest::Both)?;
    Ok(socket)
}

/// The two families by turns, beginning with IPv6, each in the resolver's order (RFC 8305 §4).
fn interleave(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let mut six = addresses.iter().filter(|address| address.is_ipv6());
    let mut four = addresses.iter().filter(|address| address.is_ipv4());
    let mut order = Vec::new();
    loop {
        let pair = (six.next(), four.next());
        if pair == (None, None) || order.len() >= ATTEMPTS_MAX {
            order.truncate(ATTEMPTS_MAX);
            return order;
        }
        order.extend(pair.0);
        order.extend(pair.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_and_six_begins() {
        let parse = |text: &str| -> Vec<IpAddr> {
            text.split_whitespace().map(|word| word.parse().expect("an address")).collect()
        };
        let cases = [
            ("", ""),
            ("1.0.0.1 1.0.0.2", "1.0.0.1 1.0.0.2"),
            ("1.0.0.1 1.0.0.2 1.0.0.3 ::1 ::2", "::1 1.0.0.1 ::2 1.0.0.2 1.0.0.3"),
            ("::1 ::2 ::3 1.0.0.1", "::1 1.0.0.1 ::2 ::3"),
        ];
        for (given, expected) in cases {
            assert_eq!(interleave(&parse(given)), parse(expected), "{given}");
        }
    }

    #[test]
    fn a_host_with_a_thousand_addresses_costs_no_more_than_the_limit() {
        let many = |count: u16| -> Vec<IpAddr> {
            (0..count).map(|i| IpAddr::from([0, 0, 0, 0, 0, 0, 0, i])).collect()
        };
        assert_eq!(interleave(&many(15)).len(), 15);
        assert_eq!(interleave(&many(16)).len(), 16);
        assert_eq!(interleave(&many(17)).len(), 16);
        let mut both = many(1000);
        both.extend((0..1000u16).map(|i| IpAddr::from([10, 0, (i >> 8) as u8, i as u8])));
        assert_eq!(interleave(&both).len(), 16);
    }
}
