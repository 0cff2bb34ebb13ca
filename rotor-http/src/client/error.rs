//! Why a request can fail, and whose fault it is.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use quick_error::quick_error;
use rotor_core::BoxError;
use rotor_stream::{Fatal, ResolveError};
use rustix::io::Errno;

use crate::semantics::error::{BodyError, MessageError, ResponseHeadError};
use crate::semantics::status::Status;

quick_error! {
    /// Why a request got no response, or no complete one.
    ///
    /// [`fault`](ClientError::fault) returns whose fault it was.
    /// [`may_have_been_processed`](ClientError::may_have_been_processed) returns whether the server
    /// may have acted on the request in spite of the error.
    #[doc(alias = "AnswerTimeout")]
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum ClientError {
        /// No connection was made: refused, unreachable, or too slow.
        NotConnected(error: Fatal) {
            display("could not connect to the server")
            source(error)
        }
        /// The connection broke, or the server did not take the request.
        Lost(error: Fatal) {
            display("the connection was lost before the response was complete")
            source(error)
        }
        /// The server closed the connection without a response, or in the middle of its head.
        Closed {
            display("the server closed the connection before its response")
        }
        /// The head of the server's response is malformed or too large, or its framing is unclear.
        Head(error: ResponseHeadError) {
            from()
            display("the server's response has a bad head")
            source(error)
        }
        /// The body of the server's response is malformed, truncated, too large or too slow.
        Body(error: BodyError) {
            from()
            display("the server's response has a bad body")
            source(error)
        }
        /// The server sent more interim responses than
        /// [`interim_responses_max`](crate::Limits::interim_responses_max) allows.
        TooManyInterim {
            display("the server sent too many interim responses")
        }
        /// The server refused the request without processing it (HTTP/2: REFUSED_STREAM, or a
        /// GOAWAY that excludes it), and the request could not be made again, or was refused again.
        Refused {
            display("the server refused the request without processing it")
        }
        /// The fields of the request are larger than the server has said that it accepts (HTTP/2:
        /// SETTINGS_MAX_HEADER_LIST_SIZE), so it was not sent. Trailers are not checked. Over
        /// HTTP/1.1, a server responds to such a request with 431.
        FieldsTooLarge {
            display("the fields of the request are larger than the server accepts")
        }
        /// The server reset the stream of the request (HTTP/2) before its response was complete.
        /// The code tells the reason (RFC 9113 §7).
        ///
        /// With code 7 (REFUSED_STREAM) the server had already begun to respond. With code 13
        /// (HTTP_1_1_REQUIRED, which may also come in a GOAWAY) the server answers this request
        /// over HTTP/1.1 only, but the request could not be made over HTTP/1.1. A pool does that if
        /// the method is idempotent or a GOAWAY excludes the request, no part of a response has
        /// arrived, the request was written completely in `prepare_request`, and its connector
        /// supports it ([`without_http2`](super::Connector::without_http2)).
        Reset(code: u32) {
            display("the server reset the stream of the request (code {})", code)
        }
        /// The server violated HTTP/2. The text says how, for people: it may change. Unless only the
        /// stream of the request was affected, the connection can no longer be used.
        Protocol(why: &'static str) {
            display("the server violated HTTP/2: {}", why)
        }
        /// The server took longer than [`response_timeout`](crate::Limits::response_timeout); or, on a
        /// new HTTP/2 connection, it sent nothing within
        /// [`settings_timeout`](super::Http2Config::settings_timeout).
        ResponseTimeout {
            display("the server did not respond in time")
        }
        /// The request's own deadline passed while the request was at this stage.
        Deadline(stage: Stage) {
            display("the request's deadline has passed {}", stage)
        }
        /// The handler tried to write a malformed request head, or something malformed after the
        /// head in the same call. No server has received the complete head, so none has acted on
        /// it.
        Request(error: MessageError) {
            from()
            display("the request is malformed and was not sent")
            source(error)
        }
        /// The handler could not finish its request after the head was sent, because the rest would
        /// have been malformed: for example, the body is longer than the announced length. The
        /// server may have received the head, and the part of the body that was written.
        Unfinished(error: MessageError) {
            display("the rest of the request is malformed and was not sent")
            source(error)
        }
        /// The handler panicked.
        Panicked {
            display("the handler of the request panicked")
        }
        /// The handler asked for the body but does not implement the method that takes it.
        Unhandled {
            display("the handler asked for the body but has no method that takes it")
        }
        /// Too many requests wait, for this origin or in total, or they hold too many bytes.
        Full {
            display("too many requests are waiting, for this server or in all, or they hold too many bytes")
        }
        /// The bodies of responses that are being collected hold as many bytes as they may together
        /// ([`bodies_bytes_max`](super::ClientConfig::bodies_bytes_max)). For a body that is
        /// stored: the spool has no room for it (bytes or files), no file descriptor is left, or
        /// the queue of the spool's threads is full.
        BodiesFull {
            display("no room for the response's body: all bodies together have reached their limit")
        }
        /// The response's body was to be stored, but the disk could not store it.
        NotStored(error: BodyError) {
            display("the body of the server's response could not be stored")
            source(error)
        }
        /// There was no room for a connection, or the system provided no socket.
        NoRoom(error: BoxError) {
            display("this side has no room or no socket for a connection")
            source(&**error)
        }
        /// The request failed before any part of it was sent. The error inside is one after which
        /// the server may usually have acted on the request: for example, the handler panicked
        /// while it wrote the request, or the connection was lost while the request waited for its
        /// turn on it (HTTP/2).
        Unsent(error: Box<ClientError>) {
            display("nothing of the request was sent")
            source(&**error)
        }
        /// The request was sent on a connection that ended before any part of a response arrived,
        /// and could not be made again. The server may have acted on it the first time.
        NotRepeated(error: Box<ClientError>) {
            display("the connection ended without a response, and the request could not be made again")
            source(&**error)
        }
    }
}

