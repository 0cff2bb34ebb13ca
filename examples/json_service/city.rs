//! The city of a query, from its encoding and into it.
//!
//! A program of yours takes a crate for this (`form_urlencoded`); it is spelled out here because
//! the examples have no dependencies of their own.

/// The longest name of a city, in octets. The longest that there is has 176.
const CITY_BYTES_MAX: usize = 200;

/// The one city of a query, `city=NAME`; none where the query says anything else.
pub(crate) fn of_query(query: &str) -> Option<String> {
    let encoded = query.strip_prefix("city=").filter(|rest| !rest.contains(['&', '=']))?;
    let city = String::from_utf8(decode(encoded)?).ok()?;
    let is_name =
        !city.trim().is_empty() && city.len() <= CITY_BYTES_MAX && !city.contains(char::is_control);
    is_name.then(|| city.trim().to_owned())
}

/// `application/x-www-form-urlencoded`: `+` is a space, `%xx` an octet.
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

/// The value of a query: all but the unreserved characters of RFC 3986 as `%xx`.
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
