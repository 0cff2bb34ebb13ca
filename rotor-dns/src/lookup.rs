//! The state of one lookup. Pure: without a scope.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor_core::{Notifier, Port, Time};
use rotor_stream::{ResolveError, ResolveResult};

use crate::error::LookupError;
use crate::name::Name;
use crate::record::{Data, Kind, Question};
use crate::result::LookupResult;

/// How long IPv4 addresses wait for IPv6 addresses (the Resolution Delay of RFC 8305 §3). In the
/// opposite order there is no such limit: the answer cannot be completed later, and with IPv6
/// addresses alone a machine that has no way to IPv6 could not connect.
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// How many addresses of each family are returned for a host at most; further ones are left out.
/// 256: no client tries as many, and a lookup holds them while it waits for the other family.
pub const ADDRESSES_MAX: usize = 256;

/// The result for one family: addresses, or why there are none.
type FamilyResult = Result<Box<[IpAddr]>, LookupError>;

/// Identifies a lookup; also the part number by which the resolver is woken for this lookup alone.
pub(crate) type LookupId = u32;

/// A lookup, and the port of its caller.
pub(crate) enum Lookup {
    Records { question: Question, port: Port<LookupResult>, deadline: Time },
    Addresses { search: Search, port: Port<ResolveResult>, deadline: Time },
}

/// The names to try for a host, and the results for the current one.
pub(crate) struct Search {
    /// The name that was asked for.
    asked: Name,
    /// Why it has no addresses, once that is known.
    asked_error: Option<LookupError>,
    /// The names that follow, the next one last.
    remaining: Vec<Name>,
    name: Name,
    ipv6: Option<FamilyResult>,
    ipv4: Option<FamilyResult>,
    /// Since when there are IPv4 addresses.
    ipv4_since: Option<Time>,
}

/// What to do next for a host.
pub(crate) enum SearchStep {
    /// Wait for replies.
    Wait,
    /// The current name is new: ask for both families.
    Ask,
    /// The lookup is done: the addresses, or why there are none.
    Done(ResolveResult),
}

impl Lookup {
    pub(crate) fn is_cancelled(&self) -> bool {
        match self {
            Lookup::Records { port, .. } => port.is_cancelled(),
            Lookup::Addresses { port, .. } => port.is_cancelled(),
        }
    }

    /// Has `notifier` woken when the lookup is cancelled.
    pub(crate) fn on_cancel(&self, notifier: Notifier) {
        match self {
            Lookup::Records { port, .. } => port.on_cancel(notifier),
            Lookup::Addresses { port, .. } => port.on_cancel(notifier),
        }
    }

    /// Returns when the lookup must be looked at.
    pub(crate) fn deadline(&self) -> Time {
        match self {
            Lookup::Records { deadline, .. } => *deadline,
            Lookup::Addresses { deadline, search, .. } => search.deadline().min(*deadline),
        }
    }
}

