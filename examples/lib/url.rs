//! `Url`: where an `http://` URL points to.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use rotor::BoxError;
use rotor::http::Authority;
use rotor::stream::Host;

/// An `http://` URL, taken apart. There is no TLS here, and no user information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host and port as they stand in the URL: what `Host` says.
    pub authority: String,
    /// Path and query; `/` at least.
    pub target: String,
}

impl Url {
    /// Whom to connect to: a name, or an address, and the port.
    pub fn host(&self) -> Result<Host, BoxError> {
        let authority = Authority::parse(self.authority.as_bytes()).ok_or("the URL has no host")?;
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        Ok(Host::new(name, authority.port().unwrap_or(80)))
    }

    /// The first address of the host. Asks the system, which may take its time: call it before the
    /// loop runs.
    #[allow(dead_code, reason = "some of the examples connect by name")]
    pub fn resolve(&self) -> Result<SocketAddr, BoxError> {
        let Host { name, port } = self.host()?;
        let addresses = (&*name, port).to_socket_addrs();
        let mut addresses = addresses.map_err(|error| format!("cannot resolve {name}: {error}"))?;
        addresses.next().ok_or_else(|| format!("{name} has no address").into())
    }
}

impl FromStr for Url {
    type Err = BoxError;

    fn from_str(text: &str) -> Result<Url, BoxError> {
        let rest = text.strip_prefix("http://").ok_or("a URL begins with http://")?;
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        Authority::parse(authority.as_bytes()).ok_or("the URL has no host, or a bad port")?;
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Url { authority: authority.to_owned(), target: format!("{slash}{target}") })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.target)
    }
}
