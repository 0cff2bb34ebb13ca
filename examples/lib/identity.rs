//! The certificate of an example that can serve TLS.

use std::env;

use rotor::BoxError;
use rotor::tls::{Identity, TlsServer, TlsServerConfig};

/// Returns a TLS server with the certificate in the file that the environment variable
/// `TLS_CERTIFICATE` names, and the key in the file that `TLS_KEY` names, for these protocols if
/// any are given. Returns `None` if neither variable is set.
pub fn tls_server(protocols: &[&[u8]]) -> Result<Option<TlsServer>, BoxError> {
    let (chain, key) = match (env::var_os("TLS_CERTIFICATE"), env::var_os("TLS_KEY")) {
        (None, None) => return Ok(None),
        (Some(chain), Some(key)) => (chain, key),
        _ => return Err("TLS needs both TLS_CERTIFICATE and TLS_KEY".into()),
    };
    let identity = Identity::from_pem_files(chain, key)?;
    Ok(Some(TlsServer::new(TlsServerConfig::new(identity).alpn(protocols))?))
}
