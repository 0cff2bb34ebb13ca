//! Random numbers by seed and purpose.

/// Returns a generator for one purpose of a run. The seed is mixed first, because the generator
/// does not promise that its first numbers are unrelated for neighbouring seeds.
pub(crate) fn seeded(seed: u64, purpose: &str) -> fastrand::Rng {
    let mut mixed = seed;
    for byte in purpose.bytes() {
        mixed = (mixed ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^= mixed >> 29;
    }
    fastrand::Rng::with_seed(mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_seeds_and_different_purposes_give_unrelated_numbers() {
        let first = |seed, purpose| seeded(seed, purpose).u64(..);
        for bit in 0..64 {
            let set = (0..1_000).filter(|seed| first(*seed, "test") >> bit & 1 == 1).count();
            assert!((420..580).contains(&set), "bit {bit} in {set}");
        }
        assert_ne!(first(1, "faults"), first(1, "network"));
    }
}
