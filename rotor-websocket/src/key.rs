//! `Key`: the key of a handshake and its proof (RFC 6455 §4).

use std::fmt;

use rotor_core::Scope;
use rotor_http::Fields;
use sha1_smol::Sha1;

use crate::handshake::single_value;

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The length of a key: 16 bytes in base64.
const KEY_LEN: usize = 24;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The key of a handshake (`Sec-WebSocket-Key`, RFC 6455 §4.1), from which the server computes the
/// proof that it has understood the request (`Sec-WebSocket-Accept`).
///
/// [`accept`](crate::accept) and [`Dial`](crate::Dial) handle both. This type is for proxies. Key
/// and proof belong to HTTP/1.1, and to one connection: HTTP/2 has neither (RFC 8441 §5.1). So a
/// proxy makes its own key for an HTTP/1.1 upstream and checks the proof, and it proves the key of
/// an HTTP/1.1 client, whatever protocol the other side speaks. All other fields of the handshake
/// (version, subprotocols, extensions) are for the two ends, and are forwarded.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_http as http; pub use rotor_websocket as websocket; }
/// use rotor::Scope;
/// use rotor::http::client::{Head, Request};
/// use rotor::http::{MessageError, Status, Version};
/// use rotor::websocket::Key;
///
/// /// Writes the fields of the handshake; keep the key to check the upstream's response.
/// fn ask<C>(request: &mut Request<'_>, scope: &Scope<'_, C>) -> Result<Option<Key>, MessageError> {
///     request.add_header("Upgrade", "websocket")?;
///     if request.version() == Version::Http2 {
///         return Ok(None); // `Upgrade` becomes an extended CONNECT
///     }
///     let key = Key::random(scope);
///     request.add_header("Sec-WebSocket-Key", key.as_str())?;
///     Ok(Some(key))
/// }
///
/// /// Returns whether the upstream has agreed.
/// fn agrees(head: &Head<'_>, key: Option<Key>) -> bool {
///     head.status() == Status::SWITCHING_PROTOCOLS
///         && key.is_none_or(|key| key.is_proven_in(head.fields()))
/// }
/// ```
#[doc(alias = "Sec-WebSocket-Key")]
#[doc(alias = "Sec-WebSocket-Accept")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; KEY_LEN]);

impl Key {
    /// Makes a key for one request, from 16 bytes of the loop's secure randomness. So nobody who
    /// has seen other keys can have prepared a response to this one.
    pub fn random<C>(scope: &Scope<'_, C>) -> Key {
        let mut key = [0; KEY_LEN];
        key.copy_from_slice(base64(&scope.secure_random::<16>()).as_bytes());
        Key(key)
    }

    /// Returns the key of a request. `None` if it has no key or several, or one that is not 16
    /// bytes in base64; respond to such a request with 400 (RFC 6455 §4.2.1).
    pub fn of(fields: Fields<'_>) -> Option<Key> {
        let key = single_value("Sec-WebSocket-Key", fields)?;
        if is_valid_key(key) { key.try_into().ok().map(Key) } else { None }
    }

    /// Returns the value of `Sec-WebSocket-Key`.
    pub fn as_str(&self) -> &str {
        // All bytes are base64 digits.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the value of `Sec-WebSocket-Accept`, which proves that a server has read this key
    /// and understands it.
    pub fn proof(&self) -> String {
        let mut sha = Sha1::new();
        sha.update(&self.0);
        sha.update(GUID);
        base64(&sha.digest().bytes())
    }

    /// Returns whether the response to a request with this key has its [proof](Key::proof) exactly
    /// once. If not, there is no WebSocket, whatever the status: the response may come from a
    /// cache, or belong to another request.
    pub fn is_proven_in(&self, fields: Fields<'_>) -> bool {
        single_value("Sec-WebSocket-Accept", fields) == Some(self.proof().as_bytes())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.as_str()).finish()
    }
}

/// Encodes bytes in base64 (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let wide = group.iter().fold(0u32, |wide, byte| wide << 8 | u32::from(*byte));
        let wide = wide << (8 * (3 - group.len()));
        for at in 0..4 {
            let is_padding = at > group.len();
            let digit = ALPHABET[(wide >> (18 - 6 * at) & 63) as usize];
            text.push(char::from(if is_padding { b'=' } else { digit }));
        }
    }
    text
}

/// Returns whether this is 16 bytes in base64.
fn is_valid_key(key: &[u8]) -> bool {
    let Some(digits) = key.strip_suffix(b"==") else { return false };
    // The last digit has two bits of the last byte, and four that should be zero. They are not in
    // the example of RFC 6455 §4.1, and nothing here depends on them (RFC 4648 §3.5).
    key.len() == KEY_LEN && digits.iter().all(|digit| ALPHABET.contains(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
    }

    #[test]
    fn the_proof_matches_the_rfc_example() {
        let key = Key(*b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(key.proof(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(key.as_str(), "dGhlIHNhbXBsZSBub25jZQ==");
    }

    #[test]
    fn keys_have_sixteen_bytes() {
        assert!(is_valid_key(b"dGhlIHNhbXBsZSBub25jZQ=="));
        assert!(is_valid_key(base64(&[0xff; 16]).as_bytes()));
        assert!(is_valid_key(b"AQIDBAUGBwgJCgsMDQ4PEC=="), "the example of RFC 6455 §4.1");
        for key in [
            "",
            "==",
            "dGhlIHNhbXBsZSBub25jZ-==",
            "dGhlIHNhbXBsZSBub25jZ===",
            "dGhlIHNhbXBsZSBub25j",
        ] {
            assert!(!is_valid_key(key.as_bytes()), "{key}");
        }
        assert!(
            !is_valid_key(base64(&[0; 15]).as_bytes())
                && !is_valid_key(base64(&[0; 17]).as_bytes())
        );
    }
}
