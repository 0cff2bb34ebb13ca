//! `Special`: names with a fixed meaning.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use crate::error::LookupError;
use crate::name::Name;
use crate::record::{Data, Kind, Question, RecordSet};
use crate::result::LookupResult;

/// Names with a fixed meaning, for which no server is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Special {
    /// The name means this machine, whatever servers say, because it is used to reach services that
    /// trust only this machine (RFC 6761 §6.3).
    ThisMachine,
    /// The name does not exist, and nobody needs to learn that it was looked up (RFC 6761 §6.4,
    /// RFC 7686 §2).
    Nowhere,
}

impl Special {
    pub(crate) fn of(name: &Name) -> Option<Special> {
        if is_in(name, "localhost") {
            return Some(Special::ThisMachine);
        }
        (is_in(name, "invalid") || is_in(name, "onion")).then_some(Special::Nowhere)
    }

    /// Returns the reply to a question for `asked` that led to such a name.
    pub(crate) fn reply(self, asked: &Name, end: Question, ttl: Duration) -> LookupResult {
        let data = match (self, end.kind) {
            (Special::Nowhere, _) => return Err(LookupError::NoSuchName(asked.clone())),
            (Special::ThisMachine, Kind::A) => Data::A(Ipv4Addr::LOCALHOST),
            (Special::ThisMachine, Kind::Aaaa) => Data::Aaaa(Ipv6Addr::LOCALHOST),
            (Special::ThisMachine, _) => return Err(LookupError::NoRecords(asked.clone())),
        };
        Ok(Arc::new(RecordSet { name: end.name, data: vec![data], ttl }))
    }
}

/// Returns whether a name is this domain, or ends in it.
fn is_in(name: &Name, domain: &str) -> bool {
    let front = name.as_str().strip_suffix(domain);
    front.is_some_and(|front| front.is_empty() || front.ends_with('.'))
}
