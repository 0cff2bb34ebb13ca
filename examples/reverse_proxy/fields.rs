//! Which fields pass a proxy, and which do not (RFC 9110 §7.6).

use rotor::http::h1::{Fields, has_token};

use super::message::Lines;

/// Fields that are for one connection only, whatever `Connection` says of them; and those that frame a message, which are
/// always written anew.
const HOP_BY_HOP: [&str; 11] = [
    "Connection",
    "Content-Length",
    "Expect",
    "Host",
    "Keep-Alive",
    "Proxy-Authorization",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
];

/// Fields that `Connection` must not take away: requests would mean something else behind the proxy than before it.
const NOT_NOMINATED: [&str; 6] =
    ["Host", "Content-Length", "Transfer-Encoding", "Authorization", "Cookie", "Forwarded"];

/// The end-to-end fields of a message, in order.
pub(crate) fn end_to_end(fields: Fields<'_>, is_kept: impl Fn(&str) -> bool) -> Lines {
    let nominated = |name: &str| fields.get_all("Connection").any(|value| has_token(value, name));
    fields
        .iter()
        .filter(|field| !HOP_BY_HOP.iter().any(|hop| field.name.eq_ignore_ascii_case(hop)))
        .filter(|field| is_kept(field.name) && !nominated(field.name))
        .map(|field| (field.name.to_owned(), field.value.to_owned()))
        .collect()
}

/// Whether a field says where a request comes from. What a client says of that is not to be trusted.
///
/// `X_Forwarded_For` is no other name to those who find fields as variables: CGI (RFC 3875 §4.1.18) makes both
/// `HTTP_X_FORWARDED_FOR`, and so do the gateways of many languages.
pub(crate) fn is_forwarding(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    name.starts_with("x-forwarded-") || name == "forwarded" || name == "x-real-ip"
}

/// Whether `Connection` nominates a field that it must not.
pub(crate) fn nominates_wrongly(fields: Fields<'_>) -> bool {
    fields
        .list("Connection")
        .filter_map(|name| std::str::from_utf8(name).ok())
        .any(|name| is_forwarding(name) || NOT_NOMINATED.iter().any(|field| name.eq_ignore_ascii_case(field)))
}

/// Whether `Upgrade` names the WebSocket; it may name other protocols beside, which are not passed on.
pub(crate) fn names_websocket(fields: Fields<'_>) -> bool {
    fields.get_all("Upgrade").any(|value| has_token(value, "websocket"))
}
