//! A whole response of the usual kind, put into its sink at once.

use super::ResponseState;
use crate::h1::decimal::Number;
use crate::h1::message::{Framing, Phase};
use crate::h1::sink::Sink;
use crate::semantics::date::DateCache;
use crate::semantics::status::Status;
use crate::semantics::swar;
use crate::semantics::version::Version;

impl ResponseState {
    /// Writes a whole response, if it is of the usual kind: nothing was written yet, the status has
    /// a body and a line ready-made, the connection persists by itself, and the content type may
    /// stand in a field. Returns whether it was; if not, nothing was done.
    ///
    /// The octets are those of the steps, put into the sink at once.
    #[inline]
    pub(crate) fn put_whole(
        &mut self,
        out: &mut impl Sink,
        status: Status,
        content_type: &str,
        body: &[u8],
        date: &DateCache,
    ) -> bool {
        let reply = &self.reply;
        // Whatever adds a field, takes one away, or is refused: the steps do it, and say why.
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
