//! `Versions`: the versions of TLS that are allowed.

/// The versions of TLS that are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Versions {
    /// TLS 1.2, with forward secrecy and authenticated ciphers only, and TLS 1.3.
    #[default]
    Tls12And13,
    /// TLS 1.3 only.
    Tls13,
}
