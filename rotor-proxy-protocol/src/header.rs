//! `ProxyHeader`: what a balancer says of a connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use quick_error::quick_error;

use crate::fields::{ClientTls, FIELD_HEAD, ProxyFields, is_well_made, kind, text};
use crate::version::Version;

/// What a balancer says of a connection: where it comes from, where it went to, and more.
///
/// A protocol gets it from [`Transport::session`](rotor_stream::Transport::session), a handler of
/// HTTP from the `session` of a head, over TLS too. The peer's address is that of the header
/// without further ado.
///
/// ```
/// # use rotor_stream::Transport;
/// # use rotor_proxy_protocol::ProxyHeader;
/// fn id_of_the_balancer<'a>(transport: &Transport<'a>) -> Option<&'a [u8]> {
///     transport.session::<ProxyHeader>()?.unique_id()
/// }
/// ```
///
/// One that is to be sent is made by [`proxied`](ProxyHeader::proxied) and its like.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProxyHeader {
    pub(crate) version: Version,
    pub(crate) said: Said,
    /// As they are sent, version 2 only.
    pub(crate) fields: Vec<u8>,
}

/// What a header says of the addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Said {
    /// The connection is the balancer's own.
    Local,
    /// It is somebody's of whom there is nothing to be said.
    Unknown,
    Proxied {
        source: SocketAddr,
        destination: SocketAddr,
    },
}

quick_error! {
    /// A field cannot be in a header. The caller's mistake; the header is gone.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum FieldError {
        /// A header of version 1 has none. One that names no addresses
        /// ([`unknown`](ProxyHeader::unknown), [`local`](ProxyHeader::local)) has none that anybody
        /// would read.
        NoFields {
            display("a header of this kind has no fields")
        }
        /// The value is not as its kind says: an id of more than 128 bytes, a name that is not
        /// UTF-8, a checksum of other than 4 bytes, fields of TLS that end within one. Receivers
        /// refuse such a header.
        Malformed {
            display("the value of a field is not as its kind says")
        }
        /// All fields together are longer than a header may be.
        TooLong {
            display("the fields are longer than 65,000 bytes")
        }
    }
}

/// The most octets of all fields together: what is left of 65,535 beside any addresses.
const FIELDS_MAX: usize = 65_000;

impl ProxyHeader {
    /// A connection from `source` that went to `destination`.
    pub fn proxied(version: Version, source: SocketAddr, destination: SocketAddr) -> ProxyHeader {
        let (source, destination) = (canonical(source), canonical(destination));
        ProxyHeader::saying(version, Said::Proxied { source, destination })
    }

    /// A connection of somebody's of whom there is nothing to be said: from a Unix socket, say.
    pub fn unknown(version: Version) -> ProxyHeader {
        ProxyHeader::saying(version, Said::Unknown)
    }

    /// A connection that the sender makes for itself: to see whether a server is well, say. Of
    /// version 2: version 1 has no such thing.
    #[doc(alias = "LOCAL")]
    pub fn local() -> ProxyHeader {
        ProxyHeader::saying(Version::V2, Said::Local)
    }

    pub(crate) fn saying(version: Version, said: Said) -> ProxyHeader {
        ProxyHeader { version, said, fields: Vec::new() }
    }

    /// The same with one more field, of the kinds of the specification (section 2.2) or another.
    ///
    /// # Errors
    ///
    /// [`FieldError`]: the header has no fields, the value is not as its kind says, or the fields
    /// are longer than 65,000 bytes, with the 3 before each.
    #[doc(alias = "TLV")]
    pub fn with_field(mut self, kind: u8, value: &[u8]) -> Result<ProxyHeader, FieldError> {
        if self.version == Version::V1 || !matches!(self.said, Said::Proxied { .. }) {
            return Err(FieldError::NoFields);
        }
        if !is_well_made(kind, value) {
            return Err(FieldError::Malformed);
        }
        let len = u16::try_from(value.len()).map_err(|_| FieldError::TooLong)?;
        if self.fields.len() + FIELD_HEAD + value.len() > FIELDS_MAX {
            return Err(FieldError::TooLong);
        }
        self.fields.push(kind);
        self.fields.extend(len.to_be_bytes());
        self.fields.extend(value);
        Ok(self)
    }

    /// The same with a checksum (CRC-32C), by which the receiver sees that nothing was changed on
    /// the way. It is computed when the header is sent; one that has a checksum stays as it is.
    ///
    /// # Errors
    ///
    /// As for [`with_field`](ProxyHeader::with_field).
    #[doc(alias = "CRC32C")]
    pub fn with_checksum(self) -> Result<ProxyHeader, FieldError> {
        // A receiver computes each with zeros in its own place alone.
        if self.field(kind::CRC32C).is_some() {
            return Ok(self);
        }
        // What it is follows from the rest, which may grow until it is sent.
        self.with_field(kind::CRC32C, &[0; 4])
    }

    /// Returns its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns where the connection comes from; `None` where that was not said.
    #[doc(alias = "peer_address")]
    pub fn source(&self) -> Option<SocketAddr> {
        match self.said {
            Said::Proxied { source, .. } => Some(source),
            Said::Local | Said::Unknown => None,
        }
    }

    /// Returns where the connection went to, at the balancer; `None` where that was not said.
    pub fn destination(&self) -> Option<SocketAddr> {
        match self.said {
            Said::Proxied { destination, .. } => Some(destination),
            Said::Local | Said::Unknown => None,
        }
    }

    /// Returns whether the connection is the balancer's own.
    #[doc(alias = "LOCAL")]
    pub fn is_local(&self) -> bool {
        self.said == Said::Local
    }

    /// Returns all fields, in order, each with its kind.
    #[doc(alias = "TLV")]
    pub fn fields(&self) -> ProxyFields<'_> {
        ProxyFields::new(&self.fields)
    }

    /// Returns the value of the first field of this kind: of those that have no method here.
    pub fn field(&self, kind: u8) -> Option<&[u8]> {
        self.fields().find(kind)
    }

    /// Returns the protocol that was agreed on with the client, as ALPN names it.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.field(kind::ALPN)
    }

    /// Returns the name of the host that the client asked for: by TLS, as a rule.
    #[doc(alias = "SNI")]
    pub fn authority(&self) -> Option<&str> {
        text(self.field(kind::AUTHORITY))
    }

    /// Returns what the balancer calls this connection.
    pub fn unique_id(&self) -> Option<&[u8]> {
        self.field(kind::UNIQUE_ID)
    }

    /// Returns the namespace that the connection came from.
    pub fn namespace(&self) -> Option<&str> {
        text(self.field(kind::NAMESPACE))
    }

    /// Returns what the balancer tells of the client's TLS, which it has ended.
    #[doc(alias = "PP2_TYPE_SSL")]
    #[doc(alias = "SSL")]
    pub fn tls(&self) -> Option<ClientTls<'_>> {
        ClientTls::read(self.field(kind::TLS)?)
    }
}

/// An address as its own family writes it.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Two addresses of one family: that of IPv6 where one is.
pub(crate) fn of_one_family(one: SocketAddr, other: SocketAddr) -> (SocketAddr, SocketAddr) {
    if one.is_ipv4() == other.is_ipv4() { (one, other) } else { (mapped(one), mapped(other)) }
}

fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

impl fmt::Debug for ProxyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields.len();
        write!(f, "ProxyHeader({:?}, {:?}, {fields} bytes of fields)", self.version, self.said)
    }
}
