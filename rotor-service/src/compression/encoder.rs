//! `Encoder`: a body made smaller as it comes.

use std::fmt;
use std::io::{self, Write};

use flate2::write::GzEncoder;

use super::coding::Coding;

/// Octets that an encoder holds at most, its window, tables and buffers: a thousand streams are some
/// hundred MiB at the worst. What one call returns comes on top: as long as what was given, and a little.
pub const ENCODER_BYTES_MAX: usize = 1 << 20;

/// That of zlib's own default: twice the time of level 1 for a tenth less.
const GZIP_LEVEL: u32 = 6;

/// Compresses the octets of one body, piece by piece.
///
/// ```
/// use rotor_service::{Coding, Encoder};
///
/// let mut encoder = Encoder::new(Coding::Gzip)?;
/// let mut sent = encoder.write(&[b'a'; 10_000])?.to_vec();
/// sent.extend(encoder.finish()?);
/// assert!(sent.starts_with(&[0x1f, 0x8b]) && sent.len() < 100);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Encoder(Kind);

enum Kind {
    Gzip(GzEncoder<Vec<u8>>),
    #[cfg(feature = "zstd")]
    Zstd(super::zstd::Zstd),
}

impl Encoder {
    /// Makes one.
    ///
    /// # Errors
    ///
    /// The coding is none of those that the features of this crate brought.
    pub fn new(coding: Coding) -> io::Result<Encoder> {
        match coding {
            Coding::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Ok(Encoder(Kind::Gzip(GzEncoder::new(Vec::new(), level))))
            }
            #[cfg(feature = "zstd")]
            Coding::Zstd => Ok(Encoder(Kind::Zstd(super::zstd::Zstd::new()?))),
            #[cfg(not(feature = "zstd"))]
            Coding::Zstd => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "the feature `zstd` is off"))
            }
        }
    }

    /// Returns how it codes.
    pub fn coding(&self) -> Coding {
        match &self.0 {
            Kind::Gzip(_) => Coding::Gzip,
            #[cfg(feature = "zstd")]
            Kind::Zstd(_) => Coding::Zstd,
        }
    }

    /// Takes the next piece, and returns what is to be sent by now: often nothing.
    ///
    /// # Errors
    ///
    /// The library has no memory left: the body is lost.
    pub fn write(&mut self, piece: &[u8]) -> io::Result<&[u8]> {
        match &mut self.0 {
            Kind::Gzip(encoder) => {
                encoder.get_mut().clear();
                encoder.write_all(piece)?;
                Ok(encoder.get_ref())
            }
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.write(piece),
        }
    }

    /// Returns what is needed to read all that was written: for a stream that pauses. It costs some
    /// octets each time.
    ///
    /// # Errors
    ///
    /// As [`write`](Encoder::write).
    pub fn flush(&mut self) -> io::Result<&[u8]> {
        match &mut self.0 {
            Kind::Gzip(encoder) => {
                encoder.get_mut().clear();
                encoder.flush()?;
                Ok(encoder.get_ref())
            }
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.flush(),
        }
    }

    /// Returns the end of the body.
    ///
    /// # Errors
    ///
    /// As [`write`](Encoder::write).
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.0 {
            Kind::Gzip(mut encoder) => {
                encoder.get_mut().clear();
                encoder.finish()
            }
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Encoder").field(&self.coding()).finish()
    }
}
