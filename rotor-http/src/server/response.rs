//! `Response`: the progressive writer that a handler is lent. `whole` has the calls that write a
//! response at once.

mod whole;

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use rotor_stream::{Block, Output};

use super::config::ServerConfig;
use super::kept_fields::KeptFields;
use crate::h1::response::{Ending, ResponseState};
use crate::semantics::error::{MessageError, RequestError};
use crate::semantics::status::Status;
use crate::writer::Writer;

/// The response to one request, written step by step, straight into the connection's output.
///
/// ```text
/// status ─▶ add_header.. ─▶ add_length or add_chunked ─▶ done_headers ─▶ write_body.. ─▶ done
/// ```
///
/// Anything that would break the message is refused with an error that says what to do instead, and
/// changes nothing, so a handler cannot put a malformed response on the wire. If the response is
/// complete when its handler finishes, the connection stays open for the next request. Otherwise it
/// becomes a 500 if nothing of it was sent; if something was, it is cut and the connection ends.
///
/// Nothing is sent before the handler has returned. [`unsent`](Response::unsent) returns how much
/// waits: a handler that produces a large body goes on in
/// [`response_flushed`](super::Server::response_flushed).
#[doc(alias = "http::Response")]
#[doc(alias = "reply")]
pub struct Response<'a> {
    state: &'a mut ResponseState,
    output: &'a mut Output,
    config: &'a ServerConfig,
    /// The request's body has not been asked for and cannot be skipped: the response must close.
    closes: bool,
    /// Why the connection refuses the request: in an error page for that.
    refusal: Option<RequestError>,
    /// A `Retry-After` that is to be said, in seconds.
    retry_after: Option<&'static str>,
    /// How long the output may become, whatever its mark is.
    len_max: usize,
    /// What those around the handler have it begin with.
    leading: Option<&'a Leading<'a>>,
    /// What every answer to the request begins with.
    kept: &'a mut KeptFields,
    /// A part of it was sent before this call.
    is_under_way: bool,
}

/// Fields that a response begins with, and those of whoever is around that.
struct Leading<'a> {
    fields: &'a [(&'a str, &'a [u8])],
    outer: Option<&'a Leading<'a>>,
}

const RETRY_AFTER: &str = "Retry-After";

