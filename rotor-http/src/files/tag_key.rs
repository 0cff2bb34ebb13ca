//! `TagKey`: the secret key for entity tags.

use std::fmt;
use std::io;
use std::sync::OnceLock;

use rotor_core::backend::system_entropy;
use siphasher::sip::SipHasher24;

/// A key for SipHash-2-4, without which the inputs of a tag cannot be computed from the tag.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TagKey([u8; 16]);

impl TagKey {
    pub(super) fn new(key: [u8; 16]) -> TagKey {
        TagKey(key)
    }

    /// Returns a random key, the same for all loops of the process.
    ///
    /// # Errors
    ///
    /// The system's error when it is asked for random bytes.
    pub(super) fn for_process() -> io::Result<TagKey> {
        static KEY: OnceLock<TagKey> = OnceLock::new();
        if let Some(key) = KEY.get() {
            return Ok(*key);
        }
        let mut key = [0; 16];
        system_entropy(&mut key)?;
        // Another thread may have been faster: then its key is used.
        Ok(*KEY.get_or_init(|| TagKey(key)))
    }

    /// Mixes three numbers into one, with the same result on every platform.
    pub(super) fn mix(self, numbers: [u64; 3]) -> u64 {
        let mut bytes = [0; 24];
        for (to, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        SipHasher24::new_with_key(&self.0).hash(&bytes)
    }
}

/// Prints no key.
impl fmt::Debug for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes the 24 bytes 00, 01, … under the key 00, 01, …: the 25th vector in the table of the
    /// reference implementation.
    const REFERENCE: u64 = 0xb8ad_50c6_f649_af94;

    #[test]
    fn a_key_hashes_as_siphash_2_4_specifies() {
        let key = TagKey::new(std::array::from_fn(|at| at as u8));
        assert_eq!(
            key.mix([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0x1716_1514_1312_1110]),
            REFERENCE
        );
    }

    #[test]
    fn a_process_has_one_key_and_debug_hides_it() {
        let key = TagKey::for_process().expect("the system has random bytes");
        assert_eq!(TagKey::for_process().expect("it has one"), key);
        assert_ne!(key, TagKey::new([0; 16]));
        assert_eq!(format!("{key:?}"), "TagKey(..)");
    }
}
