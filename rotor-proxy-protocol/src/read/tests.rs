use super::*;

const MAX: usize = 1_024;

type ParseResult = Result<Option<(ProxyHeader, usize)>, ProxyError>;

/// The result at the first byte that decides it. All longer prefixes must have the same result.
fn parse_prefixes(bytes: &[u8], bytes_max: usize) -> ParseResult {
    let mut first = Ok(None);
    for end in 0..=bytes.len() {
        let now = ProxyHeader::parse(&bytes[..end], bytes_max);
        if first == Ok(None) {
            first = now;
        } else {
            assert_eq!(now, first, "{} cut at {end}", bytes.escape_ascii());
        }
    }
    first
}

fn binary(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let len = u16::try_from(block.len()).expect("it is short");
    [&SIGNATURE[..], &[command, family], &len.to_be_bytes(), block].concat()
}

fn socket(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn parse_complete(bytes: &[u8]) -> (ProxyHeader, usize) {
    parse_prefixes(bytes, MAX).expect("it is fine").expect("it is whole")
}

/// Twelve bytes of addresses, followed by fields.
fn tcp4(fields: &[u8]) -> Vec<u8> {
    let addresses = [192, 0, 2, 1, 198, 51, 100, 1, 0xC3, 0x50, 0x01, 0xBB];
    binary(0x21, family::TCP4, &[&addresses[..], fields].concat())
}

#[test]
fn lines_name_both_endpoints() {
    for (line, source, destination) in [
        ("TCP4 192.0.2.1 198.51.100.1 1 65535", "192.0.2.1:1", "198.51.100.1:65535"),
        ("TCP4 0.0.0.0 255.255.255.255 0 0", "0.0.0.0:0", "255.255.255.255:0"),
        ("TCP6 2001:db8::1 ::1 50000 443", "[2001:db8::1]:50000", "[::1]:443"),
        ("TCP6 2001:DB8:0:0:0:0:0:1 ::1 1 2", "[2001:db8::1]:1", "[::1]:2"),
        ("TCP6 ::ffff:192.0.2.1 ::1 1 2", "192.0.2.1:1", "[::1]:2"),
    ] {
        let bytes = format!("PROXY {line}\r\nGET / HTTP/1.1\r\n\r\n").into_bytes();
        let (header, len) = parse_complete(&bytes);
        assert_eq!(len, "PROXY ".len() + line.len() + 2);
        assert_eq!(header, ProxyHeader::proxied(Version::V1, socket(source), socket(destination)));
    }
    for bytes in [&b"PROXY UNKNOWN\r\n"[..], b"PROXY UNKNOWN \xFF any\r thing\r\n"] {
        assert_eq!(parse_complete(bytes), (ProxyHeader::unknown(Version::V1), bytes.len()));
    }
}

#[test]
fn malformed_lines_are_refused() {
    for line in [
        "",
        " ",
        "TCP4",
        "TCP5 1.1.1.1 2.2.2.2 1 2",
        "tcp4 1.1.1.1 2.2.2.2 1 2",
        "UNKNOWNS",
        "UDP4 1.1.1.1 2.2.2.2 1 2",
        "TCP4 1.1.1.1 2.2.2.2 1",
        "TCP4 1.1.1.1 2.2.2.2 1 2 3",
        "TCP4 1.1.1.1 2.2.2.2 1 2 ",
        "TCP4  1.1.1.1 2.2.2.2 1 2",
        "TCP4 1.1.1.01 2.2.2.2 1 2",
        "TCP4 1.1.1 2.2.2.2 1 2",
        "TCP4 ::1 ::1 1 2",
        "TCP6 1.1.1.1 2.2.2.2 1 2",
        "TCP6 [::1] ::1 1 2",
        "TCP6 fe80::1%eth0 ::1 1 2",
        "TCP4 1.1.1.256 2.2.2.2 1 2",
        "TCP4 1.1.1.1 2.2.2.2 01 2",
        "TCP4 1.1.1.1 2.2.2.2 +1 2",
        "TCP4 1.1.1.1 2.2.2.2 1 65536",
        "TCP4 1.1.1.1 2.2.2.2 -1 2",
        "TCP4 1.1.1.1 2.2.2.2  2",
        "TCP4 1.1.1.1 2.2.2.2 1 2\r",
    ] {
        let bytes = format!("PROXY {line}\r\n").into_bytes();
        assert!(matches!(parse_prefixes(&bytes, MAX), Err(ProxyError::Broken(_))), "{line:?}");
    }
    for bytes in [&b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\n"[..], b"PROXY UNKNOWN\n"] {
        assert!(matches!(parse_prefixes(bytes, MAX), Err(ProxyError::Broken(_))));
    }
    assert!(matches!(
        parse_prefixes(b"PROXY TCP4 \xFF 2.2.2.2 1 2\r\n", MAX),
        Err(ProxyError::Broken(_))
    ));
}

#[test]
fn other_first_bytes_are_not_a_header() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"proxy ",
        b"PROXYX",
        b"PROXY\r\n",
        b"\x16\x03\x01",
        b"\r\n\r\n\0\r\nQUIX",
        b"\0",
    ] {
        assert_eq!(
            parse_prefixes(bytes, MAX),
            Err(ProxyError::NoHeader),
            "{}",
            bytes.escape_ascii()
        );
    }
    for bytes in [
        &b""[..],
        b"PROX",
        b"PROXY ",
        b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0",
    ] {
        assert_eq!(parse_prefixes(bytes, MAX), Ok(None), "{}", bytes.escape_ascii());
    }
}

