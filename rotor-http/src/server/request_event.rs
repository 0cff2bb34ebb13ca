//! `RequestEvent`: what a connection tells a handler after the head of its request.

use std::fmt;

use rotor_core::Time;
use rotor_stream::Block;

use crate::semantics::trailers::Trailers;

/// What happened to a request or its response after the head has come: what the connection passes
/// to its handler, through the one method [`Server::handle`](super::Server::handle).
///
/// Each event has a method in [`Server`](super::Server), whose documentation says when it comes. Not
/// among them is [`bad_request`](super::Server::bad_request), after which nothing can be answered.
#[non_exhaustive]
pub enum RequestEvent<'a> {
    /// For [`request_received`](super::Server::request_received): the whole body.
    Received(&'a [u8]),
    /// For [`request_chunk`](super::Server::request_chunk): a part of the body.
    Chunk(&'a [u8]),
    /// For [`request_block`](super::Server::request_block): a part of the body, in its memory.
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
    /// For [`wakeup`](super::Server::wakeup): somebody woke the connection.
    Wakeup,
    /// For [`draining`](super::Server::draining): the loop will end, at this time at the latest.
    Draining(Time),
    /// For [`peer_ended`](super::Server::peer_ended): the peer sends no more.
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

/// Shows no octet of a body, which may be long or secret: its length.
impl fmt::Debug for RequestEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple(self.name());
        match self {
            RequestEvent::Received(octets) | RequestEvent::Chunk(octets) => {
                tuple.field(&octets.len());
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
