//! Converts the head and the trailers of a request to the types of the package `http`.

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use rotor_http::server::Head;
use rotor_http::{Method, Trailers, Version};

/// Converts a head; `None` if the types of `http` cannot express it, although it is valid.
pub(crate) fn to_parts(head: &Head<'_>) -> Option<http::request::Parts> {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = to_method(head.method())?;
    parts.version = to_version(head.version());
    let text = copy_text(head);
    let mut begin = head.target().len();
    parts.uri = to_uri(head, text.slice(..begin))?;
    let fields = head.fields();
    // A map has at most 32,768 names; its methods without `try_` panic beyond that.
    parts.headers.try_reserve(fields.len()).ok()?;
    for (name, value) in fields.iter_bytes() {
        let end = begin + value.len();
        let value = HeaderValue::from_maybe_shared(text.slice(begin..end)).ok()?;
        parts.headers.try_append(HeaderName::from_bytes(name).ok()?, value).ok()?;
        begin = end;
    }
    Some(parts)
}

/// Copies the target and the values into one buffer, in this order. So there are two allocations,
/// however many fields there are.
fn copy_text(head: &Head<'_>) -> Bytes {
    let target = head.target().as_bytes();
    let values = || head.fields().iter_bytes().map(|(_, value)| value);
    let mut text = Vec::with_capacity(target.len() + values().map(<[u8]>::len).sum::<usize>());
    text.extend_from_slice(target);
    values().for_each(|value| text.extend_from_slice(value));
    Bytes::from(text)
}

fn to_method(method: Method<'_>) -> Option<http::Method> {
    http::Method::from_bytes(method.as_str().as_bytes()).ok()
}

fn to_version(version: Version) -> http::Version {
    match version {
        Version::Http10 => http::Version::HTTP_10,
        Version::Http2 => http::Version::HTTP_2,
        _ => http::Version::HTTP_11,
    }
}

/// Converts the target as it was sent. HTTP/2 sends scheme and authority separately; they are
/// added.
fn to_uri(head: &Head<'_>, target: Bytes) -> Option<Uri> {
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

fn to_field(name: &str, value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    Some((name, HeaderValue::from_bytes(value).ok()?))
}

/// Converts trailers, if there are any. A field that `http` cannot express is left out.
pub(crate) fn to_trailers(trailers: &Trailers) -> Option<HeaderMap> {
    let fields = trailers.iter().filter_map(|field| to_field(field.name, field.value));
    let trailers: HeaderMap = fields.fold(HeaderMap::new(), |mut all, (name, value)| {
        // Fields beyond the capacity of a map are left out as well.
        let _had_room = all.try_append(name, value);
        all
    });
    (!trailers.is_empty()).then_some(trailers)
}
