//! The body decoder: told how a body is delimited, it tells data from framing in what has come.

use super::chunked::Chunked;
use super::decoded::Decoded;
use super::framing::Body;
use crate::limits::Limits;
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;

/// Decodes one message body, in whatever pieces it comes. It never looks at a byte twice, and never
/// allocates for what is announced; only a trailer section with fields is stored.
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
    /// Behind an allocation: chunked bodies are the rarer ones, and a connection should stay small.
    Chunked(Box<Chunked>),
}

impl BodyDecoder {
    /// Makes a decoder for a body of at most `bytes_max` octets of data (`u64::MAX`: any).
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

    /// Looks at the beginning of `input`, which is what follows the octets consumed so far. Returns
    /// at the first data it finds, so it is called again until it needs input or the body has
    /// ended.
    ///
    /// # Errors
    ///
    /// The peer's fault. The connection cannot be read any further; the decoder keeps saying the
    /// same.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, BodyError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let decoded = match &mut self.kind {
            Kind::Length { left } => {
                let data = take(left, input.len());
                Ok(Decoded { skip: 0, data, is_end: *left == 0 })
            }
            // The limit says how much is delivered, wherever what came is cut.
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

    /// Ends the body where the peer has closed and all input was decoded.
    ///
    /// # Errors
    ///
    /// `Truncated`, the peer's fault: what came of the body must not be taken for all of it.
    pub fn finish(&mut self) -> Result<(), BodyError> {
        match &self.kind {
            // An end does not mend what was broken before it.
            _ if self.failed.is_some() => Err(self.failed.unwrap_or(BodyError::Truncated)),
            // Its end is nothing but this (RFC 9112 §8); every other body knows how long it is.
            Kind::UntilClose { .. } => Ok(()),
            _ if self.is_end() => Ok(()),
            _ => {
                self.failed = Some(BodyError::Truncated);
                Err(BodyError::Truncated)
            }
        }
    }

    /// Returns whether the whole body has been decoded. Never true of one that lasts until close.
    pub fn is_end(&self) -> bool {
        match &self.kind {
            Kind::Length { left } => *left == 0,
            Kind::UntilClose { .. } => false,
            Kind::Chunked(chunked) => chunked.is_done(),
        }
    }

    /// Returns how many octets of data were decoded so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns how many octets of data are certain to come yet: of the whole body, of the chunk at
    /// hand, or 0 where it ends with the connection.
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

/// Takes as much as there is of what is left.
fn take(left: &mut u64, available: usize) -> usize {
    let len = usize::try_from(*left).unwrap_or(usize::MAX).min(available);
    *left -= len as u64;
    len
}
