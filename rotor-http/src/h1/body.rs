//! The body decoder: separates data from framing.

use super::chunked::Chunked;
use super::decoded::Decoded;
use super::framing::Body;
use crate::limits::Limits;
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;

/// Decodes one message body, however it is split. It never reads a byte twice and never allocates
/// for an announced length; it stores only a trailer section that has fields.
#[derive(Debug, Clone)]
pub struct BodyDecoder {
    kind: Kind,
    received: u64,
    failed: Option<BodyError>,
}

#[derive(Debug, Clone)]
enum Kind {
    Length {
        left: u64,
    },
    UntilClose {
        left: u64,
    },
    /// Boxed: chunked bodies are less frequent, and a connection should stay small.
    Chunked(Box<Chunked>),
}

impl BodyDecoder {
    /// Creates a decoder for a body of at most `bytes_max` bytes of data (`u64::MAX`: no limit).
    ///
    /// # Errors
    ///
    /// `TooLarge`, the peer's fault, if the announced length is larger: nothing of the body has
    /// been read.
    pub fn new(body: Body, bytes_max: u64, limits: &Limits) -> Result<BodyDecoder, BodyError> {
        let kind = match body {
            Body::Empty => Kind::Length { left: 0 },
            Body::Length(length) if length > bytes_max => return Err(BodyError::TooLarge),
            Body::Length(length) => Kind::Length { left: length },
            Body::UntilClose => Kind::UntilClose { left: bytes_max },
            Body::Chunked => Kind::Chunked(Box::new(Chunked::new(limits, bytes_max))),
        };
        Ok(BodyDecoder { kind, received: 0, failed: None })
    }

    /// Decodes the beginning of `input`, which must follow the bytes that have been consumed so
    /// far. Returns at the first data, so call it again until it needs input or the body has ended.
    ///
    /// # Errors
    ///
    /// The peer's fault. Nothing more can be read on the connection; the decoder returns the same
    /// error again.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, BodyError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let decoded = match &mut self.kind {
            Kind::Length { left } => {
                let data = take(left, input.len());
                Ok(Decoded { skip: 0, data, is_end: *left == 0 })
            }
            // The limit applies to the data that is delivered, however the input is split.
            Kind::UntilClose { left: 0 } if !input.is_empty() => Err(BodyError::TooLarge),
            Kind::UntilClose { left } => {
                Ok(Decoded { skip: 0, data: take(left, input.len()), is_end: false })
            }
            Kind::Chunked(chunked) => chunked.decode(input),
        };
        match &decoded {
            Ok(decoded) => self.received += decoded.data as u64,
            Err(error) => self.failed = Some(*error),
        }
        decoded
    }

    /// Ends the body when the peer has closed and all input has been decoded.
    ///
    /// # Errors
    ///
    /// `Truncated`, the peer's fault: the received part must not be taken as the whole body.
    pub fn finish(&mut self) -> Result<(), BodyError> {
        match &self.kind {
            // A close does not repair an earlier error.
            _ if self.failed.is_some() => Err(self.failed.unwrap_or(BodyError::Truncated)),
            // This body ends only with the connection (RFC 9112 §8); every other body has a known
            // length.
            Kind::UntilClose { .. } => Ok(()),
            _ if self.is_end() => Ok(()),
            _ => {
                self.failed = Some(BodyError::Truncated);
                Err(BodyError::Truncated)
            }
        }
    }

    /// Returns whether the whole body has been decoded. Never true for a body that lasts until
    /// close.
    pub fn is_end(&self) -> bool {
        match &self.kind {
            Kind::Length { left } => *left == 0,
            Kind::UntilClose { .. } => false,
            Kind::Chunked(chunked) => chunked.is_done(),
        }
    }

    /// Returns how many bytes of data have been decoded so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns how many bytes of data are certain to follow: of the whole body, of the current
    /// chunk, or 0 if the body ends with the connection.
    pub fn left(&self) -> u64 {
        match &self.kind {
            Kind::Length { left } => *left,
            Kind::UntilClose { .. } => 0,
            Kind::Chunked(chunked) => chunked.left(),
        }
    }

    /// Returns the trailer fields, once the body has ended.
    pub fn into_trailers(self) -> Trailers {
        match self.kind {
            Kind::Chunked(chunked) => chunked.into_trailers(),
            _ => Trailers::default(),
        }
    }
}

/// Takes as many bytes as are available and left.
fn take(left: &mut u64, available: usize) -> usize {
    let len = usize::try_from(*left).unwrap_or(usize::MAX).min(available);
    *left -= len as u64;
    len
}
