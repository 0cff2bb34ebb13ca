//! `HappyEyeballs`: connecting to a host with several addresses of two families. They are tried one
//! after the other and in parallel, and the first that connects is used (RFC 8305).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rotor_core::net::StreamSocket;
use rotor_core::{Future, Interest, Outcome, Scope, Time};

use crate::accept::is_out_of_descriptors;
use crate::destination::{Resolution, ToTarget};
use crate::error::Fatal;
use crate::resolve::{ResolveError, ResolveResult};

/// The delay between the beginnings of two attempts (the Connection Attempt Delay of RFC 8305 §5:
/// 250 ms recommended).
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The maximum number of addresses of a host that are tried. Whatever a resolver answers, a
/// connection costs no more sockets than this.
pub const ATTEMPTS_MAX: usize = 16;

/// An attempt to connect. It is not a machine; a machine holds it until it has a socket.
///
/// ```text
///   Resolving ──addresses──▶ Racing ──first that connects──▶ Done(the socket)
///      └── none, lost           └── all failed ──▶ Fail
/// ```
pub(crate) enum HappyEyeballs<S: StreamSocket> {
    Resolving { addresses: Future<ResolveResult>, port: u16, target: ToTarget<S::Target> },
    Racing(Race<S>),
}

/// The current attempts, and the remaining targets.
pub(crate) struct Race<S: StreamSocket> {
    sockets: Vec<S>,
    /// The targets of later attempts, the next one last.
    left: Vec<S::Target>,
    /// When the next attempt begins, if none succeeds before.
    next: Time,
    /// Why the last attempt failed that an address has answered; if none has, why the first could
    /// not begin.
    failure: Option<io::Error>,
}

/// The result of a step.
pub(crate) enum Progress<S: StreamSocket> {
    /// It waits, and must be polled again at this time at the latest.
    Wait(HappyEyeballs<S>, Time),
    /// The socket, registered and connected.
    Done(S),
    Fail(Fatal),
}

impl<S: StreamSocket> HappyEyeballs<S> {
    pub(crate) fn begin<C>(resolution: Resolution<S::Target>, scope: &Scope<'_, C>) -> Progress<S> {
        match resolution {
            Resolution::Known(target) => Race::begin(vec![target], scope),
            Resolution::Failed(error) => Progress::Fail(Fatal::Resolve(error)),
            Resolution::Asked { addresses, port, target } => {
                HappyEyeballs::Resolving { addresses, port, target }.poll(scope)
            }
        }
    }

    /// Polls everything. Call it after an event or a wake-up, and at the time of the last result.
    pub(crate) fn poll<C>(self, scope: &Scope<'_, C>) -> Progress<S> {
        match self {
            HappyEyeballs::Racing(race) => race.poll(scope),
            HappyEyeballs::Resolving { addresses, port, target } => match addresses.take() {
                Outcome::Pending(addresses) => Progress::Wait(
                    HappyEyeballs::Resolving { addresses, port, target },
                    // The answer wakes the machine; `connect_timeout` limits how long it may take.
                    Time::NEVER,
                ),
                Outcome::Value(Ok(addresses)) => {
                    let order = interleave(&addresses);
                    // The next target is popped from the end.
                    let targets =
                        order.into_iter().rev().map(|ip| target.convert(SocketAddr::new(ip, port)));
                    Race::begin(targets.collect(), scope)
                }
                Outcome::Value(Err(error)) => Progress::Fail(Fatal::Resolve(error)),
                Outcome::Lost(_) => Progress::Fail(Fatal::Resolve(ResolveError::Gone)),
            },
        }
    }
}

impl<S: StreamSocket> Race<S> {
    fn begin<C>(left: Vec<S::Target>, scope: &Scope<'_, C>) -> Progress<S> {
        let race = Race { sockets: Vec::new(), left, next: scope.now(), failure: None };
        race.start_due(scope)
    }

    /// Checks which attempts have connected and which have failed. An event does not show to which
    /// socket it belongs, and that socket may even be gone by now. So all sockets are checked,
    /// whatever the event says.
    fn poll<C>(mut self, scope: &Scope<'_, C>) -> Progress<S> {
        let mut index = 0;
        while let Some(socket) = self.sockets.get_mut(index) {
            match socket.has_connected() {
                // The others are closed: a second one would only cost the peer a connection.
                Ok(true) => return Progress::Done(self.sockets.swap_remove(index)),
                Ok(false) => index += 1,
                Err(error) => self.record_failure(index, error, scope),
            }
        }
        self.start_due(scope)
    }

    /// Handles a failed attempt. The next one begins at once (RFC 8305 §5): the delay only serves
    /// to give the earlier attempt a lead.
    fn record_failure<C>(&mut self, index: usize, error: io::Error, scope: &Scope<'_, C>) {
        drop(self.sockets.remove(index));
        self.failure = Some(error);
        self.next = scope.now();
    }

    fn start_due<C>(mut self, scope: &Scope<'_, C>) -> Progress<S> {
        while self.next <= scope.now() {
            let Some(target) = self.left.pop() else { break };
            match connect::<S, C>(&target, scope) {
                Ok(socket) => {
                    self.sockets.push(socket);
                    self.next = scope.now() + ATTEMPT_DELAY;
                }
                // An earlier attempt that ends gives its descriptor back, and then this address is
                // tried at once. Others would not fare better now.
                Err(error) if !self.sockets.is_empty() && is_out_of_descriptors(&error) => {
                    self.left.push(target);
                    self.next = scope.now() + ATTEMPT_DELAY;
                }
                // The queue of a Unix listener is full, and the system does not wait for room in it
                // (connect(2)), as it does for TCP.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.left.insert(0, target);
                    self.next = scope.now() + ATTEMPT_DELAY;
                }
                // It failed at once, without costing time, so the next one begins now. Only a refusal
                // comes from the address (a local one): other errors, such as that this computer
                // has no way to IPv6, say less than what another address has answered.
                Err(error) => {
                    if self.failure.is_none() || error.kind() == io::ErrorKind::ConnectionRefused {
                        self.failure = Some(error);
                    }
                }
            }
        }
        if self.sockets.is_empty() && self.left.is_empty() {
            let none =
                || io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no addresses");
            return Progress::Fail(Fatal::Connect(self.failure.unwrap_or_else(none)));
        }
        // If no target is left, there is nothing to do before an event.
        let next = if self.left.is_empty() { Time::NEVER } else { self.next };
        Progress::Wait(HappyEyeballs::Racing(self), next)
    }
}

fn connect<S: StreamSocket, C>(target: &S::Target, scope: &Scope<'_, C>) -> io::Result<S> {
    let mut socket = S::connect(target, scope)?;
    scope.register(&mut socket, Interest::Both)?;
    Ok(socket)
}

/// Alternates between the two families, beginning with IPv6, each in the resolver's order (RFC 8305
/// §4).
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
    fn address_families_alternate_and_ipv6_is_first() {
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
    fn a_host_with_many_addresses_is_limited_to_the_maximum_of_attempts() {
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
