//! `Names`: which identity is shown to which client.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::identity::Identity;

/// What happens to a client that requests a name that is in none of the certificates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum UnknownName {
    /// It gets the default identity, and decides itself what to do. Most servers do this.
    #[default]
    ShowDefault,
    /// It is refused with the alert `unrecognized_name` (RFC 6066 §3), so that scanning addresses
    /// does not reveal which names are served. Clients that request no name still get the default.
    Refuse,
}

/// The identities of a server by their names.
#[derive(Debug)]
pub(super) struct Names {
    exact: BTreeMap<Box<str>, Vec<Identity>>,
    /// By the part after `*.`.
    wildcards: BTreeMap<Box<str>, Vec<Identity>>,
    /// For clients that request no name, or none of these.
    default: Vec<Identity>,
    unknown: UnknownName,
}

impl Names {
    /// Sorts identities by their names. The first identity is the default. Others with the same
    /// first name may replace it, depending on the client's signature schemes.
    pub(super) fn new(identities: &[Identity], unknown: UnknownName) -> Names {
        let (mut exact, mut wildcards) = (BTreeMap::new(), BTreeMap::new());
        for identity in identities {
            for name in identity.names() {
                let (map, name) = match name.strip_prefix("*.") {
                    Some(suffix) => (&mut wildcards, suffix),
                    None => (&mut exact, name),
                };
                let list: &mut Vec<Identity> = map.entry(name.into()).or_default();
                list.push(identity.clone());
            }
        }
        let name = identities.first().and_then(|identity| identity.names().next());
        let is_like_first =
            |identity: &&Identity| name.is_some() && identity.names().next() == name;
        let mut default: Vec<_> = identities.iter().filter(is_like_first).cloned().collect();
        if default.is_empty() {
            default.extend(identities.first().cloned());
        }
        Names { exact, wildcards, default, unknown }
    }

    /// Returns the identities for a requested name in lower case; none if the client must be
    /// refused.
    fn find(&self, name: Option<&str>) -> &[Identity] {
        let Some(name) = name else { return &self.default };
        // A dot at the end means that the name is complete, as all names are here (RFC 6066 §3).
        let name = name.strip_suffix('.').unwrap_or(name);
        let found = self.exact.get(name).or_else(|| {
            // A star stands for one label (RFC 6125 §6.4.3).
            let (_, suffix) = name.split_once('.')?;
            self.wildcards.get(suffix)
        });
        match (found, self.unknown) {
            (Some(identities), _) => identities,
            (None, UnknownName::ShowDefault) => &self.default,
            (None, UnknownName::Refuse) => &[],
        }
    }

    pub(super) fn serves(&self, name: &str) -> bool {
        !self.find(Some(name)).is_empty()
    }

    /// Returns whether the signature for that name may be a slow one.
    pub(super) fn is_slow(&self, name: Option<&str>) -> bool {
        self.find(name).iter().any(Identity::is_slow)
    }
}

impl ResolvesServerCert for Names {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let identities = self.find(name.as_deref());
        let schemes = hello.signature_schemes();
        let fits = |identity: &&Identity| identity.key.key.choose_scheme(schemes).is_some();
        // If none fits, rustls reports that for the first one.
        let identity = identities.iter().find(fits).or(identities.first())?;
        Some(identity.key.clone())
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn a_trailing_dot_of_a_name_is_ignored() {
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("there is randomness");
        let names = ["a.example", "*.b.example"].map(str::to_owned);
        let params = CertificateParams::new(names).expect("they are names");
        let chain = params.self_signed(&key).expect("it signs").pem();
        let identity = Identity::from_pem(chain.as_bytes(), key.serialize_pem().as_bytes());
        let names = Names::new(&[identity.expect("they are right")], UnknownName::Refuse);
        for (name, is_served) in [
            ("a.example", true),
            ("a.example.", true),
            ("c.b.example.", true),
            ("a.example..", false),
            ("b.example.", false),
            ("example", false),
            (".", false),
            ("", false),
        ] {
            assert_eq!(names.serves(name), is_served, "{name:?}");
        }
    }
}
