//! `DnsCounters`: the counters of a resolver.

use std::error::Error;
use std::sync::atomic::AtomicU64;

use rotor_stream::ResolveResult;

use crate::error::LookupError;
use crate::result::LookupResult;

rotor_core::__rotor_counters! {
    /// The counters of a resolver since it was made, from [`Dns::counters`](crate::Dns::counters).
    ///
    /// There are three levels. A **lookup** counts in one of the first six counters when it ends. A
    /// **question** of a lookup is `cached`, `shared` with a lookup that has asked it already, or
    /// `asked`, unless nobody waits for it any more when its turn comes. A **try** is a question to
    /// one server; it leads to an answer, or is `silent`, one of `server_faults`, or `unreachable`,
    /// unless it ends early because nobody waits for it any more.
    ///
    /// The page of `rotor-inspect` shows how many lookups and queries are in progress.
    struct DnsCounters {
        /// Lookups that found addresses, or records.
        found,
        /// Lookups of names that do not exist, or have no records of that kind.
        #[doc(alias = "NXDOMAIN")]
        not_found,
        /// Lookups of a text that is not the name of a host.
        invalid_names,
        /// Lookups that failed: the servers failed, no server was configured, or this machine had
        /// no socket or slot for them.
        #[doc(alias = "SERVFAIL")]
        failed,
        /// Lookups that took too long, or to which no server answered.
        timed_out,
        /// Lookups that were cancelled by their callers.
        given_up,
        /// Questions whose reply was in the cache, including failures of servers.
        #[doc(alias = "cache hit")]
        cached,
        /// Questions for which other lookups were waiting already.
        shared,
        /// Questions that servers were asked, each counted once however many tries it took.
        #[doc(alias = "cache miss")]
        asked,
        /// Tries: questions to one server each.
        tries,
        /// Tries that continued over TCP: the answer was too long for a datagram, forged answers
        /// arrived, the server changed letters, or `use-vc` was set.
        tries_over_tcp,
        /// Tries that were repeated without EDNS because the server does not support it.
        tries_without_edns,
        /// Tries that a server did not answer in time.
        silent,
        /// Tries that failed by a fault of the server ([`ServerFault`](crate::ServerFault)).
        server_faults,
        /// Tries for which there was no way to the server.
        unreachable,
        /// Datagrams that are no answer to the query: from strangers, forged, or late.
        #[doc(alias = "cache poisoning")]
        strays,
    }
}

impl DnsCounters {
    /// Returns the counter for a lookup of records with this result.
    pub(crate) fn for_records(&self, result: &LookupResult) -> &AtomicU64 {
        result.as_ref().map_or_else(|error| self.for_error(error), |_| &self.found)
    }

    /// Returns the counter for a lookup of addresses with this result.
    pub(crate) fn for_addresses(&self, result: &ResolveResult) -> &AtomicU64 {
        let cause = match result {
            Ok(_) => return &self.found,
            Err(error) => error.source().and_then(|cause| cause.downcast_ref()),
        };
        cause.map_or(&self.failed, |error| self.for_error(error))
    }

    fn for_error(&self, error: &LookupError) -> &AtomicU64 {
        match error {
            LookupError::Timeout => &self.timed_out,
            LookupError::Name(_) => &self.invalid_names,
            error if error.is_negative() => &self.not_found,
            _ => &self.failed,
        }
    }

    /// Returns the counter for a try that failed with this error.
    pub(crate) fn for_failed_try(&self, error: &LookupError) -> &AtomicU64 {
        match error {
            LookupError::Timeout => &self.silent,
            LookupError::Server(..) => &self.server_faults,
            _ => &self.unreachable,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::Arc;

    use super::*;
    use crate::error::ServerFault;
    use crate::lookup::resolve_error;
    use crate::name::{Name, NameError};

    #[test]
    fn each_error_maps_to_a_lookup_counter_and_a_try_counter() {
        let name: Name = "example".parse().expect("a name");
        let server = ([192, 0, 2, 1], 53).into();
        let table = [
            (LookupError::Name(NameError::TooLong), "invalid_names", "unreachable"),
            (LookupError::NoSuchName(name.clone()), "not_found", "unreachable"),
            (LookupError::NoRecords(name), "not_found", "unreachable"),
            (LookupError::Server(server, ServerFault::Malformed), "failed", "server_faults"),
            (LookupError::Timeout, "timed_out", "silent"),
            (LookupError::Network(Arc::new(ErrorKind::AddrInUse.into())), "failed", "unreachable"),
            (LookupError::NoSlot, "failed", "unreachable"),
            (LookupError::NoServer, "failed", "unreachable"),
            (LookupError::Lost, "failed", "unreachable"),
        ];
        for (error, end, of_try) in table {
            let count = |counter: fn(&DnsCounters, &LookupError)| {
                let counters = DnsCounters::default();
                counter(&counters, &error);
                counters.iter().find(|(_, count)| *count > 0).map(|(name, _)| name)
            };
            let as_records = count(|counters, error| {
                DnsCounters::add(counters.for_records(&Err(error.clone())));
            });
            let as_addresses = count(|counters, error| {
                DnsCounters::add(counters.for_addresses(&Err(resolve_error(error.clone()))));
            });
            assert_eq!((as_records, as_addresses), (Some(end), Some(end)), "{error:?}");
            let as_try = count(|counters, error| DnsCounters::add(counters.for_failed_try(error)));
            assert_eq!(as_try, Some(of_try), "{error:?}");
        }
    }
}
