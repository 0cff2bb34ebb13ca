//! `Dns`: the handle of a resolver.

use std::sync::Arc;

use rotor_core::Service;
use rotor_stream::{AddressService, HasResolver};

use crate::counters::DnsCounters;
use crate::record::Question;
use crate::result::LookupResult;

/// The handle of a [`Resolver`](crate::Resolver), through which it is asked. Cheap to clone; keep
/// it in the context.
#[derive(Clone, Debug)]
pub struct Dns {
    pub(crate) records: Service<Question, LookupResult>,
    pub(crate) addresses: AddressService,
    pub(crate) counters: Arc<DnsCounters>,
}

impl Dns {
    /// Asks for the records of one kind of exactly one name: no search list, no hosts file. Of
    /// `localhost`, `invalid` and `onion`, and names that end in them, no server is asked, here
    /// either: see [`ResolverConfig::hosts`](crate::ResolverConfig::hosts).
    pub fn records(&self) -> &Service<Question, LookupResult> {
        &self.records
    }

    /// Returns what the resolver counts, for a page of metrics: `RotorCollector::counters` of
    /// `rotor-metrics` takes it.
    pub fn counters(&self) -> &Arc<DnsCounters> {
        &self.counters
    }
}

impl HasResolver for Dns {
    /// Asks for the addresses of a host, as programs do: first an address as text, then the hosts
    /// file, then the search list. A text with a colon that is neither, for its port or zone, is
    /// refused at once ([`NameError::Colon`](crate::NameError::Colon),
    /// [`Zone`](crate::NameError::Zone)).
    fn addresses(&self) -> &AddressService {
        &self.addresses
    }
}
