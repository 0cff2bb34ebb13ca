//! `ProxyHeader`: what a balancer says about a connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use quick_error::quick_error;

use crate::fields::{ClientTls, FIELD_HEAD, ProxyFields, is_valid_field, kind, text};
use crate::version::Version;

/// What a balancer says about a connection: where it comes from, where it went to, and more.
///
/// A protocol gets it from [`Transport::session`](rotor_stream::Transport::session), and an HTTP
/// handler from the `session` of a head, over TLS too. The peer's address is then the one in the
/// header; nothing else is needed for that.
///
/// ```
/// # use rotor_stream::Transport;
/// # use rotor_proxy_protocol::ProxyHeader;
/// fn id_of_the_balancer<'a>(transport: &Transport<'a>) -> Option<&'a [u8]> {
///     transport.session::<ProxyHeader>()?.unique_id()
/// }
/// ```
///
/// To make a header for sending, use [`proxied`](ProxyHeader::proxied),
/// [`unknown`](ProxyHeader::unknown) or [`local`](ProxyHeader::local).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProxyHeader {
    pub(crate) version: Version,
    pub(crate) endpoints: Endpoints,
    /// As they are sent; only in version 2.
    pub(crate) fields: Vec<u8>,
}

/// What a header says about the addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Endpoints {
    /// The connection is the balancer's own.
    Local,
    /// The connection is a client's of whom nothing is known.
    Unknown,
    Proxied {
        source: SocketAddr,
        destination: SocketAddr,
    },
}

quick_error! {
    /// Why a field cannot be added to a header. The caller's mistake; the header is consumed.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum FieldError {
        /// Headers of version 1 have no fields. In a header that names no addresses
        /// ([`unknown`](ProxyHeader::unknown), [`local`](ProxyHeader::local)) nobody would read
        /// them.
        NoFields {
            display("a header of this kind has no fields")
        }
        /// The value does not have the form that its kind requires: an id of more than 128 bytes, a
        /// name that is not UTF-8, a checksum that does not have 4 bytes, TLS fields that end
        /// within one of them. Receivers refuse such a header.
        Malformed {
            display("the value of a field does not match its kind")
        }
        /// All fields together are longer than a header may be.
        TooLong {
            display("the fields are longer than 65,000 bytes")
        }
    }
}

/// The maximum length of all fields together, in bytes: what is left of 65,535 beside any
/// addresses.
const FIELDS_MAX: usize = 65_000;

impl ProxyHeader {
    /// Creates a header for a connection from `source` that went to `destination`.
    pub fn proxied(version: Version, source: SocketAddr, destination: SocketAddr) -> ProxyHeader {
        let (source, destination) = (canonical(source), canonical(destination));
        ProxyHeader::with_endpoints(version, Endpoints::Proxied { source, destination })
    }

    /// Creates a header for a client of whom nothing is known, for example one from a Unix socket.
    pub fn unknown(version: Version) -> ProxyHeader {
        ProxyHeader::with_endpoints(version, Endpoints::Unknown)
    }

    /// Creates a header for a connection of the sender's own, such as a health check. It has
    /// version 2; version 1 has no such header.
    #[doc(alias = "LOCAL")]
    pub fn local() -> ProxyHeader {
        ProxyHeader::with_endpoints(Version::V2, Endpoints::Local)
    }

    pub(crate) fn with_endpoints(version: Version, endpoints: Endpoints) -> ProxyHeader {
        ProxyHeader { version, endpoints, fields: Vec::new() }
    }

    /// Adds a field, of a kind that the specification names (section 2.2) or another one.
    ///
    /// # Errors
    ///
    /// [`FieldError`]: the header has no fields, the value does not have the form that its kind
    /// requires, or the fields are longer than 65,000 bytes, including the 3 bytes before each.
    #[doc(alias = "TLV")]
    pub fn with_field(mut self, kind: u8, value: &[u8]) -> Result<ProxyHeader, FieldError> {
        if self.version == Version::V1 || !matches!(self.endpoints, Endpoints::Proxied { .. }) {
            return Err(FieldError::NoFields);
        }
        if !is_valid_field(kind, value) {
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

    /// Adds a checksum (CRC-32C), by which the receiver can tell whether the header was changed on
    /// the way. It is computed when the header is sent. A header that has a checksum is returned
    /// unchanged.
    ///
    /// # Errors
    ///
    /// As for [`with_field`](ProxyHeader::with_field).
    #[doc(alias = "CRC32C")]
    pub fn with_checksum(self) -> Result<ProxyHeader, FieldError> {
        // A receiver would compute each of several checksums with zeros in the place of that one
        // only.
        if self.field(kind::CRC32C).is_some() {
            return Ok(self);
        }
        // The value depends on the rest of the header, which may grow until it is sent.
        self.with_field(kind::CRC32C, &[0; 4])
    }

    /// Returns the version of the header.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns where the connection comes from, or `None` if the header does not say.
    #[doc(alias = "peer_address")]
    pub fn source(&self) -> Option<SocketAddr> {
        match self.endpoints {
            Endpoints::Proxied { source, .. } => Some(source),
            Endpoints::Local | Endpoints::Unknown => None,
        }
    }

    /// Returns where the connection went to, at the balancer, or `None` if the header does not say.
    pub fn destination(&self) -> Option<SocketAddr> {
        match self.endpoints {
            Endpoints::Proxied { destination, .. } => Some(destination),
            Endpoints::Local | Endpoints::Unknown => None,
        }
    }

    /// Returns whether the connection is the balancer's own.
    #[doc(alias = "LOCAL")]
    pub fn is_local(&self) -> bool {
        self.endpoints == Endpoints::Local
    }

    /// Returns all fields in order, each with its kind.
    #[doc(alias = "TLV")]
    pub fn fields(&self) -> ProxyFields<'_> {
        ProxyFields::new(&self.fields)
    }

    /// Returns the value of the first field of this kind, for kinds that have no method here.
    pub fn field(&self, kind: u8) -> Option<&[u8]> {
        self.fields().find(kind)
    }

    /// Returns the protocol that was negotiated with the client, as an ALPN identifier.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.field(kind::ALPN)
    }

    /// Returns the name of the host that the client requested, usually by TLS.
    #[doc(alias = "SNI")]
    pub fn authority(&self) -> Option<&str> {
        text(self.field(kind::AUTHORITY))
    }

    /// Returns the balancer's id for this connection.
    pub fn unique_id(&self) -> Option<&[u8]> {
        self.field(kind::UNIQUE_ID)
    }

    /// Returns the namespace that the connection came from.
    pub fn namespace(&self) -> Option<&str> {
        text(self.field(kind::NAMESPACE))
    }

    /// Returns what the balancer says about the client's TLS, if the balancer terminated it.
    #[doc(alias = "PP2_TYPE_SSL")]
    #[doc(alias = "SSL")]
    pub fn tls(&self) -> Option<ClientTls<'_>> {
        ClientTls::parse(self.field(kind::TLS)?)
    }
}

/// Converts an IPv4 address that is mapped into IPv6 to an IPv4 one.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Converts both addresses to IPv6 if only one of them is.
pub(crate) fn to_one_family(one: SocketAddr, other: SocketAddr) -> (SocketAddr, SocketAddr) {
    if one.is_ipv4() == other.is_ipv4() { (one, other) } else { (to_mapped(one), to_mapped(other)) }
}

fn to_mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

impl fmt::Debug for ProxyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields.len();
        write!(f, "ProxyHeader({:?}, {:?}, {fields} bytes of fields)", self.version, self.endpoints)
    }
}
