//! `RequestSemantics`: what a server has to know about a request's head, collected in one pass over
//! its fields.

use super::connection_options::ConnectionOptions;
use super::framing::{self, Body, FramingFields, Message};
use super::head::RequestHead;
use super::response::ReplyTo;
use crate::semantics::authority::Authority;
use crate::semantics::error::RequestError;
use crate::semantics::method::Method;
use crate::semantics::token_list;
use crate::semantics::version::Version;

/// What the fields of one request mean for its connection: where the body ends, whether another
/// request may follow, and what the peer waits for.
#[doc(alias = "RequestTerms")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestSemantics<'a> {
    /// How the body is delimited.
    pub body: Body,
    /// Whether the peer keeps the connection open for another request (RFC 9112 §9.3).
    pub keep_alive: bool,
    /// Whether the peer waits for 100 before it sends the body (RFC 9110 §10.1.1). False in
    /// HTTP/1.0 and without a body.
    pub expects_continue: bool,
    /// Whether the peer offers to switch to a protocol that `Upgrade` names: in HTTP/1.1, and only
    /// if `Connection` contains `upgrade` too (RFC 9110 §7.8).
    pub wants_upgrade: bool,
    /// The authority that the request is for: that of the target if it has one, else `Host`. Absent
    /// only in HTTP/1.0.
    pub authority: Option<Authority<'a>>,
    version: Version,
    is_head: bool,
    is_connect: bool,
}

impl<'a> RequestSemantics<'a> {
    /// Collects the semantics of a head, in one pass over its fields.
    ///
    /// # Errors
    ///
    /// `Framing`, `Host*`, `SeveralHosts`, `Expectation`: the peer's fault; respond with
    /// `status()`, then close.
    #[doc(alias = "of")]
    #[inline]
    pub fn from_head(head: &RequestHead<'a>) -> Result<RequestSemantics<'a>, RequestError> {
        let version = head.version();
        let mut framing = FramingFields::new();
        let mut options = ConnectionOptions::default();
        let mut host = None;
        let mut expects_continue = false;
        let mut has_upgrade = false;
        for (name, value) in head.fields().iter_bytes() {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            // The length is compared first: that rules out nearly every field.
            match name.len() {
                // RFC 9112 §3.2: a server must refuse with 400 more than one `Host` line, and
                // (below) an invalid one, and a request of HTTP/1.1 without one.
                4 if is_host(name) && host.is_some() => return Err(RequestError::SeveralHosts),
                4 if is_host(name) => host = Some(value),
                6 if is("Expect") => expects_continue |= is_continue_expected(value)?,
                // The handler reads the names of the protocols.
                7 if is("Upgrade") => has_upgrade = true,
                10 if is("Connection") => options.add(value),
                14 if is("Content-Length") => framing.add_length(value),
                17 if is("Transfer-Encoding") => framing.add_coding(value),
                _ => {}
            }
        }
        let host = match host {
            Some(value) => Some(Authority::parse(value).ok_or(RequestError::Host)?),
            None if version >= Version::Http11 => return Err(RequestError::HostMissing),
            None => None,
        };
        let body = framing::body_of(Message::Request, version, &framing)?;
        let is_http11 = version >= Version::Http11;
        Ok(RequestSemantics {
            body,
            keep_alive: options.is_persistent(version),
            // RFC 9110 §10.1.1: "A server that receives a 100-continue expectation in an HTTP/1.0
            // request MUST ignore that expectation."
            expects_continue: expects_continue && is_http11 && body != Body::Empty,
            // RFC 9110 §7.8: `Upgrade` must be ignored in HTTP/1.0 too; and a proxy that does not
            // know the field passes it on without naming it in `Connection`.
            wants_upgrade: has_upgrade && options.upgrade && is_http11,
            // RFC 9112 §3.2.2: "the origin server MUST ignore the received Host header field (if
            // any) and instead replace it with the host information of the request-target".
            authority: head.target().authority().or(host),
            version,
            is_head: head.method() == Method::Head,
            is_connect: head.method() == Method::Connect,
        })
    }

    /// Creates the semantics of a request of HTTP/2, from fields that have been read already.
    #[inline]
    pub(crate) fn framed(
        head: &RequestHead<'a>,
        authority: Authority<'a>,
        body: Body,
        expects_continue: bool,
        wants_upgrade: bool,
    ) -> RequestSemantics<'a> {
        RequestSemantics {
            body,
            keep_alive: true,
            expects_continue: expects_continue && body != Body::Empty,
            wants_upgrade,
            authority: Some(authority),
            version: head.version(),
            is_head: head.method() == Method::Head,
            is_connect: head.method() == Method::Connect,
        }
    }

    /// Returns what the writer of the response has to know. The caller clears `keep_alive` first if
    /// it wants to close.
    #[inline]
    pub fn reply_to(&self) -> ReplyTo {
        ReplyTo {
            version: self.version,
            is_head: self.is_head,
            is_connect: self.is_connect,
            wants_upgrade: self.wants_upgrade,
            keep_alive: self.keep_alive,
        }
    }
}

/// Returns whether the name is `Host`. Every request has this field, so it is compared as one word,
/// which works because the two cases of a letter differ in one bit.
#[inline(always)]
fn is_host(name: &[u8]) -> bool {
    name.first_chunk()
        .is_some_and(|&name| u32::from_ne_bytes(name) | 0x2020_2020 == u32::from_ne_bytes(*b"host"))
}

/// RFC 9110 §10.1.1: 100-continue is the only expectation. An empty list expects nothing.
#[cold]
pub(crate) fn is_continue_expected(value: &[u8]) -> Result<bool, RequestError> {
    let mut is_expected = false;
    for element in token_list::list_elements(value).filter(|element| !element.is_empty()) {
        if !element.eq_ignore_ascii_case(b"100-continue") {
            return Err(RequestError::Expectation);
        }
        is_expected = true;
    }
    Ok(is_expected)
}
