//! `Url`: an `http://`, `https://` or `h2c://` URL.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use rotor::BoxError;
use rotor::http::client::{self, ClientConfig, Http2Config};
use rotor::net::Either;
use rotor::stream::Host;
use rotor::tls::{MaybeTlsTarget, Roots, TlsClient, TlsClientConfig};

/// An `http://`, `https://` or `h2c://` URL, parsed as by [`client::Url`]. `h2c://` is not an
/// official scheme; it says that the server is known to speak HTTP/2 without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// For `h2c://`, this is the same URL with `http://`.
    http: client::Url,
    is_h2c: bool,
}

impl Url {
    /// Returns the default URL of the servers in this package.
    pub fn local() -> Url {
        let http = "http://127.0.0.1:8080/".parse().expect("it is a URL");
        Url { http, is_h2c: false }
    }

    /// Returns the `http://` URL by which a server of `h2c://` knows itself.
    pub fn as_http(&self) -> &client::Url {
        &self.http
    }

    /// Returns whether the scheme is `https://`.
    pub fn is_https(&self) -> bool {
        self.http.is_https()
    }

    /// Returns whether the scheme is `h2c://`.
    pub fn is_h2c(&self) -> bool {
        self.is_h2c
    }

    /// Returns host and port, as in the field `Host`.
    pub fn authority(&self) -> &str {
        self.http.authority()
    }

    /// Returns path and query; at least `/`.
    pub fn target(&self) -> &str {
        self.http.target()
    }

    /// Returns the host to connect to, a name or an address, with the port.
    pub fn host(&self) -> Host {
        self.http.host()
    }

    /// Returns the first address of the host. This asks the system and may block, so call it before
    /// the loop runs.
    pub fn resolve(&self) -> Result<SocketAddr, BoxError> {
        let Host { name, port } = self.host();
        let addresses = (&*name, port).to_socket_addrs();
        let mut addresses = addresses.map_err(|error| format!("cannot resolve {name}: {error}"))?;
        addresses.next().ok_or_else(|| format!("{name} has no address").into())
    }

    /// Returns the server at `address`, with TLS if the URL is `https://`. Its certificate must
    /// then be for the host of the URL, from an issuer that the system trusts.
    ///
    /// If `address` is [`host`](Url::host), the context's resolver looks it up.
    pub fn server_at<A>(&self, address: A) -> Result<MaybeTlsTarget<A>, BoxError> {
        self.server_of(address, &[b"http/1.1"])
    }

    /// Like `server_at`, but uses HTTP/2 if the server supports it.
    pub fn http2_server_at<A>(&self, address: A) -> Result<MaybeTlsTarget<A>, BoxError> {
        self.server_of(address, &[b"h2", b"http/1.1"])
    }

    /// Returns the configuration for such a server: for `h2c://`, HTTP/2 from the first byte.
    pub fn client_config(&self) -> ClientConfig {
        ClientConfig::new().http2(self.http2_config())
    }

    /// Returns the part of that for HTTP/2.
    pub fn http2_config(&self) -> Http2Config {
        Http2Config::new().prior_knowledge(self.is_h2c)
    }

    fn server_of<A>(&self, address: A, protocols: &[&[u8]]) -> Result<MaybeTlsTarget<A>, BoxError> {
        if !self.is_https() {
            return Ok(Either::B(address));
        }
        // Read only if they are needed: `http://` also works if there are none.
        let config = TlsClientConfig::new(Roots::none().platform()?).alpn(protocols);
        Ok(Either::A(TlsClient::new(config)?.to(address, self.http.name())?))
    }
}

impl FromStr for Url {
    type Err = BoxError;

    fn from_str(text: &str) -> Result<Url, BoxError> {
        let as_http = text.strip_prefix("h2c://").map(|rest| format!("http://{rest}"));
        let http = as_http.as_deref().unwrap_or(text).parse()?;
        Ok(Url { http, is_h2c: as_http.is_some() })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_h2c {
            return write!(f, "h2c://{}{}", self.authority(), self.target());
        }
        self.http.fmt(f)
    }
}
