//! `Random`: unpredictable numbers, for what strangers must not know: initial sequence numbers and
//! ports.

use std::io;

use fastrand::Rng;
use rotor_core::backend::system_entropy;

/// How many bytes are taken from the system at a time: 64 numbers, to save system calls.
const BATCH_BYTES: usize = 512;

/// The length of a number, in bytes.
const NUMBER_BYTES: usize = 8;

/// Numbers from the system, which are independent of each other; or, with a seed, from a generator.
pub(super) enum Random {
    Seeded(Rng),
    /// Bytes that were taken and not yet used.
    System(Vec<u8>),
}

impl Random {
    pub(super) fn new(seed: Option<u64>) -> Random {
        match seed {
            Some(seed) => Random::Seeded(Rng::with_seed(seed)),
            None => Random::System(Vec::new()),
        }
    }

    /// Returns the next number.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub(super) fn next_number(&mut self) -> io::Result<u64> {
        match self {
            Random::Seeded(rng) => Ok(rng.u64(..)),
            Random::System(left) => loop {
                if let Some((rest, number)) = left.split_last_chunk::<NUMBER_BYTES>() {
                    let (number, rest) = (u64::from_ne_bytes(*number), rest.len());
                    left.truncate(rest);
                    return Ok(number);
                }
                let mut taken = vec![0; BATCH_BYTES];
                system_entropy(&mut taken)?;
                *left = taken;
            },
        }
    }

    /// Fills `bytes` from the seed; returns false if there is none.
    pub(super) fn fill_seeded(&mut self, bytes: &mut [u8]) -> bool {
        match self {
            Random::Seeded(rng) => {
                rng.fill(bytes);
                true
            }
            Random::System(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_follow_from_a_seed_or_are_independent() {
        let numbers = |seed| -> Vec<u64> {
            let mut random = Random::new(seed);
            (0..200).map(|_| random.next_number().expect("the system has some")).collect()
        };
        assert_eq!(numbers(Some(1)), numbers(Some(1)));
        let all: BTreeSet<u64> =
            [Some(1), Some(2), None, None].iter().flat_map(|seed| numbers(*seed)).collect();
        assert_eq!(all.len(), 800);
    }
}
