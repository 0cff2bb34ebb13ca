//! Text that arrives in parts, which may end within a character (RFC 6455 §8.1).

use super::fault::Fault;

/// From this length on, `simdutf8` is used; below it, the standard library is as fast.
const SIMD_MIN: usize = 256;

/// The beginning of a character within which the last part ended; at most three bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Utf8Validator {
    partial: [u8; 4],
    len: u8,
}

impl Utf8Validator {
    /// Takes the next part. Returns an error at the first byte that cannot be valid, even if its
    /// character is incomplete.
    pub(crate) fn push(&mut self, mut part: &[u8]) -> Result<(), Fault> {
        while self.len > 0 {
            let Some((byte, rest)) = part.split_first() else { return Ok(()) };
            part = rest;
            // At most four bytes: a character that is incomplete after four is invalid.
            self.partial[usize::from(self.len)] = *byte;
            self.len += 1;
            match std::str::from_utf8(&self.partial[..usize::from(self.len)]) {
                Ok(_) => self.len = 0,
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Fault::NotUtf8),
            }
        }
        let Some((valid, error_len)) = first_error(part) else { return Ok(()) };
        let rest = &part[valid..];
        if error_len.is_some() || rest.len() >= 4 {
            return Err(Fault::NotUtf8);
        }
        self.partial[..rest.len()].copy_from_slice(rest);
        self.len = rest.len() as u8;
        Ok(())
    }

    /// Returns whether the text may end here, not within a character.
    pub(crate) fn is_complete(&self) -> bool {
        self.len == 0
    }
}

/// Returns the position of the first error, and its length unless more bytes could complete the
/// character.
fn first_error(bytes: &[u8]) -> Option<(usize, Option<usize>)> {
    if bytes.len() < SIMD_MIN {
        let error = std::str::from_utf8(bytes).err()?;
        return Some((error.valid_up_to(), error.error_len()));
    }
    let error = simdutf8::compat::from_utf8(bytes).err()?;
    Some((error.valid_up_to(), error.error_len()))
}

/// Checks a complete text.
pub(crate) fn check_text(bytes: &[u8]) -> Result<&str, Fault> {
    if bytes.len() < SIMD_MIN {
        return std::str::from_utf8(bytes).map_err(|_| Fault::NotUtf8);
    }
    simdutf8::basic::from_utf8(bytes).map_err(|_| Fault::NotUtf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The naive answer: can any continuation make this a valid text?
    fn can_continue(bytes: &[u8]) -> bool {
        match std::str::from_utf8(bytes) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none(),
        }
    }

    #[test]
    fn the_first_invalid_byte_is_found_however_a_text_is_split() {
        let texts: [&[u8]; 12] = [
            b"",
            b"plain",
            "κόσμε".as_bytes(),
            "€uro and 𝄞 clef".as_bytes(),
            b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
            b"\xf4\x90\x80\x80",
            b"\xf8\x88\x80\x80\x80",
            b"\xc0\xaf",
            b"\xe0\x80\x80",
            b"a\x80",
            b"\xf0\x9d\x84",
            b"\xff",
        ];
        let long = [b"x".repeat(300), "ü€𝄞".repeat(60).into_bytes(), b"\xe2\x82".to_vec()].concat();
        for text in texts.into_iter().chain([&long[..]]) {
            for size in 1..=text.len().clamp(1, 270) {
                let (mut utf8, mut have, mut failed) = (Utf8Validator::default(), 0, false);
                for part in text.chunks(size) {
                    have += part.len();
                    failed = utf8.push(part).is_err();
                    assert_eq!(
                        failed,
                        !can_continue(&text[..have]),
                        "{text:?} by {size} at {have}"
                    );
                    if failed {
                        break;
                    }
                }
                let is_text = !failed && utf8.is_complete();
                assert_eq!(is_text, std::str::from_utf8(text).is_ok(), "{text:?} by {size}");
                assert_eq!(check_text(text).is_ok(), is_text);
            }
        }
    }
}
