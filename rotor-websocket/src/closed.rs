//! `Closed`: how a connection ended.

use crate::frame::code::Code;
use crate::frame::fault::Fault;

/// How a connection ended, for [`Handler::closed`](crate::Handler::closed).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Closed<'a> {
    /// The code of the first close frame, of whichever side: [`NO_STATUS`](Code::NO_STATUS) if it
    /// had none, [`ABNORMAL`](Code::ABNORMAL) if there was no close frame.
    pub code: Code,
    /// The reason in the peer's close frame; empty if there was none.
    pub reason: &'a str,
    /// Why it ended.
    pub cause: Cause,
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The peer closed it.
    Peer,
    /// The handler closed it, and the peer has answered.
    Handler,
    /// The handler closed it, and the peer did not answer within
    /// [`close_within`](crate::WebSocketConfig::close_within).
    CloseTimeout,
    /// The handler dropped it ([`Next::drop_now`](crate::Next::drop_now)).
    Dropped,
    /// The peer violated the protocol, and was told so.
    Fault(Fault),
    /// All messages that have come in part take as much memory as they may
    /// ([`messages_bytes_max`](crate::WebSocketConfig::messages_bytes_max)), and the next part of
    /// one came here. Nobody's fault; the peer got 1013.
    NoRoom,
    /// The peer was silent, and did not answer a ping within
    /// [`pong_within`](crate::WebSocketConfig::pong_within).
    PongTimeout,
    /// The connection ended without a close frame, or was lost.
    Lost,
}

impl Closed<'_> {
    /// Returns whether both sides have sent a close frame: then no message was lost on the way
    /// before it.
    pub fn is_clean(&self) -> bool {
        matches!(self.cause, Cause::Peer | Cause::Handler)
    }
}
