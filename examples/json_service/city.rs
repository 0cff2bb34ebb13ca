//! Decodes and encodes the city in a query.
//!
//! It is strict: what is not one city is refused. A program with queries of more than one pair uses
//! `Pairs` of `rotor-service`, or the crate `form_urlencoded`, which also encodes.

/// The longest name of a city, in bytes. The longest existing one has 176.
const CITY_BYTES_MAX: usize = 200;

/// Returns the city of a query `city=NAME`, or `None` if the query contains anything else.
pub(crate) fn of_query(query: &str) -> Option<String> {
    let encoded = query.strip_prefix("city=").filter(|rest| !rest.contains(['&', '=']))?;
    let city = String::from_utf8(decode(encoded)?).ok()?;
    let is_name =
        !city.trim().is_empty() && city.len() <= CITY_BYTES_MAX && !city.contains(char::is_control);
    is_name.then(|| city.trim().to_owned())
}

/// Decodes `application/x-www-form-urlencoded`: `+` is a space, `%xx` a byte.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    Some(decoded)
}

/// Encodes a value for a query: everything but the unreserved characters of RFC 3986 becomes `%xx`.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte.into())
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
