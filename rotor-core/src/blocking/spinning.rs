//! `Spinning`: decides whether a waiting thread spins before it sleeps.

use crate::sync::spins;

/// How many waits pass without spinning at first, so that a hundred handlers that block once, at
/// the same time, do not spin. In the models, which have few waits, it is none.
const LEFT_OUT_FIRST: u8 = spins(2) as u8 - 1;

/// The maximum number of waits that pass without spinning after spinning was in vain.
const LEFT_OUT_MAX: u8 = 63;

/// Decides whether one thread spins the next time it waits. It does as long as what it waits for
/// comes while it spins. Each time spinning was in vain, twice as many waits as before pass without
/// spinning.
#[doc(alias = "adaptive spinning")]
pub(super) struct Spinning {
    /// Whether it may spin at all.
    may_spin: bool,
    /// How many waits pass without spinning after a wait in which it was in vain.
    left_out: u8,
    /// How many of them are still left.
    to_come: u8,
}

impl Spinning {
    pub(super) fn new(may_spin: bool) -> Spinning {
        Spinning { may_spin, left_out: 0, to_come: LEFT_OUT_FIRST }
    }

    /// Called when a wait begins. Returns whether the thread should spin; if so, it must call
    /// `ends` afterwards.
    pub(super) fn begins(&mut self) -> bool {
        if !self.may_spin {
            return false;
        }
        match self.to_come.checked_sub(1) {
            Some(to_come) => {
                self.to_come = to_come;
                false
            }
            None => true,
        }
    }

    /// Notes whether what the thread waited for came while it spun.
    pub(super) fn ends(&mut self, has_come: bool) {
        self.left_out = if has_come { 0 } else { (2 * self.left_out + 1).min(LEFT_OUT_MAX) };
        self.to_come = self.left_out;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns after how many waits without it the thread spins.
    fn next(spinning: &mut Spinning) -> usize {
        (0..).take_while(|_| !spinning.begins()).count()
    }

    #[test]
    fn a_thread_spins_while_that_pays() {
        let mut spinning = Spinning::new(true);
        assert_eq!(next(&mut spinning), 1, "not the first time");
        spinning.ends(true);
        for _ in 0..100 {
            assert_eq!(next(&mut spinning), 0);
            spinning.ends(true);
        }
    }

    #[test]
    fn where_it_does_not_pay_it_is_tried_ever_more_rarely() {
        let mut spinning = Spinning::new(true);
        for left_out in [1, 1, 3, 7, 15, 31, 63, 63, 63] {
            assert_eq!(next(&mut spinning), left_out);
            spinning.ends(false);
        }
        assert_eq!(next(&mut spinning), 63);
        spinning.ends(true);
        assert_eq!(next(&mut spinning), 0);
        spinning.ends(false);
        assert_eq!(next(&mut spinning), 1, "it has paid since");
    }
    #[test]
    fn who_may_not_spin_never_does() {
        let mut spinning = Spinning::new(false);
        assert!((0..1_000).all(|_| !spinning.begins()));
    }
}
