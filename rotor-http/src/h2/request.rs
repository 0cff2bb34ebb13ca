//! Makes the head of a request from the fields of a block (RFC 9113 §8.2, §8.3). A malformed one is
//! refused before any handler gets it, so that nothing of it reaches a server of HTTP/1.1 behind
//! this one.

use std::ops::Range;
use std::str;

use super::hpack::FieldList;
use super::priority::Priority;
use crate::h1::request_semantics::is_continue_expected;
use crate::limits::Limits;
use crate::semantics::authority::Authority;
use crate::semantics::fields::{Fields, Span};
use crate::semantics::grammar::{self, TARGET};
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::semantics::swar;
use crate::semantics::target::{Form, Target};

/// Why a request does not reach a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The request is malformed (RFC 9113 §8.1.1): RST_STREAM with PROTOCOL_ERROR.
    Malformed(&'static str),
    /// The request is well-formed, and gets a response with this status.
    Status(Status),
}

/// A request whose fields have been checked. Its parts are in the list from which it was made.
#[derive(Clone, Debug)]
pub struct CheckedRequest {
    method: Range<usize>,
    target: Range<usize>,
    authority: Range<usize>,
    /// The value of `content-length`.
    pub length: Option<u64>,
    /// Whether the peer waits for 100 before it sends the body.
    pub expects_continue: bool,
    /// The peer's wish for the order of responses, if it has stated one.
    pub priority: Option<Priority>,
    /// What the stream should become.
    pub asks: Asks,
}

/// What the stream of a request should become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// The stream ends with the response.
    Response,
    /// A tunnel: CONNECT (RFC 9113 §8.5).
    Tunnel,
    /// Another protocol: extended CONNECT (RFC 8441 §4).
    Protocol,
}

/// The fields whose names begin with a colon.
#[derive(Default)]
struct Pseudo {
    method: Option<Range<usize>>,
    scheme: Option<Range<usize>>,
    authority: Option<Range<usize>>,
    path: Option<Range<usize>>,
    protocol: Option<Range<usize>>,
}

/// What the connection has to know of the other fields.
struct Said {
    host: Option<Range<usize>>,
    length: Option<u64>,
    expects_continue: bool,
    priority: Option<Priority>,
    cookies: usize,
}

impl CheckedRequest {
    /// Checks the fields. Leaves only the regular fields in the list, with all cookies in one
    /// (RFC 9113 §8.2.3). `offers_protocols` says whether the peer was told that it may ask for
    /// other protocols (RFC 8441 §3).
    ///
    /// A request for another protocol becomes what it would be in HTTP/1.1: a GET with the protocol
    /// in `upgrade`, a field that requests of HTTP/2 cannot have otherwise.
    ///
    /// # Errors
    ///
    /// The peer's fault; the stream ends, the others continue.
    pub fn check(
        list: &mut FieldList,
        limits: &Limits,
        offers_protocols: bool,
    ) -> Result<CheckedRequest, Refusal> {
        let (pseudo, count) = Pseudo::gather(list, offers_protocols)?;
        let said = Said::gather(list, count)?;
        list.spans.drain(..count);
        if said.cookies > 1 {
            join_cookies(list);
        }
        let has_many = list.len() > limits.fields_max;
        if list.is_over() || has_many || has_long_field(list, limits) {
            return Err(Refusal::Status(Status::REQUEST_HEADER_FIELDS_TOO_LARGE));
        }
        let method = pseudo.method.clone().ok_or(Refusal::Malformed("there is no :method"))?;
        let octets = &list.octets;
        let method_text = text(octets, &method);
        let asks =
            match Method::new(method_text).ok_or(Refusal::Malformed(":method is no token"))? {
                Method::Connect if pseudo.protocol.is_some() => Asks::Protocol,
                Method::Connect => Asks::Tunnel,
                // RFC 8441 §4: the field is allowed only with this method.
                _ if pseudo.protocol.is_some() => {
                    return Err(Refusal::Malformed(":protocol without CONNECT"));
                }
                _ if method_text.len() > Method::BYTES_MAX => {
                    return Err(Refusal::Status(Status::NOT_IMPLEMENTED));
                }
                _ => Asks::Response,
            };
        if asks != Asks::Response && said.length.is_some() {
            // RFC 9110 §9.3.6: CONNECT has no content, and what follows on the stream is not a
            // body.
            return Err(Refusal::Malformed("content-length of CONNECT"));
        }
        let target = match asks {
            Asks::Tunnel => pseudo.tunnel_target()?,
            _ => pseudo.checked_target(method_text, asks, octets, limits)?,
        };
        let authority = authority_of(pseudo.authority, said.host, octets)?;
        if asks == Asks::Tunnel && Target::parse(Method::Connect, text(octets, &target)).is_none() {
            return Err(Refusal::Malformed(":authority names no host and port"));
        }
        if let Some(protocol) = pseudo.protocol {
            list.push_named(b"upgrade", protocol);
        }
        Ok(CheckedRequest {
            method,
            target,
            authority,
            length: said.length,
            expects_continue: said.expects_continue,
            priority: said.priority,
            asks,
        })
    }

