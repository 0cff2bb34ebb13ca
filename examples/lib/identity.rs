//! The certificate of an example that may be asked with TLS.

use std::env;

use rotor::BoxError;
use rotor::tls::{Identity, TlsServer, TlsServerConfig};

/// A server that shows the certificate in the file that the environment names as `TLS_CERTIFICATE`,
/// whose key is in that of `TLS_KEY`, for this protocol if one is named; none where neither is set.
pub fn tls_server(protocols: &[&[u8]]) -> Result<Option<TlsServer>, BoxError> {
    let (chain, key) = match (env::var_os("TLS_CERTIFICATE"), env::var_os("TLS_KEY")) {
        (None, None) => return Ok(None),
        (Some(chain), Some(key)) => (chain, key),
        _ => return Err("TLS needs both TLS_CERTIFICATE and TLS_KEY".into()),
    };
    let identity = Identity::from_pem_files(chain, key)?;
    Ok(Some(TlsServer::new(TlsServerConfig::new(identity).alpn(protocols))?))
}
