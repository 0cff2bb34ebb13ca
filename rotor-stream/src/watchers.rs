//! `Watchers`: machines to be woken, without those that have ended.

use std::collections::BTreeSet;

use rotor_core::Notifier;

/// The machines to be woken, each once.
#[derive(Default)]
pub(crate) struct Watchers {
    /// In the order in which they were added, so that every run wakes them in the same order.
    in_order: Vec<Notifier>,
    present: BTreeSet<Notifier>,
    /// Above this length, machines that have ended are removed.
    sweep_at: usize,
}

/// Up to this length, machines that have ended are not looked for.
const SWEEP_LEN_MIN: usize = 16;

impl Watchers {
    /// Adds a machine, in amortized constant time: ended machines are looked for whenever the
    /// length has doubled since the last time.
    pub(crate) fn add(&mut self, watcher: Notifier) {
        if !self.present.insert(watcher.clone()) {
            return;
        }
        self.in_order.push(watcher);
        if self.in_order.len() > self.sweep_at.max(SWEEP_LEN_MIN) {
            self.retain(Notifier::is_alive);
            self.sweep_at = self.in_order.len() * 2;
        }
    }

    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&Notifier) -> bool) {
        let Watchers { in_order, present, .. } = self;
        in_order.retain(|watcher| {
            let stays = stays(watcher);
            if !stays {
                present.remove(watcher);
            }
            stays
        });
    }
    /// Returns the machines in the order in which they were added.
    pub(crate) fn into_vec(self) -> Vec<Notifier> {
        self.in_order
    }

    #[cfg(all(test, not(rotor_loom)))]
    pub(crate) fn len(&self) -> usize {
        self.in_order.len()
    }
}

#[cfg(all(test, not(rotor_loom)))]
pub(crate) mod testing {
    use rotor_core::{Config, EventSet, Infallible, Loop, LoopInstance, Machine, Response, Scope};

    use super::*;

    /// Counts its wake-ups; ends on the first event.
    pub(crate) struct Watcher;

    impl Machine for Watcher {
        type Context = usize;
        type Seed = Infallible;

        fn ready(self, _: EventSet, _: &mut Scope<'_, usize>) -> Response<Self, Infallible> {
            Response::done()
        }

        fn wakeup(self, scope: &mut Scope<'_, usize>) -> Response<Self, Infallible> {
            **scope += 1;
            Response::keep(self)
        }
    }

    pub(crate) fn watchers(count: usize) -> (LoopInstance<Watcher>, Vec<Notifier>) {
        let mut creator = Loop::new(&Config::new()).expect("there are descriptors");
        let mut notifiers = Vec::new();
        for _ in 0..count {
            let made = creator.add_machine_with(|scope| {
                notifiers.push(scope.notifier());
                Response::ok(Watcher)
            });
            made.expect("there is room");
        }
        (creator.instantiate(0), notifiers)
    }
}

#[cfg(all(test, not(rotor_loom)))]
mod tests {
    use super::testing::watchers;
    use super::*;

    #[test]
    fn adding_many_watchers_sweeps_ended_ones_only_a_few_times() {
        let (instance, notifiers) = watchers(1_000);
        let mut watchers = Watchers::default();
        let mut sweeps = 0;
        for notifier in &notifiers {
            let before = watchers.sweep_at;
            watchers.add(notifier.clone());
            sweeps += usize::from(watchers.sweep_at != before);
        }
        assert!(sweeps <= 8, "{sweeps} sweeps");
        drop(instance);
        watchers.sweep_at = 0;
        watchers.add(notifiers[0].clone());
        assert_eq!(watchers.in_order.len(), 1_000, "it was there");
        watchers.retain(Notifier::is_alive);
        assert_eq!((watchers.in_order.len(), watchers.present.len()), (0, 0));
    }
}
