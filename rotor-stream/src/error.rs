//! What can go wrong with a stream: what the protocol may answer (`Exception`), what it can only
//! note (`Fatal`), and what the loop hears (`StreamError`).

use std::io;

use quick_error::quick_error;

use crate::resolve::ResolveError;

quick_error! {
    /// Input that was waited for will not come; output still can be written.
    ///
    /// Handed to [`Protocol::exception`](crate::Protocol::exception), once for each time that the
    /// protocol waits.
    #[doc(alias = "EOF")]
    #[doc(alias = "close_notify")]
    #[doc(alias = "truncation attack")]
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Exception {
        /// The peer has ended its side. What it had sent before is in the input, and is too little
        /// for what was waited for. Nobody's fault, or the peer's, as the protocol sees it.
        EndOfStream {
            display("the peer has ended the stream")
        }
        /// The stream has ended, and a wrapping socket says that the peer has not ended it: the
        /// connection was closed without TLS's `close_notify` (RFC 8446 §6.1), say, and nobody can
        /// tell whether by the peer. What came before is in the input, and is what the peer has
        /// sent; more may be missing. Many peers end their connections so: a message that says how
        /// long it is and has come whole is whole, one that lasts until the end may have been cut.
        Truncated {
            display("the stream has ended without the peer's saying so")
        }
        /// What was waited for is not among so many bytes: `max` of the delimiter or of the
        /// frame, or [`input_max`](crate::StreamConfig::input_max). The peer's fault, if the
        /// limit is as it should be.
        Limit(bytes: usize) {
            display("what was waited for is not within {bytes} bytes")
        }
        /// What has come is not the beginning of a [frame](crate::Expectation::Frame), as who reads
        /// its length says. It is in the input. The peer's fault.
        Malformed {
            display("what has come is no beginning of a frame")
        }
        /// Reading has failed, though the connection still stands: a wrapping socket got what it
        /// cannot decode, say. Nothing more will be read.
        Read(error: io::Error) {
            display("reading has failed")
            source(error)
        }
    }
}

quick_error! {
    /// The connection is gone, or was never made.
    ///
    /// Handed to [`Protocol::fatal`](crate::Protocol::fatal) or, if there is no protocol yet, to
    /// [`Protocol::not_connected`](crate::Protocol::not_connected).
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Fatal {
        /// No connection could be made. The peer's or the network's doing, as a rule; the error's
        /// kind tells where it was the system's: no descriptor or port left.
        Connect(error: io::Error) {
            display("cannot connect")
            source(error)
        }
        /// The host's addresses could not be found; the error says whose fault that is.
        Resolve(error: ResolveError) {
            display("cannot resolve")
            source(error)
        }
        /// No connection was made within [`connect_timeout`](crate::StreamConfig::connect_timeout).
        ConnectTimeout {
            display("connecting took too long")
        }
        /// The handshake of a wrapping socket has failed. The peer is still told why, if the socket
        /// has something to tell.
        Handshake(error: io::Error) {
            display("the handshake has failed")
            source(error)
        }
        /// The handshake did not end within
        /// [`handshake_timeout`](crate::StreamConfig::handshake_timeout).
        HandshakeTimeout {
            display("the handshake took too long")
        }
        /// The connection was reset, or given up by the system.
        Reset(error: io::Error) {
            display("the connection is gone")
            source(error)
        }
        /// Writing has failed.
        Write(error: io::Error) {
            display("writing has failed")
            source(error)
        }
        /// The peer took too little of the waiting output within
        /// [`flush_timeout`](crate::StreamConfig::flush_timeout). The peer's or the network's
        /// doing.
        FlushTimeout {
            display("the peer does not take what is sent to it")
        }
        /// What waits here, to be read or to be written, finds no room beside what other streams
        /// hold ([`held`](crate::StreamConfig::held)). Nobody's fault.
        NoRoom {
            display("all streams together hold as many bytes as they may")
        }
        /// Others found no slot or no descriptor, and this connection had been
        /// [idle](crate::Protocol::idle) longest: it is closed, in order, as far as that takes no
        /// time. Nobody's fault.
        MadeRoom {
            display("it was idle longest, and others need its room")
        }
    }
}

quick_error! {
    /// What ends a stream with an error that the loop reports.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum StreamError {
        /// The protocol waits again for what is there already, and has neither consumed nor written
        /// anything: it would be called for ever. A bug in the protocol.
        NoProgress(protocol: &'static str, waits_for: &'static str) {
            display("{protocol} makes no progress: it waits for {waits_for} again, and has changed neither its input nor its output")
        }
        /// The protocol left an exception to the default: it had no use for it.
        Exception(error: Exception) {
            display("input ended unexpectedly")
            source(error)
        }
        /// The protocol left its deadline to the default: what it waited for did not come in time.
        Timeout(protocol: &'static str) {
            display("{protocol} got no answer before its deadline")
        }
        /// The peer is behind: it does not take what others have for it, and its
        /// [outbox](crate::OutboxFull::End) is full. The peer's or the network's doing.
        Behind(protocol: &'static str) {
            display("{protocol} ends: its peer does not read what it is sent")
        }
        /// The socket could not be made or registered. The system's doing: no descriptor left, say.
        Socket(error: io::Error) {
            display("a socket cannot be used")
            source(error)
        }
    }
}

impl StreamError {
    /// Whether it is the doing of the peer or of the network: one that ends too soon, or falls
    /// silent. There is nothing to be mended here, so it is no error to who runs the program.
    pub fn is_peers_doing(&self) -> bool {
        match self {
            StreamError::Exception(_) | StreamError::Timeout(_) | StreamError::Behind(_) => true,
            StreamError::NoProgress(..) | StreamError::Socket(_) => false,
        }
    }
}

/// Whether an error of reading says that the connection itself is gone.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    // The last four are what the retransmission timer, ICMP and a link that goes down say of a
    // connection that stood (tcp(7)).
    use io::ErrorKind::*;
    matches!(
        error.kind(),
        ConnectionReset
            | ConnectionAborted
            | BrokenPipe
            | NotConnected
            | TimedOut
            | HostUnreachable
            | NetworkUnreachable
            | NetworkDown
    )
}
