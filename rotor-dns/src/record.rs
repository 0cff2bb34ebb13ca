//! Questions and answers: `Question`, `Kind`, `Data`, `RecordSet`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::name::Name;

/// The kind of records that are asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// IPv4 addresses (RFC 1035 §3.4.1).
    A,
    /// IPv6 addresses (RFC 3596).
    Aaaa,
    /// The name that this one is an alias of (RFC 1035 §3.3.1). If asked for by itself, it is not
    /// followed.
    Cname,
    /// The location of a service (RFC 2782).
    Srv,
    /// Text (RFC 1035 §3.3.14).
    Txt,
    /// The hosts that take mail for a domain (RFC 1035 §3.3.9).
    Mx,
    /// The name that belongs to an address: ask for [`Name::reverse`] of it (RFC 1035 §3.5).
    Ptr,
}

/// A name and the kind of its records. The name is taken as it is: no search list, no hosts file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Question {
    /// The name.
    pub name: Name,
    /// The kind of records.
    pub kind: Kind,
}

/// The content of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Data {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// The canonical name.
    Cname(Name),
    /// The location of a service.
    Srv {
        /// The priority: lower ones are tried first.
        priority: u16,
        /// The weight: the share of this record among those of one priority.
        weight: u16,
        /// The port.
        port: u16,
        /// The host; `.` means that there is no such service here.
        target: Name,
    },
    /// Strings of at most 255 bytes each, of any encoding.
    Txt(Vec<Box<[u8]>>),
    /// A host that takes mail for the domain.
    Mx {
        /// Lower ones are tried first, those that are equal in any order (RFC 5321 §5.1).
        preference: u16,
        /// The host; `.` means that the domain takes no mail (RFC 7505).
        exchange: Name,
    },
    /// A name of the address. Whoever holds the address chose it, so ask for the name's addresses
    /// before you trust it.
    Ptr(Name),
}

/// A record as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) owner: Name,
    pub(crate) ttl: Duration,
    pub(crate) data: Data,
}

/// The records that were asked for, one at least.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[doc(alias = "Answer")]
#[doc(alias = "RRset")]
pub struct RecordSet {
    /// The name that the records belong to: the one that was asked for, or the end of its chain of
    /// aliases.
    pub name: Name,
    /// The records, in the server's order.
    pub data: Vec<Data>,
    /// How long the records were valid when they came: the least of theirs and those of the
    /// aliases.
    pub ttl: Duration,
}

impl Data {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Data::A(_) => Kind::A,
            Data::Aaaa(_) => Kind::Aaaa,
            Data::Cname(_) => Kind::Cname,
            Data::Srv { .. } => Kind::Srv,
            Data::Txt(_) => Kind::Txt,
            Data::Mx { .. } => Kind::Mx,
            Data::Ptr(_) => Kind::Ptr,
        }
    }
}
