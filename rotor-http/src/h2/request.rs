//! Makes the head of a request from the fields of a block (RFC 9113 §8.2, §8.3). A malformed one is
//! refused before any handler gets it, so that nothing of it reaches a server of HTTP/1.1 behind
//! this one.

use std::ops::Range;
use std::str;

use super::hpack::FieldList;
use super::priority::Priority;
use crate::h1::head::RequestHead;
use crate::h1::request_semantics::is_continue_expected;
use crate::limits::Limits;
use crate::semantics::authority::Authority;
use crate::semantics::error::{HeadError, RequestError};
use crate::semantics::fields::{Fields, Span};
use crate::semantics::grammar::{self, TARGET};
use crate::semantics::method::Method;
use crate::semantics::swar;
use crate::semantics::target::{Form, Target};

/// Why a request does not reach a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The request is malformed (RFC 9113 §8.1.1): RST_STREAM with PROTOCOL_ERROR.
    Malformed(&'static str),
    /// The request is well-formed, and gets a response with the status of this error.
    Error(RequestError),
}

impl From<HeadError> for Refusal {
    fn from(error: HeadError) -> Refusal {
        Refusal::Error(error.into())
    }
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
    pub purpose: StreamPurpose,
}

/// What the stream of a request should become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamPurpose {
    /// The stream ends with the response.
    Response,
    /// A tunnel: CONNECT (RFC 9113 §8.5).
    Tunnel,
    /// Another protocol: extended CONNECT (RFC 8441 §4).
    Protocol,
}

/// The fields whose names begin with a colon.
#[derive(Default)]
struct PseudoFields {
    method: Option<Range<usize>>,
    scheme: Option<Range<usize>>,
    authority: Option<Range<usize>>,
    path: Option<Range<usize>>,
    protocol: Option<Range<usize>>,
}

/// What the connection has to know of the other fields.
struct RegularFields {
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
    /// The peer's fault; the stream ends, the others continue. The list still has the pseudo-fields
    /// then.
    pub fn check(
        list: &mut FieldList,
        limits: &Limits,
        offers_protocols: bool,
    ) -> Result<CheckedRequest, Refusal> {
        let (pseudo, count) = PseudoFields::collect(list, offers_protocols)?;
        let regular = RegularFields::collect(list, count)?;
        if regular.cookies > 1 {
            join_cookies(list);
        }
        if list.is_truncated() {
            return Err(HeadError::TooLarge.into());
        }
        if list.len() - count > limits.fields_max {
            return Err(HeadError::TooManyFields.into());
        }
        if has_long_field(list, count, limits) {
            return Err(HeadError::FieldTooLong.into());
        }
        let method = pseudo.method.clone().ok_or(Refusal::Malformed("there is no :method"))?;
        let bytes = &list.bytes;
        let method_text = text(bytes, &method);
        let purpose =
            match Method::new(method_text).ok_or(Refusal::Malformed(":method is no token"))? {
                Method::Connect if pseudo.protocol.is_some() => StreamPurpose::Protocol,
                Method::Connect => StreamPurpose::Tunnel,
                // RFC 8441 §4: the field is allowed only with this method.
                _ if pseudo.protocol.is_some() => {
                    return Err(Refusal::Malformed(":protocol without CONNECT"));
                }
                _ if method_text.len() > Method::BYTES_MAX => {
                    return Err(HeadError::MethodTooLong.into());
                }
                _ => StreamPurpose::Response,
            };
        if purpose != StreamPurpose::Response && regular.length.is_some() {
            // RFC 9110 §9.3.6: CONNECT has no content, and what follows on the stream is not a
            // body.
            return Err(Refusal::Malformed("content-length of CONNECT"));
        }
        let target = match purpose {
            StreamPurpose::Tunnel => pseudo.tunnel_target()?,
            _ => pseudo.checked_target(method_text, purpose, bytes, limits)?,
        };
        let authority = check_authority(pseudo.authority, regular.host, bytes)?;
        if purpose == StreamPurpose::Tunnel
            && Target::parse(Method::Connect, text(bytes, &target)).is_none()
        {
            return Err(Refusal::Malformed(":authority names no host and port"));
        }
        list.spans.drain(..count);
        if let Some(protocol) = pseudo.protocol {
            list.push_named(b"upgrade", protocol);
        }
        Ok(CheckedRequest {
            method,
            target,
            authority,
            length: regular.length,
            expects_continue: regular.expects_continue,
            priority: regular.priority,
            purpose,
        })
    }

    /// Returns the method; for a request for another protocol, that of upgrades in HTTP/1.1.
    pub fn method<'a>(&self, list: &'a FieldList) -> Method<'a> {
        match self.purpose {
            StreamPurpose::Protocol => Method::Get,
            _ => Method::from_token(text(&list.bytes, &self.method)),
        }
    }

    /// Returns the target. It has been checked, so it is there.
    pub fn target<'a>(&self, list: &'a FieldList) -> Option<Target<'a>> {
        Target::parse(self.method(list), text(&list.bytes, &self.target))
    }

    /// Returns the authority. It has been checked, so it is there.
    pub fn authority<'a>(&self, list: &'a FieldList) -> Option<Authority<'a>> {
        Authority::parse(&list.bytes[self.authority.clone()])
    }
}

/// Returns the head of a request that was [refused](CheckedRequest::check) with an error, as far as
/// it has a method and a target.
pub fn refused_head(list: &FieldList) -> Option<RequestHead<'_>> {
    let fields = list.fields();
    let text = |name| fields.get(name).and_then(|value| str::from_utf8(value).ok());
    let method = Method::new(text(":method")?)?;
    // As in the log of requests that are not refused.
    let (method, target) = match method {
        Method::Connect if fields.get(":protocol").is_none() => (method, ":authority"),
        Method::Connect => (Method::Get, ":path"),
        _ => (method, ":path"),
    };
    Some(RequestHead::framed(method, Target::parse(method, text(target)?)?, fields))
}

