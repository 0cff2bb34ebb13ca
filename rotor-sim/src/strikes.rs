//! `Strikes`: how often each fault has struck, and how often while clients were busy.

use std::fmt;

use crate::faults::Fault;

/// How often each fault has struck, and how often *while clients were busy*. A fault that strikes
/// only before the first request and after the last response tests nothing.
///
/// Clients are busy while one of them holds a [`Busy`](crate::Busy). The clients of a
/// [`Script`](crate::Script) do so by themselves.
#[derive(Clone, PartialEq, Eq)]
pub struct Strikes {
    counts: [Count; Fault::ALL.len()],
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    all: u64,
    busy: u64,
}

impl Strikes {
    pub(crate) fn none() -> Strikes {
        Strikes { counts: [Count::default(); Fault::ALL.len()] }
    }

    #[inline]
    pub(crate) fn add(&mut self, fault: Fault, is_busy: bool) {
        let count = &mut self.counts[fault as usize];
        count.all += 1;
        count.busy += u64::from(is_busy);
    }

    pub(crate) fn add_all(&mut self, others: &Strikes) {
        for (count, other) in self.counts.iter_mut().zip(&others.counts) {
            count.all += other.all;
            count.busy += other.busy;
        }
    }

    /// Returns how often a fault has struck.
    pub fn of(&self, fault: Fault) -> u64 {
        self.counts[fault as usize].all
    }

    /// Returns how often a fault has struck while clients were busy.
    pub fn of_busy(&self, fault: Fault) -> u64 {
        self.counts[fault as usize].busy
    }
}

/// Prints one line per fault: how often it struck while clients were busy, and how often in all.
/// Faults that never struck are left out.
impl fmt::Display for Strikes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in Fault::ALL.iter().filter(|fault| self.of(**fault) > 0) {
            let name = format!("{fault:?}");
            writeln!(f, "  {name:<18}{:>12} of {}", self.of_busy(*fault), self.of(*fault))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Strikes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = Fault::ALL.iter().filter(|fault| self.of(**fault) > 0);
        f.debug_map()
            .entries(some.map(|fault| (fault, (self.of_busy(*fault), self.of(*fault)))))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strikes_are_summed_and_faults_that_never_struck_are_not_printed() {
        let mut strikes = Strikes::none();
        strikes.add(Fault::Reset, true);
        strikes.add(Fault::Reset, false);
        let mut sum = strikes.clone();
        sum.add_all(&strikes);
        assert_eq!((sum.of(Fault::Reset), sum.of_busy(Fault::Reset)), (4, 2));
        assert_eq!(sum.to_string(), "  Reset                        2 of 4\n");
    }
}
