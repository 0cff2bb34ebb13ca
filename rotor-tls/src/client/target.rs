//! `TlsTarget`: where a client connects to, and who must be there.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use quick_error::quick_error;
use rustls::pki_types::ServerName;

use super::start::ClientStart;
use super::tls_client::TlsClient;
use crate::counters::UnderWay;

quick_error! {
    /// A text that is neither the name of a host nor an address. The caller's mistake.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum NameError {
        /// This text.
        Invalid(name: String) {
            display("{name:?} is neither the name of a host nor an address")
        }
    }
}

/// Where a [`TlsStream`](crate::TlsStream) connects to, and the name that the server there must
/// show a certificate for; [`TlsClient::to`] makes one.
#[derive(Clone)]
pub struct TlsTarget<A> {
    client: TlsClient,
    address: A,
    name: ServerName<'static>,
}

impl TlsClient {
    /// A server at an address, which must show a certificate for this name: what a
    /// [`TlsStream`](crate::TlsStream) connects to.
    ///
    /// # Errors
    ///
    /// [`NameError`] where that is neither the name of a host nor an address.
    pub fn to<A>(&self, address: A, name: &str) -> Result<TlsTarget<A>, NameError> {
        match ServerName::try_from(name) {
            Ok(name) => Ok(TlsTarget { client: self.clone(), address, name: name.to_owned() }),
            Err(_) => Err(NameError::Invalid(name.into())),
        }
    }
}

impl<A> TlsTarget<A> {
    /// Returns the address.
    pub fn address(&self) -> &A {
        &self.address
    }

    pub(crate) fn start(&self) -> ClientStart {
        ClientStart {
            client: self.client.clone(),
            name: self.name.clone(),
            under_way: UnderWay::begin(self.client.counters().clone()),
        }
    }
}

/// By address, name and client, so that a pool asks only over connections that were made by the same
/// client for the same name.
impl<A: Ord> Ord for TlsTarget<A> {
    fn cmp(&self, other: &Self) -> Ordering {
        let client = |target: &Self| Arc::as_ptr(&target.client.shared);
        let (address, name) = (&other.address, other.name.to_str());
        self.address
            .cmp(address)
            .then_with(|| self.name.to_str().cmp(&name))
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
        write!(f, "{:?} at {:?}", self.name.to_str(), self.address)
    }
}
