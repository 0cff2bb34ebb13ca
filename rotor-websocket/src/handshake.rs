//! What both sides of the handshake say and look for (RFC 6455 §4).

use rotor_http::Fields;

/// The version of WebSocket that is spoken.
pub(crate) const VERSION: &str = "13";

/// The value of a field that must not come twice.
pub(crate) fn the_only<'a>(name: &str, fields: Fields<'a>) -> Option<&'a [u8]> {
    let mut values = fields.get_all(name);
    let first = values.next();
    if values.next().is_some() { None } else { first }
}
