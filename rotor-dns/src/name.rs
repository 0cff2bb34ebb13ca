//! `Name`: a domain name as text.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use quick_error::quick_error;

/// The maximum length of a name as text, in bytes. RFC 1035 §3.1 allows 255 octets on the wire,
/// which is the same.
const NAME_MAX: usize = 253;
/// The maximum length of a label, in bytes (RFC 1035 §2.3.4).
const LABEL_MAX: usize = 63;

/// A domain name, complete and in lower case, without the last dot. It is cheap to clone.
///
/// A name that was parsed from text has labels of printable ASCII without backslashes; a name in
/// another script must be given in its ASCII form (`xn--…`). A name that came from a server may
/// have any bytes, written as in RFC 1035 §5.1 (`\.`, `\007`), and may be the root, which is `.`.
///
/// ```
/// # mod rotor { pub use rotor_dns as dns; }
/// use rotor::dns::Name;
///
/// let name: Name = "WWW.Example.org.".parse()?;
/// assert_eq!(name.as_str(), "www.example.org");
/// assert!("two..dots".parse::<Name>().is_err());
/// # Ok::<(), rotor::dns::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

quick_error! {
    /// Why a text is not a domain name. The caller's mistake.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum NameError {
        /// The text has no label, or one of its labels is empty.
        Empty {
            display("a name or a label of it is empty")
        }
        /// The name has more than 253 bytes, or a label more than 63.
        TooLong {
            display("a name has at most {NAME_MAX} bytes, a label of it at most {LABEL_MAX}")
        }
        /// A byte is a blank, a backslash, or not printable ASCII.
        Character {
            display("a name has printable ASCII characters only")
        }
        /// The host is an address with a zone (`fe80::1%eth0`), and an answer cannot contain a
        /// zone. Connect to a `SocketAddrV6` instead, whose scope id is the number of the
        /// interface.
        Zone {
            display("an address with a zone is not a name: connect to a socket address with its scope id")
        }
        /// The host has a colon, for example because of a port (`example.org:80`) or a scheme, or
        /// is an address in brackets.
        Colon {
            display("a host name has no colon: give the port separately, and an IPv6 address without brackets")
        }
    }
}

impl Name {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name under which the names of an address are stored as
    /// [`Kind::Ptr`](crate::Kind::Ptr) records: `1.2.0.192.in-addr.arpa` for 192.0.2.1 (RFC 1035
    /// §3.5), or 34 labels ending in `ip6.arpa` for an IPv6 address (RFC 3596 §2.5). For an IPv4
    /// address that is mapped into IPv6 (`::ffff:192.0.2.1`) it is the IPv4 name.
    ///
    /// ```
    /// # mod rotor { pub use rotor_dns as dns; }
    /// use rotor::dns::Name;
    ///
    /// let name = Name::reverse("192.0.2.1".parse()?);
    /// assert_eq!(name.as_str(), "1.2.0.192.in-addr.arpa");
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[doc(alias = "in-addr.arpa")]
    pub fn reverse(address: IpAddr) -> Name {
        let mut text = String::with_capacity(72);
        let domain = match address.to_canonical() {
            IpAddr::V4(address) => {
                let octets = address.octets().into_iter().rev();
                octets.for_each(|byte| text.push_str(&format!("{byte}.")));
                "in-addr.arpa"
            }
            IpAddr::V6(address) => {
                let nibbles = address.octets().into_iter().rev().flat_map(|o| [o & 0xf, o >> 4]);
                nibbles.for_each(|nibble| text.push_str(&format!("{nibble:x}.")));
                "ip6.arpa"
            }
        };
        text.push_str(domain);
        Name(text.into())
    }

    /// Converts the labels of a name that a server sent to text (RFC 1035 §5.1). The decoder has
    /// checked them. A message may have thousands of names, so the bytes are written one by one,
    /// not formatted.
    pub(crate) fn from_wire<'a>(labels: impl Iterator<Item = &'a [u8]>) -> Name {
        let mut text = Vec::with_capacity(NAME_MAX);
        // The root's label is empty.
        for label in labels.filter(|label| !label.is_empty()) {
            if !text.is_empty() {
                text.push(b'.');
            }
            label.iter().for_each(|byte| push_escaped(*byte, &mut text));
        }
        if text.is_empty() {
            text.push(b'.');
        }
        Name(std::str::from_utf8(&text).expect("it is ASCII").into())
    }

    /// Returns the number of dots in the name.
    pub(crate) fn dots(&self) -> usize {
        self.0.bytes().filter(|&byte| byte == b'.').count()
    }
}

