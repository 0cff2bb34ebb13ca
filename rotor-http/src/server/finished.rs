//! `Finished`: what the log is told about a request.

use std::net::SocketAddr;
use std::time::Duration;

use super::log_line::Fields;
use crate::semantics::status::Status;
use crate::semantics::version::Version;

/// A request whose response is complete or was cut off, as it is passed to the log.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished<'a> {
    /// The address that the request came from.
    pub peer: Option<SocketAddr>,
    /// The method, as it was sent; empty if the request could not be read.
    pub method: &'a str,
    /// The target, as it was sent; empty if the request could not be read. The peer chooses this
    /// text, so escape it. If the request was refused because of it, it may be long.
    pub target: &'a str,
    /// The version that the peer speaks; `None` if the request could not be read.
    pub version: Option<Version>,
    /// The status that was sent; `None` if the handler wrote no response and it was too late to
    /// send one.
    pub status: Option<Status>,
    /// Bytes of the response, head and body, that were written to the socket or wait for it. On
    /// HTTP/2 the head counts as it would be sent on HTTP/1.1.
    pub bytes: u64,
    /// The time from the end of the request's head to the end of its response, by loop time.
    pub time: Duration,
    /// Wall-clock time, in seconds since 1970.
    pub unix_seconds: i64,
    pub(super) fields: &'a Fields,
}

impl Finished<'_> {
    /// Returns a field of the request, if the request has it and it is one of the [log's
    /// fields](super::ServerConfig::log_fields). The peer chooses this text, so escape it.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(name)
    }
}
