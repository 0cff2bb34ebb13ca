//! `RequestEvent`: what a connection reports to a handler after the head of its request.

use std::fmt;

use rotor_core::Time;
use rotor_stream::Block;

use crate::semantics::trailers::Trailers;

/// An event of a request or its response, after the head. The connection passes it to the handler
/// through a single method, [`Server::handle`](super::Server::handle).
///
/// Each event has a method in [`Server`](super::Server), whose documentation says when it is
/// called. [`bad_request`](super::Server::bad_request) is not among the events, because the handler
/// cannot respond to it.
#[non_exhaustive]
pub enum RequestEvent<'a> {
    /// For [`request_received`](super::Server::request_received): the whole body.
    Received(&'a [u8]),
    /// For [`request_chunk`](super::Server::request_chunk): a part of the body.
    Chunk(&'a [u8]),
    /// For [`request_block`](super::Server::request_block): a part of the body, with its memory.
    Block(Block),
    /// For [`request_end`](super::Server::request_end): the body has ended.
    End(&'a Trailers),
    /// For [`request_stored`](super::Server::request_stored): the whole body, as a value. With the
    /// feature `body`.
    #[cfg(feature = "body")]
    Stored(rotor_body::Body),
    /// For [`response_flushed`](super::Server::response_flushed): there is room for more.
    Flushed,
    /// For [`timeout`](super::Server::timeout): the handler's deadline has been reached.
    Timeout,
    /// For [`wakeup`](super::Server::wakeup): the connection was woken.
    Wakeup,
    /// For [`draining`](super::Server::draining): the loop ends at this time at the latest.
    Draining(Time),
    /// For [`peer_ended`](super::Server::peer_ended): the peer has closed its sending side.
    PeerEnded,
}

impl RequestEvent<'_> {
    /// Returns the name of the event's method, for logs.
    pub fn name(&self) -> &'static str {
        match self {
            RequestEvent::Received(_) => "request_received",
            RequestEvent::Chunk(_) => "request_chunk",
            RequestEvent::Block(_) => "request_block",
            RequestEvent::End(_) => "request_end",
            #[cfg(feature = "body")]
            RequestEvent::Stored(_) => "request_stored",
            RequestEvent::Flushed => "response_flushed",
            RequestEvent::Timeout => "timeout",
            RequestEvent::Wakeup => "wakeup",
            RequestEvent::Draining(_) => "draining",
            RequestEvent::PeerEnded => "peer_ended",
        }
    }
}

/// Shows the length of a body, never its bytes: it may be long or secret.
impl fmt::Debug for RequestEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple(self.name());
        match self {
            RequestEvent::Received(bytes) | RequestEvent::Chunk(bytes) => {
                tuple.field(&bytes.len());
            }
            RequestEvent::Block(block) => {
                tuple.field(&block.len());
            }
            #[cfg(feature = "body")]
            RequestEvent::Stored(body) => {
                tuple.field(&body.len());
            }
            RequestEvent::Draining(until) => {
                tuple.field(until);
            }
            RequestEvent::End(_)
            | RequestEvent::Flushed
            | RequestEvent::Timeout
            | RequestEvent::Wakeup
            | RequestEvent::PeerEnded => {}
        }
        tuple.finish()
    }
}
