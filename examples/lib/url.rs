//! `Url`: where an `http://` or `https://` URL points to.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use rotor::BoxError;
use rotor::http::Authority;
use rotor::net::Either;
use rotor::stream::Host;
use rotor::tls::{MaybeTlsTarget, Roots, TlsClient, TlsClientConfig};

/// An `http://` or `https://` URL, taken apart. There is no user information here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Whether it is `https://`.
    pub is_https: bool,
    /// Host and port as they stand in the URL: what `Host` says.
    pub authority: String,
    /// Path and query; `/` at least.
    pub target: String,
}

impl Url {
    /// Where the servers of this package listen, if nothing else is said.
    pub fn local() -> Url {
        Url { is_https: false, authority: "127.0.0.1:8080".into(), target: "/".into() }
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
        if !self.is_https {
            return Ok(Either::B(address));
        }
        // Read when they are needed: where there are none, `http://` does without.
        let config = TlsClientConfig::new(Roots::none().platform()?).alpn(&[b"http/1.1"]);
        Ok(Either::A(TlsClient::new(config)?.to(address, &self.host()?.name)?))
    }
}

impl FromStr for Url {
    type Err = BoxError;

    fn from_str(text: &str) -> Result<Url, BoxError> {
        let (is_https, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err("a URL begins with http:// or https://".into()),
        };
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        Authority::parse(authority.as_bytes()).ok_or("the URL has no host, or a bad port")?;
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Url { is_https, authority: authority.to_owned(), target: format!("{slash}{target}") })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.target)
    }
}
