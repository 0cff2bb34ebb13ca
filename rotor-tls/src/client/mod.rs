//! The client's side: whom it trusts, and where it connects to.

mod start;
mod target;
mod tls_client;

pub(crate) use self::start::ClientStart;
pub use self::target::{NameError, TlsTarget};
pub use self::tls_client::{TlsClient, TlsClientConfig};