#[test]
fn binary_headers_name_both_endpoints() {
    let (header, len) = parse_complete(&[&tcp4(&[])[..], b"GET"].concat());
    assert_eq!(len, 28);
    assert_eq!((header.version(), header.is_local()), (Version::V2, false));
    assert_eq!(header.source(), Some(socket("192.0.2.1:50000")));
    assert_eq!(header.destination(), Some(socket("198.51.100.1:443")));

    let mut block = [0; 36];
    (block[15], block[31], block[33], block[35]) = (1, 2, 3, 4);
    for family in [family::TCP6, family::UDP6] {
        let (header, _) = parse_complete(&binary(0x21, family, &block));
        assert_eq!(header.source(), Some(socket("[::1]:3")));
        assert_eq!(header.destination(), Some(socket("[::2]:4")));
    }
    for (command, family, block, says) in [
        (0x20, 0x00, &[][..], Endpoints::Local),
        // "The receiver must accept this connection as valid and must use the real connection
        // endpoints and discard the protocol block including the family".
        (0x20, 0xFF, b"anything", Endpoints::Local),
        (0x21, 0x00, b"anything", Endpoints::Unknown),
        (0x21, 0x31, &[b'/'; 216], Endpoints::Unknown),
        (0x21, 0x32, &[0; 216], Endpoints::Unknown),
    ] {
        let bytes = binary(command, family, block);
        let (header, len) = parse_complete(&bytes);
        assert_eq!((header.endpoints, len, header.fields().count()), (says, bytes.len(), 0));
    }
}

#[test]
fn malformed_binary_headers_are_refused() {
    for (command, family, block) in [
        (0x11, 0x11, &[0; 12][..]),
        (0x22, 0x11, &[0; 12]),
        (0x31, 0x11, &[0; 12]),
        (0x21, 0x10, &[0; 12]),
        (0x21, 0x13, &[0; 12]),
        (0x21, 0x41, &[0; 12]),
        (0x21, 0x11, &[0; 11]),
        (0x21, 0x21, &[0; 35]),
        (0x21, 0x31, &[0; 215]),
    ] {
        let bytes = binary(command, family, block);
        assert!(
            matches!(parse_prefixes(&bytes, MAX), Err(ProxyError::Broken(_))),
            "{command:x} {family:x}"
        );
    }
    for fields in [
        &[1][..],
        &[1, 0],
        &[1, 0, 1],
        &[1, 0, 0, 9],
        &[3, 0, 3, 0, 0, 0],
        &[0x20, 0, 4, 1, 0, 0, 0],
        &[2, 0, 1, 0xFF],
        // A field inside the TLS field that extends beyond it.
        &[0x20, 0, 8, 1, 0, 0, 0, 0, 0x21, 0, 1],
        &[&[5, 0, 129][..], &[0; 129]].concat(),
    ] {
        assert!(
            matches!(parse_prefixes(&tcp4(fields), MAX), Err(ProxyError::Broken(_))),
            "{fields:?}"
        );
    }
}

