//! `Url`: where an `http://`, `https://` or `h2c://` URL points to.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use rotor::BoxError;
use rotor::http::client::{self, ClientConfig, Http2Config};
use rotor::net::Either;
use rotor::stream::Host;
use rotor::tls::{MaybeTlsTarget, Roots, TlsClient, TlsClientConfig};

/// An `http://`, `https://` or `h2c://` URL, taken apart as [`client::Url`] does. The last is no
/// scheme of the web: it says that the server is known to speak HTTP/2 without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// With `http://` for `h2c://`.
    http: client::Url,
    is_h2c: bool,
}

impl Url {
    /// Where the servers of this package listen, if nothing else is said.
    pub fn local() -> Url {
        let http = "http://127.0.0.1:8080/".parse().expect("it is a URL");
        Url { http, is_h2c: false }
    }

    /// The URL by which a server of `h2c://` knows itself, too: that of `http://`.
    pub fn as_http(&self) -> &client::Url {
        &self.http
    }

    /// Whether it is `https://`.
    pub fn is_https(&self) -> bool {
        self.http.is_https()
    }

    /// Host and port as `Host` says them.
    pub fn authority(&self) -> &str {
        self.http.authority()
    }

    /// Path and query; `/` at least.
    pub fn target(&self) -> &str {
        self.http.target()
    }

    /// Whom to connect to: a name, or an address, and the port.
    pub fn host(&self) -> Host {
        self.http.host()
    }

    /// The first address of the host. Asks the system, which may take its time: call it before the
    /// loop runs.
    pub fn resolve(&self) -> Result<SocketAddr, BoxError> {
        let Host { name, port } = self.host();
        let addresses = (&*name, port).to_socket_addrs();
        let mut addresses = addresses.map_err(|error| format!("cannot resolve {name}: {error}"))?;
        addresses.next().ok_or_else(|| format!("{name} has no address").into())
    }

    /// The server at `address`, with TLS if the URL is `https://`: then its certificate must be for
    /// the host of the URL, and from whom the system trusts.
    ///
    /// With [`host`](Url::host) for the address, the context's resolver finds it.
    pub fn server_at<A>(&self, address: A) -> Result<MaybeTlsTarget<A>, BoxError> {
        self.server_of(address, &[b"http/1.1"])
    }

    /// The same of a server that is asked in HTTP/2 if it speaks that.
    pub fn http2_server_at<A>(&self, address: A) -> Result<MaybeTlsTarget<A>, BoxError> {
        self.server_of(address, &[b"h2", b"http/1.1"])
    }

    /// How such a server is asked: `h2c://` in HTTP/2 from the first octet.
    pub fn client_config(&self) -> ClientConfig {
        ClientConfig::new().http2(Http2Config::new().prior_knowledge(self.is_h2c))
    }

    fn server_of<A>(&self, address: A, protocols: &[&[u8]]) -> Result<MaybeTlsTarget<A>, BoxError> {
        if !self.is_https() {
            return Ok(Either::B(address));
        }
        // Read when they are needed: where there are none, `http://` does without.
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
