//! `ProxyError`: what is wrong with a header, or with who sends it.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;

use quick_error::quick_error;

use crate::counters::ProxyCounters;

quick_error! {
    /// Why a connection ended before its first byte. It is the inside of the [`io::Error`] of a
    /// [`ProxyStream`](crate::ProxyStream)'s handshake, where [`ProxyError::of`] finds it.
    ///
    /// After each of them the connection is closed at once: there is nothing in the protocol by
    /// which a sender could be told why.
    #[derive(Clone, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum ProxyError {
        /// The connection does not come from a network that is trusted. Somebody goes around the
        /// balancer, or the balancer has an address that the configuration does not know.
        Untrusted(address: Option<IpAddr>) {
            display("no balancer is known at this address: {}",
                address.map_or("one without an address".into(), |address| address.to_string()))
        }
        /// What comes first is no header of the PROXY protocol. The balancer is not set to send
        /// one.
        NoHeader {
            display("what comes first is no header of the PROXY protocol")
        }
        /// The header is of a version that is not wanted
        /// ([`versions`](crate::ProxyProtocolConfig::versions)).
        UnwantedVersion {
            display("the header is of a version that is not wanted")
        }
        /// The header is longer than
        /// [`header_bytes_max`](crate::ProxyProtocolConfig::header_bytes_max), or, in version 1,
        /// than 107 bytes.
        TooLarge {
            display("the header is longer than it may be")
        }
        /// The header breaks the rules of its version. The sender's fault.
        Broken(part: &'static str) {
            display("the header is broken: {part}")
        }
        /// The header is not what it was when its checksum was made. The network's fault, or the
        /// sender's.
        Checksum {
            display("the header is not what its checksum says")
        }
        /// There are as many connections from the peer as there may be
        /// ([`per_peer`](crate::ProxyProtocolConfig::per_peer)).
        TooManyOfPeer(peer: IpAddr) {
            display("{peer} has as many connections as it may")
        }
    }
}

impl ProxyError {
    /// Finds what a [`ProxyStream`](crate::ProxyStream) said in an error of its socket's user.
    ///
    /// ```
    /// # use rotor_proxy_protocol::ProxyError;
    /// fn came_around_the_balancer(error: &std::io::Error) -> bool {
    ///     matches!(ProxyError::of(error), Some(ProxyError::Untrusted(_)))
    /// }
    /// ```
    pub fn of(error: &io::Error) -> Option<&ProxyError> {
        error.get_ref()?.downcast_ref()
    }

    /// As what it is counted.
    pub(crate) fn counter<'a>(&self, counters: &'a ProxyCounters) -> &'a AtomicU64 {
        match self {
            ProxyError::Untrusted(_) => &counters.untrusted,
            ProxyError::NoHeader => &counters.no_header,
            ProxyError::UnwantedVersion => &counters.unwanted_versions,
            ProxyError::TooLarge => &counters.too_large,
            ProxyError::Broken(_) => &counters.broken,
            ProxyError::Checksum => &counters.checksums,
            ProxyError::TooManyOfPeer(_) => &counters.too_many_of_peer,
        }
    }
}

/// The kind says that the connection is gone: nobody is to be told why, so none need wait for what
/// else is sent.
impl From<ProxyError> for io::Error {
    fn from(error: ProxyError) -> io::Error {
        io::Error::new(ErrorKind::ConnectionAborted, error)
    }
}