fn push_escaped(byte: u8, text: &mut Vec<u8>) {
    match byte {
        b' ' | b'.' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
        // Case has no meaning (RFC 4343), and servers repeat the case of the question, which is
        // random.
        b'!'..=b'~' => text.push(byte.to_ascii_lowercase()),
        _ => {
            let digit = |value: u8| b'0' + value % 10;
            let digits = [b'\\', digit(byte / 100), digit(byte / 10), digit(byte)];
            text.extend_from_slice(&digits);
        }
    }
}

/// Checks whether a text that is not an address may be the name of a host. A text with a colon is
/// not (RFC 1123 §2.1): it is most likely something else, which must not be sent to a server.
pub(crate) fn check_host(text: &str) -> Result<(), NameError> {
    let address = text.split_once('%').map(|(address, _)| address.trim_start_matches('['));
    if address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()) {
        return Err(NameError::Zone);
    }
    if text.contains(':') { Err(NameError::Colon) } else { Ok(()) }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.len() > NAME_MAX {
            return Err(NameError::TooLong);
        }
        for label in text.split('.') {
            match label.len() {
                0 => return Err(NameError::Empty),
                1..=LABEL_MAX => {}
                _ => return Err(NameError::TooLong),
            }
        }
        // A backslash begins an escape in the text form of a name (RFC 1035 §5.1).
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(NameError::Character);
        }
        Ok(Name(text.to_ascii_lowercase().into()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_limits_of_names_and_labels_are_exact() {
        let label = |length| "a".repeat(length);
        assert!(label(63).parse::<Name>().is_ok());
        assert_eq!(label(64).parse::<Name>(), Err(NameError::TooLong));
        let name = |last| format!("{0}.{0}.{0}.{1}", label(63), label(last));
        assert_eq!(name(61).parse::<Name>().map(|name| name.as_str().len()), Ok(253));
        assert_eq!(
            format!("{}.", name(61)).parse::<Name>().map(|name| name.as_str().len()),
            Ok(253)
        );
        assert_eq!(name(62).parse::<Name>(), Err(NameError::TooLong));
    }

    #[test]
    fn an_address_has_a_reverse_lookup_name() {
        let cases = [
            ("192.0.2.1", "1.2.0.192.in-addr.arpa"),
            ("255.10.0.200", "200.0.10.255.in-addr.arpa"),
            ("::ffff:192.0.2.1", "1.2.0.192.in-addr.arpa"),
            // RFC 3596 §2.5, with some hexadecimal digits that are letters.
            (
                "4321:0:1:2:3:4:567:89ab",
                "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa",
            ),
        ];
        for (address, expected) in cases {
            let name = Name::reverse(address.parse().expect("an address"));
            assert_eq!(name.as_str(), expected);
            assert_eq!(name.as_str().parse(), Ok(name));
        }
    }

    #[test]
    fn a_text_with_a_colon_is_not_a_host() {
        let cases = [
            ("example.org", Ok(())),
            ("_a.50%.example", Ok(())),
            ("eth0%1", Ok(())),
            ("fe80::1%eth0", Err(NameError::Zone)),
            ("fe80::1%2", Err(NameError::Zone)),
            ("::%", Err(NameError::Zone)),
            ("[fe80::1%eth0]", Err(NameError::Zone)),
            ("[fe80::1%eth0]:80", Err(NameError::Zone)),
            ("[fe80::1]", Err(NameError::Colon)),
            ("[::1]:80", Err(NameError::Colon)),
            ("192.0.2.1:80", Err(NameError::Colon)),
            ("example.org:80", Err(NameError::Colon)),
            ("example.org:", Err(NameError::Colon)),
            ("fe80:%eth0", Err(NameError::Colon)),
            ("http://example.org", Err(NameError::Colon)),
        ];
        for (text, expected) in cases {
            assert_eq!(check_host(text), expected, "{text}");
        }
    }

    #[test]
    fn malformed_names_are_refused() {
        for text in ["", ".", "..", ".a", "a..b", "a.."] {
            assert_eq!(text.parse::<Name>(), Err(NameError::Empty), "{text:?}");
        }
        for text in ["a b", "a\n", "b\\046c", "bücher.example", "\0"] {
            assert_eq!(text.parse::<Name>(), Err(NameError::Character), "{text:?}");
        }
        assert_eq!(
            "_sip._TCP.x".parse::<Name>().map(|name| name.to_string()),
            Ok("_sip._tcp.x".into())
        );
    }
}
