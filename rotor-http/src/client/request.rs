//! `Request`: the writer through which a handler sends its request.

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use rotor_stream::{Block, Output};

use crate::h1::request::RequestState;
use crate::semantics::error::MessageError;
use crate::semantics::method::Method;
use crate::semantics::trace_context::TraceContext;
use crate::semantics::version::Version;
use crate::writer::Writer;

/// One request, written step by step into the connection's output.
///
/// ```text
/// start ─▶ add_header.. ─▶ add_length or add_chunked, if it has a body ─▶ done_headers ─▶ write_body.. ─▶ done
/// ```
///
/// A call that would make the message malformed changes nothing and returns an error that says what
/// to do instead, so a handler cannot send a malformed request. Nothing is sent before the handler
/// has returned. [`room`](Request::room) returns how much more should be written in one call; a
/// handler that produces a large body continues in
/// [`request_flushed`](super::Client::request_flushed).
pub struct Request<'a> {
    state: &'a mut RequestState,
    output: &'a mut Output,
    high_water: usize,
}

impl<'a> Request<'a> {
    pub(super) fn new(
        state: &'a mut RequestState,
        output: &'a mut Output,
        high_water: usize,
    ) -> Request<'a> {
        Request { state, output, high_water }
    }

    /// Writes the request line. The target has the form that the method requires, which is a path
    /// and a query for most methods.
    ///
    /// # Errors
    ///
    /// `StartLine` if the method or the target is malformed, for example contains CR, LF or spaces;
    /// with HTTP/2 also for CONNECT and for a target that is neither a path nor an asterisk.
    /// `StartLineTwice`, `AlreadyDone`.
    pub fn start(&mut self, method: Method<'_>, target: &str) -> Result<(), MessageError> {
        self.state.request_line(&mut Writer(self.output), method, target)
    }

    /// Writes a field. `Host` is required exactly once. `Upgrade` and `TE` add the corresponding
    /// `Connection` field themselves. With HTTP/2, a `TE` with any value but `trailers` is left out
    /// (RFC 9113 §8.2.2).
    ///
    /// # Errors
    ///
    /// `FieldName`, `FieldValue`, `HostField`; `FieldReserved` for the fields that other methods
    /// write; `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    #[doc(alias = "header injection")]
    pub fn add_header(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), MessageError> {
        self.state.add_header(&mut Writer(self.output), name, value.as_ref())
    }

    /// Writes the fields that say which trace the request belongs to.
    ///
    /// # Errors
    ///
    /// `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    #[doc(alias = "traceparent")]
    pub fn add_trace(&mut self, context: &TraceContext) -> Result<(), MessageError> {
        self.add_header("traceparent", context.traceparent())?;
        match context.tracestate() {
            "" => Ok(()),
            state => self.add_header("tracestate", state),
        }
    }

    /// Writes the length of the body, in bytes.
    ///
    /// # Errors
    ///
    /// `LengthTwice`, `StartLineMissing`, `FieldTooLate`, `AlreadyDone`.
    pub fn add_length(&mut self, length: u64) -> Result<(), MessageError> {
        self.state.add_length(&mut Writer(self.output), length)
    }

    /// Announces a body of unknown length. With HTTP/1, use this only for servers that are known to
    /// speak HTTP/1.1 (RFC 9112 §6.1).
    ///
    /// # Errors
    ///
    /// Like [`add_length`](Request::add_length).
    pub fn add_chunked(&mut self) -> Result<(), MessageError> {
        self.state.add_chunked(&mut Writer(self.output))
    }

    /// Asks the server to say whether it wants the body before the body is sent. Call this before
    /// [`done_headers`](Request::done_headers).
    ///
    /// When the server wants the body, or says nothing for
    /// [`continue_timeout`](crate::Limits::continue_timeout),
    /// [`body_wanted`](super::Client::body_wanted) is called to write it. If the server sends a
    /// final response instead, it is not called; if the exchange then finishes without the body,
    /// the connection is not reused.
    ///
    /// A server is not asked for an empty body (RFC 9110 §10.1.1): if the request has no length, or
    /// one of 0, `body_wanted` is called soon, unless the request is [`done`](Request::done).
    #[doc(alias = "100 Continue")]
    pub fn expect_continue(&mut self) {
        self.state.expect_continue();
    }

    /// Asks the server to close the connection after its response. Call this before
    /// [`done_headers`](Request::done_headers). With HTTP/2 the server is not asked, but this side
    /// begins no further request on the connection.
    #[doc(alias = "keep-alive")]
    pub fn close(&mut self) {
        self.state.close();
    }

    /// Ends the fields. If neither a length nor chunks were announced, the request has no body.
    ///
    /// # Errors
    ///
    /// `HostMissing`, `StartLineMissing`, `FieldsDoneTwice`, `AlreadyDone`.
    pub fn done_headers(&mut self) -> Result<(), MessageError> {
        self.state.done_headers(&mut Writer(self.output))
    }

    /// Writes a part of the body.
    ///
    /// # Errors
    ///
    /// `BodyTooLong`, `StartLineMissing`, `FieldsNotDone`, `AlreadyDone`.
    pub fn write_body(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), MessageError> {
        self.state.write_body(&mut Writer(self.output), bytes.as_ref())
    }

    /// Writes a block as a part of the body, without copying it. Others may share the block.
    ///
    /// # Errors
    ///
    /// Like [`write_body`](Request::write_body).
    pub fn write_block(&mut self, block: impl Into<Block>) -> Result<(), MessageError> {
        let block = block.into();
        let len = block.len() as u64;
        self.state.write_body_with(&mut Writer(self.output), len, |writer| writer.push_block(block))
    }

    /// Writes `count` bytes of a file, starting at `offset`, as a part of the body. The kernel
    /// sends them if it can. If the file turns out to be shorter when it is sent, or cannot be read,
    /// the connection ends, with all requests that share it (HTTP/2), and this is logged at warn
    /// level.
    ///
    /// # Errors
    ///
    /// Like [`write_body`](Request::write_body); `BodyTooLong` also if more than `isize::MAX` bytes
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

    /// Writes a stored body, or a part of one, as a part of this body. Blocks are shared; a file is
    /// sent by the kernel if possible. With the feature `body`.
    ///
    /// The output holds the file until it is sent; see [`Body`](rotor_body::Body) for when the file
    /// is removed.
    ///
    /// # Errors
    ///
    /// Like [`write_body`](Request::write_body); `BodyTooLong` also if more than `isize::MAX` bytes
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

    /// Ends the request.
    ///
    /// # Errors
    ///
    /// `BodyTooShort`: write the rest. `StartLineMissing`, `FieldsNotDone`, `AlreadyDone`.
    pub fn done(&mut self) -> Result<(), MessageError> {
        self.state.done(&mut Writer(self.output))
    }

    /// Ends the request with trailer fields.
    ///
    /// # Errors
    ///
    /// `TrailersNotChunked` if a length was announced, except with HTTP/2; `FieldName`,
    /// `FieldValue`, `FieldReserved`; and the errors of [`done`](Request::done).
    pub fn done_with_trailers(&mut self, fields: &[(&str, &[u8])]) -> Result<(), MessageError> {
        self.state.done_with_trailers(&mut Writer(self.output), fields)
    }

    /// Returns the version with which the request is sent: HTTP/1.1 or HTTP/2.
    pub fn version(&self) -> Version {
        if self.state.is_framed() { Version::Http2 } else { Version::Http11 }
    }

    /// Returns whether the request line has been written.
    pub fn is_started(&self) -> bool {
        !self.state.is_unstarted()
    }

    /// Returns whether the request is complete.
    pub fn is_complete(&self) -> bool {
        self.state.is_done()
    }

    /// Returns how many bytes wait to be sent on this connection.
    pub fn unsent(&self) -> usize {
        self.output.len()
    }

    /// Returns how many bytes may be written before the output reaches its high-water mark
    /// ([`Limits::output_high_water`](crate::Limits::output_high_water)). Writing more is not an
    /// error, but costs memory.
    pub fn room(&self) -> usize {
        self.high_water.saturating_sub(self.output.len())
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("started", &self.is_started())
            .field("complete", &self.is_complete())
            .field("unsent", &self.unsent())
            .finish()
    }
}