impl PseudoFields {
    /// Collects the pseudo-fields, which must precede the other fields, and returns their number.
    fn collect(list: &FieldList, offers_protocols: bool) -> Result<(PseudoFields, usize), Refusal> {
        let mut pseudo = PseudoFields::default();
        let mut count = 0;
        let fields = Fields::new(&list.bytes, &list.spans);
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
        purpose: StreamPurpose,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<Range<usize>, Refusal> {
        let scheme = self.scheme.clone().ok_or(Refusal::Malformed("there is no :scheme"))?;
        if !matches!(&bytes[scheme], b"http" | b"https") {
            return Err(Refusal::Malformed(":scheme is of no web server"));
        }
        let target = self.path.clone().ok_or(Refusal::Malformed("there is no :path"))?;
        if target.len() > limits.target_bytes_max {
            return Err(HeadError::TargetTooLong.into());
        }
        let method = match purpose {
            StreamPurpose::Protocol => Method::Get,
            _ => Method::from_token(method),
        };
        check_target(method, &bytes[target.clone()])?;
        if let Some(protocol) = &self.protocol
            && !is_protocol(&bytes[protocol.clone()])
        {
            return Err(Refusal::Malformed(":protocol is none"));
        }
        Ok(target)
    }
}

/// Returns whether this is one protocol. RFC 9110 §7.8: `protocol-name ["/" protocol-version]`,
/// both of them tokens.
fn is_protocol(bytes: &[u8]) -> bool {
    let mut parts = bytes.splitn(2, |byte| *byte == b'/');
    parts.all(grammar::is_token)
}

impl RegularFields {
    fn collect(list: &FieldList, skip: usize) -> Result<RegularFields, Refusal> {
        let mut regular = RegularFields {
            host: None,
            length: None,
            expects_continue: false,
            priority: None,
            cookies: 0,
        };
        let fields = Fields::new(&list.bytes, &list.spans);
        for ((name, value), span) in fields.iter_bytes().zip(&list.spans).skip(skip) {
            check_field(name, value).map_err(Refusal::Malformed)?;
            match name {
                b"host" if regular.host.replace(span.value_range()).is_some() => {
                    return Err(Refusal::Malformed("several hosts"));
                }
                b"content-length" => {
                    let length =
                        grammar::parse_decimal(value).filter(|_| regular.length.is_none()).ok_or(
                            Refusal::Malformed("content-length is no number, or there are two"),
                        )?;
                    regular.length = Some(length);
                }
                b"expect" => {
                    regular.expects_continue |=
                        is_continue_expected(value).map_err(Refusal::Error)?;
                }
                b"priority" => {
                    regular.priority.get_or_insert(Priority::DEFAULT).read_more(value);
                }
                b"cookie" => regular.cookies += 1,
                _ => {}
            }
        }
        Ok(regular)
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
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
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
fn check_authority(
    authority: Option<Range<usize>>,
    host: Option<Range<usize>>,
    bytes: &[u8],
) -> Result<Range<usize>, Refusal> {
    let range = match (authority, host) {
        (Some(authority), Some(host))
            if !bytes[authority.clone()].eq_ignore_ascii_case(&bytes[host.clone()]) =>
        {
            return Err(Refusal::Malformed(":authority and host differ"));
        }
        (Some(range), _) | (None, Some(range)) => range,
        (None, None) => return Err(Refusal::Malformed("there is no :authority")),
    };
    match Authority::parse(&bytes[range.clone()]) {
        Some(_) => Ok(range),
        None => Err(Refusal::Malformed(":authority is none")),
    }
}

fn has_long_field(list: &FieldList, skip: usize, limits: &Limits) -> bool {
    // As lines of HTTP/1.1 without their ends, so that one limit holds for both versions.
    let line_len = |(name, value): (&[u8], &[u8])| name.len() + value.len() + 2;
    list.fields().iter_bytes().skip(skip).any(|field| line_len(field) > limits.field_bytes_max)
}

/// Joins the cookies into one field. RFC 9113 §8.2.3: they "MUST be concatenated into a single
/// octet string using the two-octet delimiter of 0x3b, 0x20".
fn join_cookies(list: &mut FieldList) {
    let FieldList { bytes, spans, .. } = list;
    let start = bytes.len();
    let is_cookie = |span: &Span, bytes: &[u8]| {
        Fields::new(bytes, std::slice::from_ref(span))
            .iter_bytes()
            .any(|(name, _)| name == b"cookie")
    };
    bytes.extend_from_slice(b"cookie");
    let value_at = bytes.len();
    for span in
        spans.iter().filter(|span| is_cookie(span, &bytes[..start])).copied().collect::<Vec<_>>()
    {
        if bytes.len() > value_at {
            bytes.extend_from_slice(b"; ");
        }
        bytes.extend_from_within(span.value_range());
    }
    let joined = Span::new(start..value_at, value_at..bytes.len());
    let mut is_first = true;
    spans.retain_mut(|span| {
        if !is_cookie(span, bytes) {
            return true;
        }
        let retain = std::mem::replace(&mut is_first, false);
        *span = joined;
        retain
    });
}

/// Returns a part that was checked to be ASCII.
fn text<'a>(bytes: &'a [u8], range: &Range<usize>) -> &'a str {
    bytes.get(range.clone()).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
