//! `TlsTarget`: where a client connects to, and which server must be there.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use quick_error::quick_error;
use rotor_stream::Host;
use rustls::pki_types::ServerName;

use super::start::ClientStart;
use super::tls_client::TlsClient;
use crate::counters::UnderWay;

quick_error! {
    /// A text that is neither a host name nor an address. The caller's fault.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum NameError {
        /// This text.
        Invalid(name: String) {
            display("{name:?} is neither the name of a host nor an address")
        }
    }
}

/// Where a [`TlsStream`](crate::TlsStream) connects to, and the name that the server there
/// must show a certificate for.
///
/// [`TlsClient::to`] makes one from an address, [`TlsClient::to_host`] from a name that will be
/// resolved. It is a [`Destination`](rotor_stream::Destination), so
/// [`Connect`](rotor_stream::Connect) and [`Persistent`](rotor_stream::Persistent) take it. It has
/// an order, so pools of connections take it, too. Two targets are equal if address, name and
/// client are: what one client trusts is never used for another.
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
    /// Returns a server at an address as the target of a [`TlsStream`](crate::TlsStream). The
    /// server must show a certificate for this name, or for this address.
    ///
    /// The case of a name does not matter, nor does a dot at its end; an IPv6 address may be bare
    /// or in brackets, as in a URL. Only names are sent to the server (RFC 6066 §3).
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

    /// Returns a server as the target by its name, as in a URL. The context's
    /// [resolver](rotor_stream::HasResolver) looks the name up, and the server must show a
    /// certificate for it.
    ///
    /// # Errors
    ///
    /// As for [`to`](TlsClient::to).
    pub fn to_host(&self, name: &str, port: u16) -> Result<TlsTarget<Host>, NameError> {
        let address = Host::new(bare(name).to_ascii_lowercase(), port);
        self.to(address, name)
    }
}

/// Without what only URLs have around an address (RFC 3986 §3.2.2), or what says that a name is
/// whole (RFC 1034 §3.1) and is not to be told (RFC 6066 §3).
fn bare(name: &str) -> &str {
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address,
        None => name.strip_suffix('.').unwrap_or(name),
    }
}

impl<A> TlsTarget<A> {
    /// Whether its client offers this protocol.
    pub(crate) fn offers(&self, protocol: &[u8]) -> bool {
        self.client.offers(protocol)
    }

    /// The same server, asked by a client that offers all protocols but this one, if there are
    /// such.
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

    /// Returns the same server, which must have the same name, at another address: for example of
    /// another kind, or one of those that the name has.
    pub fn with_address<B>(&self, address: B) -> TlsTarget<B> {
        TlsTarget { client: self.client.clone(), address, name: self.name.clone() }
    }

    pub(crate) fn start(&self) -> ClientStart {
        ClientStart {
            client: self.client.clone(),
            name: self.name.parsed.clone(),
            under_way: UnderWay::begin(self.client.counters().clone()),
        }
    }
}

/// Orders by address, name and client, so that a pool asks only over connections that were made by
/// the same client for the same name.
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
