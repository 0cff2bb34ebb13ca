//! Reads the head of a request or a response, however it is split.

use super::field_lines;
use super::field_storage::{FastStorage, FieldStorage, SlowStorage};
use super::head_scanner::{HeadScanner, ScanLimits};
use super::request_lexer;
use super::response_lexer;
use crate::limits::Limits;
use crate::semantics::error::{HeadError, RequestError, ResponseHeadError};
use crate::semantics::fields::Fields;
use crate::semantics::grammar;
use crate::semantics::method::Method;
use crate::semantics::status::Status;
use crate::semantics::target::Target;
use crate::semantics::version::Version;

/// The head of a request, borrowed from the input.
#[doc(alias = "Head")]
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    method: Method<'a>,
    target: Target<'a>,
    version: Version,
    fields: Fields<'a>,
    len: usize,
}

impl<'a> RequestHead<'a> {
    /// Returns the method.
    pub fn method(&self) -> Method<'a> {
        self.method
    }

    /// Returns the target, which has been checked but not decoded.
    pub fn target(&self) -> Target<'a> {
        self.target
    }

    /// Returns the path of the target, as it was sent; see [`Target::path`].
    #[inline]
    pub fn path(&self) -> &'a str {
        self.target.path()
    }

    /// Returns the version of the peer.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns all fields.
    pub fn fields(&self) -> Fields<'a> {
        self.fields
    }

    /// Returns the value of the first field with this name, in any case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields.get(name)
    }

    /// Creates a head of HTTP/2 from its parts, which have been checked.
    #[inline]
    pub(crate) fn framed(
        method: Method<'a>,
        target: Target<'a>,
        fields: Fields<'a>,
    ) -> RequestHead<'a> {
        RequestHead { method, target, version: Version::Http2, fields, len: 0 }
    }

    /// Returns the size of the head in the input, in bytes, including the empty lines before it:
    /// consume these before the body.
    pub fn input_len(&self) -> usize {
        self.len
    }
}

/// The head of a response, borrowed from the input.
#[derive(Debug, Clone, Copy)]
pub struct ResponseHead<'a> {
    status: Status,
    reason: &'a str,
    version: Version,
    fields: Fields<'a>,
    len: usize,
}

impl<'a> ResponseHead<'a> {
    /// Returns the status.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the reason phrase; empty if it is absent or not ASCII.
    pub fn reason(&self) -> &'a str {
        self.reason
    }

    /// Returns the version of the peer.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns all fields.
    pub fn fields(&self) -> Fields<'a> {
        self.fields
    }

    /// Returns the value of the first field with this name, in any case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields.get(name)
    }

    /// Creates a head of HTTP/2 from its parts, which have been checked. HTTP/2 has no reason
    /// phrases.
    pub(crate) fn framed(status: Status, fields: Fields<'a>) -> ResponseHead<'a> {
        ResponseHead { status, reason: "", version: Version::Http2, fields, len: 0 }
    }

    /// Returns the size of the head in the input, in bytes: consume these before the body.
    pub fn input_len(&self) -> usize {
        self.len
    }
}

/// Reads the heads of a connection, one after the other, and remembers its position, so that each
/// byte is read once (twice when the head is complete), however small the pieces.
///
/// While a head is incomplete, the input may change only by appending bytes. When a head is
/// complete, the reader is ready for the next one, once the caller has consumed
/// [`RequestHead::input_len`] bytes. After an error, the reader returns the same or another error
/// again: the connection must be closed.
#[derive(Debug, Clone, Default)]
pub struct HeadReader {
    /// `None` as long as no part of a head has been seen. Boxed, because most heads arrive whole,
    /// and a connection should stay small.
    scanner: Option<Box<HeadScanner>>,
}

impl HeadReader {
    /// Creates a reader at the start of a head.
    pub const fn new() -> HeadReader {
        HeadReader { scanner: None }
    }

    /// Returns whether nothing but empty lines has arrived of the next head. Such a connection is
    /// idle and may be closed without a response.
    pub fn is_idle(&self) -> bool {
        self.scanner.as_ref().is_none_or(|scanner| scanner.is_blank())
    }

