//! Calls that write a whole response: head and body.

use super::Response;
use crate::semantics::error::MessageError;
use crate::semantics::status::Status;
use crate::server::reply::Reply;
use crate::writer::Writer;

impl Response<'_> {
    /// Writes a whole response: status, content type, length and body. Return its result from the
    /// handler.
    ///
    /// Misuse (for example a content type that is no valid field value, or a response that has
    /// begun already) is logged at error level, and the peer gets 500, as from any handler that
    /// finishes without a complete response. Use [`send`](Response::send) if the handler needs the
    /// error, or goes on afterwards.
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

    /// Writes a whole response: status, content type, length and body. If the status allows no body
    /// (204, 304) and `body` is empty, content type and length are left out.
    ///
    /// The response is written as a whole or not at all: after an error everything is as before the
    /// call, and another response can be sent.
    ///
    /// # Errors
    ///
    /// Those of the steps that it consists of. For a response that has not begun, these are:
    /// `FieldValue` for an invalid content type, `BodyForbidden` for a body if the status allows
    /// none, `InformationalStatus` for 1xx, `UpgradeMissing` for 426.
    #[inline]
    pub fn send(
        &mut self,
        status: Status,
        content_type: &str,
        body: &[u8],
    ) -> Result<(), MessageError> {
        // For nearly all responses a prepared text is copied to the output at once.
        if !self.closes
            && self.retry_after.is_none()
            && self.leading.is_none()
            && self.persistent.is_empty()
            && self.config.server_name().is_none()
        {
            let Response { state, output, config, .. } = self;
            let date = config.date();
            if state.try_put_whole(&mut Writer(output), status, content_type, body, &date) {
                return Ok(());
            }
        }
        self.send_with(status, &[], content_type, body)
    }

    /// Writes a whole response as [`send`](Response::send) does, with more fields.
    ///
    /// # Errors
    ///
    /// As `send`; `FieldName` or `FieldValue` for an invalid field; `FieldReserved` for a field
    /// that other methods write, or for a second `Content-Type`.
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
    // Kept out of `send`, which calls it for unusual responses and for those that must be refused.
    #[inline(never)]
    pub fn send_with(
        &mut self,
        status: Status,
        fields: &[(&str, &[u8])],
        content_type: &str,
        body: &[u8],
    ) -> Result<(), MessageError> {
        self.write_or_undo(|response| response.send_in_steps(status, fields, content_type, body))
    }

    /// The steps of a whole response.
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
            // The type is an argument. If there were two, browsers would disagree on which one
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
