//! `LookupError` and `ServerFault`: why a lookup failed, and whose fault it is.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use quick_error::quick_error;

use crate::name::{Name, NameError};

quick_error! {
    /// Why a lookup has no answer.
    ///
    /// Clones are cheap: everybody who asked the same question gets the same error.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub enum LookupError {
        /// The text is not a domain name. The caller's mistake; no server was asked.
        Name(error: NameError) {
            display("not a domain name")
            source(error)
            from()
        }
        /// An authoritative answer says that there is no such name (NXDOMAIN). Nobody's fault. The
        /// answer is cached for as long as the server allows; until then, asking again gives the
        /// same result without a query.
        NoSuchName(name: Name) {
            display("the name {name} does not exist")
        }
        /// The name exists, but has no records of this kind. Nobody's fault; cached in the same
        /// way.
        NoRecords(name: Name) {
            display("{name} has no records of this kind")
        }
        /// The last server that answered gave a wrong answer or refused the question, and the
        /// others did no better. The server's fault: ask again later. The failure is cached for
        /// 1 s, and for twice as long each time that the question fails again, up to 8 s (RFC 9520
        /// §3.2).
        Server(server: SocketAddr, fault: ServerFault) {
            display("name server {server} failed")
            source(fault)
        }
        /// No server answered in time. The servers' or the network's fault. If all servers had
        /// their time, the failure is cached like [`Server`](LookupError::Server). If the lookup's
        /// own time limit was shorter, it is not cached.
        Timeout {
            display("no name server answered in time")
        }
        /// A socket could not be made or used: no descriptor is left, or there is no route. An
        /// error of the system, not of a server. Not cached.
        Network(error: Arc<io::Error>) {
            display("cannot ask a name server")
            source(error)
        }
        /// The loop had no slot for the machine that asks the servers: the application's limits are
        /// too low for its lookups.
        NoSlot {
            display("the loop is full: no slot is left to ask a name server")
        }
        /// There is no server to ask. The configuration's fault.
        NoServer {
            display("no name server is configured")
        }
        /// The machine that asked the servers ended without an answer: it panicked, or the loop was
        /// told to drain. Ask again, unless the loop ends.
        Lost {
            display("the query to the name servers was aborted")
        }
    }
}

quick_error! {
    /// What a server did wrong.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum ServerFault {
        /// The server answered with this response code (RFC 1035 §4.1.1): 1 format error, 2 server
        /// failure, 4 not implemented, 5 refused.
        Code(code: u8) {
            display("it answered with response code {code}")
        }
        /// The server sent an empty answer for a name for which it is not an authority, and offers
        /// no recursion (RFC 1035 §4.1.1: neither AA nor RA). It is the server of a zone, or a
        /// forwarder with a wrong configuration.
        NoRecursion {
            display("it offers no recursive lookups")
        }
        /// The server's answer is not a DNS message: truncated, with names that point at
        /// themselves, or with lengths that do not fit.
        Malformed {
            display("its answer cannot be decoded")
        }
        /// The server's answer over TCP is for another question.
        OtherQuestion {
            display("its answer over TCP is for another question")
        }
        /// The server truncated its answer over TCP as well, where there is no need to.
        Truncated {
            display("it truncates its answer even over TCP")
        }
        /// Nothing listens at the server's port, according to its host (ICMP). The next server is
        /// asked at once.
        PortClosed {
            display("nothing listens on its port")
        }
        /// The server closed or refused the TCP connection before the answer was complete.
        Closed {
            display("it closed the TCP connection before its answer was whole")
        }
        /// The server's answer takes more memory than
        /// [`ANSWER_BYTES_MAX`](crate::ANSWER_BYTES_MAX), or its message takes more than 1 MiB,
        /// with records that do not belong to the answer.
        TooLarge {
            display("its answer takes too much memory")
        }
        /// The chain of aliases from the name is longer than [`CHAIN_MAX`](crate::CHAIN_MAX).
        ChainTooLong {
            display("too many aliases (CNAME) follow each other")
        }
    }
}

impl LookupError {
    /// Returns whether the servers were asked, and failed.
    pub(crate) fn is_server_failure(&self) -> bool {
        matches!(self, LookupError::Server(..) | LookupError::Timeout)
    }

    /// Returns how much the error says about why a question has no answer. A fault of a server says
    /// more than that a server could not be asked, and that says more than that a server did not
    /// answer.
    pub(crate) fn weight(&self) -> u8 {
        match self {
            LookupError::Timeout => 0,
            LookupError::Server(..) => 2,
            _ => 1,
        }
    }

    /// Returns whether the error is an answer: the name, or its records, do not exist.
    pub fn is_negative(&self) -> bool {
        matches!(self, LookupError::NoSuchName(_) | LookupError::NoRecords(_))
    }
}
