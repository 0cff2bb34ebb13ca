//! `SecureRandom`: numbers that nobody can guess, however many of the others they have seen.

use std::io;
use std::sync::{Mutex, PoisonError};

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use crate::backend::BackendHandle;

/// The number of bytes that the backend provides: the key of ChaCha20. All numbers are only as
/// secure as this key.
const SEED_BYTES: usize = 32;

/// The key stream of ChaCha20 under a key from the backend. Each caller gets the next piece of it.
///
/// The backend provides the key once, when the loop is made, and this may fail. Afterwards nothing
/// can fail, and no handler waits for a system call.
pub(crate) struct SecureRandom {
    // Never contended: handlers run one at a time.
    generator: Mutex<ChaCha20Rng>,
}

impl SecureRandom {
    pub(crate) fn new(handle: &impl BackendHandle) -> io::Result<SecureRandom> {
        let mut seed = [0; SEED_BYTES];
        handle.entropy(&mut seed)?;
        Ok(SecureRandom { generator: Mutex::new(ChaCha20Rng::from_seed(seed)) })
    }

    pub(crate) fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.generator.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::time::Time;

    /// A backend whose entropy is all zeros.
    struct ZeroEntropy;

    impl BackendHandle for ZeroEntropy {
        fn name(&self) -> &str {
            "zeros"
        }

        fn now(&self) -> Time {
            Time::ZERO
        }

        fn wall_time(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn entropy(&self, bytes: &mut [u8]) -> io::Result<()> {
            bytes.fill(0);
            Ok(())
        }
    }

    /// The first key stream of RFC 8439, appendix A.1.
    const KEY_STREAM: [u8; 32] = [
        0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd,
        0x28, 0xbd, 0xd2, 0x19, 0xb8, 0xa0, 0x8d, 0xed, 0x1a, 0xa8, 0x36, 0xef, 0xcc, 0x8b, 0x77,
        0x0d, 0xc7,
    ];

    #[test]
    fn the_bytes_are_the_chacha20_key_stream() {
        let random = SecureRandom::new(&ZeroEntropy).expect("zeros are there");
        assert_eq!(random.bytes(), KEY_STREAM);
    }

    #[test]
    fn no_byte_is_returned_twice() {
        let random = SecureRandom::new(&ZeroEntropy).expect("zeros are there");
        let mut seen = Vec::new();
        for _ in 0..200 {
            seen.push(u64::from_ne_bytes(random.bytes()));
            let [first, ..]: [u8; 9] = random.bytes();
            seen.push(u64::from_ne_bytes([first; 8]) ^ u64::from_ne_bytes(random.bytes()));
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 400);
    }
}
