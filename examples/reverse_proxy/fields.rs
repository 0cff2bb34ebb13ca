//! Which fields a proxy passes on, and which it does not (RFC 9110 §7.6).

use rotor::http::server::Head;
use rotor::http::{Fields, Method, Nominated, Status, Trailers, Version, list_has_token};

use super::message::Lines;

/// Fields that are not passed on, whatever `Connection` says. Some are for one connection only.
/// Some frame a message, and are always written anew. The WebSocket's key and its proof belong to
/// one side. And `Proxy` is not used in requests, but CGI programs take it for `HTTP_PROXY`.
const HOP_BY_HOP: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy",
    "proxy-authorization",
    "proxy-connection",
    "sec-websocket-accept",
    "sec-websocket-key",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Fields that `Connection` must not remove, because requests would have another meaning after the
/// proxy than before it.
const NOT_NOMINATED: [&str; 6] =
    ["host", "content-length", "transfer-encoding", "authorization", "cookie", "forwarded"];

/// Fields that only a proxy may set, by their folded names. Servers behind a proxy trust them, so a
/// client that could send them through the proxy would be trusted.
///
/// There are more names here than are in use: a field that is removed needlessly is noticed in a
/// test, one that passes is found by an attacker. If an upstream trusts yet another field, it must
/// be added here.
mod of_proxies {
    /// Prefixes of names.
    pub(super) const BEGINNINGS: [&str; 22] = [
        // The original URL before it was rewritten, by which frameworks route (`X-Original-URL`,
        // `X-Rewrite-URL`).
        "x-original-",
        "x-override-",
        "x-real-",
        "x-rewrite-",
        // What routers say to each other: a request with such a field has passed their checks.
        "x-envoy-",
        "x-middleware-",
        // Misspelt, but trusted by some.
        "x-forward-",
        "x-forwarder-",
        // The user whom a proxy has authenticated, by a password or a certificate.
        "remote-",
        "ssl-client-",
        "x-auth-request-",
        "x-authenticated-",
        "x-remote-",
        "x-ssl-",
        "x-webauth-",
        // The same from providers of such proxies.
        "cf-access-",
        "tailscale-",
        "x-amzn-mtls-",
        "x-amzn-oidc-",
        "x-authentik-",
        "x-goog-iap-",
        "x-ms-client-principal",
    ];

    /// Substrings that a name may contain anywhere.
    pub(super) const PARTS: [&str; 4] = [
        "forwarded",
        // Certificates: `Client-Cert` and `Client-Cert-Chain` (RFC 9440 §2.4), `X-ARR-ClientCert`,
        // `X-SSL-Client-Cert`.
        "client-cert",
        "clientcert",
        "authenticated-user",
    ];

    /// Suffixes of names.
    pub(super) const ENDS: [&str; 11] = [
        // The value is an address, usually the client's: `Client-IP`, `X-Real-IP`,
        // `True-Client-IP`, `CF-Connecting-IPv6`, `X-Azure-ClientIP`, `X-Remote-Addr`, and whatever
        // the next provider calls it.
        "-addr",
        "-ip",
        "-ip-authorization",
        "-ipv4",
        "-ipv6",
        "clientip",
        "socketip",
        // The value is the requested host: `X-Host`, `X-HTTP-Host-Override`, `Fastly-Host`.
        "-host",
        "-host-override",
        // The value overrides the method. With HEAD, the upstream would frame its response in
        // another way than it is read here; with a method that this proxy refuses, the upstream
        // would execute it.
        "-http-method",
        "-method-override",
    ];

    /// Complete names.
    pub(super) const NAMES: [&str; 22] = [
        "cf-visitor",
        "client-address",
        "cloudfront-viewer-address",
        "front-end-https",
        "host-override",
        "http-method",
        "method-override",
        "x-client-address",
        "x-http-destinationurl",
        "x-matched-path",
        "x-proxy-url",
        "x-remote-address",
        "x-replaced-path",
        "x-request-uri",
        "x-request-url",
        "x-scheme",
        "x-script-name",
        "x-url-scheme",
        "x-waws-unencoded-url",
        // The file to be sent instead of the response, and where files are: a server in front of
        // the program sets these.
        "x-accel-mapping",
        "x-sendfile-type",
        "script-name",
    ];
}

/// Returns the end-to-end fields of a message, in order. `Trailer` announces which trailers may
/// follow (RFC 9110 §6.6.2); it is passed on only if they are passed on, too.
pub(crate) fn end_to_end(
    fields: Fields<'_>,
    passes_trailers: bool,
    is_kept: impl Fn(&str) -> bool,
) -> Lines {
    let nominated = Nominated::from_fields(fields);
    let mut name = String::new();
    fields
        .iter()
        .filter(|field| {
            fold(field.name, &mut name);
            !HOP_BY_HOP.contains(&name.as_str())
                && (passes_trailers || name != "trailer")
                && is_kept(&name)
                && !nominated.contains(field.name)
        })
        .map(|field| (field.name.to_owned(), field.value.to_owned()))
        .collect()
}

