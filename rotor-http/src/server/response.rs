//! `Response`: the writer of a response, which a handler borrows. The module `whole` has the calls
//! that write a response at once.

mod whole;

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use rotor_stream::{Block, Output};

use super::config::ServerConfig;
use super::persistent_fields::PersistentFields;
use crate::h1::response::{Ending, ResponseState};
use crate::semantics::error::{MessageError, RequestError};
use crate::semantics::status::Status;
use crate::writer::Writer;

/// The response to one request, written step by step into the connection's output.
///
/// ```text
/// status ─▶ add_header.. ─▶ add_length or add_chunked ─▶ done_headers ─▶ write_body.. ─▶ done
/// ```
///
/// A call that would make the message malformed returns an error that says what to do instead, and
/// changes nothing. So a handler cannot send a malformed response. If the response is complete when
/// its handler finishes, the connection stays open for the next request. Otherwise the peer gets
/// 500 if nothing of the response was sent; if something was, the response is cut off and the
/// connection ends.
///
/// Nothing is sent before the handler has returned. [`unsent`](Response::unsent) returns how many
/// bytes wait to be sent: a handler that produces a large body goes on in
/// [`response_flushed`](super::Server::response_flushed).
#[doc(alias = "http::Response")]
#[doc(alias = "reply")]
pub struct Response<'a> {
    state: &'a mut ResponseState,
    output: &'a mut Output,
    config: &'a ServerConfig,
    /// The handler has not asked for the request's body, and the body cannot be skipped: the
    /// connection must close after this response.
    closes: bool,
    /// Why the connection refuses the request, in the error page for that.
    refusal: Option<RequestError>,
    /// The value of a `Retry-After` to be added, in seconds.
    retry_after: Option<&'static str>,
    /// The greatest length of the output, whatever its high-water mark is.
    len_max: usize,
    /// The fields of `with_fields` with which the response begins.
    leading: Option<&'a LeadingFields<'a>>,
    /// The fields of `add_always`, which an error page has, too.
    persistent: &'a mut PersistentFields,
    /// Whether a part of the response was sent before this call.
    is_under_way: bool,
}

/// Fields with which a response begins, and those of the enclosing call.
struct LeadingFields<'a> {
    fields: &'a [(&'a str, &'a [u8])],
    outer: Option<&'a LeadingFields<'a>>,
}

const RETRY_AFTER: &str = "Retry-After";

