//! Writes a whole response of the usual kind at once.

use super::ResponseState;
use crate::h1::decimal::Number;
use crate::h1::message::{Framing, Phase};
use crate::h1::sink::Sink;
use crate::semantics::date::DateCache;
use crate::semantics::status::Status;
use crate::semantics::swar;
use crate::semantics::version::Version;

impl ResponseState {
    /// Writes a whole response, if it is of the usual kind: nothing has been written yet, the
    /// status has a body and a prepared status line, the connection persists without a field, and
    /// the content type is a valid value. Returns whether this is so; if not, nothing was done.
    ///
    /// The bytes are the same as those of the separate calls.
    #[inline]
    pub(crate) fn try_put_whole(
        &mut self,
        out: &mut impl Sink,
        status: Status,
        content_type: &str,
        body: &[u8],
        date: &DateCache,
    ) -> bool {
        let reply = &self.reply;
        // In all other cases, fields are added or omitted, or the call is refused: the separate
        // calls do that, and return the error.
        let is_usual = self.message.phase == Phase::Start
            && self.message.sends_body
            && reply.keep_alive
            && !reply.is_connect
            && reply.version >= Version::Http11
            && !status.forbids_body()
            && !matches!(status, Status::RESET_CONTENT | Status::UPGRADE_REQUIRED);
        let (true, Some(line)) = (is_usual, status.line_and_type()) else { return false };
        if !swar::is_value(content_type.as_bytes()) {
            return false;
        }
        let length = Number::decimal(body.len() as u64);
        out.put_all(&[
            line.as_bytes(),
            content_type.as_bytes(),
            b"\r\nContent-Length: ",
            length.as_bytes(),
            date.end_of_fields(),
            body,
        ]);
        self.status = status;
        self.message.framing = Framing::Length(0);
        self.message.phase = Phase::Done;
        true
    }
}

#[cfg(test)]
mod tests;