impl<'a> Response<'a> {
    pub(super) fn new(
        state: &'a mut ResponseState,
        output: &'a mut Output,
        config: &'a ServerConfig,
        kept: &'a mut KeptFields,
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
            kept,
            is_under_way,
        }
    }

    /// A part of it was sent.
    #[inline]
    pub(super) fn set_under_way(&mut self, yes: bool) {
        self.is_under_way = yes;
    }

    /// Other responses on the same connection leave no more room than this.
    #[inline]
    pub(super) fn limit_room(&mut self, octets: usize) {
        self.len_max = self.output.len().saturating_add(octets);
    }

    /// Makes the connection close after this response where a response can end one: not on HTTP/2.
    pub(super) fn close_unless_framed(&mut self) {
        if !self.state.is_framed() {
            self.close();
        }
    }

    /// Tells an error page why.
    pub(super) fn because(&mut self, refusal: Option<RequestError>) {
        self.refusal = refusal;
    }

    /// Returns why the connection refuses the request: in
    /// [`emit_error_page`](super::Server::emit_error_page), of a head that is malformed or too large,
    /// or that a server must not serve. `None` wherever else. Its
    /// [`reason`](RequestError::reason) holds nothing that the peer has sent.
    pub fn refusal(&self) -> Option<RequestError> {
        self.refusal
    }

    /// Has the response say when to come again, unless it says so itself.
    pub(super) fn say_retry_after(&mut self, seconds: &'static str) {
        self.retry_after = Some(seconds);
    }

    /// Sends an interim response: a 1xx status, but neither 101, which is final, nor 100, which the
    /// connection sends by itself ([`Next::recv`](super::Next::recv)). Any number of them may
    /// precede the status.
    ///
    /// # Errors
    ///
    /// `ContinueReserved` for 100; `NotInformational` for 101 and what is not 1xx;
    /// `InterimNotAllowed` to a peer of 1.0 or after the status; `FieldName`, `FieldValue`,
    /// `FieldReserved`.
    pub fn interim(
        &mut self,
        status: Status,
        fields: &[(&str, &[u8])],
    ) -> Result<(), MessageError> {
        // RFC 9110 §15.2.1: it asks the peer for the body. With `recv` there would be two, without it
        // the peer would send a body that nobody takes.
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
        if self.leading.is_none() && self.kept.is_empty() {
            return self.state.status(&mut Writer(self.output), status);
        }
        self.whole_or_not(|response| {
            response.state.status(&mut Writer(response.output), status)?;
            response.add_leading()
        })
    }

    /// Adds a field to whatever answers this request: to what the handler writes from here on, in
    /// this call or a later one, and to an error page of the connection in its place (such as 413
    /// for a body that is too long, 503 for a handler that is late, 500 for one that panics).
    ///
    /// It is written with the status; an answer that has its status already goes out without it. If
    /// the handler adds a field of the same name, both are sent, except for those that the connection
    /// writes: `Date` and `Server` from here replace its own.
    ///
    /// # Errors
    ///
    /// `FieldName`, `FieldValue`; `FieldReserved` for the fields that other methods write. Nothing is
    /// added.
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
        self.kept.add(name, value);
        Ok(())
    }

    /// Makes a call whose response begins with these fields, whoever writes it there: for code
    /// around a handler, which has to call this around each of the handler's methods
    /// ([`Around`](super::Around)).
    ///
    /// They are written with the status, if that is written in the call. If the handler adds one of
    /// the same name, both are sent, except for those that the connection writes: `Date` and
    /// `Server` from here replace its own. An error page of the connection is written outside of
    /// such a call, so it has none of them; what that is to have, too, is added by
    /// [`add_always`](Response::add_always).
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
        let leading = Leading { fields, outer: self.leading };
        let mut inner = Response {
            state: self.state,
            output: self.output,
            config: self.config,
            closes: self.closes,
            refusal: self.refusal,
            retry_after: self.retry_after,
            len_max: self.len_max,
            leading: Some(&leading),
            kept: self.kept,
            is_under_way: self.is_under_way,
        };
        let result = call(&mut inner);
        self.retry_after = inner.retry_after;
        result
    }

    fn add_leading(&mut self) -> Result<(), MessageError> {
        let mut leading = self.leading;
        while let Some(Leading { fields, outer }) = leading {
            for (name, value) in *fields {
                self.add_header(name, value)?;
            }
            leading = *outer;
        }
        // Taken out, as writing one needs all of this; and put back for an error page.
        let kept = std::mem::take(self.kept);
        let added = kept.iter().try_for_each(|(name, value)| self.add_header(name, value));
        *self.kept = kept;
        added
    }

    /// Takes back what was written if an error comes of it: the octets are at the end of the
    /// output, and nobody has seen them.
    fn whole_or_not(
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

    /// Writes a field. `Date` and `Server` written here replace those of the connection.
    ///
    /// # Errors
    ///
    /// `FieldName`, `FieldValue`; `FieldReserved` for the fields that other methods write;
    /// `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    #[doc(alias = "header injection")]
    #[doc(alias = "response splitting")]
    #[inline]
    pub fn add_header(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), MessageError> {
        // The handler's own field wins. A second one would make a list of a field that cannot be
        // one.
        if self.retry_after.is_some() && name.eq_ignore_ascii_case(RETRY_AFTER) {
            self.retry_after = None;
        }
        self.state.add_header(&mut Writer(self.output), name, value.as_ref())
    }

    /// Announces the length of the body, in octets. With 304 it is the length that GET would have
    /// had.
    ///
    /// # Errors
    ///
    /// `LengthTwice`; `BodyForbidden` where the status has no body; `StartLineMissing`,
    /// `FieldTooLate`, `AlreadyDone`.
    #[inline]
    pub fn add_length(&mut self, length: u64) -> Result<(), MessageError> {
        self.state.add_length(&mut Writer(self.output), length)
    }

    /// Announces a body of unknown length.
    ///
    /// # Errors
    ///
    /// As [`add_length`](Response::add_length).
    pub fn add_chunked(&mut self) -> Result<(), MessageError> {
        self.state.add_chunked(&mut Writer(self.output))
    }

    /// Ends the fields, and adds `Date` and the others that the connection writes.
    ///
    /// # Errors
    ///
    /// `LengthMissing`, `UpgradeMissing`, `StartLineMissing`, `FieldsDoneTwice`, `AlreadyDone`.
    #[inline]
    pub fn done_headers(&mut self) -> Result<(), MessageError> {
        // At the latest here, because `Connection: close` is among the last fields.
        if self.closes {
            self.state.close();
        }
        if let Some(seconds) = self.retry_after.take() {
            self.state.add_header(&mut Writer(self.output), RETRY_AFTER, seconds.as_bytes())?;
        }
        let Response { state, output, config, .. } = self;
        state.done_headers(&mut Writer(output), Some(&config.date()), config.server_name())
    }

    /// Writes a part of the body. For a HEAD request it is counted and not sent.
    ///
    /// # Errors
    ///
    /// `BodyTooLong`, `BodyForbidden`, `StartLineMissing`, `FieldsNotDone`, `AlreadyDone`.
    #[inline]
    pub fn write_body(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), MessageError> {
        self.state.write_body(&mut Writer(self.output), bytes.as_ref())
    }

    /// Writes a block that is shared with others as a part of the body, without copying it.
    ///
    /// # Errors
    ///
    /// As [`write_body`](Response::write_body).
    pub fn write_block(&mut self, block: impl Into<Block>) -> Result<(), MessageError> {
        let block = block.into();
        let len = block.len() as u64;
        self.state.write_body_with(&mut Writer(self.output), len, |writer| writer.push_block(block))
    }

    /// Writes `count` octets of a file, from `offset` on, as a part of the body. The kernel sends
    /// them where it can.
    ///
    /// If the file is shorter when it is sent, the connection ends: the peer was promised more.
    ///
    /// # Errors
    ///
    /// As [`write_body`](Response::write_body); also `BodyTooLong` if more than `isize::MAX` octets
    /// would wait.
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

    /// Writes a stored body, or a part of one, as a part of this one: blocks are shared, and a file
    /// is sent by the kernel where it can. With the feature `body`.
    ///
    /// The output holds the file until it is sent; see [`Body`](rotor_body::Body) for when it is
    /// deleted.
    ///
    /// # Errors
    ///
    /// As [`write_body`](Response::write_body); also `BodyTooLong` if more than `isize::MAX` octets
    /// would wait.
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
    /// `BodyTooShort`: write the rest, or let the connection be cut. `StartLineMissing`,
    /// `FieldsNotDone`, `AlreadyDone`.
    #[inline]
    pub fn done(&mut self) -> Result<(), MessageError> {
        self.state.done(&mut Writer(self.output))
    }

    /// Ends the response with trailer fields.
    ///
    /// # Errors
    ///
    /// `TrailersNotChunked` where a length was announced, but for HTTP/2; `FieldName`,
    /// `FieldValue`, `FieldReserved`; as [`done`](Response::done).
    pub fn done_with_trailers(&mut self, fields: &[(&str, &[u8])]) -> Result<(), MessageError> {
        self.state.done_with_trailers(&mut Writer(self.output), fields)
    }

    /// Makes the connection close after this response. If this is called before
    /// [`done_headers`](Response::done_headers), the peer is told. On HTTP/2 the other requests
    /// that are under way are served, and the peer is told to make no more (GOAWAY).
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

    /// Returns whether a part of the response had left when this call of the handler began. If so,
    /// its status is the one that the peer gets; before, an error page may still take its place:
    /// after [`Next::fail`](super::Next::fail), for example, or a panic.
    pub fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Returns whether octets of the body are sent: not for HEAD, and not with a status that has
    /// none. A handler may then skip producing them, but still announces their length.
    pub fn sends_body(&self) -> bool {
        self.state.sends_body()
    }

    /// Returns how many octets wait to be sent on this connection, of all kinds. A handler that has
    /// more to write than [`room`](Response::room) goes on when
    /// [`response_flushed`](super::Server::response_flushed) is called.
    pub fn unsent(&self) -> usize {
        self.output.len()
    }

    /// Returns how many octets may be written before the output is at its high-water mark
    /// ([`Limits::output_high_water`](crate::Limits::output_high_water)). Exceeding it is not an
    /// error, but costs memory.
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
