//! `NonEdnsServers`: remembers for some time which servers do not support EDNS. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::Time;

/// How long it is remembered that a server does not support EDNS (RFC 6891 §6.2.2: a requestor "MAY
/// cache this knowledge for a brief time in order to avoid fallback delays in the future"). 15
/// minutes, as long as other resolvers remember what they know about a server: questions are seldom
/// asked twice, and a server that was replaced is soon asked with EDNS again.
const RETENTION: Duration = Duration::from_secs(15 * 60);

/// Servers that do not support EDNS, each with its expiry. No more than the resolver has, since
/// only those are noted.
#[derive(Debug, Default)]
pub(crate) struct NonEdnsServers(BTreeMap<SocketAddr, Time>);

impl NonEdnsServers {
    /// Notes that a server has refused a question with EDNS, and answered it without.
    pub(crate) fn insert(&mut self, server: SocketAddr, now: Time) {
        self.0.insert(server, now + RETENTION);
    }

    /// Returns the servers that are known at this time not to support EDNS.
    pub(crate) fn valid_at(&mut self, now: Time) -> BTreeSet<SocketAddr> {
        self.0.retain(|_, until| *until > now);
        self.0.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_expires_after_the_retention_time() {
        let server = |number: u8| SocketAddr::from(([192, 0, 2, number], 53));
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut servers = NonEdnsServers::default();
        servers.insert(server(1), at(0));
        servers.insert(server(2), at(10));
        for (now, expected) in [(0, 2), (899, 2), (900, 1), (909, 1), (910, 0)] {
            assert_eq!(servers.valid_at(at(now)).len(), expected, "{now} s");
        }
        assert!(servers.0.is_empty(), "it is forgotten");
        servers.insert(server(1), at(1_000));
        servers.insert(server(1), at(1_500));
        assert_eq!(servers.valid_at(at(2_399)), BTreeSet::from([server(1)]));
        assert!(servers.valid_at(at(2_400)).is_empty());
    }
}
