//! What can go wrong with a stream: what the protocol may react to (`Exception`), what it can only
//! note (`Fatal`), and what the loop is told (`StreamError`).

use std::io;

use quick_error::quick_error;

use crate::resolve::ResolveError;

quick_error! {
    /// The expected input will not come; output can still be written.
    ///
    /// It is passed to [`Protocol::exception`](crate::Protocol::exception), once each time the
    /// protocol waits for input.
    #[doc(alias = "EOF")]
    #[doc(alias = "close_notify")]
    #[doc(alias = "truncation attack")]
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Exception {
        /// The peer has ended its side. The bytes it sent before are in the input, and are less
        /// than the protocol waited for. This may be the peer's fault, or nobody's; the protocol
        /// decides.
        EndOfStream {
            display("the peer has ended the stream")
        }
        /// The stream has ended, but a wrapping socket reports that the peer did not end it. For
        /// example, the connection was closed without TLS's `close_notify` (RFC 8446 §6.1), and it
        /// is unknown whether the peer did that. The bytes that arrived before are in the input and
        /// were sent by the peer; more may be missing. Many peers end their connections like this.
        /// A message that contains its length and has arrived completely is intact, but one that
        /// lasts until the end may have been cut off.
        Truncated {
            display("the connection was aborted before the peer ended the stream")
        }
        /// The expected input was not found within this many bytes: the `max` of the delimiter or
        /// of the frame, or [`input_max`](crate::StreamConfig::input_max). This is the peer's
        /// fault, if the limit is right.
        Limit(bytes: usize) {
            display("the expected input is longer than {bytes} bytes")
        }
        /// The input is not the beginning of a [frame](crate::Expectation::Frame), according to the
        /// function that reads the frame's length. It stays in the input. This is the peer's fault.
        Malformed {
            display("the input is not the beginning of a frame")
        }
        /// The connection is gone, and the protocol
        /// [outlives](crate::Protocol::outlives_connection) it. Nothing more will be read, and what
        /// is written is discarded.
        Lost(error: Fatal) {
            display("the connection is gone")
            source(error)
        }
        /// Reading has failed, although the connection still exists: for example, a wrapping socket
        /// received bytes that it cannot decode. Nothing more will be read.
        Read(error: io::Error) {
            display("reading has failed")
            source(error)
        }
    }
}

quick_error! {
    /// The connection is gone, or could not be made.
    ///
    /// It is passed to [`Protocol::fatal`](crate::Protocol::fatal) or, if there is no protocol yet,
    /// to [`Protocol::not_connected`](crate::Protocol::not_connected).
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Fatal {
        /// No connection could be made. Usually the peer or the network is the cause. The kind of
        /// the error shows if it was the system: no descriptor or port is left.
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
        /// The handshake of a wrapping socket has failed. The peer is still told the reason, if the
        /// socket has a message for it. The kind `InvalidData` means that the peer sent something
        /// unacceptable, `Other` that the fault is at this end, any other kind that the network
        /// failed.
        Handshake(error: io::Error) {
            display("the handshake has failed")
            source(error)
        }
        /// The handshake did not end within
        /// [`handshake_timeout`](crate::StreamConfig::handshake_timeout).
        HandshakeTimeout {
            display("the handshake took too long")
        }
        /// The connection was reset, or the system has given it up; or the peer has told a wrapping
        /// socket why it leaves, such as by an alert of TLS.
        Reset(error: io::Error) {
            display("the connection broke")
            source(error)
        }
        /// Writing has failed. Usually the peer or the network is the cause. If it is a file that
        /// was to be sent, the stream has logged that at warn level.
        Write(error: io::Error) {
            display("writing has failed")
            source(error)
        }
        /// The peer took too little of the waiting output within
        /// [`flush_timeout`](crate::StreamConfig::flush_timeout). The cause is the peer or the
        /// network.
        FlushTimeout {
            display("the peer does not read what is sent to it")
        }
        /// There is no room for this stream's input or output, because other streams hold too much
        /// ([`held`](crate::StreamConfig::held)). This is nobody's fault.
        NoRoom {
            display("all streams together have reached their limit of memory")
        }
        /// Other machines found no slot or no descriptor, and this connection had been
        /// [idle](crate::Protocol::idle) longest. It is closed in an orderly way, as far as that is
        /// possible without waiting. This is nobody's fault.
        MadeRoom {
            display("the connection was closed, as the longest idle one, to make room for another")
        }
    }
}

quick_error! {
    /// An error that ends a stream and is reported by the loop.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum StreamError {
        /// The protocol waits again for what it was just called for, so it would be called forever:
        /// for input, of which it has consumed nothing; or for room to write, and it has neither
        /// written nor consumed anything. This is a bug in the protocol.
        NoProgress(protocol: &'static str, waits_for: &'static str) {
            display("{protocol} makes no progress: it waits for {waits_for}")
        }
        /// The protocol does not handle exceptions: its `exception` is the default method.
        Exception(error: Exception) {
            display("input ended unexpectedly")
            source(error)
        }
        /// The protocol does not handle its deadline: its `timeout` is the default method, and the
        /// expected input did not arrive in time.
        Timeout(protocol: &'static str) {
            display("{protocol} received nothing before its deadline")
        }
        /// The peer is too slow: it does not take the messages that others send to it, and its
        /// [outbox](crate::OutboxFull::End) is full. The cause is the peer or the network.
        Behind(protocol: &'static str) {
            display("{protocol} ends: its peer does not read what it is sent")
        }
        /// The socket could not be made or registered. The cause is the system: for example, no
        /// descriptor is left.
        Socket(error: io::Error) {
            display("a socket cannot be used")
            source(error)
        }
    }
}

impl StreamError {
    /// Returns whether the peer or the network is the cause, because it ended the stream too early
    /// or fell silent. Nothing can be fixed at this end, so it need not be treated as an error.
    /// [`Accept`](crate::Accept) logs such an end of a connection at debug level.
    #[doc(alias = "is_peers_doing")]
    pub fn is_peer_fault(&self) -> bool {
        match self {
            StreamError::Exception(_) | StreamError::Timeout(_) | StreamError::Behind(_) => true,
            StreamError::NoProgress(..) | StreamError::Socket(_) => false,
        }
    }
}

/// Returns whether an error of reading means that the connection itself is gone.
pub(crate) fn is_connection_lost(error: &io::Error) -> bool {
    // The last four are errors of an established connection that are caused by the retransmission
    // timer, ICMP, or a link that goes down (tcp(7)).
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
