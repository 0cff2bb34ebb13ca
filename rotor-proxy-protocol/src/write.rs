//! Encodes headers.

use std::net::SocketAddr;

use crate::checksum::crc32c;
use crate::fields::checksum_offset;
use crate::header::{Endpoints, ProxyHeader, to_one_family};
use crate::version::Version;
use crate::wire::{SIGNATURE, family};

impl ProxyHeader {
    /// Returns the header as it is sent. A [`ProxyStream`](crate::ProxyStream) that connects sends
    /// it by itself.
    #[doc(alias = "encode")]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self.version {
            Version::V1 => self.to_line().into_bytes(),
            Version::V2 => self.to_binary(),
        }
    }

    fn to_line(&self) -> String {
        let Endpoints::Proxied { source, destination } = self.endpoints else {
            return "PROXY UNKNOWN\r\n".into();
        };
        let (source, destination) = to_one_family(source, destination);
        let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
        let (from, to) = (source.ip(), destination.ip());
        format!("PROXY {family} {from} {to} {} {}\r\n", source.port(), destination.port())
    }

    fn to_binary(&self) -> Vec<u8> {
        let (command, family, addresses) = match self.endpoints {
            Endpoints::Local => (0x20, family::UNSPECIFIED, Vec::new()),
            Endpoints::Unknown => (0x21, family::UNSPECIFIED, Vec::new()),
            Endpoints::Proxied { source, destination } => {
                let (source, destination) = to_one_family(source, destination);
                let family = if source.is_ipv4() { family::TCP4 } else { family::TCP6 };
                (0x21, family, address_block(source, destination))
            }
        };
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([command, family]);
        // `with_field` has checked that the length fits.
        let len = u16::try_from(addresses.len() + self.fields.len()).unwrap_or(u16::MAX);
        bytes.extend(len.to_be_bytes());
        bytes.extend(addresses);
        let fields_at = bytes.len();
        bytes.extend(&self.fields);
        if let Some(at) = checksum_offset(&self.fields) {
            let place = fields_at + at..fields_at + at + 4;
            bytes[place.clone()].fill(0);
            let sum = crc32c(&[&bytes]);
            bytes[place].copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }
}

/// Returns both addresses, then both ports.
fn address_block(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let mut block = Vec::new();
    for address in [source, destination] {
        match address {
            SocketAddr::V4(address) => block.extend(address.ip().octets()),
            SocketAddr::V6(address) => block.extend(address.ip().octets()),
        }
    }
    for address in [source, destination] {
        block.extend(address.port().to_be_bytes());
    }
    block
}
