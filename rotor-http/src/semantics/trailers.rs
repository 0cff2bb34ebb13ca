//! The trailer section of a chunked body, kept apart from the fields of the head.

use std::fmt;

use super::fields::Field;
use super::grammar;

/// Trailer fields (RFC 9110 §6.5); most bodies have none. Fields that frame, route, authenticate or
/// describe the message are left out: they have no effect after the body (RFC 9110 §6.5.1).
#[doc(alias = "trailer section")]
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trailers {
    /// The field lines as they came, each with its line end, checked.
    lines: Vec<u8>,
}

impl Trailers {
    /// Returns whether a field of this name may come after a body; case does not matter. Others are
    /// left out of what [`iter`](Trailers::iter) returns, and refused in what is sent.
    pub fn allow(name: &str) -> bool {
        is_allowed(name)
    }

    /// Appends a byte of a field line, or of its line end, that has been checked.
    pub(crate) fn push(&mut self, byte: u8) {
        self.lines.push(byte);
    }

    /// Adds a field, which was checked: without a control byte in its name or its value.
    pub(crate) fn push_field(&mut self, name: &[u8], value: &[u8]) {
        for part in [name, b": ", value, b"\r\n"] {
            self.lines.extend_from_slice(part);
        }
    }

    /// Returns whether there is no trailer field.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the trailer fields in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.lines
            .split(|&byte| byte == b'\n')
            .filter_map(field_of)
            // Here, and not as they come: that would need the whole name of a field that nobody may
            // ever look at.
            .filter(|field| is_allowed(field.name))
    }

    /// Returns the value of the first trailer field of this name; case does not matter.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }
}

impl fmt::Debug for Trailers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Takes apart one line that the scanner has accepted, its LF cut off.
fn field_of(line: &[u8]) -> Option<Field<'_>> {
    let line = line.strip_suffix(b"\r")?;
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = std::str::from_utf8(&line[..colon]).ok()?;
    Some(Field { name, value: grammar::trim(&line[colon + 1..]) })
}

/// Returns whether a field may come after the body: not one for framing, routing, request
/// modifiers, authentication, caching or content processing (RFC 9110 §6.5.1).
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
    // Proxies and applications believe these to come from a proxy, which checks them in heads only.
    let is_forwarding =
        name.get(..12).is_some_and(|start| start.eq_ignore_ascii_case("X-Forwarded-"));
    !is_forwarding && !FORBIDDEN.iter().any(|forbidden| forbidden.eq_ignore_ascii_case(name))
}
