//! Parts of the handshake that both sides need (RFC 6455 §4).

use rotor_http::Fields;

/// The supported version of WebSocket.
pub(crate) const VERSION: &str = "13";

/// Returns the value of a field that must occur only once; `None` if it occurs more often.
pub(crate) fn single_value<'a>(name: &str, fields: Fields<'a>) -> Option<&'a [u8]> {
    let mut values = fields.get_all(name);
    let first = values.next();
    if values.next().is_some() { None } else { first }
}
