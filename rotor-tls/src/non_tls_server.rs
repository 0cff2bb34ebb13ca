//! Detects servers that do not speak TLS by their first bytes.

use crate::error::TlsError;

/// Returns whether the first bytes of a server belong to a record, which rustls can then process.
/// `false` means that this is not known yet.
///
/// # Errors
///
/// `PlainHttpServer` or `NotTls` if they cannot belong to a record.
pub(crate) fn is_record(bytes: &[u8]) -> Result<bool, TlsError> {
    const HTTP: &[u8] = b"HTTP/";
    match bytes {
        // A handshake, or an alert (RFC 8446 §5.1).
        [] | [21 | 22, ..] => Ok(true),
        bytes if bytes.starts_with(HTTP) => Err(TlsError::PlainHttpServer),
        bytes if HTTP.starts_with(bytes) => Ok(false),
        _ => Err(TlsError::NotTls),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_the_same_for_each_split() {
        let rows: [(&[u8], &str); 6] = [
            (b"HTTP/1.1 400 Bad Request\r\n", "PlainHttpServer"),
            (b"220 mail.example.com ESMTP\r\n", "NotTls"),
            (b"HELO", "NotTls"),
            (b"\x17\x03\x03\x00\x01x", "NotTls"),
            (b"\x15\x03\x03\x00\x02\x02\x28", "-"),
            (b"\x16\x03\x03\x00\x7a", "-"),
        ];
        for (bytes, expected) in rows {
            let said =
                |bytes| is_record(bytes).map_or_else(|error| format!("{error:?}"), |_| "-".into());
            assert_eq!(said(bytes), expected);
            let first = (0..=bytes.len()).map(|cut| said(&bytes[..cut])).find(|said| said != "-");
            assert_eq!(first.unwrap_or("-".into()), expected);
        }
    }
}
