//! `Answer`: the response of an async handler.

use std::fmt;

use rotor_http::server::Response;
use rotor_http::{MessageError, Status};

/// The response of an async handler: a status, fields and a complete body.
#[derive(Clone, PartialEq, Eq)]
#[must_use = "it is what the handler returns"]
pub struct Answer {
    status: Status,
    content_type: Option<String>,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Answer {
    /// Makes a response without a body. If the status cannot be that of a complete response (it is
    /// below 200, or 426 without the field `Upgrade`), the peer gets 500.
    pub fn new(status: Status) -> Answer {
        Answer { status, content_type: None, fields: Vec::new(), body: Vec::new() }
    }

    /// Makes a response with UTF-8 text.
    pub fn text(status: Status, text: impl Into<String>) -> Answer {
        Answer::new(status).body("text/plain; charset=utf-8", text.into())
    }

    /// Sets the body, replacing any earlier one. If the status forbids a body (204, 205, 304), the
    /// peer gets 500.
    pub fn body(mut self, content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Answer {
        self.content_type = Some(content_type.into());
        self.body = body.into();
        self
    }

    /// Adds a field. If the field is not allowed in a response (it has a control byte, or declares
    /// a length), the peer gets 500. `Content-Type` is set with the body.
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Answer {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Removes the fields of this name; case does not matter. `Content-Type` belongs to the body,
    /// and is not removed.
    pub fn without(mut self, name: &str) -> Answer {
        self.fields.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        self
    }

    /// Returns the status.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the type of the body; `None` if there is no body.
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// Returns the fields, in order, without `Content-Type`.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Returns the body.
    pub fn content(&self) -> &[u8] {
        &self.body
    }

    pub(super) fn write(self, response: &mut Response<'_>) -> Result<(), MessageError> {
        let Answer { status, content_type, fields, body } = self;
        let fields: Vec<(&str, &[u8])> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        if let Some(content_type) = content_type {
            return response.send_with(status, &fields, &content_type, &body);
        }
        response.status(status)?;
        for (name, value) in fields {
            response.add_header(name, value)?;
        }
        if !status.forbids_body() {
            response.add_length(0)?;
        }
        response.done_headers()?;
        response.done()
    }
}

/// Makes a response with status 200 and this text.
impl From<String> for Answer {
    fn from(text: String) -> Answer {
        Answer::text(Status::OK, text)
    }
}

/// Makes a response with status 200 and this text.
impl From<&str> for Answer {
    fn from(text: &str) -> Answer {
        Answer::text(Status::OK, text)
    }
}

/// Makes a response with this status and no body.
impl From<Status> for Answer {
    fn from(status: Status) -> Answer {
        Answer::new(status)
    }
}

/// Converts the value or the error, so a handler may use `?` to refuse a request.
impl<T: Into<Answer>, E: Into<Answer>> From<Result<T, E>> for Answer {
    fn from(result: Result<T, E>) -> Answer {
        result.map_or_else(E::into, T::into)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("fields", &self.fields.len())
            .field("body", &self.body.len())
            .finish_non_exhaustive()
    }
}
