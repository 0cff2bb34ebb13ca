//! Why a lookup has no answer, and whose fault that is.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use quick_error::quick_error;

use crate::name::{Name, NameError};

quick_error! {
    /// Why a lookup has no answer.
    ///
    /// Clones are cheap: all who asked the same question get the same error.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub enum LookupError {
        /// The text is no domain name. The caller's mistake; nothing was asked.
        Name(error: NameError) {
            display("not a domain name")
            source(error)
            from()
        }
        /// A server that knows says that there is no such name (NXDOMAIN). Nobody's fault.
        /// Remembered for as long as the server allows; asking again before that costs nothing and
        /// changes nothing.
        NoSuchName(name: Name) {
            display("there is no name {name}")
        }
        /// The name exists, and has no records of the kind. Nobody's fault; remembered in the same
        /// way.
        NoRecords(name: Name) {
            display("{name} has no such records")
        }
        /// The last server that answered did so wrongly, or refused to; the others fared no better.
        /// The server's fault. Not remembered: ask again later.
        Server(server: SocketAddr, fault: ServerFault) {
            display("name server {server} is of no use")
            source(fault)
        }
        /// No server answered in time. The servers' or the network's doing. Not remembered.
        Timeout {
            display("no name server answered in time")
        }
        /// A socket could not be made or used. The system's doing: no descriptor left, no route.
        /// Not remembered.
        Network(error: Arc<io::Error>) {
            display("cannot ask a name server")
            source(error)
        }
        /// The loop had no slot for the machine that asks the servers. The application's limits are
        /// too low for what it asks.
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
        /// It answered with this response code (RFC 1035 §4.1.1): 1 format error, 2 server failure,
        /// 4 not implemented, 5 refused.
        Code(code: u8) {
            display("it answered with response code {code}")
        }
        /// Its answer is not a DNS message: cut off, with names that point at themselves, with
        /// lengths that do not fit.
        Malformed {
            display("its answer cannot be decoded")
        }
        /// Its answer over TCP is one to another question.
        OtherQuestion {
            display("its answer over TCP is one to another question")
        }
        /// It cut its answer off over TCP as well, where there is no need to.
        Truncated {
            display("it truncates its answer even over TCP")
        }
        /// Nobody takes questions at its port: its host said so (ICMP). The next server is asked at
        /// once.
        PortClosed {
            display("nobody takes questions at its port")
        }
        /// It ended the TCP connection, or refused it, before the answer was whole.
        Closed {
            display("it closed the TCP connection before its answer was whole")
        }
        /// Its answer takes more memory than [`ANSWER_BYTES_MAX`](crate::ANSWER_BYTES_MAX).
        TooLarge {
            display("its answer takes too much memory")
        }
        /// The name is an alias of an alias, and so on, for more than
        /// [`CHAIN_MAX`](crate::CHAIN_MAX) times.
        ChainTooLong {
            display("the name is an alias of an alias for too many times")
        }
    }
}

impl LookupError {
    /// Whether this is an answer: the name, or its records, do not exist.
    pub fn is_negative(&self) -> bool {
        matches!(self, LookupError::NoSuchName(_) | LookupError::NoRecords(_))
    }
}
