//! `SpecialName`: names with a fixed meaning.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use crate::error::LookupError;
use crate::name::Name;
use crate::record::{Data, Kind, Question, RecordSet};
use crate::result::LookupResult;

/// Names with a fixed meaning, for which no server is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SpecialName {
    /// The name means this machine, whatever servers say, because it is used to reach services that
    /// trust only this machine (RFC 6761 §6.3).
    Localhost,
    /// The name does not exist, and nobody needs to learn that it was looked up (RFC 6761 §6.4,
    /// RFC 7686 §2).
    NonExistent,
}

impl SpecialName {
    pub(crate) fn classify(name: &Name) -> Option<SpecialName> {
        if is_in_domain(name, "localhost") {
            return Some(SpecialName::Localhost);
        }
        (is_in_domain(name, "invalid") || is_in_domain(name, "onion"))
            .then_some(SpecialName::NonExistent)
    }

    /// Returns the reply to a question for `asked` that led to such a name.
    pub(crate) fn reply(self, asked: &Name, end: Question, ttl: Duration) -> LookupResult {
        let data = match (self, end.kind) {
            (SpecialName::NonExistent, _) => return Err(LookupError::NoSuchName(asked.clone())),
            (SpecialName::Localhost, Kind::A) => Data::A(Ipv4Addr::LOCALHOST),
            (SpecialName::Localhost, Kind::Aaaa) => Data::Aaaa(Ipv6Addr::LOCALHOST),
            (SpecialName::Localhost, _) => return Err(LookupError::NoRecords(asked.clone())),
        };
        Ok(Arc::new(RecordSet { name: end.name, data: vec![data], ttl }))
    }
}

/// Returns whether a name is this domain, or ends in it.
fn is_in_domain(name: &Name, domain: &str) -> bool {
    let front = name.as_str().strip_suffix(domain);
    front.is_some_and(|front| front.is_empty() || front.ends_with('.'))
}
