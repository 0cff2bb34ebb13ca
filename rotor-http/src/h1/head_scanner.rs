//! The grammar of a head as a state machine that takes one byte at a time. It decides which bytes
//! are a head, and which error to return for others; the lexers are only a faster way to accept a
//! head. The result does not depend on how a head is split, and no byte is read twice.

use crate::semantics::error::HeadError;
use crate::semantics::grammar::{self, TARGET, TCHAR, VALUE};
use crate::semantics::method::Method;
use crate::semantics::version::Version;

/// The first bytes of TLS records (RFC 8446 §5.1): of a client's first record, and of the record
/// that a server sends to a client that does not use TLS.
const TLS_HANDSHAKE: u8 = 22;
const TLS_ALERT: u8 = 21;

/// The limits of a head or a trailer section while it is scanned.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanLimits {
    /// Bytes of the whole section, without the empty lines before it.
    pub(super) bytes_max: usize,
    pub(super) field_bytes_max: usize,
    pub(super) fields_max: usize,
    pub(super) target_bytes_max: usize,
    pub(super) empty_lines_max: u8,
}

/// The position of the next byte in the head.
///
/// ```text
/// Start ─CR─▶ EmptyLf ─LF─▶ Start           (up to the limit)
///   └tchar─▶ Method ─SP─▶ Target ─SP─▶ RequestVersion ─CR─▶ LineLf
/// StatusVersion ─SP─▶ Code ─SP─▶ Reason ─CR─▶ LineLf
///                       └CR──────────────────────┘
/// LineLf ─LF─▶ Line ─tchar─▶ Name ─:─▶ Value ─CR─▶ LineLf
///                └CR─▶ EndLf ─LF─▶ Done
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Start,
    EmptyLf,
    Method,
    Target,
    RequestVersion,
    StatusVersion,
    Code,
    Reason,
    LineLf,
    Line,
    Name,
    Value,
    EndLf,
    Done,
}

/// The progress of reading a head, and the positions of its parts. Positions count from the first
/// byte that was pushed.
#[derive(Debug, Clone)]
pub(super) struct HeadScanner {
    /// Bytes pushed so far.
    at: u32,
    /// The start of the head, after empty lines.
    head_start: u32,
    /// The start of the current part (method, target, version, code, field line).
    part_start: u32,
    target_start: u32,
    target_end: u32,
    fields_start: u32,
    fields: u32,
    empty_lines: u8,
    phase: Phase,
    /// An error is final: the scanner's state within the failed part is not reliable.
    failed: Option<HeadError>,
    version: [u8; Version::BYTES],
    parsed_version: Version,
}

impl HeadScanner {
    fn starting_in(phase: Phase) -> HeadScanner {
        HeadScanner {
            at: 0,
            head_start: 0,
            part_start: 0,
            target_start: 0,
            target_end: 0,
            fields_start: 0,
            fields: 0,
            empty_lines: 0,
            phase,
            failed: None,
            version: [0; Version::BYTES],
            parsed_version: Version::Http11,
        }
    }

    pub(super) fn for_request() -> HeadScanner {
        HeadScanner::starting_in(Phase::Start)
    }

    pub(super) fn for_response() -> HeadScanner {
        HeadScanner::starting_in(Phase::StatusVersion)
    }

    pub(super) fn for_trailers() -> HeadScanner {
        HeadScanner::starting_in(Phase::Line)
    }

