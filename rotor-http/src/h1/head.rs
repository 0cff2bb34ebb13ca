//! Reads the head of a request or a response from what has come so far, in whatever pieces it
//! comes.

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

    /// Returns the target, checked and not decoded.
    pub fn target(&self) -> Target<'a> {
        self.target
    }

    /// Returns the path of the target, as it was sent; see [`Target::path`].
    #[inline]
    pub fn path(&self) -> &'a str {
        self.target.path()
    }

    /// Returns the version that the peer speaks.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns all fields.
    pub fn fields(&self) -> Fields<'a> {
        self.fields
    }

    /// Returns the value of the first field of this name, in any case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields.get(name)
    }

    /// One whose parts came apart already, and were checked: of HTTP/2.
    #[inline]
    pub(crate) fn framed(
        method: Method<'a>,
        target: Target<'a>,
        fields: Fields<'a>,
    ) -> RequestHead<'a> {
        RequestHead { method, target, version: Version::Http2, fields, len: 0 }
    }

    /// Returns how many octets of the input the head takes up, with the empty lines before it: what
    /// to consume before the body.
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

    /// Returns the version that the peer speaks.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns all fields.
    pub fn fields(&self) -> Fields<'a> {
        self.fields
    }

    /// Returns the value of the first field of this name, in any case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields.get(name)
    }

    /// One whose parts came apart already, and were checked: of HTTP/2, which has no reason
    /// phrases.
    pub(crate) fn framed(status: Status, fields: Fields<'a>) -> ResponseHead<'a> {
        ResponseHead { status, reason: "", version: Version::Http2, fields, len: 0 }
    }

    /// Returns how many octets of the input the head takes up: what to consume before the body.
    pub fn input_len(&self) -> usize {
        self.len
    }
}

/// Reads one head after the other from a connection and remembers how far it has come, so that each
/// byte is looked at once (twice when the head is complete), however small the pieces.
///
/// While a head is incomplete the input must stay as it is but for bytes added at its end. When a
/// head is complete the reader is ready for the next; the caller consumes
/// [`RequestHead::input_len`] bytes first. After an error the reader goes on saying the same or
/// another error: the connection is to be closed.
#[derive(Debug, Clone, Default)]
pub struct HeadReader {
    /// Absent as long as no part of a head has been seen; boxed because most heads come whole, and
    /// a connection should stay small.
    scanner: Option<Box<HeadScanner>>,
}

impl HeadReader {
    /// Makes a reader at the start of a head.
    pub const fn new() -> HeadReader {
        HeadReader { scanner: None }
    }

    /// Returns whether nothing but empty lines has come of the next head: such a connection is idle
    /// and may be closed without a response.
    pub fn is_idle(&self) -> bool {
        self.scanner.as_ref().is_none_or(|scanner| scanner.is_blank())
    }

    /// Reads a request head; `None` until it is complete.
    ///
    /// # Errors
    ///
    /// `Head` and `TargetForm`, both the peer's fault: respond with `status()`, close.
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

    /// Reads a request head of the usual kind that is there whole. Where this returns `None`,
    /// [`read_request_slowly`](HeadReader::read_request_slowly) says what it is.
    ///
    /// Two functions, so that the compiler makes the head in its last place: one that both of them
    /// returned would be copied there.
    #[inline(always)]
    pub(crate) fn read_whole_request<'a>(
        &self,
        input: &'a [u8],
        storage: &'a mut FastStorage,
        limits: &Limits,
    ) -> Option<RequestHead<'a>> {
        // A head that came in pieces stays with the scanner, which knows how far it is and whether
        // it has failed.
        if self.scanner.is_some() {
            return None;
        }
        let head = request_lexer::fast_request(input, storage, &ScanLimits::for_head(limits))?;
        // Other forms are rare: the slow way knows them, and the error of each that is none.
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

    /// Reads any request head, as [`read_request`](HeadReader::read_request).
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
        // Refused where httparse disagrees with the scanner: two readings of one head are how
        // requests are smuggled.
        if !field_lines::parse_fields(lines, scanner.fields(), storage) {
            return Err(HeadError::FieldName.into());
        }
        // Exactly one space stands between method and target (RFC 9112 §3).
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

    /// Reads a response head; `None` until it is complete.
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
        // As for a request: two readings of one head are refused.
        if !field_lines::parse_fields(lines, scanner.fields(), slow) {
            return Err(HeadError::FieldName.into());
        }
        // The version has one length, so the code has one place (RFC 9112 §4).
        let code = &input[Version::OCTETS + 1..Version::OCTETS + 4];
        let code = grammar::parse_decimal(code).and_then(|code| u16::try_from(code).ok());
        let status = code.and_then(Status::new).ok_or(HeadError::StatusLine)?;
        // RFC 9112 §4: "A client SHOULD ignore the reason-phrase content", so octets beyond ASCII
        // in it are no error.
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

    /// Scans on; gives the scanner out when the head is complete.
    fn scan(
        &mut self,
        input: &[u8],
        limits: &ScanLimits,
        new: fn() -> HeadScanner,
    ) -> Result<Option<Box<HeadScanner>>, HeadError> {
        // An idle connection does not even have a scanner.
        if input.is_empty() {
            return Ok(None);
        }
        let scanner = self.scanner.get_or_insert_with(|| Box::new(new()));
        // After an error the scanner stays, to say the same again.
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

/// Text that the scanner has found to be ASCII.
fn text(bytes: &[u8]) -> Option<&str> {
    bytes.is_ascii().then(|| std::str::from_utf8(bytes).ok()).flatten()
}