impl<'a> Response<'a> {
    pub(super) fn new(
        state: &'a mut ResponseState,
        output: &'a mut Output,
        config: &'a ServerConfig,
        persistent: &'a mut PersistentFields,
        closes: bool,
    ) -> Response<'a> {
        let (refusal, retry_after, len_max, leading) = (None, None, usize::MAX, None);
        let is_under_way = false;
        Response {
            state,
            output,
            config,
            closes,
            refusal,
            retry_after,
            len_max,
            leading,
            persistent,
            is_under_way,
        }
    }

    /// Sets whether a part of the response was sent.
    #[inline]
    pub(super) fn set_under_way(&mut self, yes: bool) {
        self.is_under_way = yes;
    }

    /// Limits the room to this many bytes, because of other responses on the same connection.
    #[inline]
    pub(super) fn limit_room(&mut self, bytes: usize) {
        self.len_max = self.output.len().saturating_add(bytes);
    }

    /// Makes the connection close after this response, except on HTTP/2, where no response can end
    /// a connection.
    pub(super) fn close_unless_framed(&mut self) {
        if !self.state.is_framed() {
            self.close();
        }
    }

    /// Sets the reason that an error page gives.
    pub(super) fn set_refusal(&mut self, refusal: Option<RequestError>) {
        self.refusal = refusal;
    }

    /// Returns why the connection refuses the request, if this is called in
    /// [`emit_error_page`](super::Server::emit_error_page) for a head that is malformed, too
    /// large or too slow, or that a server must not serve, or for a body that is malformed, too
    /// large or too slow. Otherwise returns `None`. The error's [`reason`](RequestError::reason)
    /// contains no text from the peer.
    pub fn refusal(&self) -> Option<RequestError> {
        self.refusal
    }

    /// Adds a `Retry-After` to the response, unless the page sets it itself.
    pub(super) fn set_retry_after(&mut self, seconds: &'static str) {
        self.retry_after = Some(seconds);
    }

    /// Sends an interim response: a 1xx status other than 101, which is final, and 100, which the
    /// connection sends by itself ([`Next::recv`](super::Next::recv)). Any number of interim
    /// responses may precede the status.
    ///
    /// # Errors
    ///
    /// `ContinueReserved` for 100; `NotInformational` for 101 and for a status that is not 1xx;
    /// `InterimNotAllowed` to a peer of HTTP/1.0, or after the status; `FieldName`, `FieldValue`,
    /// `FieldReserved`.
    pub fn interim(
        &mut self,
        status: Status,
        fields: &[(&str, &[u8])],
    ) -> Result<(), MessageError> {
        // RFC 9110 §15.2.1: a 100 asks the peer for the body. With `recv` there would be two of
        // them; without it the peer would send a body that nobody receives.
        if status == Status::CONTINUE {
            return Err(MessageError::ContinueReserved);
        }
        self.state.interim(&mut Writer(self.output), status, fields)
    }

    /// Writes the status.
    ///
    /// # Errors
    ///
    /// `StartLineTwice`, `AlreadyDone`; `InformationalStatus` for 1xx, except for 101 if the
    /// request asked for it; those of [`add_header`](Response::add_header) for fields of
    /// [`with_fields`](Response::with_fields).
    #[inline]
    pub fn status(&mut self, status: Status) -> Result<(), MessageError> {
        if self.leading.is_none() && self.persistent.is_empty() {
            return self.state.status(&mut Writer(self.output), status);
        }
        self.write_or_undo(|response| {
            response.state.status(&mut Writer(response.output), status)?;
            response.add_leading_fields()
        })
    }

    /// Adds a field to every response to this request: to what the handler writes after this call,
    /// now or later, and to an error page that the connection sends instead (such as 413 for a body
    /// that is too large, 503 for a handler that takes too long, 500 for one that panics).
    ///
    /// The field is written together with the status; a response whose status is already written
    /// does not get it. If the handler adds a field of the same name, both are sent. The exceptions
    /// are the fields that the connection writes: `Date` and `Server` added here replace its own.
    ///
    /// # Errors
    ///
    /// `FieldName`, `FieldValue`; `FieldReserved` for the fields that other methods write. After an
    /// error nothing is added.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::MessageError;
    /// use rotor::http::server::{Head, Response};
    ///
    /// fn name(head: &Head<'_>, response: &mut Response<'_>) -> Result<(), MessageError> {
    ///     match head.field("X-Request-Id") {
    ///         Some(id) => response.add_always("X-Request-Id", id),
    ///         None => Ok(()),
    ///     }
    /// }
    /// ```
    pub fn add_always(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), MessageError> {
        let value = value.as_ref();
        ResponseState::check_field(name, value)?;
        self.persistent.add(name, value);
        Ok(())
    }

    /// Runs `call` with a response that begins with these fields, whoever writes it. This is for
    /// code around a handler, which has to use it around each of the handler's calls
    /// ([`Around`](super::Around)).
    ///
    /// The fields are written together with the status, if the status is written in `call`. If the
    /// handler adds a field of the same name, both are sent. The exceptions are the fields that the
    /// connection writes: `Date` and `Server` added here replace its own. An error page of the
    /// connection is written outside of such a call, so it does not have these fields; add those
    /// that it should have with [`add_always`](Response::add_always).
    ///
    /// # Examples
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::Status;
    /// use rotor::http::server::{Head, Reply, Response, Scope};
    ///
    /// fn page(_: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    ///     response.reply(Status::OK, "text/html", b"<p>Hello, World!")
    /// }
    ///
    /// fn unframed(head: &Head<'_>, response: &mut Response<'_>, scope: &mut Scope<'_, ()>) -> Reply {
    ///     let fields: &[(&str, &[u8])] = &[("X-Frame-Options", b"DENY")];
    ///     response.with_fields(fields, |response| page(head, response, scope))
    /// }
    /// ```
    #[doc(alias = "middleware")]
    #[doc(alias = "layer")]
    pub fn with_fields<T>(
        &mut self,
        fields: &[(&str, &[u8])],
        call: impl FnOnce(&mut Response<'_>) -> T,
    ) -> T {
        let leading = LeadingFields { fields, outer: self.leading };
        let mut inner = Response {
            state: self.state,
            output: self.output,
            config: self.config,
            closes: self.closes,
            refusal: self.refusal,
            retry_after: self.retry_after,
            len_max: self.len_max,
            leading: Some(&leading),
            persistent: self.persistent,
            is_under_way: self.is_under_way,
        };
        let result = call(&mut inner);
        self.retry_after = inner.retry_after;
        result
    }

    fn add_leading_fields(&mut self) -> Result<(), MessageError> {
        let mut leading = self.leading;
        while let Some(LeadingFields { fields, outer }) = leading {
            for (name, value) in *fields {
                self.add_header(name, value)?;
            }
            leading = *outer;
        }
        // Taken out, because `add_header` needs all of `self`; put back for an error page.
        let persistent = std::mem::take(self.persistent);
        let added = persistent.iter().try_for_each(|(name, value)| self.add_header(name, value));
        *self.persistent = persistent;
        added
    }

    /// Undoes what `write` has written if it returns an error: those bytes are at the end of the
    /// output, and none of them was sent.
    fn write_or_undo(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), MessageError>,
    ) -> Result<(), MessageError> {
        let (state, len, retry_after) = (*self.state, self.output.len(), self.retry_after);
        let written = write(self);
        if written.is_err() {
            *self.state = state;
            self.output.truncate(len);
            self.retry_after = retry_after;
        }
        written
    }

    /// Writes a header field. `Date` and `Server` written here replace those of the connection.
    ///
    /// # Errors
    ///
    /// `FieldName`, `FieldValue`; `FieldReserved` for the fields that other methods write;
    /// `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    #[doc(alias = "header injection")]
    #[doc(alias = "response splitting")]
    #[inline]
    pub fn add_header(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), MessageError> {
        // The handler's own field replaces ours. A second one would make the field a list, and this
        // field cannot be one.
        if self.retry_after.is_some() && name.eq_ignore_ascii_case(RETRY_AFTER) {
            self.retry_after = None;
        }
        self.state.add_header(&mut Writer(self.output), name, value.as_ref())
    }

    /// Announces the length of the body, in bytes. With 304 it is the length that a 200 would have
    /// had.
    ///
    /// # Errors
    ///
    /// `LengthTwice`; `BodyForbidden` if the status allows no body; `StartLineMissing`,
    /// `FieldTooLate`, `AlreadyDone`.
    #[inline]
    pub fn add_length(&mut self, length: u64) -> Result<(), MessageError> {
        self.state.add_length(&mut Writer(self.output), length)
    }

    /// Announces a body of unknown length. It is sent in chunks to a peer of HTTP/1.1.
    ///
    /// # Errors
    ///
    /// As [`add_length`](Response::add_length).
    pub fn add_chunked(&mut self) -> Result<(), MessageError> {
        self.state.add_chunked(&mut Writer(self.output))
    }

    /// Ends the header fields, after adding `Date` and the other fields that the connection writes.
    ///
    /// # Errors
    ///
    /// `LengthMissing`, `UpgradeMissing`, `StartLineMissing`, `FieldsDoneTwice`, `AlreadyDone`.
    #[inline]
    pub fn done_headers(&mut self) -> Result<(), MessageError> {
        // Here at the latest, because `Connection: close` is among the last fields.
        if self.closes {
            self.state.close();
        }
        if let Some(seconds) = self.retry_after.take() {
            self.state.add_header(&mut Writer(self.output), RETRY_AFTER, seconds.as_bytes())?;
        }
        let Response { state, output, config, .. } = self;
        state.done_headers(&mut Writer(output), Some(&config.date()), config.server_name())
    }

    /// Writes a part of the body. For a HEAD request the part is counted, but not sent.
    ///
    /// # Errors
    ///
    /// `BodyTooLong`, `BodyForbidden`, `StartLineMissing`, `FieldsNotDone`, `AlreadyDone`.
    #[inline]
    pub fn write_body(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), MessageError> {
        self.state.write_body(&mut Writer(self.output), bytes.as_ref())
    }

    /// Writes a shared block as a part of the body, without copying it.
    ///
    /// # Errors
    ///
    /// As [`write_body`](Response::write_body).
    pub fn write_block(&mut self, block: impl Into<Block>) -> Result<(), MessageError> {
        let block = block.into();
        let len = block.len() as u64;
        self.state.write_body_with(&mut Writer(self.output), len, |writer| writer.push_block(block))
    }

    /// Writes `count` bytes of a file, from `offset` on, as a part of the body. The kernel sends
    /// them if it can. What the system does not have in its cache is read from the disk then, and
    /// the loop waits for it ([`push_file`](Output::push_file)).
    ///
    /// If the file turns out to be shorter when it is sent, or cannot be read, the connection ends,
    /// because the peer was promised more, and this is logged at warn level. On HTTP/2 this ends
    /// all streams of the connection: the length of a frame is already sent.
    ///
    /// # Errors
    ///
    /// As [`write_body`](Response::write_body); also `BodyTooLong` if more than `isize::MAX` bytes
    /// would wait to be sent.
    pub fn write_file(
        &mut self,
        file: Arc<File>,
        offset: u64,
        count: usize,
    ) -> Result<(), MessageError> {
        let mut writer = Writer(self.output);
        writer.check_room(count as u64)?;
        self.state.write_body_with(&mut writer, count as u64, |writer| {
            writer.push_file(file, offset, count);
        })
    }

    /// Writes a stored body, or a slice of one, as a part of this body. Blocks are shared, and a
    /// file is sent by the kernel if it can. With the feature `body`.
    ///
    /// The output keeps the file until it is sent; see [`Body`](rotor_body::Body) for when the file
    /// is deleted.
    ///
    /// # Errors
    ///
    /// As [`write_body`](Response::write_body); also `BodyTooLong` if more than `isize::MAX` bytes
    /// would wait to be sent.
    #[cfg(feature = "body")]
    #[doc(alias = "sendfile")]
    pub fn write_stored(&mut self, body: &rotor_body::Body) -> Result<(), MessageError> {
        let mut writer = Writer(self.output);
        writer.check_room(body.len())?;
        self.state.write_body_with(&mut writer, body.len(), |writer| {
            writer.push_body(body);
        })
    }

    /// Ends the response.
    ///
    /// # Errors
    ///
    /// `BodyTooShort` if less was written than announced: write the rest, or finish without calling
    /// this, so that the response is cut off. `StartLineMissing`, `FieldsNotDone`, `AlreadyDone`.
    #[inline]
    pub fn done(&mut self) -> Result<(), MessageError> {
        self.state.done(&mut Writer(self.output))
    }

    /// Ends the response with trailer fields.
    ///
    /// # Errors
    ///
    /// `TrailersNotChunked` if a length was announced, except on HTTP/2; `FieldName`, `FieldValue`,
    /// `FieldReserved`; those of [`done`](Response::done).
    pub fn done_with_trailers(&mut self, fields: &[(&str, &[u8])]) -> Result<(), MessageError> {
        self.state.done_with_trailers(&mut Writer(self.output), fields)
    }

    /// Makes the connection close after this response. If this is called before
    /// [`done_headers`](Response::done_headers), the response says so to the peer. On HTTP/2 the
    /// other requests under way are still served, and the peer is told to make no more (GOAWAY).
    #[doc(alias = "keep-alive")]
    pub fn close(&mut self) {
        self.state.close();
    }

    /// Returns whether the status has been written.
    pub fn is_started(&self) -> bool {
        self.state.ending() != Ending::Unstarted
    }

    /// Returns the status, once it has been written.
    pub fn final_status(&self) -> Option<Status> {
        self.state.final_status()
    }

    /// Returns whether the response is complete.
    pub fn is_complete(&self) -> bool {
        !matches!(self.state.ending(), Ending::Unstarted | Ending::Unfinished)
    }

    /// Returns whether the body has the announced length, so that only [`done`](Response::done) can
    /// follow. This is `false` without a length, and on HTTP/2, where trailers may follow.
    pub fn is_length_reached(&self) -> bool {
        self.state.is_length_reached()
    }

    /// Returns whether a part of the response had been sent when this call of the handler began. If
    /// so, its status is the one that the peer gets. Otherwise an error page may still replace the
    /// response: after [`Next::fail`](super::Next::fail), for example, or a panic.
    pub fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Returns whether the bytes of the body are sent: not for HEAD, and not with a status that
    /// allows no body. If they are not, a handler may skip producing them, but should still
    /// announce their length.
    pub fn sends_body(&self) -> bool {
        self.state.sends_body()
    }

    /// Returns how many bytes wait to be sent on this connection, those of earlier responses
    /// included; on HTTP/2, on this stream. A handler that has more to write than
    /// [`room`](Response::room) goes on when
    /// [`response_flushed`](super::Server::response_flushed) is called.
    pub fn unsent(&self) -> usize {
        self.output.len()
    }

    /// Returns how many bytes can be written before the output reaches its high-water mark
    /// ([`Limits::output_high_water`](crate::Limits::output_high_water)). Exceeding the mark is not
    /// an error, but uses memory.
    #[doc(alias = "backpressure")]
    pub fn room(&self) -> usize {
        let high = self.config.limits_ref().output_high_water;
        high.min(self.len_max).saturating_sub(self.output.len())
    }
}

impl fmt::Debug for Response<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("ending", &self.state.ending())
            .field("unsent", &self.unsent())
            .finish()
    }
}
