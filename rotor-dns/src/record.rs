//! Questions and answers: `Question`, `Kind`, `Data`, `RecordSet`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::name::Name;

/// A kind of records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// IPv4 addresses (RFC 1035 §3.4.1).
    A,
    /// IPv6 addresses (RFC 3596).
    Aaaa,
    /// The name of which this one is an alias (RFC 1035 §3.3.1). If this kind is asked for, aliases
    /// are not followed.
    Cname,
    /// The location of a service (RFC 2782).
    Srv,
    /// Text (RFC 1035 §3.3.14).
    Txt,
    /// The hosts that accept mail for a domain (RFC 1035 §3.3.9).
    Mx,
    /// The name that belongs to an address: ask for [`Name::reverse`] of it (RFC 1035 §3.5).
    Ptr,
}

/// A name, and the kind of records to look up for it. The name is used as it is: no search list, no
/// hosts file.
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
    /// A host that accepts mail for the domain.
    Mx {
        /// The preference: lower ones are tried first, equal ones in any order (RFC 5321 §5.1).
        preference: u16,
        /// The host; `.` means that the domain accepts no mail (RFC 7505).
        exchange: Name,
    },
    /// A name of the address. The owner of the address chose it, so look up the addresses of this
    /// name before you trust it.
    Ptr(Name),
}

/// A record of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) owner: Name,
    pub(crate) ttl: Duration,
    pub(crate) data: Data,
}

/// The records that were asked for, at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[doc(alias = "Answer")]
#[doc(alias = "RRset")]
pub struct RecordSet {
    /// The owner of the records: the name that was asked for, or the end of its chain of aliases.
    pub name: Name,
    /// The records, in the server's order.
    pub data: Vec<Data>,
    /// How long the records were valid when they arrived: the minimum over the records and the
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
