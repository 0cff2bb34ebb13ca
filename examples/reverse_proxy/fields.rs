//! Which fields pass a proxy, and which do not (RFC 9110 §7.6).

use rotor::http::h1::{Fields, Method, Nominated, has_token};
use rotor::http::server::Head;

use super::message::Lines;

/// Fields that are for one connection only, whatever `Connection` says of them; those that frame a message, which are always
/// written anew; and `Proxy`, which no request has and which programs behind a gateway of CGI take for `HTTP_PROXY`.
const HOP_BY_HOP: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Fields that `Connection` must not take away: requests would mean something else behind the proxy than before it.
const NOT_NOMINATED: [&str; 6] =
    ["host", "content-length", "transfer-encoding", "authorization", "cookie", "forwarded"];

/// Fields by which proxies tell where a request comes from, and how, other than by what [`is_forwarding`] sees in the name.
const FORWARDING: [&str; 11] = [
    "cf-visitor",
    "client-address",
    "cloudfront-viewer-address",
    "front-end-https",
    "remote-address",
    "x-client-address",
    "x-envoy-external-address",
    "x-envoy-internal",
    "x-remote-address",
    "x-scheme",
    "x-url-scheme",
];

/// Ends of names that say that the value is an address, of the client as a rule: `Client-IP`, `X-Real-IP`, `True-Client-IP`,
/// `CF-Connecting-IPv6`, `X-Azure-ClientIP`, `X-Remote-Addr`, and what the next provider calls it.
const OF_ADDRESSES: [&str; 6] = ["-ip", "-ipv4", "-ipv6", "-addr", "clientip", "socketip"];

/// The end-to-end fields of a message, in order.
pub(crate) fn end_to_end(fields: Fields<'_>, is_kept: impl Fn(&str) -> bool) -> Lines {
    let nominated = Nominated::of(fields);
    let mut name = String::new();
    fields
        .iter()
        .filter(|field| {
            fold(field.name, &mut name);
            !HOP_BY_HOP.contains(&name.as_str()) && is_kept(&name) && !nominated.contains(field.name)
        })
        .map(|field| (field.name.to_owned(), field.value.to_owned()))
        .collect()
}

/// The name as those see it who find fields as variables: CGI (RFC 3875 §4.1.18) makes `HTTP_CONTENT_LENGTH` of both
/// `Content-Length` and `Content_Length`, gateways of many languages do the same, and some take every sign for a hyphen.
fn fold(name: &str, folded: &mut String) {
    folded.clear();
    let sign = |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' };
    folded.extend(name.chars().map(sign));
}

/// The target that the upstream is asked for: a whole URI without its authority, which is in `Host` then.
pub(crate) fn target_of(head: &Head<'_>) -> String {
    let target = head.target();
    if target.starts_with('/') || target == "*" {
        return target.to_owned();
    }
    let has_path = target.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?']));
    match head.query() {
        Some(query) => format!("{}?{query}", head.path()),
        // RFC 9112 §3.2.4: so OPTIONS asks a server that is named by a whole URI about all of it.
        None if head.method() == Method::Options && !has_path => "*".to_owned(),
        None => head.path().to_owned(),
    }
}

/// How many proxies may still pass the request on, where it says so and its method has such a limit (RFC 9110 §7.6.2; TRACE
/// is refused anyway). What is no number says nothing.
pub(crate) fn forwards_left(head: &Head<'_>) -> Option<u64> {
    let value = if head.method() == Method::Options { head.fields().get_str("Max-Forwards") } else { None };
    value.filter(|value| value.bytes().all(|byte| byte.is_ascii_digit())).and_then(|value| value.parse().ok())
}

/// Whether a field says where a request comes from, by its folded name. What a client says of that is not to be trusted.
///
/// More names than are in use: a field that is dropped in vain is missed in a test, one that passes is found by an attacker. An
/// upstream that trusts yet another one needs it added here.
pub(crate) fn is_forwarding(name: &str) -> bool {
    name.contains("forwarded")
        || OF_ADDRESSES.iter().any(|end| name.ends_with(end))
        || FORWARDING.contains(&name)
}

/// Whether `Connection` nominates a field that it must not.
pub(crate) fn nominates_wrongly(fields: Fields<'_>) -> bool {
    let mut name = String::new();
    fields.list("Connection").filter_map(|option| std::str::from_utf8(option).ok()).any(|option| {
        fold(option, &mut name);
        NOT_NOMINATED.contains(&name.as_str()) || is_forwarding(&name)
    })
}

/// Whether `Upgrade` names the WebSocket; it may name other protocols beside, which are not passed on.
pub(crate) fn names_websocket(fields: Fields<'_>) -> bool {
    fields.get_all("Upgrade").any(|value| has_token(value, "websocket"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_forwarded(name: &str) -> bool {
        let mut folded = String::new();
        fold(name, &mut folded);
        !HOP_BY_HOP.contains(&folded.as_str()) && !is_forwarding(&folded)
    }

    #[test]
    fn what_says_where_a_request_comes_from_or_how_it_is_framed_does_not_pass_under_any_name() {
        for name in [
            "Forwarded",
            "Forwarded-For",
            "X-Forwarded",
            "X-Forwarded-For",
            "X-Forwarded-Client-Cert",
            "X-Original-Forwarded-For",
            "CloudFront-Forwarded-Proto",
            "Client-IP",
            "X-Client-IP",
            "X-Real-IP",
            "True-Client-IP",
            "CF-Connecting-IP",
            "CF-Connecting-IPv6",
            "CF-Pseudo-IPv4",
            "Fastly-Client-IP",
            "Fly-Client-IP",
            "X-Cluster-Client-IP",
            "X-Originating-IP",
            "X-Azure-ClientIP",
            "X-Azure-SocketIP",
            "X-Appengine-User-IP",
            "X-Remote-Addr",
            "X-Envoy-External-Address",
            "X-ProxyUser-Ip",
            "WL-Proxy-Client-IP",
            "Front-End-Https",
            "X-Scheme",
            "CF-Visitor",
            "Proxy",
            "Content-Length",
            "Transfer-Encoding",
            "Connection",
            "Keep-Alive",
            "Proxy-Authorization",
        ] {
            for sign in ["-", "_", "."] {
                for name in [name.to_owned(), name.to_lowercase(), name.to_uppercase()] {
                    let name = name.replace('-', sign);
                    assert!(!is_forwarded(&name), "{name}");
                }
            }
        }
        for name in [
            "Accept",
            "Cookie",
            "Via",
            "Max-Forwards",
            "User-Agent",
            "X-Zip",
            "Content-Type",
            "X-Trip",
            "Ip",
            "My_Field",
            "X-Forward",
            "Proxy-Status",
            "Content-Lengths",
            "Hosts",
        ] {
            assert!(is_forwarded(name), "{name}");
        }
    }
}