#[test]
fn an_error_is_reported_at_the_first_deciding_byte() {
    let begin = |rest: &[u8]| ProxyHeader::parse(&[&SIGNATURE[..], rest].concat(), MAX);
    for rest in [&[0x21][..], &[0x20, 0xFF], &[0x21, 0x11], &[0x21, 0x11, 0]] {
        assert_eq!(begin(rest), Ok(None), "{rest:?}");
    }
    for rest in [&[0x22][..], &[0x11], &[0x21, 0x10], &[0x21, 0x13], &[0x21, 0x11, 0, 11]] {
        assert!(matches!(begin(rest), Err(ProxyError::Broken(_))), "{rest:?}");
    }
}

#[test]
fn a_header_has_a_maximum_length() {
    let line = |len: usize| {
        let begin = "PROXY UNKNOWN ";
        format!("{begin}{}\r\n", "x".repeat(len - begin.len() - 2)).into_bytes()
    };
    for (len, max, is_fine) in [
        (107, MAX, true),
        (108, MAX, false),
        (50, 50, true),
        (51, 50, false),
        (16, 0, true),
        (17, 0, false),
    ] {
        let result = parse_prefixes(&line(len), max);
        assert_eq!(result.is_ok(), is_fine, "{len} of {max}: {result:?}");
        assert!(is_fine || result == Err(ProxyError::TooLarge));
    }
    for (fields, max, is_fine) in
        [(100, 131, true), (100, 130, false), (MAX, MAX, false), (65_000, 70_000, true)]
    {
        let mut bytes = vec![4];
        bytes.extend(u16::to_be_bytes(fields as u16));
        bytes.resize(3 + fields, 0);
        let bytes = tcp4(&bytes);
        let result = ProxyHeader::parse(&bytes, max);
        assert_eq!(result.is_ok(), is_fine, "{fields} of {max}: {result:?}");
        // It is refused by its length, before it has arrived.
        assert!(is_fine || ProxyHeader::parse(&bytes[..16], max) == Err(ProxyError::TooLarge));
    }
    // An endless line is refused as soon as it can no longer end within the limit.
    for (max, longest) in [(MAX, LINE_BYTES_MAX), (50, 50), (0, FIXED_BYTES)] {
        let endless = [b"PROXY UNKNOWN ", &[b'x'; 200][..]].concat();
        assert_eq!(ProxyHeader::parse(&endless[..longest - 1], max), Ok(None));
        assert_eq!(ProxyHeader::parse(&endless[..longest], max), Err(ProxyError::TooLarge));
    }
    assert_eq!(
        parse_prefixes(&[b"PROXY UNKNOWN ", &[b'x'; 200][..]].concat(), MAX),
        Err(ProxyError::TooLarge)
    );
}

