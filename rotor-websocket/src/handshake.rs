//! What both sides of the handshake compute (RFC 6455 §4): keys and their proofs.

use sha1_smol::Sha1;

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The version of WebSocket that is spoken.
pub(crate) const VERSION: &str = "13";

/// The length of a key: 16 bytes in base64.
pub(crate) const KEY_LEN: usize = 24;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes in base64 (RFC 4648 §4).
pub(crate) fn base64(bytes: &[u8]) -> String {
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

/// Whether this is 16 bytes in base64.
pub(crate) fn is_key(key: &[u8]) -> bool {
    let Some(digits) = key.strip_suffix(b"==") else { return false };
    let Some((last, _)) = digits.split_last() else { return false };
    // The last digit has two bits of the last byte, and four that are 0.
    key.len() == KEY_LEN
        && digits.iter().all(|digit| ALPHABET.contains(digit))
        && matches!(last, b'A' | b'Q' | b'g' | b'w')
}

/// What shows that the server has understood a request with this key.
pub(crate) fn proof(key: &[u8]) -> String {
    let mut sha = Sha1::new();
    sha.update(key);
    sha.update(GUID);
    base64(&sha.digest().bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
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
    fn the_proof_is_that_of_the_rfc() {
        assert_eq!(proof(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn keys_are_of_sixteen_bytes() {
        assert!(is_key(b"dGhlIHNhbXBsZSBub25jZQ=="));
        assert!(is_key(base64(&[0xff; 16]).as_bytes()));
        for key in [
            "",
            "==",
            "dGhlIHNhbXBsZSBub25jZR==",
            "dGhlIHNhbXBsZSBub25jZ===",
            "dGhlIHNhbXBsZSBub25j",
        ] {
            assert!(!is_key(key.as_bytes()), "{key}");
        }
        assert!(!is_key(base64(&[0; 15]).as_bytes()) && !is_key(base64(&[0; 17]).as_bytes()));
    }
}
