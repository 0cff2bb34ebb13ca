//! `RequestState`: the state of a request that a client is writing.

use super::message::{self, ConnectionField, Framing, MessageState, Phase};
use super::sink::Sink;
use crate::semantics::authority::Authority;
use crate::semantics::error::MessageError;
use crate::semantics::grammar::{self, TARGET};
use crate::semantics::method::Method;
use crate::semantics::target::{Form, Target};

/// Checks the writing of one request. As with `ResponseState`, a call that would make the message
/// invalid returns an error and does nothing.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::h1::{Method, RequestState};
///
/// let mut out = Vec::new();
/// let mut request = RequestState::new();
/// request.request_line(&mut out, Method::Get, "/")?;
/// request.add_header(&mut out, "Host", b"example.com")?;
/// request.done_headers(&mut out)?;
/// request.done(&mut out)?;
/// assert_eq!(out, b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
/// # Ok::<(), rotor::http::h1::MessageError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RequestState {
    message: MessageState,
    keep_alive: bool,
    has_host: bool,
    has_te: bool,
    /// Whether a request without a body should say so, because its method usually has one (RFC 9110
    /// §8.6).
    expects_body: bool,
    /// Whether the server is asked to confirm first that it wants the body.
    expects_continue: bool,
    /// Whether it would be, if there were a body.
    expects_nothing: bool,
    /// The request is sent in frames (HTTP/2), which mark the end of its body.
    is_framed: bool,
    method: Kind,
}

/// What must be known about the method when the response arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Head,
    Connect,
    /// Another method that may be sent twice.
    Idempotent,
    Other,
}

impl Kind {
    fn from_method(method: Method<'_>) -> Kind {
        match method {
            Method::Head => Kind::Head,
            Method::Connect => Kind::Connect,
            method if method.is_idempotent() => Kind::Idempotent,
            _ => Kind::Other,
        }
    }
}

impl Default for RequestState {
    fn default() -> RequestState {
        RequestState::new()
    }
}

impl RequestState {
    /// Creates the state before anything is written.
    pub const fn new() -> RequestState {
        RequestState {
            message: MessageState::new(true),
            keep_alive: true,
            has_host: false,
            has_te: false,
            expects_body: false,
            expects_continue: false,
            expects_nothing: false,
            is_framed: false,
            method: Kind::Other,
        }
    }

    /// Creates the state of a request of HTTP/2. Its head is written as the text of HTTP/1.1, to be
    /// encoded when it is sent, and its body as it is.
    pub(crate) const fn framed() -> RequestState {
        let mut state = RequestState::new();
        state.is_framed = true;
        state
    }

    /// Returns whether this is a request of HTTP/2.
    pub(crate) fn is_framed(&self) -> bool {
        self.is_framed
    }

    /// Returns how many bytes of the output are trailer fields (HTTP/2 only).
    pub(crate) fn trailers_len(&self) -> usize {
        match self.message.framing {
            // No more than fits in memory.
            Framing::Trailers(len) => len as usize,
            _ => 0,
        }
    }

