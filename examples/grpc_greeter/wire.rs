//! The bodies of gRPC: messages after a prefix of five bytes. Here each message contains one
//! string.
//!
//! A program with more messages would use a crate for protocol buffers. These two have one field
//! each, `string name = 1` and `string message = 1`.

/// The maximum size of a message, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The tag of field 1, with the type of fields that begin with their length.
const FIELD_ONE: u8 = 0x0a;

/// The status codes of gRPC, as they are written in trailers.
pub(crate) mod status {
    pub(crate) const OK: &str = "0";
    pub(crate) const INVALID_ARGUMENT: &str = "3";
    pub(crate) const RESOURCE_EXHAUSTED: &str = "8";
    pub(crate) const UNIMPLEMENTED: &str = "12";
}

/// Returns a message with this string, framed.
pub(crate) fn message(text: &str) -> Vec<u8> {
    let mut field = vec![FIELD_ONE];
    let mut len = text.len();
    while len >= 0x80 {
        field.push(len as u8 | 0x80);
        len >>= 7;
    }
    field.push(len as u8);
    field.extend_from_slice(text.as_bytes());
    // 0 means that it is not compressed.
    let mut framed = vec![0];
    framed.extend_from_slice(&(field.len() as u32).to_be_bytes());
    framed.extend_from_slice(&field);
    framed
}

/// Takes the string of the next message out of the received bytes. Returns `None` until the message
/// is complete.
///
/// # Errors
///
/// The status with which the call ends: the message is compressed, too long, or malformed.
pub(crate) fn take(unread: &mut Vec<u8>) -> Result<Option<String>, &'static str> {
    let Some(&[compressed, l1, l2, l3, l4]) = unread.first_chunk() else { return Ok(None) };
    let len = u32::from_be_bytes([l1, l2, l3, l4]) as usize;
    if compressed != 0 {
        return Err(status::UNIMPLEMENTED);
    }
    if len > MESSAGE_BYTES_MAX {
        return Err(status::RESOURCE_EXHAUSTED);
    }
    if unread.len() < 5 + len {
        return Ok(None);
    }
    let text = string_of(&unread[5..5 + len]).ok_or(status::INVALID_ARGUMENT);
    unread.drain(..5 + len);
    text.map(Some)
}

/// Returns the string in field 1, or an empty string if there is no such field.
fn string_of(message: &[u8]) -> Option<String> {
    let Some((&tag, mut rest)) = message.split_first() else { return Some(String::new()) };
    let (mut len, mut shift) = (0usize, 0);
    while let Some((&octet, behind)) = rest.split_first() {
        rest = behind;
        len |= usize::from(octet & 0x7f) << shift;
        shift += 7;
        if octet < 0x80 || shift > 21 {
            break;
        }
    }
    // These messages have no other field.
    (tag == FIELD_ONE && rest.len() == len).then(|| String::from_utf8(rest.to_vec()).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_framed_message_is_taken_once_it_is_complete() {
        for text in ["", "x", &"y".repeat(127), &"z".repeat(128), &"long".repeat(5000)] {
            let framed = message(text);
            for len in [0, 1, 4, 5, framed.len() - 1] {
                assert_eq!(take(&mut framed[..len].to_vec()), Ok(None));
            }
            let mut both = [&framed[..], b"\0"].concat();
            assert_eq!(take(&mut both), Ok(Some(text.to_owned())));
            assert_eq!(both, b"\0");
        }
    }

    #[test]
    fn a_malformed_message_has_its_status() {
        for (framed, status) in [
            (&[1, 0, 0, 0, 0][..], status::UNIMPLEMENTED),
            (&[0, 1, 0, 0, 0], status::RESOURCE_EXHAUSTED),
            (&[0, 0, 0, 0, 2, 0x12, 0], status::INVALID_ARGUMENT),
            (&[0, 0, 0, 0, 2, 0x0a, 1], status::INVALID_ARGUMENT),
            (&[0, 0, 0, 0, 3, 0x0a, 1, 0xff], status::INVALID_ARGUMENT),
        ] {
            assert_eq!(take(&mut framed.to_vec()), Err(status));
        }
    }
}
