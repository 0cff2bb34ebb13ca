//! `Dns`: the handle of a resolver.

use std::sync::Arc;

use rotor_core::Service;
use rotor_stream::{AddressService, HasResolver};

use crate::counters::DnsCounters;
use crate::record::Question;
use crate::result::LookupResult;

/// The handle of a [`Resolver`](crate::Resolver), through which lookups are requested. It is cheap
/// to clone; keep it in the context.
#[derive(Clone, Debug)]
pub struct Dns {
    pub(crate) records: Service<Question, LookupResult>,
    pub(crate) addresses: AddressService,
    pub(crate) counters: Arc<DnsCounters>,
}

impl Dns {
    /// Returns the service that looks up the records of one kind of exactly one name: without a
    /// search list and without the hosts file. No server is asked about `localhost`, `invalid` and
    /// `onion`, and names that end in them; see
    /// [`ResolverConfig::hosts`](crate::ResolverConfig::hosts).
    pub fn records(&self) -> &Service<Question, LookupResult> {
        &self.records
    }

    /// Returns the service that looks up the addresses of a host as other programs do: first it
    /// reads the text as an address, then it looks into the hosts file, then it tries the search
    /// list. A text with a colon that is neither an address nor in the hosts file, because of a
    /// port or a zone, is refused at once ([`NameError::Colon`](crate::NameError::Colon),
    /// [`Zone`](crate::NameError::Zone)).
    ///
    /// A context that has this handle returns the service from its
    /// [`HasResolver::addresses`](rotor_stream::HasResolver::addresses).
    pub fn addresses(&self) -> &AddressService {
        &self.addresses
    }

    /// Returns the resolver's counters. `RotorCollector::counters` of `rotor-metrics` takes them
    /// for a page of metrics.
    pub fn counters(&self) -> &Arc<DnsCounters> {
        &self.counters
    }
}

impl HasResolver for Dns {
    fn addresses(&self) -> &AddressService {
        &self.addresses
    }
}
