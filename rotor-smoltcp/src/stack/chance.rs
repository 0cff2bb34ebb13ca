//! `Chance`: unpredictable numbers, for what strangers must not know: initial sequence numbers and
//! ports.

use std::io;

use fastrand::Rng;
use rotor_core::backend::system_entropy;

/// How many bytes are taken from the system at a time: 64 numbers, to save system calls.
const TAKEN_BYTES: usize = 512;

/// The length of a number, in bytes.
const NUMBER: usize = 8;

/// Numbers from the system, which are independent of each other; or, with a seed, from a generator.
pub(super) enum Chance {
    Seeded(Rng),
    /// Bytes that were taken and not yet used.
    System(Vec<u8>),
}

impl Chance {
    pub(super) fn new(seed: Option<u64>) -> Chance {
        match seed {
            Some(seed) => Chance::Seeded(Rng::with_seed(seed)),
            None => Chance::System(Vec::new()),
        }
    }

    /// Returns the next number.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub(super) fn number(&mut self) -> io::Result<u64> {
        match self {
            Chance::Seeded(random) => Ok(random.u64(..)),
            Chance::System(left) => loop {
                if let Some((rest, number)) = left.split_last_chunk::<NUMBER>() {
                    let (number, rest) = (u64::from_ne_bytes(*number), rest.len());
                    left.truncate(rest);
                    return Ok(number);
                }
                let mut taken = vec![0; TAKEN_BYTES];
                system_entropy(&mut taken)?;
                *left = taken;
            },
        }
    }

    /// Fills `bytes` from the seed; returns false if there is none.
    pub(super) fn seeded(&mut self, bytes: &mut [u8]) -> bool {
        match self {
            Chance::Seeded(random) => {
                random.fill(bytes);
                true
            }
            Chance::System(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_follow_from_a_seed_and_else_from_nothing() {
        let numbers = |seed| -> Vec<u64> {
            let mut chance = Chance::new(seed);
            (0..200).map(|_| chance.number().expect("the system has some")).collect()
        };
        assert_eq!(numbers(Some(1)), numbers(Some(1)));
        let all: BTreeSet<u64> =
            [Some(1), Some(2), None, None].iter().flat_map(|seed| numbers(*seed)).collect();
        assert_eq!(all.len(), 800);
    }
}
