//! `Version`: the protocol version of a message. It affects what may be sent and how connections
//! end.

use std::fmt;

use super::error::HeadError;

/// The HTTP version of a peer. A later minor version counts as 1.1 (RFC 9110 §2.5); a later major
/// version is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Version {
    /// HTTP/1.0: connections end after one exchange unless both sides agree to keep them; no
    /// interim responses, no chunks.
    Http10,
    /// HTTP/1.1, and any later 1.x.
    Http11,
    /// HTTP/2.
    Http2,
}

impl Version {
    /// The length of `HTTP/1.1` in bytes.
    pub(crate) const BYTES: usize = 8;

    /// Parses an `HTTP-version` (RFC 9112 §2.3): `"HTTP/" DIGIT "." DIGIT`, and nothing else.
    #[inline]
    pub(crate) fn parse(text: &[u8]) -> Result<Version, HeadError> {
        match text {
            b"HTTP/1.1" => Ok(Version::Http11),
            b"HTTP/1.0" => Ok(Version::Http10),
            [b'H', b'T', b'T', b'P', b'/', major @ b'0'..=b'9', b'.', b'0'..=b'9'] => match major {
                b'0' => Err(HeadError::Version),
                b'1' => Ok(Version::Http11),
                _ => Err(HeadError::VersionUnsupported),
            },
            _ => Err(HeadError::Version),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2",
        })
    }
}