#[test]
fn written_headers_are_parsed_back() {
    let v4 = (socket("192.0.2.1:50000"), socket("198.51.100.1:443"));
    let v6 = (socket("[2001:db8::1]:50000"), socket("[::1]:443"));
    let mixed = (socket("[2001:db8::1]:50000"), socket("198.51.100.1:443"));
    for version in [Version::V1, Version::V2] {
        for (source, destination) in [v4, v6, mixed] {
            let header = ProxyHeader::proxied(version, source, destination);
            let bytes = header.to_bytes();
            assert_eq!(parse_complete(&bytes), (header, bytes.len()));
        }
        let header = ProxyHeader::unknown(version);
        assert_eq!(parse_complete(&header.to_bytes()).0, header);
    }
    assert_eq!(parse_complete(&ProxyHeader::local().to_bytes()).0, ProxyHeader::local());
    let longest = socket("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
    assert!(ProxyHeader::proxied(Version::V1, longest, longest).to_bytes().len() <= LINE_BYTES_MAX);
}

#[test]
fn fields_are_parsed_and_the_checksum_covers_everything() {
    let header = ProxyHeader::proxied(Version::V2, socket("192.0.2.1:1"), socket("192.0.2.2:2"));
    let tls = [
        &[0b111, 0, 0, 0, 0][..],
        &[0x21, 0, 7],
        b"TLSv1.3",
        &[0x22, 0, 1],
        b"x",
        &[0x23, 0, 1],
        b"y",
    ]
    .concat();
    let add =
        |header: ProxyHeader, kind, value: &[u8]| header.with_field(kind, value).expect("it fits");
    let header = add(header, 1, b"h2").with_checksum().expect("it fits");
    let header = add(add(add(header, 2, b"example.com"), 5, b"id"), 0x20, &tls);
    let header = add(add(header, 0x30, b"ns"), 0xEA, b"own");
    let bytes = header.to_bytes();
    let (read, _) = parse_complete(&bytes);
    assert_eq!((read.alpn(), read.authority()), (Some(&b"h2"[..]), Some("example.com")));
    assert_eq!((read.unique_id(), read.namespace()), (Some(&b"id"[..]), Some("ns")));
    assert_eq!((read.field(0xEA), read.fields().count()), (Some(&b"own"[..]), 7));
    let tls = read.tls().expect("it was told");
    assert!(tls.is_encrypted() && tls.is_verified());
    assert_eq!(
        (tls.version(), tls.common_name(), tls.cipher()),
        (Some("TLSv1.3"), Some("x"), Some("y"))
    );
    assert_eq!(read.to_bytes(), bytes);
    // One bit flipped anywhere behind the length.
    for at in 16..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(ProxyHeader::parse(&changed, MAX).is_err(), "changed at {at}");
    }
}

#[test]
fn fields_that_cannot_be_sent_are_refused() {
    use crate::header::FieldError::{NoFields, TooLong};
    let (one, other) = (socket("192.0.2.1:1"), socket("192.0.2.2:2"));
    for header in [
        ProxyHeader::local(),
        ProxyHeader::unknown(Version::V2),
        ProxyHeader::proxied(Version::V1, one, other),
    ] {
        assert_eq!(header.with_field(1, b"h2"), Err(NoFields));
    }
    let header = ProxyHeader::proxied(Version::V2, one, other);
    let full = header.clone().with_field(9, &vec![0; 64_997]).expect("65,000 in all");
    assert_eq!(full.to_bytes().len(), 65_028);
    assert_eq!(full.with_field(9, b""), Err(TooLong));
    assert_eq!(header.with_field(9, &vec![0; 70_000]), Err(TooLong));
}

#[test]
fn fields_that_receivers_refuse_cannot_be_added() {
    let header = || ProxyHeader::proxied(Version::V2, socket("192.0.2.1:1"), socket("192.0.2.2:2"));
    for (kind, value, is_valid) in [
        (2, &b"a.example"[..], true),
        (2, b"\xff", false),
        (3, &[0; 4], true),
        (3, &[0; 3], false),
        (5, &[7; 128], true),
        (5, &[7; 129], false),
        (0x20, &[1, 0, 0, 0, 0], true),
        (0x20, &[1, 0, 0, 0, 0, 0x21, 0, 9], false),
        (0x20, &[1, 0, 0, 0], false),
        (0xe0, b"\xff", true),
    ] {
        let made = header().with_field(kind, value);
        assert_eq!(made.is_ok(), is_valid, "{kind} {value:?}");
        let Ok(made) = made else { continue };
        let bytes = made.with_checksum().expect("it fits").to_bytes();
        assert!(ProxyHeader::parse(&bytes, 1_024).is_ok(), "{kind} {value:?}");
    }
    let twice = header().with_checksum().and_then(ProxyHeader::with_checksum).expect("it fits");
    assert_eq!(twice.fields().count(), 1);
}
