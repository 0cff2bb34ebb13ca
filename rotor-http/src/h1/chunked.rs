//! The framing of chunked bodies (RFC 9112 §7.1). It is read byte by byte; the data in between is
//! skipped as a whole.

use super::decoded::Decoded;
use super::trailer_reader::{TrailerLimits, TrailerReader};
use crate::limits::Limits;
use crate::semantics::error::BodyError;
use crate::semantics::grammar::{self, QDTEXT, QUOTABLE, TCHAR};
use crate::semantics::trailers::Trailers;

/// The position of the next byte in the framing.
///
/// ```text
/// SizeStart ─hex─▶ Size ─CR─▶ SizeLf ─LF─▶ Data ─▶ DataCr ─▶ DataLf ─LF─▶ SizeStart
///                   │ ;          ▲           (size 0: Trailer ─▶ Done)
///                   ▼            │CR
///                ExtName ─=─▶ ExtValue ─"─▶ Quoted ⇄ QuotedPair, ─"─▶ QuotedEnd
/// ```
///
/// Around `;` and `=` there may be "bad" whitespace, which "a recipient MUST parse" (RFC 9112
/// §7.1.1, RFC 9110 §5.6.3). Whitespace before them is a phase of its own (`SizeSpace`,
/// `ExtNameSpace`, `ExtValueSpace`), in which no line can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    SizeStart,
    Size,
    SizeSpace,
    ExtNameStart,
    ExtName,
    ExtNameSpace,
    ExtValueStart,
    ExtValue,
    ExtValueSpace,
    Quoted,
    QuotedPair,
    QuotedEnd,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailer,
    Done,
}

/// The state of a chunked body that is being read.
#[derive(Debug, Clone)]
pub(super) struct Chunked {
    phase: Phase,
    /// The size of the chunk while its line is read, then the rest of its data.
    left: u64,
    /// The data of all chunks whose size has been read.
    announced: u64,
    body_max: u64,
    line_len: u32,
    extension_len: u32,
    line_max: u32,
    extension_max: u32,
    trailer_limits: TrailerLimits,
    /// Created when a trailer field begins; most bodies have none.
    trailer: Option<Box<TrailerReader>>,
    /// Whether the CR of an empty trailer section has been seen.
    has_trailer_cr: bool,
}

