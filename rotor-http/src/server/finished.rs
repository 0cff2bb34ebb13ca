//! `Finished`: what the log is told of a request.

use std::net::SocketAddr;
use std::time::Duration;

use super::log_line::Fields;
use crate::semantics::status::Status;
use crate::semantics::version::Version;

/// A request whose response is complete, or was cut short: what an access log writes down.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished<'a> {
    /// Where the request came from.
    pub peer: Option<SocketAddr>,
    /// The method, as it was sent; empty for a request that could not be read.
    pub method: &'a str,
    /// The target, as it was sent; empty for a request that could not be read. Attackers choose it:
    /// escape it.
    pub target: &'a str,
    /// The version that the peer speaks; none for a request that could not be read.
    pub version: Option<Version>,
    /// The status that was sent; none if the handler gave no response and none could be given any
    /// more.
    pub status: Option<Status>,
    /// Octets of the response, head and body, as they were handed to the socket or wait for it.
    pub bytes: u64,
    /// From the head of the request to the end of its response, by loop time.
    pub time: Duration,
    /// Wall-clock time, in seconds since 1970.
    pub unix_seconds: i64,
    pub(super) fields: &'a Fields,
}

impl Finished<'_> {
    /// Returns a field of the request, if it had it and is among those that the log
    /// [asks for](super::ServerConfig::log_fields). Attackers choose it: escape it.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(name)
    }
}
