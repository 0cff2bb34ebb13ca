//! `Authority`: a host with an optional port (`uri-host [":" port]`): the value of `Host`, the
//! authority of an absolute target, or the target of CONNECT.

use std::net::Ipv6Addr;
use std::str;

use super::grammar::{self, HOST};
use super::swar;

/// A host with an optional port (RFC 9110 §7.2, RFC 3986 §3.2), checked.
#[doc(alias = "uri-host")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Authority<'a> {
    text: &'a [u8],
    host_len: usize,
}

impl<'a> Authority<'a> {
    /// Checks and splits an authority. Returns `None` for user information, an empty host, a list,
    /// whitespace, bad brackets, and a port that is not a number from 1 to 65535. An empty port
    /// (`host:`) counts as no port.
    #[inline(always)]
    pub fn parse(text: &'a [u8]) -> Option<Authority<'a>> {
        // The fast path, for nearly all hosts: letters, digits, dots, hyphens.
        let mut host_len = swar::host_len(text);
        if text.get(host_len).is_some_and(|&end| end != b':') {
            host_len = special_host_len(text)?;
        }
        if host_len == 0 {
            return None;
        }
        match &text[host_len..] {
            // RFC 3986 §3.2.3: an empty port stands for the default.
            [] | [b':'] => {}
            [b':', digits @ ..] if ends_with_port(text, digits.len()) => {}
            _ => return None,
        }
        Some(Authority { text, host_len })
    }

    /// Returns host and port as they were sent.
    pub fn as_str(&self) -> &'a str {
        ascii(self.text)
    }

    /// Returns the host; an IPv6 address keeps its brackets.
    pub fn host(&self) -> &'a str {
        ascii(&self.text[..self.host_len])
    }

    /// Returns the port, if one is given.
    pub fn port(&self) -> Option<u16> {
        // Converted only on demand: many requests have a port, but hardly any server asks for it.
        let digits = self.text.get(self.host_len + 1..)?;
        grammar::parse_decimal(digits).and_then(|port| u16::try_from(port).ok())
    }
}

fn ascii(text: &[u8]) -> &str {
    str::from_utf8(text).expect("an authority holds only ASCII: `parse` has checked every byte")
}

/// Returns whether the last `digits` bytes of `text` are a port. RFC 3986 §3.2.3 allows any digits,
/// but no connection can be made to port 0, or to one above 65535.
#[inline]
fn ends_with_port(text: &[u8], digits: usize) -> bool {
    match text.last_chunk() {
        Some(&last) if digits <= 8 => {
            swar::are_last_digits_within(last, digits, *b"00000001"..=*b"00065535")
        }
        _ => {
            let port = grammar::parse_decimal(&text[text.len() - digits..]);
            port.is_some_and(|port| (1..=0xffff).contains(&port))
        }
    }
}

/// Returns the length of a host that is an IPv6 address in brackets or contains percent-encoded
/// bytes.
#[cold]
fn special_host_len(text: &[u8]) -> Option<usize> {
    if text[0] == b'[' {
        let end = text.iter().position(|&byte| byte == b']')?;
        let address = str::from_utf8(&text[1..end]).ok()?;
        // Future forms (`v1.x`) and zones are refused: no server here has such an address.
        address.parse::<Ipv6Addr>().ok()?;
        return Some(end + 1);
    }
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += match byte {
            b':' => break,
            b'%' if text
                .get(at + 1..at + 3)
                .is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit)) =>
            {
                3
            }
            _ if grammar::is(byte, HOST) => 1,
            _ => return None,
        };
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_split() {
        for (text, host, port) in [
            ("a", "a", None),
            ("example.com:8080", "example.com", Some(8080)),
            ("example.com:", "example.com", None),
            ("127.0.0.1:1", "127.0.0.1", Some(1)),
            ("[::1]", "[::1]", None),
            ("[2001:db8::1]:65535", "[2001:db8::1]", Some(65535)),
            ("caf%C3%A9:80", "caf%C3%A9", Some(80)),
            ("a:0080", "a", Some(80)),
        ] {
            let authority = Authority::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((authority.host(), authority.port()), (host, port));
            assert_eq!(authority.as_str(), text);
        }
    }

    #[test]
    fn invalid_authorities_are_rejected() {
        for text in [
            "",
            ":",
            ":80",
            "u@a",
            "u:p@a",
            "a/",
            "a/b",
            "a?b",
            "a#b",
            "a,b",
            "a b",
            " a",
            "a:0",
            "a:65536",
            "a:-1",
            "a:+1",
            "a:1a",
            "a:1:2",
            "[::1",
            "::1",
            "[]",
            "[::1]a",
            "[::1]80",
            "[g::1]",
            "[fe80::1%25eth0]",
            "a%",
            "a%4",
            "a%zz",
            "a\\b",
            "a\"",
            "caf\u{e9}",
            "a\0",
            "[v1.x]",
            "a]",
            "http://a",
        ] {
            assert_eq!(Authority::parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
