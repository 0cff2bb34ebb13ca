//! The client's side: what it trusts, and where it connects.

mod config;
mod start;
mod target;
mod tls_client;
mod trust;

pub use self::config::TlsClientConfig;
pub(crate) use self::start::ClientStart;
pub use self::target::{NameError, TlsTarget};
pub use self::tls_client::TlsClient;
pub use self::trust::{DangerAcceptAnyCertificate, Trust};
