//! Parses headers strictly, with the same result however they were split on their way.
//!
//! A result other than "more is needed" does not depend on any byte after the one that decides it:
//! each rule is checked as soon as the bytes that it is about have arrived, in the order of the
//! bytes. In version 1 that is the end of the line, apart from the first word.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::{FromStr, from_utf8};

use crate::checksum::crc32c;
use crate::error::ProxyError;
use crate::fields::{ProxyFields, checksum_offset, is_valid_field};
use crate::header::{Endpoints, ProxyHeader};
use crate::version::Version;
use crate::wire::{SIGNATURE, family};

/// The maximum length of a header of version 1 in bytes, with its line end (section 2.1 of the
/// specification).
pub const LINE_BYTES_MAX: usize = 107;

/// The start of a header of version 1.
const LINE_PREFIX: &[u8] = b"PROXY ";

/// Signature, command, family and length: the smallest limit that makes sense.
const FIXED_BYTES: usize = 16;

/// The addresses of two Unix sockets, 108 bytes each.
const UNIX_BYTES: usize = 216;

impl ProxyHeader {
    /// Parses the header at the beginning of `bytes`, of at most `bytes_max` bytes (at least 16; a
    /// header of version 1 has at most 107 in any case). Returns the header and its length, or
    /// `None` if more bytes are needed and there are fewer than `bytes_max`.
    ///
    /// The result does not depend on the bytes after the header.
    ///
    /// ```
    /// # mod rotor { pub use rotor_proxy_protocol as proxy_protocol; }
    /// use rotor::proxy_protocol::ProxyHeader;
    ///
    /// # fn main() -> Result<(), rotor::proxy_protocol::ProxyError> {
    /// let line = b"PROXY TCP4 192.0.2.1 198.51.100.1 50000 443\r\nGET / HTTP/1.1\r\n";
    /// let (header, len) = ProxyHeader::parse(line, 1_024)?.expect("it is whole");
    /// assert_eq!(header.source(), Some(([192, 0, 2, 1], 50_000).into()));
    /// assert_eq!(&line[len..], b"GET / HTTP/1.1\r\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ProxyError::NoHeader`], [`Broken`](ProxyError::Broken),
    /// [`TooLarge`](ProxyError::TooLarge), [`Checksum`](ProxyError::Checksum): the sender's fault.
    pub fn parse(
        bytes: &[u8],
        bytes_max: usize,
    ) -> Result<Option<(ProxyHeader, usize)>, ProxyError> {
        let bytes_max = bytes_max.max(FIXED_BYTES);
        // The two versions begin with different bytes.
        let begin: &[u8] = if bytes.first() == SIGNATURE.first() { SIGNATURE } else { LINE_PREFIX };
        let len = bytes.len().min(begin.len());
        if bytes[..len] != begin[..len] {
            return Err(ProxyError::NoHeader);
        }
        if len < begin.len() {
            return Ok(None);
        }
        if begin == LINE_PREFIX {
            parse_line(bytes, bytes_max.min(LINE_BYTES_MAX))
        } else {
            parse_binary(bytes, bytes_max)
        }
    }
}

fn parse_line(bytes: &[u8], bytes_max: usize) -> Result<Option<(ProxyHeader, usize)>, ProxyError> {
    let Some(end) = bytes.iter().take(bytes_max).position(|&byte| byte == b'\n') else {
        return if bytes.len() < bytes_max { Ok(None) } else { Err(ProxyError::TooLarge) };
    };
    let line = bytes[LINE_PREFIX.len()..end].strip_suffix(b"\r");
    let line = line.ok_or(ProxyError::Broken("a line that does not end with CR LF"))?;
    Ok(Some((ProxyHeader::with_endpoints(Version::V1, parse_words(line)?), end + 1)))
}

/// Parses the text between `PROXY ` and the end of the line.
fn parse_words(line: &[u8]) -> Result<Endpoints, ProxyError> {
    // "The receiver must ignore anything presented before the CRLF".
    if line == b"UNKNOWN" || line.starts_with(b"UNKNOWN ") {
        return Ok(Endpoints::Unknown);
    }
    let line = from_utf8(line).map_err(|_| ProxyError::Broken("a line that is no text"))?;
    let mut words = line.split(' ');
    let family = words.next();
    let (Some(from), Some(to), Some(from_port), Some(to_port), None) =
        (words.next(), words.next(), words.next(), words.next(), words.next())
    else {
        return Err(ProxyError::Broken("a line with more or fewer words than it has"));
    };
    let (from, to) = match family {
        Some("TCP4") => (address::<Ipv4Addr>(from)?, address::<Ipv4Addr>(to)?),
        Some("TCP6") => (address::<Ipv6Addr>(from)?, address::<Ipv6Addr>(to)?),
        _ => return Err(ProxyError::Broken("an unknown family")),
    };
    Ok(Endpoints::Proxied {
        source: SocketAddr::new(from, port(from_port)?),
        destination: SocketAddr::new(to, port(to_port)?),
    })
}

