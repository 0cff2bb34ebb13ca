//! `TlsTarget`: where a client connects, and which server it expects there.

use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use quick_error::quick_error;
use rotor_stream::Host;
use rustls::pki_types::ServerName;

use super::start::ClientStart;
use super::tls_client::TlsClient;

quick_error! {
    /// A text that is neither a host name nor an address: the caller's mistake.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum NameError {
        /// The invalid text.
        Invalid(name: String) {
            display("{name:?} is neither the name of a host nor an address")
        }
    }
}

/// Where a [`TlsStream`](crate::TlsStream) connects, and the name that the server's certificate
/// must contain.
///
/// [`TlsClient::to`] makes one from an address, [`TlsClient::to_host`] from a name that is to be
/// resolved. It is a [`Destination`](rotor_stream::Destination), so
/// [`Connect`](rotor_stream::Connect) and [`Persistent`](rotor_stream::Persistent) accept it. It is
/// ordered, so pools of connections accept it, too. Two targets are equal if their address, name
/// and client are: what one client trusts is never used for another.
#[derive(Clone)]
pub struct TlsTarget<A> {
    client: TlsClient,
    address: A,
    name: Arc<Name>,
}

/// The name of a server.
struct Name {
    /// In lower case, without the dot of the root.
    text: Box<str>,
    parsed: ServerName<'static>,
}

impl TlsClient {
    /// Returns a target for a server at an address. The server's certificate must contain this
    /// name, or this address.
    ///
    /// The case of a name does not matter, nor does a dot at its end. An IPv6 address may be bare
    /// or in brackets, as in a URL. Only names are sent to the server, not addresses (RFC 6066 §3).
    ///
    /// # Errors
    ///
    /// [`NameError`] if `name` is neither a host name nor an address.
    pub fn to<A>(&self, address: A, name: &str) -> Result<TlsTarget<A>, NameError> {
        let text: Box<str> = bare(name).to_ascii_lowercase().into();
        match ServerName::try_from(&*text) {
            Ok(parsed) => {
                let parsed = parsed.to_owned();
                let name = Arc::new(Name { text, parsed });
                Ok(TlsTarget { client: self.clone(), address, name })
            }
            Err(_) => Err(NameError::Invalid(name.into())),
        }
    }

    /// Returns a target for a server by its name, as in a URL. The context's
    /// [resolver](rotor_stream::HasResolver) looks the name up, and the server's certificate must
    /// contain it. A dot at its end means that it is complete: no search list is tried (RFC 1034
    /// §3.1).
    ///
    /// # Errors
    ///
    /// As for [`to`](TlsClient::to).
    pub fn to_host(&self, name: &str, port: u16) -> Result<TlsTarget<Host>, NameError> {
        let mut host = bare(name).to_ascii_lowercase();
        if name.ends_with('.') && host.parse::<IpAddr>().is_err() {
            host.push('.');
        }
        self.to(Host::new(host, port), name)
    }
}

/// Removes the brackets that URLs put around an address (RFC 3986 §3.2.2), or the dot that marks a
/// name as complete (RFC 1034 §3.1) and is not sent (RFC 6066 §3).
fn bare(name: &str) -> &str {
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address,
        None => name.strip_suffix('.').unwrap_or(name),
    }
}

impl<A> TlsTarget<A> {
    /// Returns whether its client offers this protocol.
    pub(crate) fn offers(&self, protocol: &[u8]) -> bool {
        self.client.offers(protocol)
    }

    /// Returns the same target for a client that offers all its protocols except this one, if any
    /// are left.
    pub(crate) fn without(self, protocol: &[u8]) -> Option<TlsTarget<A>> {
        let client = self.client.without(protocol)?;
        Some(TlsTarget { client, ..self })
    }

    /// Returns the address.
    pub fn address(&self) -> &A {
        &self.address
    }

    /// Returns the name that the server must have, in lower case.
    pub fn name(&self) -> &str {
        &self.name.text
    }

    /// Returns a target for the same server, with the same name, at another address: for example an
    /// address of another type, or one of those to which the name resolves.
    pub fn with_address<B>(&self, address: B) -> TlsTarget<B> {
        TlsTarget { client: self.client.clone(), address, name: self.name.clone() }
    }

    pub(crate) fn start(&self) -> ClientStart {
        ClientStart::new(self.client.clone(), self.name.parsed.clone())
    }
}

/// Orders by address, name and client, so that a pool only uses connections that were made by the
/// same client for the same name.
impl<A: Ord> Ord for TlsTarget<A> {
    fn cmp(&self, other: &Self) -> Ordering {
        let client = |target: &Self| Arc::as_ptr(&target.client.shared);
        self.address
            .cmp(&other.address)
            .then_with(|| self.name.text.cmp(&other.name.text))
            .then_with(|| client(self).cmp(&client(other)))
    }
}

impl<A: Ord> PartialOrd for TlsTarget<A> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<A: Ord> PartialEq for TlsTarget<A> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<A: Ord> Eq for TlsTarget<A> {}

impl<A: fmt::Debug> fmt::Debug for TlsTarget<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.name.text, self.address)
    }
}