    /// Returns the method; for a request for another protocol, that of upgrades in HTTP/1.1.
    pub fn method<'a>(&self, list: &'a FieldList) -> Method<'a> {
        match self.asks {
            Asks::Protocol => Method::Get,
            _ => Method::from_token(text(&list.octets, &self.method)),
        }
    }

    /// Returns the target. It has been checked, so it is there.
    pub fn target<'a>(&self, list: &'a FieldList) -> Option<Target<'a>> {
        Target::parse(self.method(list), text(&list.octets, &self.target))
    }

    /// Returns the authority. It has been checked, so it is there.
    pub fn authority<'a>(&self, list: &'a FieldList) -> Option<Authority<'a>> {
        Authority::parse(&list.octets[self.authority.clone()])
    }
}

/// Returns whether these are the fields of a HEAD request, whose error response has no body.
pub fn is_head(list: &FieldList) -> bool {
    list.fields().get(":method") == Some(b"HEAD")
}

impl Pseudo {
    /// Collects the pseudo-fields, which must precede the other fields, and returns their number.
    fn gather(list: &FieldList, offers_protocols: bool) -> Result<(Pseudo, usize), Refusal> {
        let mut pseudo = Pseudo::default();
        let mut count = 0;
        let fields = Fields::new(&list.octets, &list.spans);
        for ((name, value), span) in fields.iter_bytes().zip(&list.spans) {
            if name.first() != Some(&b':') {
                break;
            }
            if !swar::is_value(value) {
                return Err(Refusal::Malformed("a control character in a pseudo-field"));
            }
            let place = match name {
                b":method" => &mut pseudo.method,
                b":scheme" => &mut pseudo.scheme,
                b":authority" => &mut pseudo.authority,
                b":path" => &mut pseudo.path,
                // RFC 8441 §3: not before it was offered.
                b":protocol" if offers_protocols => &mut pseudo.protocol,
                _ => return Err(Refusal::Malformed("a pseudo-field that requests do not have")),
            };
            if place.replace(span.value_range()).is_some() {
                return Err(Refusal::Malformed("a pseudo-field twice"));
            }
            count += 1;
        }
        Ok((pseudo, count))
    }

    /// Returns the target of a tunnel. RFC 9113 §8.5: "the `:scheme` and `:path` pseudo-header
    /// fields MUST be omitted".
    fn tunnel_target(&self) -> Result<Range<usize>, Refusal> {
        if self.scheme.is_some() || self.path.is_some() {
            return Err(Refusal::Malformed("CONNECT with :scheme or :path"));
        }
        // `host` is no substitute: `:authority` alone determines where the tunnel leads.
        self.authority.clone().ok_or(Refusal::Malformed("CONNECT without :authority"))
    }

    /// Returns the path of any other request, which must have a scheme as well.
    fn checked_target(
        &self,
        method: &str,
        asks: Asks,
        octets: &[u8],
        limits: &Limits,
    ) -> Result<Range<usize>, Refusal> {
        let scheme = self.scheme.clone().ok_or(Refusal::Malformed("there is no :scheme"))?;
        if !matches!(&octets[scheme], b"http" | b"https") {
            return Err(Refusal::Malformed(":scheme is of no web server"));
        }
        let target = self.path.clone().ok_or(Refusal::Malformed("there is no :path"))?;
        if target.len() > limits.target_bytes_max {
            return Err(Refusal::Status(Status::URI_TOO_LONG));
        }
        let method = match asks {
            Asks::Protocol => Method::Get,
            _ => Method::from_token(method),
        };
        check_target(method, &octets[target.clone()])?;
        if let Some(protocol) = &self.protocol
            && !is_protocol(&octets[protocol.clone()])
        {
            return Err(Refusal::Malformed(":protocol is none"));
        }
        Ok(target)
    }
}

/// Returns whether this is one protocol. RFC 9110 §7.8: `protocol-name ["/" protocol-version]`,
/// both of them tokens.
fn is_protocol(octets: &[u8]) -> bool {
    let mut parts = octets.splitn(2, |octet| *octet == b'/');
    parts.all(grammar::is_token)
}

