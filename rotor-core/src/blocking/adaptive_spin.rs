//! `AdaptiveSpin`: decides whether a waiting thread spins before it sleeps.

use crate::sync::spins;

/// How many waits pass without spinning at first, so that a hundred handlers that block once, at
/// the same time, do not spin. In the models, which have few waits, it is none.
const SKIPS_FIRST: u8 = spins(2) as u8 - 1;

/// The maximum number of waits that pass without spinning after spinning was in vain.
const SKIPS_MAX: u8 = 63;

/// Decides whether one thread spins the next time it waits. It does as long as what it waits for
/// comes while it spins. Each time spinning was in vain, twice as many waits as before pass without
/// spinning.
#[doc(alias = "adaptive spinning")]
pub(super) struct AdaptiveSpin {
    /// Whether it may spin at all.
    may_spin: bool,
    /// How many waits pass without spinning after a wait in which it was in vain.
    skips: u8,
    /// How many of them are still left.
    skips_left: u8,
}

impl AdaptiveSpin {
    pub(super) fn new(may_spin: bool) -> AdaptiveSpin {
        AdaptiveSpin { may_spin, skips: 0, skips_left: SKIPS_FIRST }
    }

    /// Called when a wait begins. Returns whether the thread should spin; if so, it must call
    /// `end` afterwards.
    pub(super) fn begin(&mut self) -> bool {
        if !self.may_spin {
            return false;
        }
        match self.skips_left.checked_sub(1) {
            Some(skips_left) => {
                self.skips_left = skips_left;
                false
            }
            None => true,
        }
    }

    /// Records whether what the thread waited for came while it spun.
    pub(super) fn end(&mut self, has_arrived: bool) {
        self.skips = if has_arrived { 0 } else { (2 * self.skips + 1).min(SKIPS_MAX) };
        self.skips_left = self.skips;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of waits without spinning before the thread spins.
    fn waits_until_spin(policy: &mut AdaptiveSpin) -> usize {
        (0..).take_while(|_| !policy.begin()).count()
    }

    #[test]
    fn a_thread_spins_while_spinning_succeeds() {
        let mut policy = AdaptiveSpin::new(true);
        assert_eq!(waits_until_spin(&mut policy), 1, "not the first time");
        policy.end(true);
        for _ in 0..100 {
            assert_eq!(waits_until_spin(&mut policy), 0);
            policy.end(true);
        }
    }

    #[test]
    fn failed_spins_double_the_waits_without_spinning() {
        let mut policy = AdaptiveSpin::new(true);
        for skips in [1, 1, 3, 7, 15, 31, 63, 63, 63] {
            assert_eq!(waits_until_spin(&mut policy), skips);
            policy.end(false);
        }
        assert_eq!(waits_until_spin(&mut policy), 63);
        policy.end(true);
        assert_eq!(waits_until_spin(&mut policy), 0);
        policy.end(false);
        assert_eq!(waits_until_spin(&mut policy), 1, "it has paid since");
    }
    #[test]
    fn a_thread_that_may_not_spin_never_spins() {
        let mut policy = AdaptiveSpin::new(false);
        assert!((0..1_000).all(|_| !policy.begin()));
    }
}
