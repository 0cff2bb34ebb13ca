//! The cryptography, chosen by the cargo features `ring` and `aws-lc-rs`.

use std::sync::{Arc, OnceLock};

#[cfg(feature = "aws-lc-rs")]
use aws_lc_rs::digest;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
use ring::digest;
use rustls::crypto::CryptoProvider;

#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
compile_error!("rotor-tls needs one of its features `ring` (the default) and `aws-lc-rs`");

/// Returns the provider for all connections of the process. The process-wide default of rustls is
/// not changed, because other code in the process may set it.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(chosen())).clone()
}

#[cfg(feature = "aws-lc-rs")]
use rustls::crypto::aws_lc_rs::default_provider as chosen;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
use rustls::crypto::ring::default_provider as chosen;

/// Returns the digest of several parts, each with its length, so that different lists never have
/// the same input.
pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut digest = digest::Context::new(&digest::SHA256);
    for part in parts {
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.finish().as_ref());
    bytes
}

/// Returns a maker of tickets with random keys, which are replaced every six hours.
///
/// # Errors
///
/// If the system has no randomness.
pub(crate) fn new_ticketer() -> Result<Arc<dyn rustls::server::ProducesTickets>, rustls::Error> {
    #[cfg(feature = "aws-lc-rs")]
    return rustls::crypto::aws_lc_rs::Ticketer::new();
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    return rustls::crypto::ring::Ticketer::new();
}
