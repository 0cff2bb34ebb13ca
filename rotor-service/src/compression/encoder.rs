//! `Encoder`: compresses a body as it comes.

use std::fmt;
use std::io::{self, Write};

use flate2::write::GzEncoder;

use super::coding::Coding;

/// How many octets an encoder holds at most: its window, tables and buffers. A thousand streams
/// need some hundred MiB at worst. The output of a call comes on top: as long as its input, and a
/// little more.
pub const ENCODER_BYTES_MAX: usize = 1 << 20;

/// The default level of zlib: it takes twice the time of level 1 and saves a tenth.
const GZIP_LEVEL: u32 = 6;

/// Compresses the octets of one body, piece by piece.
///
/// What goes in comes out much later, and much shorter. A handler that writes as long as there is
/// [room](rotor_http::server::Response::room) would compress a great deal in one call, while the
/// other connections wait: let it also count what goes in, and go on in the next turn.
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
    /// Makes an encoder.
    ///
    /// # Errors
    ///
    /// If no feature of this crate provides the coding.
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

    /// Takes the next piece, and returns what can be sent by now: often nothing.
    ///
    /// # Errors
    ///
    /// If the library gets no memory: the body is lost.
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

    /// Returns everything that is needed to read what was written so far: for a stream that pauses.
    /// It costs some octets each time.
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