impl Search {
    /// Starts with the first of the candidates for `asked`; `None` if there are none.
    pub(crate) fn new(asked: Name, mut candidates: Vec<Name>) -> Option<Search> {
        // The next one is popped from the end.
        candidates.reverse();
        let name = candidates.pop()?;
        let (asked_error, remaining) = (None, candidates);
        let (ipv6, ipv4, ipv4_since) = (None, None, None);
        Some(Search { asked, asked_error, remaining, name, ipv6, ipv4, ipv4_since })
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    fn deadline(&self) -> Time {
        self.ipv4_since.map_or(Time::NEVER, |since| since + RESOLUTION_DELAY)
    }

    /// Records a reply; a reply for an earlier candidate is ignored.
    pub(crate) fn record_reply(&mut self, question: &Question, reply: &LookupResult, now: Time) {
        // Both families of a candidate are known before the next one is asked for, so there should
        // be no such reply. If there was one, its addresses would be those of another host.
        if question.name != self.name {
            return;
        }
        let place = if question.kind == Kind::Aaaa { &mut self.ipv6 } else { &mut self.ipv4 };
        *place = Some(match reply {
            Ok(answer) => Ok(addresses(&answer.data).take(ADDRESSES_MAX).collect()),
            Err(error) => Err(error.clone()),
        });
        // The delay runs only while there are addresses that can be used if it ends.
        if reply.is_ok() && question.kind == Kind::A {
            self.ipv4_since = Some(now);
        }
    }

    /// Returns the addresses that are known when the lookup's time ends, if there are any: those of
    /// one family that are still waiting for the other.
    pub(crate) fn known_addresses(&self) -> Option<Arc<[IpAddr]>> {
        let families = self.ipv6.iter().chain(&self.ipv4);
        let known: Arc<[IpAddr]> = families.flatten().flatten().copied().collect();
        (!known.is_empty()).then_some(known)
    }

    /// Returns the next step.
    pub(crate) fn next_step(&mut self, now: Time) -> SearchStep {
        let is_late = self.deadline() <= now;
        let (ipv6, ipv4) = match (&self.ipv6, &self.ipv4) {
            (Some(ipv6), Some(ipv4)) => (Some(ipv6), Some(ipv4)),
            // IPv4 is enough to connect: IPv6 has had its delay (RFC 8305 §3).
            (ipv6, ipv4) if is_late => (ipv6.as_ref(), ipv4.as_ref()),
            _ => return SearchStep::Wait,
        };
        let found: Arc<[IpAddr]> =
            ipv6.into_iter().chain(ipv4).flatten().flatten().copied().collect();
        if !found.is_empty() {
            return SearchStep::Done(Ok(found));
        }
        let errors = || ipv6.into_iter().chain(ipv4).filter_map(|family| family.as_ref().err());
        // A failure of a server does not show that the name is missing, and the next candidate may
        // be another host.
        if let Some(failed) = errors().find(|error| !error.is_negative()) {
            return SearchStep::Done(Err(resolve_error(failed.clone())));
        }
        let none =
            errors().next().cloned().unwrap_or_else(|| LookupError::NoRecords(self.name.clone()));
        if let Some(next) = self.remaining.pop() {
            if self.name == self.asked {
                self.asked_error = Some(none);
            }
            (self.name, self.ipv6, self.ipv4, self.ipv4_since) = (next, None, None, None);
            return SearchStep::Ask;
        }
        // The caller does not know the names that a search list makes of the host.
        SearchStep::Done(Err(resolve_error(self.asked_error.take().unwrap_or(none))))
    }
}

fn addresses(data: &[Data]) -> impl Iterator<Item = IpAddr> {
    data.iter().filter_map(|data| match data {
        Data::A(address) => Some(IpAddr::from(*address)),
        Data::Aaaa(address) => Some(IpAddr::from(*address)),
        _ => None,
    })
}

/// Converts the error for users of an [`AddressService`](rotor_stream::AddressService) of any kind.
pub(crate) fn resolve_error(error: LookupError) -> ResolveError {
    match error {
        LookupError::Name(_) => ResolveError::Name(Arc::new(error)),
        LookupError::NoSuchName(_) | LookupError::NoRecords(_) => {
            ResolveError::NotFound(Arc::new(error))
        }
        LookupError::NoSlot => ResolveError::NoRoom(Arc::new(error)),
        _ => ResolveError::Failed(Arc::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordSet;

    #[test]
    fn addresses_beyond_the_limit_of_a_family_are_dropped() {
        let name: Name = "a.example".parse().expect("a name");
        for (count, expected) in [
            (ADDRESSES_MAX - 1, ADDRESSES_MAX - 1),
            (ADDRESSES_MAX, ADDRESSES_MAX),
            (ADDRESSES_MAX + 1, ADDRESSES_MAX),
        ] {
            let mut search = Search::new(name.clone(), vec![name.clone()]).expect("a name to try");
            for (kind, data) in
                [(Kind::A, Data::A([192, 0, 2, 1].into())), (Kind::Aaaa, Data::Aaaa(1u128.into()))]
            {
                let answer =
                    RecordSet { name: name.clone(), data: vec![data; count], ttl: Duration::ZERO };
                search.record_reply(
                    &Question { name: name.clone(), kind },
                    &Ok(Arc::new(answer)),
                    Time::ZERO,
                );
            }
            let SearchStep::Done(Ok(found)) = search.next_step(Time::ZERO) else {
                panic!("both are there")
            };
            let ipv6 = found.iter().filter(|address| address.is_ipv6()).count();
            assert_eq!((ipv6, found.len()), (expected, 2 * expected), "{count} of each");
        }
    }
}