/// How far a request had got when its deadline passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// The request waited for a connection, for its turn on a connection (HTTP/2), or for its
    /// handler to begin it. No part of it was sent.
    Waiting,
    /// The request had begun, and the client waited for the server: to take what was written, or to
    /// say whether it wants the body. This is also the stage if the server has begun to respond to
    /// a request that is not complete, because then either side may be waiting for the other.
    Sending,
    /// The request had begun, and the client waited for its handler: everything that the handler
    /// had written was sent, but the rest of the body was not written yet.
    Writing,
    /// The request was sent, and the client waited for the server: its response had not begun or
    /// was not complete.
    #[doc(alias = "Answering")]
    Receiving,
    /// The request was sent, and the client waited for its own side: the handler held the response
    /// off, had not asked for its body, or had all of it and went on; or the body was to be stored,
    /// and the disk was behind.
    Taking,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stage::Waiting => "while it waited to be sent",
            Stage::Sending => "while it was being sent",
            Stage::Writing => "while its handler was still to write the rest of its body",
            Stage::Receiving => "while it waited for the response",
            Stage::Taking => "while its handler was still to take the response",
        })
    }
}

/// Whose fault an error is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The server's: it violated the protocol or a limit, or was too slow.
    Peer,
    /// The network's, or the server's computer's; from here they look the same.
    Network,
    /// The caller's: a malformed request, an invalid host name, a handler that panics.
    Caller,
    /// This side's: there was no room, too little time was allowed, or a request's body was written,
    /// or its response taken, too slowly.
    Here,
}

/// How much of a request the server may have received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct SendHistory {
    /// Some part of it, on this connection.
    pub(super) on_this_connection: bool,
    /// All of it, on an earlier connection, which ended without a response.
    pub(super) on_earlier_connection: bool,
}

impl ClientError {
    /// Wraps the error if its kind alone would tell wrongly whether the server may have acted on
    /// the request.
    pub(super) fn with_send_history(self, sent: SendHistory) -> ClientError {
        let error = match self {
            // The server cannot be late with a request that it does not know.
            ClientError::Deadline(_) if !sent.on_this_connection => {
                ClientError::Deadline(Stage::Waiting)
            }
            error => error,
        };
        match (
            error.may_have_been_processed(),
            sent.on_this_connection || sent.on_earlier_connection,
        ) {
            (true, false) => ClientError::Unsent(Box::new(error)),
            (false, _) if sent.on_earlier_connection => ClientError::NotRepeated(Box::new(error)),
            _ => error,
        }
    }

    /// Returns the cause, without the wrappers that tell what the server may have done.
    pub(super) fn innermost(&self) -> &ClientError {
        match self {
            ClientError::Unsent(error) | ClientError::NotRepeated(error) => error.innermost(),
            error => error,
        }
    }

    /// Returns the error for a body that could not be received. A lack of room, or a failing disk,
    /// is not the server's fault.
    pub(super) fn from_body_error(error: BodyError) -> ClientError {
        match error {
            BodyError::NoRoom => ClientError::BodiesFull,
            #[cfg(feature = "body")]
            BodyError::DiskFull | BodyError::Disk => ClientError::NotStored(error),
            error => ClientError::Body(error),
        }
    }

