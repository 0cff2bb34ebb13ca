//! `ProxyError`: what is wrong with a header, or with its sender.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;

use quick_error::quick_error;

use crate::counters::ProxyCounters;

quick_error! {
    /// Why a connection ended before its first byte. It is the inner error of the [`io::Error`] of
    /// a [`ProxyStream`](crate::ProxyStream)'s handshake; [`ProxyError::of`] finds it there.
    ///
    /// After each of these errors the connection is closed at once: the protocol has no way to tell
    /// the sender why.
    #[derive(Clone, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum ProxyError {
        /// The connection does not come from a trusted network. Somebody bypasses the balancer, or
        /// the balancer has an address that the configuration does not list.
        Untrusted(address: Option<IpAddr>) {
            display("connections from {} are not trusted",
                address.map_or("a peer without an address".into(), |address| address.to_string()))
        }
        /// The first bytes are not a header of the PROXY protocol. The balancer is not set up to
        /// send one.
        NoHeader {
            display("the connection does not begin with a PROXY protocol header")
        }
        /// The header has a version that is not accepted
        /// ([`versions`](crate::ProxyProtocolConfig::versions)).
        UnwantedVersion {
            display("the version of the header is not accepted")
        }
        /// The header is longer than
        /// [`header_bytes_max`](crate::ProxyProtocolConfig::header_bytes_max), or, in version 1,
        /// than 107 bytes.
        TooLarge {
            display("the header is too long")
        }
        /// The header violates the rules of its version. The sender's fault.
        Broken(part: &'static str) {
            display("the header is broken: {part}")
        }
        /// The header does not match its checksum. The network's fault, or the sender's.
        Checksum {
            display("the checksum of the header does not match")
        }
        /// The peer has as many connections as it may have
        /// ([`per_peer`](crate::ProxyProtocolConfig::per_peer)).
        TooManyOfPeer(peer: IpAddr) {
            display("{peer} has reached its limit of connections")
        }
    }
}

impl ProxyError {
    /// Finds the error of a [`ProxyStream`](crate::ProxyStream) in the error that its user
    /// received: the socket's own, or one that has it as a cause, such as [`rotor_stream::Fatal`].
    ///
    /// ```
    /// # mod rotor { pub use rotor_stream as stream; pub use rotor_proxy_protocol as proxy_protocol; }
    /// use rotor::stream::Fatal;
    /// use rotor::proxy_protocol::ProxyError;
    ///
    /// fn bypassed_the_balancer(error: &Fatal) -> bool {
    ///     matches!(ProxyError::of(error), Some(ProxyError::Untrusted(_)))
    /// }
    /// ```
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a ProxyError> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            // The source of an `io::Error` is not the error in it, but the source of that.
            next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        None
    }

    /// Returns the counter for this error.
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

/// The error kind says that the connection is gone: nobody is told why, so there is no reason to
/// wait for what the sender still sends.
impl From<ProxyError> for io::Error {
    fn from(error: ProxyError) -> io::Error {
        io::Error::new(ErrorKind::ConnectionAborted, error)
    }
}
