//! `Url`: where an `http://`, `https://` or `h2c://` URL points to.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use rotor::BoxError;
use rotor::http::Authority;
use rotor::http::client::{self, ClientConfig, Http2Config};
use rotor::net::Either;
use rotor::stream::Host;
use rotor::tls::{MaybeTlsTarget, Roots, TlsClient, TlsClientConfig};

/// An `http://`, `https://` or `h2c://` URL, taken apart as [`client::Url`] does. The last is no
/// scheme of the web: it says that the server is known to speak HTTP/2 without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Whether it is `https://`.
    pub is_https: bool,
    /// Whether it is `h2c://`.
    pub is_h2c: bool,
    /// Host and port as they stand in the URL: what `Host` says.
    pub authority: String,
    /// Path and query; `/` at least.
    pub target: String,
}

impl Url {
    /// Where the servers of this package listen, if nothing else is said.
    pub fn local() -> Url {
        Url {
            is_https: false,
            is_h2c: false,
            authority: "127.0.0.1:8080".into(),
            target: "/".into(),
        }
    }

    /// Whom to connect to: a name, or an address, and the port.
    pub fn host(&self) -> Result<Host, BoxError> {
        let authority = Authority::parse(self.authority.as_bytes()).ok_or("the URL has no host")?;
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        let port = if self.is_https { 443 } else { 80 };
        Ok(Host::new(name, authority.port().unwrap_or(port)))
    }

    /// The first address of the host. Asks the system, which may take its time: call it before the
    /// loop runs.
    pub fn resolve(&self) -> Result<SocketAddr, BoxError> {
        let Host { name, port } = self.host()?;
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
        if !self.is_https {
            return Ok(Either::B(address));
        }
        // Read when they are needed: where there are none, `http://` does without.
        let config = TlsClientConfig::new(Roots::none().platform()?).alpn(protocols);
        Ok(Either::A(TlsClient::new(config)?.to(address, &self.host()?.name)?))
    }
}

impl FromStr for Url {
    type Err = BoxError;

    fn from_str(text: &str) -> Result<Url, BoxError> {
        let as_http = text.strip_prefix("h2c").map(|rest| format!("http{rest}"));
        let url: client::Url = as_http.as_deref().unwrap_or(text).parse()?;
        let (authority, target) = (url.authority().to_owned(), url.target().to_owned());
        Ok(Url { is_https: url.is_https(), is_h2c: as_http.is_some(), authority, target })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.is_https, self.is_h2c) {
            (true, _) => "https",
            (false, true) => "h2c",
            (false, false) => "http",
        };
        write!(f, "{scheme}://{}{}", self.authority, self.target)
    }
}