    /// Reads a request head; returns `None` until it is complete.
    ///
    /// # Errors
    ///
    /// `Head` and `TargetForm`, both the peer's fault: respond with `status()`, then close.
    #[inline(always)]
    pub fn read_request<'a>(
        &mut self,
        input: &'a [u8],
        storage: &'a mut FieldStorage,
        limits: &Limits,
    ) -> Result<Option<RequestHead<'a>>, RequestError> {
        let (fast, slow) = storage.parts();
        match self.read_whole_request(input, fast, limits) {
            Some(head) => Ok(Some(head)),
            None => self.read_request_slowly(input, slow, limits),
        }
    }

    /// Reads a request head of the usual kind that has arrived whole. If this returns `None`,
    /// [`read_request_slowly`](HeadReader::read_request_slowly) decides.
    ///
    /// There are two functions so that the compiler builds the head in its final place. If a single
    /// function returned the heads of both paths, they would be copied there.
    #[inline(always)]
    pub(crate) fn read_whole_request<'a>(
        &self,
        input: &'a [u8],
        storage: &'a mut FastStorage,
        limits: &Limits,
    ) -> Option<RequestHead<'a>> {
        // A head that arrived in pieces stays with the scanner, which knows its position and
        // whether it has failed.
        if self.scanner.is_some() {
            return None;
        }
        let head = request_lexer::fast_request(input, storage, &ScanLimits::for_head(limits))?;
        // Other forms are rare. The slow path handles them, and finds the error of a target that
        // has no form.
        let target = Target::from_origin_form(head.method, head.target, head.query_at)?;
        let fields = Fields::new(input, storage);
        Some(RequestHead {
            method: head.method,
            target,
            version: head.version,
            fields,
            len: head.len,
        })
    }

    /// Reads any request head, like [`read_request`](HeadReader::read_request).
    #[cold]
    pub(crate) fn read_request_slowly<'a>(
        &mut self,
        input: &'a [u8],
        storage: &'a mut SlowStorage,
        limits: &Limits,
    ) -> Result<Option<RequestHead<'a>>, RequestError> {
        let limits = ScanLimits::for_head(limits);
        let Some(scanner) = self.scan(input, &limits, HeadScanner::for_request)? else {
            return Ok(None);
        };
        let (start, end) = scanner.target();
        let lines = &input[scanner.fields_start()..scanner.at()];
        // Refused if httparse disagrees with the scanner: requests are smuggled by heads that can
        // be read in two ways.
        if !field_lines::parse_fields(lines, scanner.fields(), storage) {
            return Err(HeadError::FieldName.into());
        }
        // There is exactly one space between method and target (RFC 9112 §3).
        let method = text(&input[scanner.head_start()..start - 1]).ok_or(HeadError::Method)?;
        let method = Method::from_token(method);
        let target = text(&input[start..end]).ok_or(HeadError::Target)?;
        let target = Target::parse(method, target).ok_or(RequestError::TargetForm)?;
        let fields = Fields::new(lines, storage);
        Ok(Some(RequestHead {
            method,
            target,
            version: scanner.version(),
            fields,
            len: scanner.at(),
        }))
    }

    /// Reads a response head; returns `None` until it is complete.
    ///
    /// # Errors
    ///
    /// `Head`, the peer's fault: close.
    pub fn read_response<'a>(
        &mut self,
        input: &'a [u8],
        storage: &'a mut FieldStorage,
        limits: &Limits,
    ) -> Result<Option<ResponseHead<'a>>, ResponseHeadError> {
        let limits = ScanLimits::for_head(limits);
        let (fast, slow) = storage.parts();
        if self.scanner.is_none()
            && let Some(head) = response_lexer::fast_response(input, fast, &limits)
        {
            let status = Status::new(head.code).ok_or(HeadError::StatusLine)?;
            let fields = Fields::new(input, fast);
            let (reason, version) = (head.reason, head.version);
            return Ok(Some(ResponseHead { status, reason, version, fields, len: head.len }));
        }
        let Some(scanner) = self.scan(input, &limits, HeadScanner::for_response)? else {
            return Ok(None);
        };
        let (start, end) = scanner.target();
        let lines = &input[scanner.fields_start()..scanner.at()];
        // As for a request: a head that can be read in two ways is refused.
        if !field_lines::parse_fields(lines, scanner.fields(), slow) {
            return Err(HeadError::FieldName.into());
        }
        // All versions have the same length, so the position of the code is fixed (RFC 9112 §4).
        let code = &input[Version::BYTES + 1..Version::BYTES + 4];
        let code = grammar::parse_decimal(code).and_then(|code| u16::try_from(code).ok());
        let status = code.and_then(Status::new).ok_or(HeadError::StatusLine)?;
        // RFC 9112 §4: "A client SHOULD ignore the reason-phrase content", so bytes beyond ASCII in
        // it are not an error.
        let reason = text(&input[start..end]).unwrap_or_default();
        let fields = Fields::new(lines, slow);
        Ok(Some(ResponseHead {
            status,
            reason,
            version: scanner.version(),
            fields,
            len: scanner.at(),
        }))
    }

    /// Continues the scan; returns the scanner when the head is complete.
    fn scan(
        &mut self,
        input: &[u8],
        limits: &ScanLimits,
        new: fn() -> HeadScanner,
    ) -> Result<Option<Box<HeadScanner>>, HeadError> {
        // An idle connection has no scanner.
        if input.is_empty() {
            return Ok(None);
        }
        let scanner = self.scanner.get_or_insert_with(|| Box::new(new()));
        // After an error the scanner stays, to return the same error again.
        let is_complete = scanner.scan(input, limits)?;
        Ok(if is_complete { self.scanner.take() } else { None })
    }
}

impl ScanLimits {
    #[inline(always)]
    fn for_head(limits: &Limits) -> ScanLimits {
        ScanLimits {
            bytes_max: limits.head_bytes_max,
            field_bytes_max: limits.field_bytes_max,
            fields_max: limits.fields_max,
            target_bytes_max: limits.target_bytes_max,
            empty_lines_max: limits.empty_lines_max,
        }
    }
}

/// Returns the bytes as text if they are ASCII. The scanner has checked methods and targets for
/// that, but not reason phrases.
fn text(bytes: &[u8]) -> Option<&str> {
    bytes.is_ascii().then(|| std::str::from_utf8(bytes).ok()).flatten()
}