fn address<A: FromStr + Into<IpAddr>>(word: &str) -> Result<IpAddr, ProxyError> {
    let address: A = word.parse().map_err(|_| ProxyError::Broken("an address"))?;
    Ok(address.into().to_canonical())
}

/// Parses digits, without a leading zero.
fn port(word: &str) -> Result<u16, ProxyError> {
    let has_digits = word.bytes().all(|byte| byte.is_ascii_digit());
    if !has_digits || (word.starts_with('0') && word != "0") {
        return Err(ProxyError::Broken("a port"));
    }
    word.parse().map_err(|_| ProxyError::Broken("a port"))
}

fn parse_binary(
    bytes: &[u8],
    bytes_max: usize,
) -> Result<Option<(ProxyHeader, usize)>, ProxyError> {
    let Some(&[command, family, high, low]) = bytes[SIGNATURE.len()..].first_chunk() else {
        // Each byte is checked as soon as it has arrived.
        if let Some(&command) = bytes.get(SIGNATURE.len()) {
            parse_command(command)?;
        }
        if let Some(&[command, family]) = bytes[SIGNATURE.len()..].first_chunk() {
            addresses_len(parse_command(command)?, family)?;
        }
        return Ok(None);
    };
    let is_local = parse_command(command)?;
    let addresses_len = addresses_len(is_local, family)?;
    let len = FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if len > bytes_max {
        return Err(ProxyError::TooLarge);
    }
    if len < FIXED_BYTES + addresses_len {
        return Err(ProxyError::Broken("a length that leaves no room for the addresses"));
    }
    let Some(header) = bytes.get(..len) else { return Ok(None) };
    let (addresses, fields) = header[FIXED_BYTES..].split_at(addresses_len);
    let endpoints = match family {
        // The family and everything after it must be skipped.
        _ if is_local => Endpoints::Local,
        family::TCP4 | family::UDP4 => parse_address_pair::<4>(addresses),
        family::TCP6 | family::UDP6 => parse_address_pair::<16>(addresses),
        _ => Endpoints::Unknown,
    };
    // Fields after addresses of an unknown length cannot be told from these.
    let has_fields = !is_local && family != family::UNSPECIFIED;
    let fields = if has_fields { fields } else { &[] };
    check_fields(fields, &header[..FIXED_BYTES + addresses_len])?;
    Ok(Some((ProxyHeader { version: Version::V2, endpoints, fields: fields.to_vec() }, len)))
}

/// Returns whether the connection is the balancer's own.
fn parse_command(command: u8) -> Result<bool, ProxyError> {
    match command {
        0x20 => Ok(true),
        0x21 => Ok(false),
        _ => Err(ProxyError::Broken("an unknown version or command")),
    }
}

/// Returns how many bytes of addresses there must be.
fn addresses_len(is_local: bool, family: u8) -> Result<usize, ProxyError> {
    match family {
        _ if is_local => Ok(0),
        family::UNSPECIFIED => Ok(0),
        family::TCP4 | family::UDP4 => Ok(12),
        family::TCP6 | family::UDP6 => Ok(36),
        family::UNIX_STREAM | family::UNIX_DATAGRAM => Ok(UNIX_BYTES),
        // "Receivers should drop connections presenting unexpected values here."
        _ => Err(ProxyError::Broken("an unknown family")),
    }
}

/// Parses two addresses of `N` bytes, then their ports; input that is too short says nothing.
fn parse_address_pair<const N: usize>(addresses: &[u8]) -> Endpoints
where
    IpAddr: From<[u8; N]>,
{
    let read = || {
        let (source, rest) = addresses.split_first_chunk::<N>()?;
        let (destination, rest) = rest.split_first_chunk::<N>()?;
        let (source_port, rest) = rest.split_first_chunk()?;
        let address = |ip: &[u8; N], port: &[u8; 2]| {
            SocketAddr::new(IpAddr::from(*ip).to_canonical(), u16::from_be_bytes(*port))
        };
        let source = address(source, source_port);
        Some(Endpoints::Proxied { source, destination: address(destination, rest.first_chunk()?) })
    };
    read().unwrap_or(Endpoints::Unknown)
}

fn check_fields(fields: &[u8], before: &[u8]) -> Result<(), ProxyError> {
    if !ProxyFields::new(fields).are_complete() {
        return Err(ProxyError::Broken("a field that goes beyond the header"));
    }
    for (kind, value) in ProxyFields::new(fields) {
        if !is_valid_field(kind, value) {
            return Err(ProxyError::Broken("a field that is not as its kind says"));
        }
    }
    let Some(at) = checksum_offset(fields) else { return Ok(()) };
    let (ahead, rest) = fields.split_at(at);
    let (stored, behind) = rest.split_at(4);
    // It was computed with zeros in its own place.
    let sum = crc32c(&[before, ahead, &[0; 4], behind]);
    if stored == sum.to_be_bytes() { Ok(()) } else { Err(ProxyError::Checksum) }
}

#[cfg(test)]
mod tests;