    /// Returns whether only empty lines have arrived so far.
    pub(super) fn is_blank(&self) -> bool {
        // A response has no phase for empty lines, so here it is blank only before its first byte.
        matches!(self.phase, Phase::Start | Phase::EmptyLf) || self.at == 0
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    pub(super) fn at(&self) -> usize {
        self.at as usize
    }

    pub(super) fn fields(&self) -> usize {
        self.fields as usize
    }

    pub(super) fn head_start(&self) -> usize {
        self.head_start as usize
    }

    pub(super) fn fields_start(&self) -> usize {
        self.fields_start as usize
    }

    pub(super) fn version(&self) -> Version {
        self.parsed_version
    }

    /// Returns the start and end of the target, or, for a response, of the reason phrase.
    pub(super) fn target(&self) -> (usize, usize) {
        (self.target_start as usize, self.target_end as usize)
    }

    /// Scans the new bytes of `input`, which must begin where the first scanned input began.
    /// Returns whether the head is complete; it ends at `at()`. After an error, returns the same
    /// error again.
    pub(super) fn scan(&mut self, input: &[u8], limits: &ScanLimits) -> Result<bool, HeadError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        for &byte in input.get(self.at()..).unwrap_or_default() {
            self.push(byte, limits).inspect_err(|error| self.failed = Some(*error))?;
            if self.is_done() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the next byte. Must not be called after an error.
    pub(super) fn push(&mut self, byte: u8, limits: &ScanLimits) -> Result<(), HeadError> {
        let phase = match self.phase {
            Phase::Start => self.start(byte, limits)?,
            Phase::EmptyLf => expect_lf(byte, Phase::Start)?,
            Phase::Method => self.method(byte)?,
            Phase::Target => self.target_byte(byte, limits)?,
            Phase::RequestVersion => self.version_byte(byte, b'\r', Phase::LineLf)?,
            Phase::StatusVersion => self.version_byte(byte, b' ', Phase::Code)?,
            Phase::Code => self.code(byte)?,
            Phase::Reason => self.reason(byte)?,
            Phase::LineLf => expect_lf(byte, Phase::Line)?,
            Phase::Line => self.line(byte, limits)?,
            Phase::Name => self.name(byte, limits)?,
            Phase::Value => self.value(byte, limits)?,
            Phase::EndLf => expect_lf(byte, Phase::Done)?,
            Phase::Done => Phase::Done,
        };
        self.at += 1;
        self.phase = phase;
        // Empty lines before the head are not a part of it, and have a limit of their own.
        let is_full = self.at() - self.head_start() >= limits.bytes_max;
        if is_full && !matches!(phase, Phase::Done | Phase::Start | Phase::EmptyLf) {
            return Err(HeadError::TooLarge);
        }
        Ok(())
    }

    /// Returns the size of the current part in bytes, without the byte that is being pushed.
    fn part_len(&self) -> usize {
        (self.at - self.part_start) as usize
    }

    fn start(&mut self, byte: u8, limits: &ScanLimits) -> Result<Phase, HeadError> {
        match byte {
            // RFC 9112 §2.2: "a server that is expecting to receive and parse a request-line SHOULD
            // ignore at least one empty line (CRLF) received prior to the request-line".
            b'\r' if self.empty_lines >= limits.empty_lines_max => Err(HeadError::EmptyLines),
            b'\r' => {
                self.empty_lines += 1;
                Ok(Phase::EmptyLf)
            }
            // RFC 9112 §2.2 allows recipients to accept a bare LF as a line end. It is refused
            // here: recipients that do and that do not see different lines.
            b'\n' => Err(HeadError::LineEnd),
            _ => {
                self.head_start = self.at;
                self.part_start = self.at;
                match byte {
                    _ if grammar::is(byte, TCHAR) => Ok(Phase::Method),
                    TLS_HANDSHAKE => Err(HeadError::Tls),
                    _ => Err(HeadError::Method),
                }
            }
        }
    }

    fn method(&mut self, byte: u8) -> Result<Phase, HeadError> {
        match byte {
            b' ' => {
                self.part_start = self.at + 1;
                self.target_start = self.part_start;
                Ok(Phase::Target)
            }
            b'\n' => Err(HeadError::LineEnd),
            _ if !grammar::is(byte, TCHAR) => Err(HeadError::Method),
            _ if self.part_len() == Method::BYTES_MAX => Err(HeadError::MethodTooLong),
            _ => Ok(Phase::Method),
        }
    }

    fn target_byte(&mut self, byte: u8, limits: &ScanLimits) -> Result<Phase, HeadError> {
        match byte {
            // Exactly one space, and no other whitespace: RFC 9112 §3 allows recipients to be
            // lenient, and warns that lenient recipients differ.
            b' ' if self.part_len() > 0 => {
                self.target_end = self.at;
                self.part_start = self.at + 1;
                Ok(Phase::RequestVersion)
            }
            b'\n' => Err(HeadError::LineEnd),
            // HTTP/0.9, or a truncated line.
            b'\r' if self.part_len() > 0 => Err(HeadError::Version),
            _ if !grammar::is(byte, TARGET) => Err(HeadError::Target),
            _ if self.part_len() >= limits.target_bytes_max => Err(HeadError::TargetTooLong),
            _ => Ok(Phase::Target),
        }
    }

    /// Collects the version up to the byte `end`, which leads to `next`.
    fn version_byte(&mut self, byte: u8, end: u8, next: Phase) -> Result<Phase, HeadError> {
        let len = self.part_len();
        if byte == end {
            self.parsed_version = Version::parse(&self.version[..len])?;
            self.part_start = self.at + 1;
            return Ok(next);
        }
        // There is room for one version, so a longer one is refused before it ends.
        match (self.version.get_mut(len), byte) {
            (Some(place), b'!'..=b'~') => *place = byte,
            (_, b'\n') => return Err(HeadError::LineEnd),
            (_, TLS_ALERT | TLS_HANDSHAKE) if self.at == 0 => return Err(HeadError::Tls),
            _ => return Err(HeadError::Version),
        }
        Ok(self.phase)
    }

    fn code(&mut self, byte: u8) -> Result<Phase, HeadError> {
        match (self.part_len(), byte) {
            (0, b'1'..=b'9') | (1 | 2, b'0'..=b'9') => Ok(Phase::Code),
            // RFC 9112 §4 requires the space even before an empty phrase, but many servers omit it.
            (3, b' ' | b'\r') => {
                self.target_start = if byte == b' ' { self.at + 1 } else { self.at };
                self.target_end = self.target_start;
                Ok(if byte == b' ' { Phase::Reason } else { Phase::LineLf })
            }
            (_, b'\n') => Err(HeadError::LineEnd),
            _ => Err(HeadError::StatusLine),
        }
    }

    fn reason(&mut self, byte: u8) -> Result<Phase, HeadError> {
        match byte {
            b'\r' => {
                self.target_end = self.at;
                Ok(Phase::LineLf)
            }
            b'\n' => Err(HeadError::LineEnd),
            _ if grammar::is(byte, VALUE) => Ok(Phase::Reason),
            _ => Err(HeadError::StatusLine),
        }
    }

    fn line(&mut self, byte: u8, limits: &ScanLimits) -> Result<Phase, HeadError> {
        if self.fields == 0 {
            self.fields_start = self.at;
        }
        self.part_start = self.at;
        match byte {
            b'\r' => Ok(Phase::EndLf),
            b'\n' => Err(HeadError::LineEnd),
            // RFC 9112 §5.2: a server must refuse obsolete line folding, or replace it with spaces;
            // §2.2: whitespace before the first field is invalid.
            b' ' | b'\t' => Err(HeadError::Folding),
            _ if !grammar::is(byte, TCHAR) => Err(HeadError::FieldName),
            _ if self.fields() >= limits.fields_max => Err(HeadError::TooManyFields),
            _ => {
                self.fields += 1;
                self.check_line(limits)?;
                Ok(Phase::Name)
            }
        }
    }

    fn name(&mut self, byte: u8, limits: &ScanLimits) -> Result<Phase, HeadError> {
        // RFC 9112 §5.1: a server must refuse whitespace between a name and its colon with 400.
        if byte != b':' && !grammar::is(byte, TCHAR) {
            return Err(if byte == b'\n' { HeadError::LineEnd } else { HeadError::FieldName });
        }
        self.check_line(limits)?;
        Ok(if byte == b':' { Phase::Value } else { Phase::Name })
    }

    fn value(&mut self, byte: u8, limits: &ScanLimits) -> Result<Phase, HeadError> {
        match byte {
            b'\r' => return Ok(Phase::LineLf),
            b'\n' => return Err(HeadError::LineEnd),
            // RFC 9110 §5.5: CR, LF and NUL in a value are refused or replaced with spaces; other
            // control characters are invalid.
            _ if !grammar::is(byte, VALUE) => return Err(HeadError::FieldValue),
            _ => self.check_line(limits)?,
        }
        Ok(Phase::Value)
    }

    fn check_line(&self, limits: &ScanLimits) -> Result<(), HeadError> {
        if self.part_len() >= limits.field_bytes_max {
            Err(HeadError::FieldTooLong)
        } else {
            Ok(())
        }
    }
}

#[inline]
fn expect_lf(byte: u8, next: Phase) -> Result<Phase, HeadError> {
    if byte == b'\n' { Ok(next) } else { Err(HeadError::LineEnd) }
}
