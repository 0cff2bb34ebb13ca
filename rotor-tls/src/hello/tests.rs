//! How a server reads the first bytes, however they are split.

use std::sync::Arc;

use super::*;

/// The hello of a rustls client for this name, with `record_bytes` bytes in each record.
fn hello(name: &str, record_bytes: usize) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::CryptoProvider::clone(&crate::provider::provider()));
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("there are versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from(name).expect("it is a name").to_owned();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).expect("it begins");
    let mut record = Vec::new();
    client.write_tls(&mut record).expect("a vector takes all");
    let mut records = Vec::new();
    for fragment in record[RECORD_HEADER..].chunks(record_bytes) {
        records.extend([TYPE_HANDSHAKE, 3, 1, 0, fragment.len() as u8]);
        let at = records.len() - 2;
        records[at..].copy_from_slice(&(fragment.len() as u16).to_be_bytes());
        records.extend(fragment);
    }
    records
}

fn examine_byte_by_byte(bytes: &[u8]) -> HelloResult {
    let mut reader = HelloReader::default();
    for end in 0..bytes.len() {
        assert_eq!(reader.examine(&bytes[..end]), HelloResult::Incomplete, "{end} bytes");
    }
    reader.examine(bytes)
}

#[test]
fn a_hello_is_found_in_any_split_of_bytes_and_records() {
    for record_bytes in [1, 2, 3, 5, 17, 16 * 1024] {
        let bytes = hello("Example.COM", record_bytes);
        let expected = HelloResult::Hello { name: Some("example.com".into()) };
        assert_eq!(HelloReader::default().examine(&bytes), expected, "{record_bytes}");
        assert_eq!(examine_byte_by_byte(&bytes), expected, "{record_bytes}");
        // Bytes behind the hello are ignored.
        let longer = [&bytes[..], b"\x17\x03\x03"].concat();
        assert_eq!(HelloReader::default().examine(&longer), expected);
    }
}

#[test]
fn a_trailing_dot_is_removed_from_a_name() {
    let mut bytes = hello("example.comx", usize::MAX);
    let at = bytes.windows(4).position(|four| four == b"comx").expect("it is in clear");
    bytes[at + 3] = b'.';
    let expected = HelloResult::Hello { name: Some("example.com".into()) };
    assert_eq!(HelloReader::default().examine(&bytes), expected);
}

#[test]
fn an_address_is_not_a_server_name() {
    let bytes = hello("192.0.2.1", 16 * 1024);
    assert_eq!(HelloReader::default().examine(&bytes), HelloResult::Hello { name: None });
}

#[test]
fn other_first_bytes_are_classified_early() {
    for (bytes, expected) in [
        (&b"GET / HTTP/1.1\r\n"[..4], HelloResult::Incomplete),
        (b"GET /", HelloResult::PlainHttp),
        (b"GET http:/", HelloResult::Incomplete),
        (b"GET http://a/", HelloResult::PlainHttp),
        (b"GET HTTPS:/", HelloResult::Incomplete),
        (b"GET HTTPS://", HelloResult::PlainHttp),
        (b"OPTIONS *", HelloResult::PlainHttp),
        (b"CONNECT a:443", HelloResult::PlainHttp),
        (b"PROXY TCP4 192.0.2.1", HelloResult::NotTls),
        (b"EHLO mail.example", HelloResult::NotTls),
        (b"EHLO host.example", HelloResult::NotTls),
        (b"PRI * HTTP/2.0", HelloResult::PlainHttp),
        (b"VERSION-CONTROL /", HelloResult::NotTls),
        (b"PROPPATCH /", HelloResult::PlainHttp),
        (b"GE", HelloResult::Incomplete),
        (b"GE ", HelloResult::NotTls),
        (b"GET/", HelloResult::NotTls),
        (b"AAAAAAAAAAAAAAAAA", HelloResult::NotTls),
        (b"AAAAAAAAAAAAAAAA", HelloResult::Incomplete),
        (b"\x80\x2e\x01\x00\x02", HelloResult::NotTls),
        (b"\0", HelloResult::NotTls),
        (b"\x15\x03\x01\0\x02\x01\0", HelloResult::NotTls),
        // rustls refuses the rest.
        (b"\x16\x03\x01\xff\xff", HelloResult::Hello { name: None }),
        (b"\x16\x03\x01\0\0", HelloResult::Hello { name: None }),
        (b"\x16\x03\x01\0\x04\x02\0\0\0", HelloResult::Hello { name: None }),
        (b"\x16\x03\x01\0\x01\x01\x14\x03\x03\0\x01\x01", HelloResult::Hello { name: None }),
        (b"\x16\x03\x01\0\x04\x01\x01\0\0", HelloResult::TooLarge),
        (b"\x16\x03\x01\0\x04\x01\0\xff\xfc", HelloResult::Incomplete),
    ] {
        assert_eq!(HelloReader::default().examine(bytes), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn an_endless_hello_becomes_too_large() {
    // One of the longest hellos that may be announced, one byte per record.
    let mut bytes = Vec::new();
    let mut reader = HelloReader::default();
    for byte in [1, 0, 0xff, 0xfc].into_iter().chain(std::iter::repeat(0)) {
        bytes.extend([TYPE_HANDSHAKE, 3, 1, 0, 1, byte]);
        match reader.examine(&bytes) {
            HelloResult::Incomplete => assert!(bytes.len() <= HELLO_BYTES_MAX),
            other => return assert_eq!(other, HelloResult::TooLarge),
        }
    }
}

#[test]
fn a_truncated_hello_yields_no_wrong_name() {
    let bytes = hello("example.com", 16 * 1024);
    let message = &bytes[RECORD_HEADER..];
    for end in 0..message.len() {
        let cut = server_name(&message[..end]);
        assert!(cut.is_none() || cut.as_deref() == Some("example.com"));
    }
}