impl Said {
    fn gather(list: &FieldList, skip: usize) -> Result<Said, Refusal> {
        let mut said =
            Said { host: None, length: None, expects_continue: false, priority: None, cookies: 0 };
        let fields = Fields::new(&list.octets, &list.spans);
        for ((name, value), span) in fields.iter_bytes().zip(&list.spans).skip(skip) {
            check_field(name, value).map_err(Refusal::Malformed)?;
            match name {
                b"host" if said.host.replace(span.value_range()).is_some() => {
                    return Err(Refusal::Malformed("several hosts"));
                }
                b"content-length" => {
                    let length =
                        grammar::parse_decimal(value).filter(|_| said.length.is_none()).ok_or(
                            Refusal::Malformed("content-length is no number, or there are two"),
                        )?;
                    said.length = Some(length);
                }
                b"expect" => {
                    let is_expected = is_continue_expected(value).ok();
                    said.expects_continue |=
                        is_expected.ok_or(Refusal::Status(Status::EXPECTATION_FAILED))?;
                }
                b"priority" => said.priority = Some(Priority::read(value)),
                b"cookie" => said.cookies += 1,
                _ => {}
            }
        }
        Ok(said)
    }
}

/// Checks a field other than a pseudo-field (RFC 9113 §8.2.1, §8.2.2), of heads and trailers.
///
/// # Errors
///
/// The reason why the message is malformed.
pub fn check_field(name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    if name.first() == Some(&b':') {
        return Err("a pseudo-field behind other fields");
    }
    if !grammar::is_token(name) || name.iter().any(u8::is_ascii_uppercase) {
        return Err("a field name is no token in lower case");
    }
    // A server of HTTP/1.1 behind this one would read the bytes after CR and LF as a field, or a
    // request.
    if !swar::is_value(value) {
        return Err("a control character in a field value");
    }
    let is_space = |octet: Option<&u8>| matches!(octet, Some(b' ' | b'\t'));
    if is_space(value.first()) || is_space(value.last()) {
        return Err("white space around a field value");
    }
    match name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            Err("a field that governs a connection of HTTP/1.1")
        }
        b"te" if !value.eq_ignore_ascii_case(b"trailers") => Err("te says other than trailers"),
        _ => Ok(()),
    }
}

/// Checks a path. RFC 9113 §8.3.1: "/" and what follows, or `*` for OPTIONS.
fn check_target(method: Method<'_>, target: &[u8]) -> Result<(), Refusal> {
    let malformed = Refusal::Malformed(":path is neither a path nor an asterisk");
    if !target.is_ascii() || !grammar::all(target, TARGET) {
        return Err(malformed);
    }
    let target = str::from_utf8(target).ok().and_then(|text| Target::parse(method, text));
    match target.ok_or(malformed)?.form() {
        Form::Origin | Form::Asterisk => Ok(()),
        Form::Absolute | Form::Authority => Err(malformed),
    }
}

/// Returns the authority. RFC 9113 §8.3.1: `:authority`, else `host`; if both are there, they must
/// be equal.
fn authority_of(
    authority: Option<Range<usize>>,
    host: Option<Range<usize>>,
    octets: &[u8],
) -> Result<Range<usize>, Refusal> {
    let range = match (authority, host) {
        (Some(authority), Some(host))
            if !octets[authority.clone()].eq_ignore_ascii_case(&octets[host.clone()]) =>
        {
            return Err(Refusal::Malformed(":authority and host differ"));
        }
        (Some(range), _) | (None, Some(range)) => range,
        (None, None) => return Err(Refusal::Malformed("there is no :authority")),
    };
    match Authority::parse(&octets[range.clone()]) {
        Some(_) => Ok(range),
        None => Err(Refusal::Malformed(":authority is none")),
    }
}

fn has_long_field(list: &FieldList, limits: &Limits) -> bool {
    // As lines of HTTP/1.1 without their ends, so that one limit holds for both versions.
    let line_len = |(name, value): (&[u8], &[u8])| name.len() + value.len() + 2;
    list.fields().iter_bytes().any(|field| line_len(field) > limits.field_bytes_max)
}

/// Joins the cookies into one field. RFC 9113 §8.2.3: they "MUST be concatenated into a single
/// octet string using the two-octet delimiter of 0x3b, 0x20".
fn join_cookies(list: &mut FieldList) {
    let FieldList { octets, spans, .. } = list;
    let start = octets.len();
    let is_cookie = |span: &Span, octets: &[u8]| {
        Fields::new(octets, std::slice::from_ref(span))
            .iter_bytes()
            .any(|(name, _)| name == b"cookie")
    };
    octets.extend_from_slice(b"cookie");
    let value_at = octets.len();
    for span in
        spans.iter().filter(|span| is_cookie(span, &octets[..start])).copied().collect::<Vec<_>>()
    {
        if octets.len() > value_at {
            octets.extend_from_slice(b"; ");
        }
        octets.extend_from_within(span.value_range());
    }
    let joined = Span::new(start..value_at, value_at..octets.len());
    let mut is_first = true;
    spans.retain_mut(|span| {
        if !is_cookie(span, octets) {
            return true;
        }
        let keeps = std::mem::replace(&mut is_first, false);
        *span = joined;
        keeps
    });
}

/// Returns a part that was checked to be ASCII.
fn text<'a>(octets: &'a [u8], range: &Range<usize>) -> &'a str {
    octets.get(range.clone()).and_then(|octets| str::from_utf8(octets).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
