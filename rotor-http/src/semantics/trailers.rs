//! `Trailers`: the trailer section of a body, kept apart from the fields of the head.

use std::fmt;

use super::fields::Field;
use super::grammar;

/// Trailer fields (RFC 9110 §6.5). Most bodies have none. Fields that frame, route, authenticate or
/// describe the message are left out, because they have no effect after the body (RFC 9110 §6.5.1).
#[doc(alias = "trailer section")]
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trailers {
    /// The field lines as they were received, each with its line end, checked.
    lines: Vec<u8>,
}

impl Trailers {
    /// Returns whether a field with this name is allowed after a body. The case is ignored. Other
    /// fields are left out of [`iter`](Trailers::iter), and refused in messages that are sent.
    pub fn allow(name: &str) -> bool {
        is_allowed(name)
    }

    /// Appends a checked byte of a field line or of its line end.
    pub(crate) fn push(&mut self, byte: u8) {
        self.lines.push(byte);
    }

    /// Appends a checked field, which has no control byte in its name or its value.
    pub(crate) fn push_field(&mut self, name: &[u8], value: &[u8]) {
        for part in [name, b": ", value, b"\r\n"] {
            self.lines.extend_from_slice(part);
        }
    }

    /// Returns whether there is no trailer field.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the trailer fields in the order in which they were received.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.lines
            .split(|&byte| byte == b'\n')
            .filter_map(parse_line)
            // Here, and not on receipt: that would need the whole name of a field that may never be
            // read.
            .filter(|field| is_allowed(field.name))
    }

    /// Returns the value of the first trailer field with this name. The case is ignored.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }
}

impl fmt::Debug for Trailers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Splits a line that the scanner has accepted, without its LF.
fn parse_line(line: &[u8]) -> Option<Field<'_>> {
    let line = line.strip_suffix(b"\r")?;
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = std::str::from_utf8(&line[..colon]).ok()?;
    Some(Field { name, value: grammar::trim(&line[colon + 1..]) })
}

/// Returns whether a field is allowed after the body: fields for framing, routing, request
/// modifiers, authentication, caching or content processing are not (RFC 9110 §6.5.1).
pub(crate) fn is_allowed(name: &str) -> bool {
    const FORBIDDEN: [&str; 37] = [
        "Age",
        "Authorization",
        "Cache-Control",
        "Connection",
        "Content-Encoding",
        "Content-Length",
        "Content-Range",
        "Content-Type",
        "Cookie",
        "Date",
        "Expect",
        "Expires",
        "Forwarded",
        "Host",
        "If-Match",
        "If-Modified-Since",
        "If-None-Match",
        "If-Range",
        "If-Unmodified-Since",
        "Keep-Alive",
        "Location",
        "Max-Forwards",
        "Origin",
        "Pragma",
        "Proxy-Authenticate",
        "Proxy-Authorization",
        "Proxy-Connection",
        "Range",
        "Retry-After",
        "Set-Cookie",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Vary",
        "Warning",
        "WWW-Authenticate",
    ];
    // Proxies and applications trust these fields to come from a proxy, which checks them in heads
    // only.
    let is_forwarding =
        name.get(..12).is_some_and(|start| start.eq_ignore_ascii_case("X-Forwarded-"));
    !is_forwarding && !FORBIDDEN.iter().any(|forbidden| forbidden.eq_ignore_ascii_case(name))
}
