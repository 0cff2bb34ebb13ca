//! `Strikes`: how often each fault has struck, and how often while somebody waited for something.

use std::fmt;

use rotor_core::Scope;

use crate::Fault;
use crate::backend::SimHandle;
use crate::world::Shared;

/// How often each fault has struck, and how often *while clients were busy*: one that strikes only
/// before the first request and after the last answer tests nothing.
///
/// Clients are busy while one of them has a [`Busy`], as those of a [`Script`](crate::Script) have
/// by themselves.
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

    /// How often a fault has struck.
    pub fn of(&self, fault: Fault) -> u64 {
        self.counts[fault as usize].all
    }

    /// How often it has struck while clients were busy.
    pub fn of_busy(&self, fault: Fault) -> u64 {
        self.counts[fault as usize].busy
    }
}

/// One fault in a line: how often it struck while clients were busy, of how often in all. Those
/// that never did are left out.
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

/// Says that a client waits for something, as long as it is kept: what strikes then counts in
/// [`Strikes::of_busy`]. On other backends it says nothing.
///
/// A [`Script`](crate::Script)'s client has one while an attempt is under way and does not pause; a
/// client that a test writes as a machine of its own keeps one beside what it has asked.
#[must_use]
pub struct Busy {
    world: Option<Shared>,
}

impl Busy {
    /// From now on.
    pub fn new<C>(scope: &Scope<'_, C>) -> Busy {
        let handle = scope.backend().expect::<SimHandle>("a busy client");
        let world = handle.ok().map(|handle| handle.world().clone());
        if let Some(world) = &world {
            world.borrow_mut().busy += 1;
        }
        Busy { world }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(world) = &self.world {
            world.borrow_mut().busy -= 1;
        }
    }
}

impl fmt::Debug for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Busy")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_struck_is_left_out_and_what_struck_nobody_is_told_from_the_rest() {
        let mut strikes = Strikes::none();
        strikes.add(Fault::Reset, true);
        strikes.add(Fault::Reset, false);
        let mut sum = strikes.clone();
        sum.add_all(&strikes);
        assert_eq!((sum.of(Fault::Reset), sum.of_busy(Fault::Reset)), (4, 2));
        assert_eq!(sum.to_string(), "  Reset                        2 of 4\n");
    }
}
