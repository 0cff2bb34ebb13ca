//! Where the cryptography comes from: the cargo features `ring` and `aws-lc-rs`.

use std::sync::{Arc, OnceLock};

use rustls::crypto::CryptoProvider;

#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
compile_error!("rotor-tls needs one of its features `ring` (the default) and `aws-lc-rs`");

/// What all connections of the process use. The process-wide default of rustls is left alone: others
/// in the process may set it.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(chosen())).clone()
}

#[cfg(feature = "aws-lc-rs")]
use rustls::crypto::aws_lc_rs::default_provider as chosen;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
use rustls::crypto::ring::default_provider as chosen;

/// Keys for tickets, made by chance, that replace each other every six hours.
///
/// # Errors
///
/// When the system has no randomness.
pub(crate) fn fresh_tickets() -> Result<Arc<dyn rustls::server::ProducesTickets>, rustls::Error> {
    #[cfg(feature = "aws-lc-rs")]
    return rustls::crypto::aws_lc_rs::Ticketer::new();
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    return rustls::crypto::ring::Ticketer::new();
}
