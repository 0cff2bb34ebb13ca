//! `TicketKeys`: keys for tickets that several processes share.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

#[cfg(feature = "aws-lc-rs")]
use aws_lc_rs::aead;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
use ring::aead;
use rustls::server::ProducesTickets;

use super::ticket_life::LIFETIME;
use crate::provider::{provider, sha256};

/// The maximum number of ticket keys in one [`TicketKeys`]. Each ticket names its key, so
/// additional keys cost only memory.
pub const TICKET_KEYS_MAX: usize = 16;

/// How many bytes of a ticket identify the key that encrypts it.
const NAME_BYTES: usize = 16;

/// Keys for the tickets of several loops, processes and machines. It is a handle: its clones share
/// the keys.
///
/// New tickets are made with the first key; tickets of all keys are accepted. To rotate keys, first
/// make all processes accept the new key ([`set`](TicketKeys::set) with the new one second). Then
/// make them issue tickets with it (the new one first). Drop the old key when its tickets have
/// expired, after twelve hours.
///
/// A ticket is accepted only by servers that require the same of their clients: the same
/// [`ClientCertificates`](crate::ClientCertificates), with the same roots. With any other server
/// that knows its key, the client does a full handshake.
///
/// Anyone who has a key can decrypt the sessions whose tickets it encrypted, in TLS 1.2 and where
/// resumption is done without a key exchange. So keep keys in memory, or in a file that nobody else
/// can read, replace them daily, and delete old ones.
///
/// ```
/// # use rotor_tls::{TicketKeys, Tickets};
/// # let (today, yesterday) = ([1; 32], [2; 32]);
/// let keys = TicketKeys::new(&[today, yesterday]);
/// let tickets = Tickets::Keys(keys.clone());
/// // A day later, from any thread:
/// # let tomorrow = [3; 32];
/// keys.set(&[tomorrow, today]);
/// ```
#[derive(Clone)]
#[doc(alias = "STEK")]
#[doc(alias = "session_ticket_key")]
pub struct TicketKeys {
    shared: Arc<SharedKeys>,
}

struct SharedKeys {
    keys: RwLock<Arc<[TicketKey]>>,
}

struct TicketKey {
    name: [u8; NAME_BYTES],
    key: aead::LessSafeKey,
}

impl TicketKeys {
    /// Makes a handle of these keys, each 32 bytes from a good random generator (`openssl rand
    /// 32`). At most 16 are used. Without any, no tickets are made.
    pub fn new(keys: &[[u8; 32]]) -> TicketKeys {
        TicketKeys { shared: Arc::new(SharedKeys { keys: RwLock::new(prepare_keys(keys)) }) }
    }

    /// Replaces the keys, in all clones of this handle, from any thread.
    pub fn set(&self, keys: &[[u8; 32]]) {
        *self.shared.keys.write().unwrap_or_else(PoisonError::into_inner) = prepare_keys(keys);
    }

    /// Returns the maker of tickets for a server with these requirements for its clients. Tickets
    /// of a server with other requirements are not accepted, even with the same key.
    pub(super) fn producer(&self, requirements: [u8; 32]) -> Arc<dyn ProducesTickets> {
        Arc::new(TicketProducer { shared: self.shared.clone(), requirements })
    }
}

fn prepare_keys(keys: &[[u8; 32]]) -> Arc<[TicketKey]> {
    keys.iter().take(TICKET_KEYS_MAX).filter_map(TicketKey::new).collect()
}

impl TicketKey {
    fn new(key: &[u8; 32]) -> Option<TicketKey> {
        let digest = sha256(&[b"the name of a rotor-tls ticket key", key]);
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(&digest[..NAME_BYTES]);
        // It fails only if the length is wrong, which it is not.
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, key).ok()?;
        Some(TicketKey { name, key: aead::LessSafeKey::new(key) })
    }
}

impl SharedKeys {
    fn keys(&self) -> Arc<[TicketKey]> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The keys, as used by one server.
struct TicketProducer {
    shared: Arc<SharedKeys>,
    /// A digest of what the server requires of its clients.
    requirements: [u8; 32],
}

impl TicketProducer {
    /// Returns the data to which a ticket is bound, in addition to its key.
    fn associated_data(&self, key: &TicketKey) -> aead::Aad<[u8; NAME_BYTES + 32]> {
        let mut bytes = [0; NAME_BYTES + 32];
        bytes[..NAME_BYTES].copy_from_slice(&key.name);
        bytes[NAME_BYTES..].copy_from_slice(&self.requirements);
        aead::Aad::from(bytes)
    }
}

impl ProducesTickets for TicketProducer {
    fn enabled(&self) -> bool {
        !self.shared.keys().is_empty()
    }

    fn lifetime(&self) -> u32 {
        LIFETIME
    }

    /// Makes a ticket: the name of the key, the nonce, and the encrypted session.
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let keys = self.shared.keys();
        let key = keys.first()?;
        // Random nonces: one key is good for 2³² tickets (NIST SP 800-38D §8.3).
        let mut nonce = [0; aead::NONCE_LEN];
        provider().secure_random.fill(&mut nonce).ok()?;
        let mut sealed = plain.to_vec();
        key.key
            .seal_in_place_append_tag(
                aead::Nonce::assume_unique_for_key(nonce),
                self.associated_data(key),
                &mut sealed,
            )
            .ok()?;
        Some([&key.name[..], &nonce, &sealed].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<{ aead::NONCE_LEN }>()?;
        let keys = self.shared.keys();
        // Names are not secret.
        let key = keys.iter().find(|key| key.name == *name)?;
        let mut plain = sealed.to_vec();
        let nonce = aead::Nonce::assume_unique_for_key(*nonce);
        let len = key.key.open_in_place(nonce, self.associated_data(key), &mut plain).ok()?.len();
        plain.truncate(len);
        Some(plain)
    }
}

/// Does not print the keys.
impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketKeys({})", self.shared.keys().len())
    }
}

impl fmt::Debug for TicketProducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys")
    }
}
