//! `Code`: the number in a close frame that says why the connection is closed.

use std::fmt;

/// The number that says why a connection is closed (RFC 6455 §7.4).
///
/// Every code that [`new`](Code::new) returns may be sent. `new` refuses the codes that only
/// describe how a connection ended ([`NO_STATUS`](Code::NO_STATUS), [`ABNORMAL`](Code::ABNORMAL));
/// these appear only in [`Closed`](crate::Closed).
///
/// ```
/// # mod rotor { pub use rotor_websocket as websocket; }
/// use rotor::websocket::Code;
///
/// assert_eq!(Code::new(1000), Some(Code::NORMAL));
/// assert_eq!(Code::new(4321).map(Code::number), Some(4321)); // a code for applications
/// assert_eq!(Code::new(1006), None); // must not be sent
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u16);

impl Code {
    /// 1000: the connection has served its purpose.
    pub const NORMAL: Code = Code(1000);
    /// 1001: the server shuts down, or the user left the page.
    pub const GOING_AWAY: Code = Code(1001);
    /// 1002: a frame violates the protocol.
    pub const PROTOCOL_ERROR: Code = Code(1002);
    /// 1003: this end does not accept this kind of message.
    pub const UNSUPPORTED: Code = Code(1003);
    /// 1005: a close frame without a code. Never sent.
    pub const NO_STATUS: Code = Code(1005);
    /// 1006: the connection ended without a close frame. Never sent.
    pub const ABNORMAL: Code = Code(1006);
    /// 1007: a message has invalid content, such as text that is not UTF-8.
    #[doc(alias = "INVALID_FRAME_PAYLOAD_DATA")]
    pub const INVALID_DATA: Code = Code(1007);
    /// 1008: a rule of this end was violated; the code for cases that no other code fits.
    pub const POLICY: Code = Code(1008);
    /// 1009: a message is too long.
    #[doc(alias = "MESSAGE_TOO_BIG")]
    pub const TOO_LONG: Code = Code(1009);
    /// 1010: the server did not agree to an extension that the client needs.
    pub const MISSING_EXTENSION: Code = Code(1010);
    /// 1011: this end failed.
    pub const INTERNAL_ERROR: Code = Code(1011);
    /// 1012: the server restarts; the client may reconnect.
    pub const RESTART: Code = Code(1012);
    /// 1013: the server is overloaded; the client may reconnect later.
    pub const TRY_AGAIN_LATER: Code = Code(1013);
    /// 1014: a server behind this one sent an invalid response.
    pub const BAD_GATEWAY: Code = Code(1014);

    /// Returns the code with this number, if it may be sent: 1000 to 1003, 1007 to 1014, and 3000
    /// to 4999, which are for libraries and applications.
    pub const fn new(number: u16) -> Option<Code> {
        match number {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Code(number)),
            _ => None,
        }
    }

    /// Returns the number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_that_may_be_sent_are_accepted() {
        for (number, may_be_sent) in [
            (0, false),
            (999, false),
            (1000, true),
            (1003, true),
            (1004, false),
            (1005, false),
            (1006, false),
            (1007, true),
            (1014, true),
            (1015, false),
            (1016, false),
            (2999, false),
            (3000, true),
            (4999, true),
            (5000, false),
            (u16::MAX, false),
        ] {
            assert_eq!(Code::new(number).is_some(), may_be_sent, "{number}");
        }
    }
}