/// Which responses to a client may have trailers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrailersTaken {
    Never,
    /// Those without a length, which are sent in chunks (RFC 9112 §7.1.2).
    WithoutLength,
    /// All that have a body: they are sent in frames (RFC 9113 §8.1).
    Always,
}

impl TrailersTaken {
    /// Returns what the client accepts (RFC 9110 §10.1.4).
    pub(crate) fn by_client(head: &Head<'_>) -> TrailersTaken {
        let mut codings = head.fields().list("TE");
        match head.version() {
            Version::Http10 => TrailersTaken::Never,
            _ if !codings.any(|coding| coding.eq_ignore_ascii_case(b"trailers")) => {
                TrailersTaken::Never
            }
            Version::Http2 => TrailersTaken::Always,
            _ => TrailersTaken::WithoutLength,
        }
    }

    /// Returns whether trailers may follow a response of this status and length.
    pub(crate) fn may_follow(self, status: Status, length: Option<u64>) -> bool {
        let has_body = !status.forbids_body() && status != Status::RESET_CONTENT;
        has_body
            && match self {
                TrailersTaken::Never => false,
                TrailersTaken::WithoutLength => length.is_none(),
                TrailersTaken::Always => true,
            }
    }
}

/// Returns whether the request is a call of gRPC, whose body consists of messages that the client
/// sends when it has them.
pub(crate) fn is_grpc(head: &Head<'_>) -> bool {
    head.version() == Version::Http2
        && head.field("Content-Type").is_some_and(|kind| kind.starts_with(b"application/grpc"))
}

/// Returns the trailer fields to pass on, without those that only a proxy may set.
pub(crate) fn trailers_of(trailers: &Trailers) -> Lines {
    let mut name = String::new();
    let mut is_passed = |own: &str| {
        fold(own, &mut name);
        !HOP_BY_HOP.contains(&name.as_str()) && !is_forwarding_field(&name)
    };
    let kept = trailers.iter().filter(|field| is_passed(field.name));
    kept.map(|field| (field.name.to_owned(), field.value.to_owned())).collect()
}

/// Folds a name as programs do that get fields as variables: CGI (RFC 3875 §4.1.18) makes
/// `HTTP_CONTENT_LENGTH` of both `Content-Length` and `Content_Length`, gateways of many languages
/// do the same, and some take any special character for a hyphen.
fn fold(name: &str, folded: &mut String) {
    folded.clear();
    let sign =
        |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' };
    folded.extend(name.chars().map(sign));
}

/// Returns the request target for the upstream: an absolute URI is reduced to its path and query,
/// and its authority is then in `Host`.
pub(crate) fn target_of(head: &Head<'_>) -> String {
    let target = head.target();
    if target.starts_with('/') || target == "*" {
        return target.to_owned();
    }
    let has_path = target.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?']));
    match head.query() {
        Some(query) => format!("{}?{query}", head.path()),
        // RFC 9112 §3.2.4: OPTIONS with an absolute URI without a path asks about the whole server.
        None if head.method() == Method::Options && !has_path => "*".to_owned(),
        None => head.path().to_owned(),
    }
}

/// Returns how many more proxies may pass the request on, if the request says so and its method has
/// such a limit (RFC 9110 §7.6.2; TRACE is refused anyway). A value that is not a number is
/// ignored.
pub(crate) fn forwards_left(head: &Head<'_>) -> Option<u64> {
    let value =
        if head.method() == Method::Options { head.fields().get_str("Max-Forwards") } else { None };
    value
        .filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|value| value.parse().ok())
}

/// Returns whether only a proxy may set a field, by its folded name: where a request comes from,
/// its original target, and the user.
pub(crate) fn is_forwarding_field(name: &str) -> bool {
    use of_proxies::{BEGINNINGS, ENDS, NAMES, PARTS};
    PARTS.iter().any(|part| name.contains(part))
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDS.iter().any(|end| name.ends_with(end))
        || NAMES.contains(&name)
}

/// Returns whether `Connection` lists a field that it must not remove.
pub(crate) fn nominates_protected_field(fields: Fields<'_>) -> bool {
    let mut name = String::new();
    fields.list("Connection").filter_map(|option| std::str::from_utf8(option).ok()).any(|option| {
        fold(option, &mut name);
        NOT_NOMINATED.contains(&name.as_str()) || is_forwarding_field(&name)
    })
}

