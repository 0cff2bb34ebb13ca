//! What is asked, and what is answered: `Question`, `Kind`, `Data`, `RecordSet`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::name::Name;

/// Which records are asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// IPv4 addresses (RFC 1035 §3.4.1).
    A,
    /// IPv6 addresses (RFC 3596).
    Aaaa,
    /// The name that this one is another name of (RFC 1035 §3.3.1). Asked for by itself it is not
    /// followed.
    Cname,
    /// Where a service is (RFC 2782).
    Srv,
    /// Text (RFC 1035 §3.3.14).
    Txt,
}

/// A name and the records wanted of it. The name is taken as it is: no search list, no hosts file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Question {
    /// Whose records.
    pub name: Name,
    /// Which of them.
    pub kind: Kind,
}

/// What a record says.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Data {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// The canonical name.
    Cname(Name),
    /// Where a service is.
    Srv {
        /// Lower ones are tried first.
        priority: u16,
        /// How often, among those of one priority, this one is to be taken.
        weight: u16,
        /// The port.
        port: u16,
        /// The host, `.` for "there is no such service here".
        target: Name,
    },
    /// Strings of at most 255 bytes each, of any encoding.
    Txt(Vec<Box<[u8]>>),
}

/// A record as it came.
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
    /// Whose records they are: the name that was asked for, or what its chain of aliases leads to.
    pub name: Name,
    /// The records, in the server's order.
    pub data: Vec<Data>,
    /// For how long they were good when they came: the least of theirs and those of the aliases.
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
        }
    }
}
