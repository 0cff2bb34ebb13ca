//! `Encoder`: compresses a body piece by piece.

use std::fmt;
use std::io::{self, Write};

use flate2::write::GzEncoder;

use super::coding::Coding;

/// How many bytes an encoder holds at most, in its window, tables and buffers. A thousand streams
/// need a few hundred MiB at worst. The output of a call is not included: it may be a little longer
/// than the call's input.
pub const ENCODER_BYTES_MAX: usize = 1 << 20;

/// The default level of zlib. It takes twice the time of level 1 and saves a tenth of the size.
const GZIP_LEVEL: u32 = 6;

/// Compresses one body, piece by piece.
///
/// The output comes much later than the input, and is much shorter. A handler that writes as long
/// as there is [room](rotor_http::server::Response::room) would therefore compress a great deal in
/// one call, while other connections wait. It should also count the bytes that it passes to the
/// encoder, and continue in the next turn.
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
    /// Makes an encoder for a coding.
    ///
    /// # Errors
    ///
    /// Fails if no enabled feature of this crate provides the coding, or if there is no memory for
    /// the encoder.
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

    /// Returns the coding.
    pub fn coding(&self) -> Coding {
        match &self.0 {
            Kind::Gzip(_) => Coding::Gzip,
            #[cfg(feature = "zstd")]
            Kind::Zstd(_) => Coding::Zstd,
        }
    }

    /// Compresses the next piece, and returns the output that is ready to be sent, often none.
    ///
    /// # Errors
    ///
    /// Fails if there is no memory. The body is lost then.
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

    /// Returns the output that a client needs to decode everything written so far. Use it before a
    /// stream pauses. Each call costs some bytes.
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

    /// Ends the body, and returns the rest of the output.
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