/// Returns whether `Upgrade` contains `websocket`. It may contain other protocols as well, which
/// are not passed on.
pub(crate) fn names_websocket(fields: Fields<'_>) -> bool {
    fields.get_all("Upgrade").any(|value| list_has_token(value, "websocket"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a field of this name passes.
    fn passes(name: &str) -> bool {
        let mut folded = String::new();
        fold(name, &mut folded);
        !HOP_BY_HOP.contains(&folded.as_str()) && !is_forwarding_field(&folded)
    }

    /// Fails if one of the names passes in any spelling.
    fn assert_none_pass(names: &[&str]) {
        for name in names {
            for sign in ["-", "_", "."] {
                for name in [(*name).to_owned(), name.to_lowercase(), name.to_uppercase()] {
                    let name = name.replace('-', sign);
                    assert!(!passes(&name), "{name}");
                }
            }
        }
    }

    #[test]
    fn origin_and_framing_fields_do_not_pass_under_any_spelling() {
        assert_none_pass(&[
            "Forwarded",
            "Forwarded-For",
            "X-Forwarded",
            "X-Forwarded-For",
            "X-Forward-For",
            "X-Forwarder-For",
            "X-Forwarded-Client-Cert",
            "X-Original-Forwarded-For",
            "CloudFront-Forwarded-Proto",
            "Client-IP",
            "X-Client-IP",
            "X-Real-IP",
            "X-True-IP",
            "True-Client-IP",
            "CF-Connecting-IP",
            "CF-Connecting-IPv6",
            "CF-Pseudo-IPv4",
            "Fastly-Client-IP",
            "Fly-Client-IP",
            "X-Cluster-Client-IP",
            "X-Custom-IP-Authorization",
            "X-Originating-IP",
            "X-Azure-ClientIP",
            "X-Azure-SocketIP",
            "X-Appengine-User-IP",
            "X-Remote-Addr",
            "X-Original-Remote-Addr",
            "X-Envoy-External-Address",
            "X-Envoy-Internal",
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
        ]);
    }

    #[test]
    fn fields_that_override_the_request_line_do_not_pass() {
        assert_none_pass(&[
            "X-Original-URL",
            "X-Original-URI",
            "X-Original-Path",
            "X-Original-Method",
            "X-Original-Host",
            "X-Rewrite-URL",
            "X-Rewrite-URI",
            "X-Override-URL",
            "X-Real-URL",
            "X-Real-Host",
            "X-Request-URI",
            "X-Request-URL",
            "X-Replaced-Path",
            "X-Matched-Path",
            "X-Proxy-URL",
            "X-HTTP-DestinationURL",
            "X-WAWS-Unencoded-URL",
            "X-Envoy-Original-Path",
            "X-Forwarded-Prefix",
            "X-Forwarded-Path",
            "X-Forwarded-Server",
            "Script-Name",
            "X-Script-Name",
            "X-Host",
            "X-HTTP-Host-Override",
            "Fastly-Host",
            "X-HTTP-Method",
            "X-HTTP-Method-Override",
            "X-Method-Override",
            "X-Middleware-Subrequest",
            "X-Sendfile-Type",
            "X-Accel-Mapping",
        ]);
    }

    #[test]
    fn authenticated_identity_fields_do_not_pass_under_any_spelling() {
        assert_none_pass(&[
            "Remote-User",
            "Remote-Groups",
            "X-Remote-User",
            "X-Forwarded-User",
            "X-Forwarded-Email",
            "X-Auth-Request-User",
            "X-WebAuth-User",
            "X-Authenticated-User",
            "SSL-Client-Verify",
            "SSL-Client-S-DN",
            "X-SSL-Client-Cert",
            "X-Client-Cert",
            "X-ARR-ClientCert",
            "Client-Cert",
            "CLIENT_CERT",
            "Client-Cert-Chain",
            "X-Client-Cert-Chain",
            "X-Amzn-Mtls-Clientcert-Subject",
            "X-Amzn-Oidc-Identity",
            "X-Remote-Group",
            "X-Remote-Extra-Scopes",
            "X-MS-Client-Principal-Name",
            "X-Goog-Authenticated-User-Email",
            "X-Goog-IAP-JWT-Assertion",
            "Cf-Access-Authenticated-User-Email",
            "Tailscale-User-Login",
            "X-authentik-username",
        ]);
    }

    #[test]
    fn all_other_fields_pass() {
        for name in [
            "Accept",
            "Authorization",
            "Cookie",
            "Via",
            "Max-Forwards",
            "Origin",
            "Referer",
            "Range",
            "User-Agent",
            "Destination",
            "Traceparent",
            "X-Zip",
            "Content-Type",
            "X-Trip",
            "Ip",
            "My_Field",
            "X-Forward",
            "X-Request-ID",
            "X-Requested-With",
            "X-CSRF-Token",
            "X-Api-Key",
            "X-Auth-Token",
            "X-Callback-URL",
            "Proxy-Status",
            "Content-Lengths",
            "Hosts",
            "Ghost",
        ] {
            assert!(passes(name), "{name}");
        }
    }
}
