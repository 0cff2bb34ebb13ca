//! `Closed`: how a connection ended.

use crate::frame::code::Code;
use crate::frame::fault::Fault;

/// How a connection ended, for [`Handler::closed`](crate::Handler::closed).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Closed<'a> {
    /// The code of the first close frame, whichever side sent it: [`NO_STATUS`](Code::NO_STATUS) if
    /// it had no code, [`ABNORMAL`](Code::ABNORMAL) if there was no close frame.
    pub code: Code,
    /// The reason in the peer's close frame; empty if it had none, or if there was no such frame.
    pub reason: &'a str,
    /// Why the connection ended.
    pub cause: Cause,
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The peer closed the connection.
    Peer,
    /// The handler closed the connection, and the peer answered.
    Handler,
    /// The handler closed the connection, and the peer did not take the output, or did not answer,
    /// within [`close_within`](crate::WebSocketConfig::close_within).
    CloseTimeout,
    /// The handler dropped the connection ([`Next::drop_now`](crate::Next::drop_now)).
    Dropped,
    /// The peer violated the protocol, and was sent a close frame that says so.
    Fault(Fault),
    /// Incomplete messages took as much memory as they may
    /// ([`messages_bytes_max`](crate::WebSocketConfig::messages_bytes_max)) when another part of
    /// one arrived here. This is nobody's mistake; the peer got 1013.
    NoRoom,
    /// The peer was silent, and did not answer a ping within
    /// [`pong_within`](crate::WebSocketConfig::pong_within).
    PongTimeout,
    /// The connection ended without a close frame, or was lost.
    Lost,
}

impl Closed<'_> {
    /// Returns whether both sides sent a close frame. If so, no message before it was lost.
    pub fn is_clean(&self) -> bool {
        matches!(self.cause, Cause::Peer | Cause::Handler)
    }
}