    /// Writes the request line, in the form of HTTP/1.1.
    ///
    /// # Errors
    ///
    /// `StartLine` if the method is not a token, if the target has a byte that it cannot have
    /// (whitespace, CR, LF, `#`, anything that is not ASCII), or if the target's form does not
    /// match the method (on HTTP/2: if it is neither a path nor an asterisk); `StartLineTwice`,
    /// `AlreadyDone`.
    pub fn request_line(
        &mut self,
        out: &mut impl Sink,
        method: Method<'_>,
        target: &str,
    ) -> Result<(), MessageError> {
        self.message.expect_start()?;
        let method = method.normalized();
        let is_method = grammar::is_token(method.as_str().as_bytes());
        let parsed = Target::parse(method, target);
        // RFC 9113 §8.3.1: `:path` is a path or an asterisk; no tunnels are made in HTTP/2 here.
        let has_form = |target: &Target<'_>| {
            !self.is_framed || matches!(target.form(), Form::Origin | Form::Asterisk)
        };
        let is_target =
            grammar::all(target.as_bytes(), TARGET) && parsed.as_ref().is_some_and(has_form);
        if !is_method || !is_target {
            return Err(MessageError::StartLine);
        }
        self.expects_body = matches!(method, Method::Post | Method::Put | Method::Patch);
        out.put_all(&[method.as_str().as_bytes(), b" ", target.as_bytes(), b" HTTP/1.1\r\n"]);
        self.method = Kind::from_method(method);
        self.message.phase = Phase::Fields;
        Ok(())
    }

    /// Writes a field. `Host` must be written exactly once. For `Upgrade` and `TE`, the matching
    /// `Connection` is added.
    ///
    /// # Errors
    ///
    /// `FieldName`, `FieldValue`, `HostField`; `FieldReserved` for fields that other methods write;
    /// `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    pub fn add_header(
        &mut self,
        out: &mut impl Sink,
        name: &str,
        value: &[u8],
    ) -> Result<(), MessageError> {
        message::check_reserved(name)?;
        // The exchange must know about it, since it waits for the 100.
        if name.eq_ignore_ascii_case("Expect") {
            return Err(MessageError::FieldReserved("call `expect_continue`"));
        }
        let is_host = name.eq_ignore_ascii_case("Host");
        // RFC 9112 §3.2: a server refuses a second `Host`, and an invalid one; it is better to
        // report that here, before anything is sent.
        if is_host && (self.has_host || Authority::parse(value).is_none()) {
            return Err(MessageError::HostField);
        }
        self.message.put_field(out, name, value)?;
        self.has_host |= is_host;
        // RFC 9113 §8.2.2: HTTP/2 has no `Connection`.
        self.has_te |= !self.is_framed && name.eq_ignore_ascii_case("TE");
        Ok(())
    }

    /// Announces the length of the body.
    ///
    /// # Errors
    ///
    /// `LengthTwice`, `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    pub fn add_length(&mut self, out: &mut impl Sink, length: u64) -> Result<(), MessageError> {
        self.message.expect_length()?;
        self.message.put_length(out, length);
        Ok(())
    }

    /// Announces a body of unknown length: it is sent in chunks. Only for servers that are known to
    /// support HTTP/1.1 (RFC 9112 §6.1).
    ///
    /// # Errors
    ///
    /// `LengthTwice`, `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    pub fn add_chunked(&mut self, out: &mut impl Sink) -> Result<(), MessageError> {
        self.message.expect_length()?;
        match self.is_framed {
            true => self.message.framing = Framing::UntilClose,
            false => self.message.put_chunked(out),
        }
        Ok(())
    }

    /// Asks the server to close after its response. Must be called before `done_headers`.
    pub fn close(&mut self) {
        self.keep_alive = false;
    }

    /// Asks the server to respond with 100 before the body is sent (RFC 9110 §10.1.1). It has no
    /// effect on a request without a body, nor after `done_headers`.
    pub fn expect_continue(&mut self) {
        // Later, the server is not asked, so nobody may wait for its 100.
        self.expects_continue |= !self.is_head_done();
    }

    /// Ends the fields. If no length was set, the request has no body; `Content-Length: 0` is
    /// written for methods that usually have one.
    ///
    /// # Errors
    ///
    /// `HostMissing`, `StartLineMissing`, `FieldsDoneTwice`, `AlreadyDone`.
    pub fn done_headers(&mut self, out: &mut impl Sink) -> Result<(), MessageError> {
        self.message.expect_fields_end()?;
        // RFC 9112 §3.2: a client must send `Host` in every request of HTTP/1.1.
        if !self.has_host {
            return Err(MessageError::HostMissing);
        }
        if self.message.framing == Framing::Unset {
            // RFC 9110 §8.6: a server that expects a body of POST or PUT is told that there is
            // none.
            if self.expects_body {
                self.message.put_length(out, 0);
            } else {
                self.message.framing = Framing::Length(0);
            }
        }
        // RFC 9110 §10.1.1: "A client MUST NOT generate a 100-continue expectation in a request
        // that does not include content."
        if self.expects_continue && self.message.framing == Framing::Length(0) {
            (self.expects_continue, self.expects_nothing) = (false, true);
        }
        // Only now is it known whether there is a body.
        let expect: &[u8] = if self.expects_continue { b"Expect: 100-continue\r\n" } else { b"" };
        let connection =
            if self.keep_alive { ConnectionField::Absent } else { ConnectionField::Close };
        if self.has_te {
            self.message.put_fields_end_with_te(out, connection, expect);
        } else {
            self.message.put_fields_end(out, connection, expect);
        }
        Ok(())
    }

    /// Writes a part of the body.
    ///
    /// # Errors
    ///
    /// `BodyTooLong`, `StartLineMissing`, `FieldsNotDone`, `AlreadyDone`.
    pub fn write_body(&mut self, out: &mut impl Sink, bytes: &[u8]) -> Result<(), MessageError> {
        self.write_body_with(out, bytes.len() as u64, |out| out.put(bytes))
    }

    /// Writes a part of the body that is not available as bytes: `push` must put exactly `len`
    /// bytes into the sink.
    ///
    /// # Errors
    ///
    /// As [`write_body`](RequestState::write_body).
    pub fn write_body_with<S: Sink>(
        &mut self,
        out: &mut S,
        len: u64,
        push: impl FnOnce(&mut S),
    ) -> Result<(), MessageError> {
        self.message.put_body(out, len, push)
    }

    /// Ends the request.
    ///
    /// # Errors
    ///
    /// `BodyTooShort`: write the rest, or close. `StartLineMissing`, `FieldsNotDone`,
    /// `AlreadyDone`.
    pub fn done(&mut self, out: &mut impl Sink) -> Result<(), MessageError> {
        self.message.put_done(out)
    }

    /// Ends the request with trailer fields.
    ///
    /// # Errors
    ///
    /// `TrailersNotChunked` if a length was announced, except on HTTP/2; `FieldName`, `FieldValue`,
    /// `FieldReserved`; `StartLineMissing`, `FieldsNotDone`, `AlreadyDone`.
    pub fn done_with_trailers(
        &mut self,
        out: &mut impl Sink,
        fields: &[(&str, &[u8])],
    ) -> Result<(), MessageError> {
        self.message.put_trailers(out, fields, self.is_framed)
    }

    /// Returns whether nothing has been written yet.
    pub fn is_unstarted(&self) -> bool {
        self.message.phase == Phase::Start
    }

    /// Returns whether the request is complete.
    pub fn is_done(&self) -> bool {
        self.message.phase == Phase::Done
    }

    /// Returns whether the connection may carry another request after this one, as far as this side
    /// decides.
    pub fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// Returns whether the fields have ended.
    pub fn is_head_done(&self) -> bool {
        matches!(self.message.phase, Phase::Body | Phase::Done)
    }

    /// Returns whether the server was asked to confirm first that it wants the body. Known once the
    /// fields have ended.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue && self.is_head_done()
    }

    /// Returns whether the server would have been asked, but there is no body to ask for.
    pub(crate) fn expects_nothing(&self) -> bool {
        self.expects_nothing
    }

    /// Returns whether the server may respond with 101, because the request has an `Upgrade`.
    pub fn offers_upgrade(&self) -> bool {
        self.message.has_upgrade
    }

    /// Returns whether sending the request twice has the same effect as once (RFC 9110 §9.2.2).
    pub fn is_idempotent(&self) -> bool {
        matches!(self.method, Kind::Head | Kind::Idempotent)
    }

    /// Returns the method as far as it determines how the response is framed: HEAD, CONNECT, or GET
    /// for all others.
    pub fn framing_method(&self) -> Method<'static> {
        match self.method {
            Kind::Head => Method::Head,
            Kind::Connect => Method::Connect,
            Kind::Idempotent | Kind::Other => Method::Get,
        }
    }
}