    /// Returns whose fault the error is.
    pub fn fault(&self) -> Fault {
        match self {
            ClientError::Unsent(error) | ClientError::NotRepeated(error) => error.fault(),
            // Trying again does not make an invalid host name valid.
            ClientError::NotConnected(Fatal::Resolve(ResolveError::Name(_))) => Fault::Caller,
            ClientError::NotConnected(Fatal::Resolve(
                ResolveError::NoRoom(_) | ResolveError::Busy | ResolveError::Gone,
            )) => {
                Fault::Here
            }
            ClientError::Lost(Fatal::NoRoom) => Fault::Here,
            // The wrapping socket, usually TLS, did not accept what the server sent.
            ClientError::NotConnected(Fatal::Handshake(error))
                if error.kind() == ErrorKind::InvalidData =>
            {
                Fault::Peer
            }
            ClientError::NotConnected(error)
                if is_local_failure(error) || is_out_of_resources(error) =>
            {
                Fault::Here
            }
            ClientError::NotConnected(_) | ClientError::Lost(_) => Fault::Network,
            ClientError::Closed
            | ClientError::Head(_)
            | ClientError::Body(_)
            | ClientError::TooManyInterim
            | ClientError::Refused
            | ClientError::Reset(_)
            | ClientError::Protocol(_)
            | ClientError::ResponseTimeout
            | ClientError::Deadline(Stage::Sending | Stage::Receiving) => Fault::Peer,
            ClientError::FieldsTooLarge
            | ClientError::Request(_)
            | ClientError::Unfinished(_)
            | ClientError::Panicked
            | ClientError::Unhandled => Fault::Caller,
            ClientError::Full
            | ClientError::BodiesFull
            | ClientError::NotStored(_)
            | ClientError::NoRoom(_)
            // The queue is on this side, and the server does not even know of the request. The body
            // is this side's as well, and so is the handler that takes the response.
            | ClientError::Deadline(Stage::Waiting | Stage::Writing | Stage::Taking) => Fault::Here,
        }
    }

    /// Returns whether the server may have received the request and acted on it. If not, the
    /// request may be made again, whatever its method.
    pub fn may_have_been_processed(&self) -> bool {
        !matches!(
            self,
            ClientError::NotConnected(_)
                | ClientError::Full
                | ClientError::NoRoom(_)
                | ClientError::Refused
                | ClientError::FieldsTooLarge
                | ClientError::Request(_)
                | ClientError::Deadline(Stage::Waiting)
                | ClientError::Unsent(_)
        )
    }

    /// Returns the status with which a gateway should answer its own client (RFC 9110 §15.6).
    pub fn gateway_status(&self) -> Status {
        match self {
            ClientError::Unsent(error) | ClientError::NotRepeated(error) => error.gateway_status(),
            ClientError::NotConnected(Fatal::ConnectTimeout | Fatal::HandshakeTimeout)
            | ClientError::Lost(Fatal::FlushTimeout)
            | ClientError::ResponseTimeout
            | ClientError::Body(BodyError::TooSlow)
            | ClientError::Deadline(_) => Status::GATEWAY_TIMEOUT,
            ClientError::NotConnected(Fatal::Resolve(ResolveError::Name(_))) => {
                Status::INTERNAL_SERVER_ERROR
            }
            ClientError::NotConnected(Fatal::Resolve(
                ResolveError::NoRoom(_) | ResolveError::Busy | ResolveError::Gone,
            )) => Status::SERVICE_UNAVAILABLE,
            ClientError::Lost(Fatal::NoRoom) => Status::SERVICE_UNAVAILABLE,
            ClientError::NotConnected(error) if is_out_of_resources(error) => {
                Status::SERVICE_UNAVAILABLE
            }
            ClientError::NotConnected(error) if is_local_failure(error) => {
                Status::INTERNAL_SERVER_ERROR
            }
            ClientError::NotConnected(_)
            | ClientError::Lost(_)
            | ClientError::Closed
            | ClientError::Head(_)
            | ClientError::Body(_)
            | ClientError::TooManyInterim
            | ClientError::Reset(_)
            | ClientError::Protocol(_) => Status::BAD_GATEWAY,
            ClientError::Full
            | ClientError::Refused
            | ClientError::BodiesFull
            | ClientError::NotStored(_)
            | ClientError::NoRoom(_) => Status::SERVICE_UNAVAILABLE,
            ClientError::FieldsTooLarge => Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
            ClientError::Request(_)
            | ClientError::Unfinished(_)
            | ClientError::Panicked
            | ClientError::Unhandled => Status::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Returns whether a wrapping socket, usually TLS, says that it failed by itself: a key that cannot
/// sign, no randomness.
fn is_local_failure(error: &Fatal) -> bool {
    matches!(error, Fatal::Handshake(error) if error.kind() == ErrorKind::Other)
}

/// Returns whether this computer had no descriptor, no memory, or no port of its own for a socket,
/// be it that of a query for the server's addresses: the server was not even asked.
fn is_out_of_resources(error: &Fatal) -> bool {
    // The last one is the error of connect(2) if all ephemeral ports are in use, and also if this
    // computer has no address of the server's family, for example because IPv6 is disabled.
    const LACKING: [Errno; 5] =
        [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::ADDRNOTAVAIL];
    let error = match error {
        Fatal::Connect(error) => Some(error),
        Fatal::Resolve(ResolveError::Failed(error)) => io_error_in(&**error),
        _ => None,
    };
    error.and_then(Errno::from_io_error).is_some_and(|errno| LACKING.contains(&errno))
}

/// Returns the system's error in an error or among its causes. Resolvers have errors of their own.
fn io_error_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        let shared = error.downcast_ref::<Arc<io::Error>>();
        if let Some(error) = error.downcast_ref::<io::Error>().or(shared.map(|error| &**error)) {
            return Some(error);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests;
