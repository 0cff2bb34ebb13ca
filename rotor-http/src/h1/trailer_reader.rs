//! Reads the trailer section of a chunked body (RFC 9112 §7.1.2).

use super::head_scanner::{HeadScanner, ScanLimits};
use crate::limits::Limits;
use crate::semantics::error::HeadError;
use crate::semantics::trailers::Trailers;

/// Reads a trailer section byte by byte.
#[derive(Debug, Clone)]
pub(super) struct TrailerReader {
    scanner: HeadScanner,
    trailers: Trailers,
    limits: ScanLimits,
}

impl TrailerReader {
    pub(super) fn new(limits: &TrailerLimits) -> TrailerReader {
        let limits = ScanLimits {
            bytes_max: limits.bytes_max,
            // One field may use the whole size of the section.
            field_bytes_max: limits.bytes_max,
            fields_max: limits.fields_max,
            // A trailer section has neither a target nor empty lines in front.
            target_bytes_max: 0,
            empty_lines_max: 0,
        };
        TrailerReader {
            scanner: HeadScanner::for_trailers(),
            trailers: Trailers::default(),
            limits,
        }
    }

    /// Takes one byte, and returns whether it was the last one.
    pub(super) fn push(&mut self, byte: u8) -> Result<bool, HeadError> {
        self.scanner.push(byte, &self.limits)?;
        self.trailers.push(byte);
        Ok(self.scanner.is_done())
    }

    pub(super) fn into_trailers(self) -> Trailers {
        self.trailers
    }
}

/// The limits of a trailer section.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrailerLimits {
    bytes_max: usize,
    fields_max: usize,
}

impl TrailerLimits {
    pub(super) fn from_limits(limits: &Limits) -> TrailerLimits {
        TrailerLimits { bytes_max: limits.trailer_bytes_max, fields_max: limits.trailers_max }
    }
}
