//! What a connection has to know of a head, gathered in one pass over its fields.

use super::authority::Authority;
use super::error::{RequestError, ResponseHeadError};
use super::framing::{self, Body, FramingFields, Message};
use super::head::{RequestHead, ResponseHead};
use super::method::Method;
use super::response::ReplyTo;
use super::status::Status;
use super::token_list;
use super::version::Version;

/// The terms of one request: where its body ends, what may follow it, what its sender waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestTerms<'a> {
    /// How the body is delimited.
    pub body: Body,
    /// Whether the peer leaves the connection open for another request (RFC 9112 §9.3).
    pub keep_alive: bool,
    /// Whether the peer waits for 100 before it sends the body (RFC 9110 §10.1.1). False in
    /// HTTP/1.0 and without a body.
    pub expects_continue: bool,
    /// Whether the peer offers to switch to a protocol that `Upgrade` names: HTTP/1.1, and
    /// `Connection` holds `upgrade` too (RFC 9110 §7.8).
    pub wants_upgrade: bool,
    /// The authority that the request is for: that of the target if it has one, else `Host`. Absent
    /// in HTTP/1.0 only.
    pub authority: Option<Authority<'a>>,
    version: Version,
    is_head: bool,
    is_connect: bool,
}

/// The options of `Connection` that change something.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    close: bool,
    keep_alive: bool,
    upgrade: bool,
}

impl Options {
    #[inline]
    fn add(&mut self, value: &[u8]) {
        for element in token_list::elements(value) {
            self.close |= element.eq_ignore_ascii_case(b"close");
            self.keep_alive |= element.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade |= element.eq_ignore_ascii_case(b"upgrade");
        }
    }

    /// RFC 9112 §9.3: `close` wins; else 1.1 persists, and 1.0 if it says `keep-alive`.
    fn persist(self, version: Version) -> bool {
        !self.close && (version >= Version::Http11 || self.keep_alive)
    }
}

impl<'a> RequestTerms<'a> {
    /// Walks the fields once.
    ///
    /// # Errors
    ///
    /// `Framing`, `Host*`, `SeveralHosts`, `Expectation`: the peer's fault; answer `status()`,
    /// close.
    #[inline]
    pub fn of(head: &RequestHead<'a>) -> Result<RequestTerms<'a>, RequestError> {
        let version = head.version();
        let mut framing = FramingFields::new();
        let mut options = Options::default();
        let mut host = None;
        let mut expects_continue = false;
        let mut has_upgrade = false;
        for (name, value) in head.fields().octets() {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                4 if is_host(name) && host.is_some() => return Err(RequestError::SeveralHosts),
                4 if is_host(name) => host = Some(value),
                6 if is("Expect") => expects_continue |= is_continue_expected(value)?,
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
        Ok(RequestTerms {
            body,
            keep_alive: options.persist(version),
            expects_continue: expects_continue && is_http11 && body != Body::Empty,
            wants_upgrade: has_upgrade && options.upgrade && is_http11,
            // RFC 9112 §3.2.2: "the origin server MUST ignore the received Host header field (if
            // any) and instead replace it with the host information of the request-target".
            authority: head.target().authority().or(host),
            version,
            is_head: head.method() == Method::Head,
            is_connect: head.method() == Method::Connect,
        })
    }

    /// What the writer of the answer has to know. The caller clears `keep_alive` first where it
    /// means to close.
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

/// Every request has a `Host`, so it is worth a comparison of one word: a letter and its other case
/// differ in one bit.
#[inline(always)]
fn is_host(name: &[u8]) -> bool {
    name.first_chunk()
        .is_some_and(|&name| u32::from_ne_bytes(name) | 0x2020_2020 == u32::from_ne_bytes(*b"host"))
}

/// RFC 9110 §10.1.1: 100-continue is the only expectation there is. An empty list expects nothing.
#[cold]
fn is_continue_expected(value: &[u8]) -> Result<bool, RequestError> {
    let mut is_expected = false;
    for element in token_list::elements(value).filter(|element| !element.is_empty()) {
        if !element.eq_ignore_ascii_case(b"100-continue") {
            return Err(RequestError::Expectation);
        }
        is_expected = true;
    }
    Ok(is_expected)
}

/// The terms of one response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseTerms {
    /// How the body is delimited.
    pub body: Body,
    /// Whether the connection may carry another request once the body has ended, as far as the peer
    /// says. False for a body until close, a tunnel, 101, and for 1xx and 204 that announce a body
    /// which they cannot have.
    pub keep_alive: bool,
    /// Whether the final answer is still to come: 1xx but 101.
    pub is_interim: bool,
}

impl ResponseTerms {
    /// Walks the fields once. `method` is that of the request; `offered_upgrade` whether it asked
    /// to switch protocols.
    ///
    /// # Errors
    ///
    /// `Framing` and `UnexpectedSwitch`, the peer's fault: close, never reuse.
    pub fn of(
        head: &ResponseHead<'_>,
        method: Method<'_>,
        offered_upgrade: bool,
    ) -> Result<ResponseTerms, ResponseHeadError> {
        let (version, status, method) = (head.version(), head.status(), method.normalized());
        let mut framing = FramingFields::new();
        let mut options = Options::default();
        for (name, value) in head.fields().octets() {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                10 if is("Connection") => options.add(value),
                14 if is("Content-Length") => framing.add_length(value),
                17 if is("Transfer-Encoding") => framing.add_coding(value),
                _ => {}
            }
        }
        let is_switch = status == Status::SWITCHING_PROTOCOLS;
        if is_switch && !offered_upgrade {
            return Err(ResponseHeadError::UnexpectedSwitch);
        }
        let body = framing::body_of(Message::Response { status, method }, version, &framing)?;
        let is_tunnel = method == Method::Connect && status.is_success();
        let has_impossible_body =
            framing.is_any() && (status.is_informational() || status == Status::NO_CONTENT);
        Ok(ResponseTerms {
            body,
            keep_alive: options.persist(version)
                && body != Body::UntilClose
                && !is_switch
                && !is_tunnel
                && !has_impossible_body,
            is_interim: status.is_informational() && !is_switch,
        })
    }
}
