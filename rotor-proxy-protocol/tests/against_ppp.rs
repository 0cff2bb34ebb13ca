//! Our reader compared with another one, the crate `ppp`. They read the headers that both accept
//! alike; where they differ, this file states which one is right. `doc/decisions/0061` has the
//! reasons.

use std::net::{IpAddr, SocketAddr};

use ppp::{HeaderResult, PartialResult, v1, v2};
use rotor_proxy_protocol::{ProxyHeader, Version};

/// The result of a whole header: the source and the destination of a connection, if it has them.
type Addresses = Option<(SocketAddr, SocketAddr)>;

fn parse_with_ppp(bytes: &[u8]) -> Option<Addresses> {
    let socket = |ip: IpAddr, port| SocketAddr::new(ip.to_canonical(), port);
    match HeaderResult::parse(bytes) {
        HeaderResult::V1(Ok(header)) => Some(match header.addresses {
            v1::Addresses::Tcp4(ip) => Some((
                socket(ip.source_address.into(), ip.source_port),
                socket(ip.destination_address.into(), ip.destination_port),
            )),
            v1::Addresses::Tcp6(ip) => Some((
                socket(ip.source_address.into(), ip.source_port),
                socket(ip.destination_address.into(), ip.destination_port),
            )),
            v1::Addresses::Unknown => None,
        }),
        HeaderResult::V2(Ok(header)) if header.command == v2::Command::Local => Some(None),
        HeaderResult::V2(Ok(header)) => Some(match header.addresses {
            v2::Addresses::IPv4(ip) => Some((
                socket(ip.source_address.into(), ip.source_port),
                socket(ip.destination_address.into(), ip.destination_port),
            )),
            v2::Addresses::IPv6(ip) => Some((
                socket(ip.source_address.into(), ip.source_port),
                socket(ip.destination_address.into(), ip.destination_port),
            )),
            v2::Addresses::Unix(_) | v2::Addresses::Unspecified => None,
        }),
        HeaderResult::V1(Err(_)) | HeaderResult::V2(Err(_)) => None,
    }
}

fn parse_with_ours(bytes: &[u8]) -> Option<Addresses> {
    let (header, _) = ProxyHeader::parse(bytes, usize::MAX).ok()??;
    Some(header.source().zip(header.destination()))
}

fn headers() -> Vec<Vec<u8>> {
    let socket = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let mut headers = vec![ProxyHeader::local().to_bytes()];
    for version in [Version::V1, Version::V2] {
        headers.push(ProxyHeader::unknown(version).to_bytes());
        for (one, other) in [
            ("192.0.2.1:50000", "198.51.100.1:443"),
            ("[2001:db8::1]:50000", "[::1]:443"),
            ("[2001:db8::1]:0", "198.51.100.1:65535"),
        ] {
            headers.push(ProxyHeader::proxied(version, socket(one), socket(other)).to_bytes());
        }
    }
    headers
}

#[test]
fn complete_headers_are_parsed_alike() {
    for bytes in headers() {
        assert_eq!(parse_with_ours(&bytes), parse_with_ppp(&bytes), "{}", bytes.escape_ascii());
        assert!(parse_with_ours(&bytes).is_some());
    }
}

#[test]
fn changed_headers_that_both_accept_are_parsed_alike() {
    let mut accepted = 0;
    for bytes in headers() {
        for at in 0..bytes.len() {
            for byte in 0..=u8::MAX {
                let mut changed = bytes.clone();
                changed[at] = byte;
                if let (Some(ours), Some(theirs)) =
                    (parse_with_ours(&changed), parse_with_ppp(&changed))
                {
                    assert_eq!(ours, theirs, "{}", changed.escape_ascii());
                    accepted += 1;
                }
            }
        }
    }
    assert!(accepted > 10_000, "{accepted}");
}

#[test]
fn the_known_differences_are_as_documented() {
    // Cut before the digits of the last port, the header is finally broken for `ppp`; but a
    // balancer may split it there.
    let cut = b"PROXY TCP4 192.0.2.1 198.51.100.1 50000 ";
    let result = HeaderResult::parse(cut);
    assert!(result.is_complete() && matches!(result, HeaderResult::V1(Err(_))), "{result:?}");
    assert_eq!(ProxyHeader::parse(cut, 1_024), Ok(None));

    // A port with a sign.
    let signed = b"PROXY TCP4 192.0.2.1 198.51.100.1 +1 2\r\n";
    assert!(parse_with_ppp(signed).is_some() && parse_with_ours(signed).is_none());
}
