//! From a request's head to that of `http`, and from its trailers.

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use rotor_http::server::Head;
use rotor_http::{Method, Trailers, Version};

/// The head as `http` has it. `None`: it cannot be said there, although it is a request.
pub(crate) fn parts_of(head: &Head<'_>) -> Option<http::request::Parts> {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = method_of(head.method())?;
    parts.version = version_of(head.version());
    let text = text_of(head);
    let mut begin = head.target().len();
    parts.uri = uri_of(head, text.slice(..begin))?;
    let fields = head.fields();
    // A map has 32,768 names at most, and panics beyond where it is not tried.
    parts.headers.try_reserve(fields.len()).ok()?;
    for (name, value) in fields.octets() {
        let end = begin + value.len();
        let value = HeaderValue::from_maybe_shared(text.slice(begin..end)).ok()?;
        parts.headers.try_append(HeaderName::from_bytes(name).ok()?, value).ok()?;
        begin = end;
    }
    Some(parts)
}

/// Target and values in one piece of memory, in this order: two allocations, whatever the number of
/// fields.
fn text_of(head: &Head<'_>) -> Bytes {
    let target = head.target().as_bytes();
    let values = || head.fields().octets().map(|(_, value)| value);
    let mut text = Vec::with_capacity(target.len() + values().map(<[u8]>::len).sum::<usize>());
    text.extend_from_slice(target);
    values().for_each(|value| text.extend_from_slice(value));
    Bytes::from(text)
}

fn method_of(method: Method<'_>) -> Option<http::Method> {
    http::Method::from_bytes(method.as_str().as_bytes()).ok()
}

fn version_of(version: Version) -> http::Version {
    match version {
        Version::Http10 => http::Version::HTTP_10,
        Version::Http2 => http::Version::HTTP_2,
        _ => http::Version::HTTP_11,
    }
}

/// The target as it was sent; on HTTP/2, where scheme and authority are sent apart, with them.
fn uri_of(head: &Head<'_>, target: Bytes) -> Option<Uri> {
    if head.version() != Version::Http2 && !head.target().starts_with('/') {
        return Uri::from_maybe_shared(target).ok();
    }
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = Some(PathAndQuery::from_maybe_shared(target).ok()?);
    if head.version() == Version::Http2
        && let Some(authority) = head.authority()
    {
        parts.scheme = Some(if head.is_secure() { Scheme::HTTPS } else { Scheme::HTTP });
        parts.authority = Some(authority.parse::<Authority>().ok()?);
    }
    Uri::from_parts(parts).ok()
}

fn field_of(name: &str, value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    Some((name, HeaderValue::from_bytes(value).ok()?))
}

/// Trailers as `http` has them, if there are any. One that cannot be said there is left out.
pub(crate) fn trailers_of(trailers: &Trailers) -> Option<HeaderMap> {
    let fields = trailers.iter().filter_map(|field| field_of(field.name, field.value));
    let trailers: HeaderMap = fields.fold(HeaderMap::new(), |mut all, (name, value)| {
        // Beyond what a map has room for they are left out as well.
        let _had_room = all.try_append(name, value);
        all
    });
    (!trailers.is_empty()).then_some(trailers)
}