impl Chunked {
    pub(super) fn new(limits: &Limits, body_max: u64) -> Chunked {
        Chunked {
            phase: Phase::SizeStart,
            left: 0,
            announced: 0,
            body_max,
            line_len: 0,
            extension_len: 0,
            line_max: saturate(limits.chunk_line_bytes_max),
            extension_max: saturate(limits.extension_bytes_max),
            trailer_limits: TrailerLimits::from_limits(limits),
            trailer: None,
            has_trailer_cr: false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Returns how many bytes of the current chunk's data are still to come.
    pub(super) fn left(&self) -> u64 {
        if self.phase == Phase::Data { self.left } else { 0 }
    }

    pub(super) fn into_trailers(self) -> Trailers {
        self.trailer.map(|reader| reader.into_trailers()).unwrap_or_default()
    }

    pub(super) fn decode(&mut self, input: &[u8]) -> Result<Decoded, BodyError> {
        let mut at = 0;
        while at < input.len() && self.phase != Phase::Done {
            if self.phase == Phase::Data {
                let len = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len() - at);
                self.left -= len as u64;
                if self.left == 0 {
                    self.phase = Phase::DataCr;
                }
                // One range of data at a time: the caller hands it over from the input.
                return Ok(Decoded { skip: at, data: len, is_end: false });
            }
            self.phase = self.push(input[at])?;
            at += 1;
        }
        Ok(Decoded { skip: at, data: 0, is_end: self.is_done() })
    }

    /// Takes one byte of the framing, and returns the next phase.
    fn push(&mut self, byte: u8) -> Result<Phase, BodyError> {
        match self.phase {
            Phase::Data | Phase::Done => Ok(self.phase),
            Phase::DataCr => expect(byte, b'\r', Phase::DataLf),
            Phase::DataLf => {
                // The count of extension bytes continues: otherwise chunks of one byte could carry
                // any number of them.
                self.line_len = 0;
                expect(byte, b'\n', Phase::SizeStart)
            }
            Phase::SizeLf => {
                expect(byte, b'\n', Phase::Data)?;
                self.start_chunk()
            }
            Phase::Trailer => self.trailer_byte(byte),
            _ => self.line_byte(byte),
        }
    }

    /// Takes a byte of the line with the size and the extensions.
    fn line_byte(&mut self, byte: u8) -> Result<Phase, BodyError> {
        let can_end =
            matches!(self.phase, Phase::Size | Phase::ExtName | Phase::ExtValue | Phase::QuotedEnd);
        if byte == b'\r' && can_end {
            return Ok(Phase::SizeLf);
        }
        let next = match (self.phase, byte) {
            (Phase::SizeStart | Phase::Size, _) if byte.is_ascii_hexdigit() => {
                self.size_digit(byte)?
            }
            (Phase::Size | Phase::ExtName | Phase::ExtValue | Phase::QuotedEnd, b';') => {
                Phase::ExtNameStart
            }
            (Phase::SizeSpace | Phase::ExtNameSpace | Phase::ExtValueSpace, b';') => {
                Phase::ExtNameStart
            }
            (Phase::Size | Phase::SizeSpace, b' ' | b'\t') => Phase::SizeSpace,
            (Phase::ExtNameStart, b' ' | b'\t') => Phase::ExtNameStart,
            (Phase::ExtName | Phase::ExtNameSpace, b' ' | b'\t') => Phase::ExtNameSpace,
            (Phase::ExtValueStart, b' ' | b'\t') => Phase::ExtValueStart,
            (Phase::ExtValue | Phase::ExtValueSpace | Phase::QuotedEnd, b' ' | b'\t') => {
                Phase::ExtValueSpace
            }
            (Phase::SizeStart | Phase::Size | Phase::SizeSpace, _) => {
                return Err(BodyError::ChunkSize);
            }
            (Phase::ExtNameStart | Phase::ExtName, _) if grammar::is(byte, TCHAR) => Phase::ExtName,
            (Phase::ExtName | Phase::ExtNameSpace, b'=') => Phase::ExtValueStart,
            (Phase::ExtValueStart | Phase::ExtValue, _) if grammar::is(byte, TCHAR) => {
                Phase::ExtValue
            }
            (Phase::ExtValueStart, b'"') => Phase::Quoted,
            (Phase::Quoted, b'"') => Phase::QuotedEnd,
            (Phase::Quoted, b'\\') => Phase::QuotedPair,
            (Phase::Quoted, _) if grammar::is(byte, QDTEXT) => Phase::Quoted,
            (Phase::QuotedPair, _) if grammar::is(byte, QUOTABLE) => Phase::Quoted,
            // RFC 9112 §2.2 allows recipients to end a line at a bare LF: one body could be read in
            // two ways.
            (_, b'\r' | b'\n') => return Err(BodyError::LineEnd),
            _ => return Err(BodyError::Extension),
        };
        // After the grammar: a malformed line is reported as such, whatever its length.
        if self.line_len == self.line_max {
            return Err(BodyError::ChunkLineTooLong);
        }
        self.line_len += 1;
        // Whitespace after the size counts too, since it could also be endless.
        if next != Phase::Size {
            if self.extension_len == self.extension_max {
                return Err(BodyError::ExtensionsTooLong);
            }
            self.extension_len += 1;
        }
        Ok(next)
    }

    fn size_digit(&mut self, byte: u8) -> Result<Phase, BodyError> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            // The two cases of a letter differ in one bit.
            _ => (byte | 0x20) - b'a' + 10,
        };
        // Another digit would not fit. RFC 9112 §7.1: recipients "MUST anticipate potentially large
        // hexadecimal numerals".
        if self.left >> 60 != 0 {
            return Err(BodyError::ChunkSizeOverflow);
        }
        // Leading zeros are well-formed (RFC 9112 §7.1); the limit of the line bounds them.
        self.left = self.left << 4 | u64::from(digit);
        Ok(Phase::Size)
    }

    /// Starts a chunk whose size line is complete.
    fn start_chunk(&mut self) -> Result<Phase, BodyError> {
        // RFC 9112 §7.1: the chunk of size zero is the last one.
        if self.left == 0 {
            return Ok(Phase::Trailer);
        }
        // Checked by the announced size, before any data is passed on.
        self.announced =
            self.announced.checked_add(self.left).ok_or(BodyError::ChunkSizeOverflow)?;
        if self.announced > self.body_max {
            return Err(BodyError::TooLarge);
        }
        Ok(Phase::Data)
    }

    fn trailer_byte(&mut self, byte: u8) -> Result<Phase, BodyError> {
        if self.trailer.is_none() {
            // Without trailer fields, the usual case, no memory is allocated.
            match (self.has_trailer_cr, byte) {
                (false, b'\r') => {
                    self.has_trailer_cr = true;
                    return Ok(Phase::Trailer);
                }
                (true, b'\n') => return Ok(Phase::Done),
                (true, _) => return Err(BodyError::LineEnd),
                (false, _) => {}
            }
        }
        // The state machine for heads is used, so a field that is refused in a head is refused here
        // too.
        let reader =
            self.trailer.get_or_insert_with(|| Box::new(TrailerReader::new(&self.trailer_limits)));
        let is_end = reader.push(byte).map_err(BodyError::Trailer)?;
        Ok(if is_end { Phase::Done } else { Phase::Trailer })
    }
}

fn expect(byte: u8, expected: u8, next: Phase) -> Result<Phase, BodyError> {
    if byte == expected { Ok(next) } else { Err(BodyError::LineEnd) }
}

fn saturate(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
