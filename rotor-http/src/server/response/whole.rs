//! A whole response in one call: head and body.

use super::Response;
use crate::semantics::error::MessageError;
use crate::semantics::status::Status;
use crate::server::reply::Reply;
use crate::writer::Writer;

impl Response<'_> {
    /// Writes a whole response: status, content type, length, body. Return its result from the
    /// handler.
    ///
    /// Misuse (for example a content type that no field can have, or a response that has begun) is
    /// logged at debug level, and the peer gets 500, as from any handler that finishes without a
    /// complete response. Use [`send`](Response::send) if the handler wants to get the error, or
    /// goes on.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::Status;
    /// use rotor::http::server::{Head, Reply, Response, Scope};
    ///
    /// fn hello(head: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    ///     match head.path() {
    ///         "/" => response.reply(Status::OK, "text/plain", b"Hello, World!"),
    ///         _ => response.reply(Status::NOT_FOUND, "text/plain", b"there is nothing here\n"),
    ///     }
    /// }
    /// ```
    #[inline]
    pub fn reply(&mut self, status: Status, content_type: &str, body: &[u8]) -> Reply {
        self.send(status, content_type, body).into()
    }

    /// Writes a whole response as [`reply`](Response::reply) does, with more fields.
    pub fn reply_with(
        &mut self,
        status: Status,
        fields: &[(&str, &[u8])],
        content_type: &str,
        body: &[u8],
    ) -> Reply {
        self.send_with(status, fields, content_type, body).into()
    }

    /// Writes a whole response with its body: status, content type, length, body. A status that has
    /// no body (204, 304) is sent without type and length if `body` is empty.
    ///
    /// It is written whole or not at all: after an error the response is as before the call, and
    /// another one can be sent.
    ///
    /// # Errors
    ///
    /// Those of the steps that it consists of; on a response that has not begun: `FieldValue` for a
    /// bad content type, `BodyForbidden` for a body where the status has none,
    /// `InformationalStatus` for 1xx, `UpgradeMissing` for 426.
    #[inline]
    pub fn send(
        &mut self,
        status: Status,
        content_type: &str,
        body: &[u8],
    ) -> Result<(), MessageError> {
        // The text of nearly all responses is ready-made, and is put into the output at once. No
        // `Retry-After` is due here: it is for error pages, and these close.
        if !self.closes
            && self.leading.is_none()
            && self.kept.is_empty()
            && self.config.server_name().is_none()
        {
            let Response { state, output, config, .. } = self;
            let date = config.date();
            if state.put_whole(&mut Writer(output), status, content_type, body, &date) {
                return Ok(());
            }
        }
        self.send_with(status, &[], content_type, body)
    }

    /// Writes a whole response as [`send`](Response::send) does, with more fields.
    ///
    /// # Errors
    ///
    /// As `send`; `FieldName`, `FieldValue` for a field, `FieldReserved` for one that other methods
    /// write or for a second `Content-Type`.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::{MessageError, Status};
    /// use rotor::http::server::Response;
    ///
    /// fn not_allowed(response: &mut Response<'_>) -> Result<(), MessageError> {
    ///     let allow: &[(&str, &[u8])] = &[("Allow", b"GET, HEAD")];
    ///     response.send_with(Status::METHOD_NOT_ALLOWED, allow, "text/plain", b"405 Method Not Allowed\n")
    /// }
    /// ```
    // Out of `send`'s way, which comes here with what is not of the usual kind, or must be refused.
    #[inline(never)]
    pub fn send_with(
        &mut self,
        status: Status,
        fields: &[(&str, &[u8])],
        content_type: &str,
        body: &[u8],
    ) -> Result<(), MessageError> {
        self.whole_or_not(|response| response.send_in_steps(status, fields, content_type, body))
    }

    /// What a whole response consists of.
    fn send_in_steps(
        &mut self,
        status: Status,
        fields: &[(&str, &[u8])],
        content_type: &str,
        body: &[u8],
    ) -> Result<(), MessageError> {
        self.status(status)?;
        // 204 and 304 are complete without these: neither has a body whose type and length could be
        // given.
        let is_bodyless = status.forbids_body() && body.is_empty();
        if !is_bodyless {
            self.add_header("Content-Type", content_type)?;
        }
        for (name, value) in fields {
            // The type is an argument. If it came twice, browsers would disagree on which one
            // counts.
            if name.eq_ignore_ascii_case("Content-Type") {
                return Err(MessageError::FieldReserved("it is an argument of `send_with`"));
            }
            self.add_header(name, value)?;
        }
        if !is_bodyless {
            self.add_length(body.len() as u64)?;
        }
        self.done_headers()?;
        self.write_body(body)?;
        self.done()
    }
}
