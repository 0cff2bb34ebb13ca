//! `Closed`: how a connection ended.

use crate::frame::code::Code;
use crate::frame::fault::Fault;

/// How a connection ended, for [`Handler::closed`](crate::Handler::closed).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Closed<'a> {
    /// The code of the close frame that came first, of whichever side:
    /// [`NO_STATUS`](Code::NO_STATUS) where it had none, [`ABNORMAL`](Code::ABNORMAL) where there
    /// was no close frame.
    pub code: Code,
    /// The reason in the peer's close frame; empty where there was none.
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
    /// The handler gave it up ([`Next::drop_now`](crate::Next::drop_now)).
    Dropped,
    /// The peer broke the rules, and was told so.
    Fault(Fault),
    /// The peer was silent, and answered no ping within
    /// [`pong_within`](crate::WebSocketConfig::pong_within).
    PongTimeout,
    /// The connection ended without a close frame, or was lost.
    Lost,
}

impl Closed<'_> {
    /// Returns whether both sides have sent a close frame: no message was lost on the way before
    /// it.
    pub fn is_clean(&self) -> bool {
        matches!(self.cause, Cause::Peer | Cause::Handler)
    }
}
