//! The payload of a close frame: a code, and a reason in UTF-8 (RFC 6455 §5.5.1).

use super::code::Code;
use super::fault::Fault;

/// How many bytes the payload of a control frame may have.
pub(crate) const CONTROL_BYTES_MAX: usize = 125;

/// Reads the payload of a close frame: its code, which is [`Code::NO_STATUS`] if there is none, and
/// its reason.
pub(crate) fn read(payload: &[u8]) -> Result<(Code, &str), Fault> {
    let Some((number, reason)) = payload.split_first_chunk::<2>() else {
        return if payload.is_empty() { Ok((Code::NO_STATUS, "")) } else { Err(Fault::CloseCode) };
    };
    let code = Code::new(u16::from_be_bytes(*number)).ok_or(Fault::CloseCode)?;
    let reason = std::str::from_utf8(reason).map_err(|_| Fault::NotUtf8)?;
    Ok((code, reason))
}

/// Returns the payload of a close frame, with as much of the reason as fits; empty for
/// [`Code::NO_STATUS`].
pub(crate) fn write(code: Code, reason: &str) -> Vec<u8> {
    if code == Code::NO_STATUS {
        return Vec::new();
    }
    let mut len = reason.len().min(CONTROL_BYTES_MAX - 2);
    while !reason.is_char_boundary(len) {
        len -= 1;
    }
    [&code.number().to_be_bytes(), &reason.as_bytes()[..len]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_read_or_refused() {
        for (payload, expected) in [
            (&b""[..], Ok((1005, ""))),
            (b"\x03", Err(Fault::CloseCode)),
            (b"\x03\xe8", Ok((1000, ""))),
            (b"\x03\xe8bye \xc3\xbc", Ok((1000, "bye ü"))),
            (b"\x03\xee", Err(Fault::CloseCode)),
            (b"\x03\xe8\xff", Err(Fault::NotUtf8)),
            (b"\x0f\xa0x", Ok((4000, "x"))),
        ] {
            let read = read(payload).map(|(code, reason)| (code.number(), reason));
            assert_eq!(read, expected, "{payload:?}");
        }
    }

    #[test]
    fn a_written_payload_fits_and_is_read_back() {
        for reason in ["", "done", &"ü".repeat(61), &"ü".repeat(62), &"x".repeat(300)] {
            let payload = write(Code::NORMAL, reason);
            assert!(payload.len() <= CONTROL_BYTES_MAX);
            let (code, read) = read(&payload).expect("it is in order");
            assert_eq!(code, Code::NORMAL);
            assert!(reason.starts_with(read) && read.len() + 1 >= reason.len().min(123));
        }
        assert_eq!(write(Code::NO_STATUS, "lost"), b"");
    }
}
