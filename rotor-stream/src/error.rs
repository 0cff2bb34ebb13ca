//! What can go wrong with a stream: what the protocol may react to (`Exception`), what it can only
//! note (`Fatal`), and what the loop is told (`StreamError`).

use std::io;

use quick_error::quick_error;

use crate::resolve::ResolveError;

quick_error! {
    /// The expected input will not come; output can still be written.
    ///
    /// It is passed to [`Protocol::exception`](crate::Protocol::exception), once for each time that
    /// the protocol waits.
    #[doc(alias = "EOF")]
    #[doc(alias = "close_notify")]
    #[doc(alias = "truncation attack")]
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Exception {
        /// The peer has ended its side. What it sent before is in the input, and is less than the
        /// protocol waited for. This is nobody's fault, or the peer's; the protocol decides.
        EndOfStream {
            display("the peer has ended the stream")
        }
        /// The stream has ended, but a wrapping socket reports that the peer did not end it. For
        /// example the connection was closed without TLS's `close_notify` (RFC 8446 §6.1), and
        /// nobody can tell whether by the peer. What came before is in the input, and was sent by
        /// the peer; more may be missing. Many peers end their connections so: a message that says
        /// how long it is and has come whole is complete, but one that lasts until the end may have
        /// been cut.
        Truncated {
            display("the stream was cut off before the peer had ended it")
        }
        /// What was waited for is not within this many bytes: the `max` of the delimiter or of the
        /// frame, or [`input_max`](crate::StreamConfig::input_max). This is the peer's fault, if
        /// the limit is right.
        Limit(bytes: usize) {
            display("what was waited for is not within {bytes} bytes")
        }
        /// The input is not the beginning of a [frame](crate::Expectation::Frame), says the
        /// function that reads the frame's length. It is left in the input. This is the peer's
        /// fault.
        Malformed {
            display("the input is not the beginning of a frame")
        }
        /// Reading has failed, though the connection still stands: for example a wrapping socket
        /// got what it cannot decode. Nothing more will be read.
        Read(error: io::Error) {
            display("reading has failed")
            source(error)
        }
    }
}

quick_error! {
    /// The connection is gone, or was never made.
    ///
    /// It is passed to [`Protocol::fatal`](crate::Protocol::fatal) or, if there is no protocol yet,
    /// to [`Protocol::not_connected`](crate::Protocol::not_connected).
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Fatal {
        /// No connection could be made. Usually the peer or the network is the cause; the error's
        /// kind shows if it was the system: no descriptor or port left.
        Connect(error: io::Error) {
            display("cannot connect")
            source(error)
        }
        /// The host's addresses could not be found; the error says whose fault it is.
        Resolve(error: ResolveError) {
            display("cannot resolve")
            source(error)
        }
        /// No connection was made within [`connect_timeout`](crate::StreamConfig::connect_timeout).
        ConnectTimeout {
            display("connecting took too long")
        }
        /// The handshake of a wrapping socket has failed. The peer is still told why, if the socket
        /// has something to send. The kind `InvalidData` says that the peer sent what is not
        /// acceptable, `Other` that the fault is at this end, any other that the network failed.
        Handshake(error: io::Error) {
            display("the handshake has failed")
            source(error)
        }
        /// The handshake did not end within
        /// [`handshake_timeout`](crate::StreamConfig::handshake_timeout).
        HandshakeTimeout {
            display("the handshake took too long")
        }
        /// The connection was reset, or the system has given it up.
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
        /// [`flush_timeout`](crate::StreamConfig::flush_timeout). The cause is the peer or the
        /// network.
        FlushTimeout {
            display("the peer does not take what is sent to it")
        }
        /// There is no room for what waits here, to be consumed or to be written, beside what other
        /// streams hold ([`held`](crate::StreamConfig::held)). This is nobody's fault.
        NoRoom {
            display("all streams together hold as many bytes as they may")
        }
        /// Others found no slot or no descriptor, and this connection had been
        /// [idle](crate::Protocol::idle) longest. It is closed in order, as far as that takes no
        /// time. This is nobody's fault.
        MadeRoom {
            display("the connection was idle longest, and others need its room")
        }
    }
}

quick_error! {
    /// An error that ends a stream and that the loop reports.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum StreamError {
        /// The protocol waits again for what is there already, and has neither consumed nor written
        /// anything: it would be called for ever. This is a bug in the protocol.
        NoProgress(protocol: &'static str, waits_for: &'static str) {
            display("{protocol} makes no progress: it waits for {waits_for} again, and has changed neither its input nor its output")
        }
        /// The protocol did not handle an exception: its `exception` is the default.
        Exception(error: Exception) {
            display("input ended unexpectedly")
            source(error)
        }
        /// The protocol did not handle its deadline: its `timeout` is the default, and what it
        /// waited for did not come in time.
        Timeout(protocol: &'static str) {
            display("{protocol} got no answer before its deadline")
        }
        /// The peer is behind: it does not take what others send to it, and its
        /// [outbox](crate::OutboxFull::End) is full. The cause is the peer or the network.
        Behind(protocol: &'static str) {
            display("{protocol} ends: its peer does not read what it is sent")
        }
        /// The socket could not be made or registered. The cause is the system: for example no
        /// descriptor is left.
        Socket(error: io::Error) {
            display("a socket cannot be used")
            source(error)
        }
    }
}

impl StreamError {
    /// Returns whether the cause is the peer or the network, which ended too soon or fell silent.
    /// Nothing can be mended here, so to whoever runs the program it is no error.
    pub fn is_peers_doing(&self) -> bool {
        match self {
            StreamError::Exception(_) | StreamError::Timeout(_) | StreamError::Behind(_) => true,
            StreamError::NoProgress(..) | StreamError::Socket(_) => false,
        }
    }
}

/// Returns whether an error of reading says that the connection itself is gone.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    // The last four are what the retransmission timer, ICMP and a link that goes down report of an
    // established connection (tcp(7)).
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
