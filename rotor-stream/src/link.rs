//! `Link`: whether a persistent connection is up, for those who wait on it; and the way to end it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError};

use rotor_core::Notifier;

use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::{Mutex, MutexGuard};

/// Whether a persistent connection is up, for those who wait on it.
///
/// Clones name the same connection; any thread may hold one.
#[derive(Clone, Default)]
pub struct Link {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_up: AtomicBool,
    is_closed: AtomicBool,
    owner: Mutex<Option<Notifier>>,
    watchers: Mutex<Watchers>,
}

/// Who is woken, each once.
#[derive(Default)]
struct Watchers {
    /// In the order in which they came, so that they are woken in the same order in every run.
    in_order: Vec<Notifier>,
    present: BTreeSet<Notifier>,
    /// How many there may be before those that have ended are looked for.
    sweep_at: usize,
}

/// So few are not looked through for those that have ended.
const SWEEP_AT_LEAST: usize = 16;

impl Watchers {
    /// In constant time or nearly so: those that have ended are looked for when there are twice as
    /// many as the last time.
    fn add(&mut self, watcher: Notifier) {
        if !self.present.insert(watcher.clone()) {
            return;
        }
        self.in_order.push(watcher);
        if self.in_order.len() > self.sweep_at.max(SWEEP_AT_LEAST) {
            self.retain(Notifier::is_alive);
            self.sweep_at = self.in_order.len() * 2;
        }
    }

    fn retain(&mut self, mut stays: impl FnMut(&Notifier) -> bool) {
        let Watchers { in_order, present, .. } = self;
        in_order.retain(|watcher| {
            let stays = stays(watcher);
            if !stays {
                present.remove(watcher);
            }
            stays
        });
    }
}

impl Link {
    /// The link of a connection that is not yet made.
    pub fn new() -> Link {
        Link::default()
    }

    /// Whether the connection is up: the protocol's `create` was called, and the protocol has not
    /// ended since.
    pub fn is_up(&self) -> bool {
        self.shared.is_up.load(SeqCst)
    }

    /// Wakes a machine whenever the connection goes up or down, until that machine ends. Saying so
    /// again changes nothing.
    ///
    /// It is woken for changes after this call; look at [`is_up`](Link::is_up) after it.
    pub fn watch(&self, watcher: Notifier) {
        self.watchers().add(watcher);
    }

    /// Ends the persistent connection: the machine, and the connection with it, at its next turn.
    pub fn close(&self) {
        // Before the wake-up: whoever is woken sees it. Without an owner yet there is nobody to
        // wake, and the machine looks by itself when it begins.
        self.shared.is_closed.store(true, SeqCst);
        if let Some(owner) = &*self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner) {
            owner.wakeup();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed.load(SeqCst)
    }

    pub(crate) fn own(&self, owner: Notifier) {
        *self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner) = Some(owner);
    }

    pub(crate) fn set(&self, is_up: bool) {
        // Those that have ended leave the list in passing: `wakeup` says whether there is anybody.
        if self.shared.is_up.swap(is_up, SeqCst) != is_up {
            self.watchers().retain(Notifier::wakeup);
        }
    }

    fn watchers(&self) -> MutexGuard<'_, Watchers> {
        self.shared.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link(up: {})", self.is_up())
    }
}

#[cfg(all(test, not(rotor_loom)))]
mod tests {
    use rotor_core::{Config, EventSet, Infallible, Loop, LoopInstance, Machine, Response, Scope};

    use super::*;

    /// Counts its wake-ups; ends with the first event.
    struct Watcher;

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

    fn watchers(count: usize) -> (LoopInstance<Watcher>, Vec<Notifier>) {
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

    #[test]
    fn one_that_watches_often_is_kept_and_woken_once() {
        let (mut instance, notifiers) = watchers(2);
        let link = Link::new();
        for _ in 0..1_000 {
            notifiers.iter().for_each(|notifier| link.watch(notifier.clone()));
        }
        let room = link.watchers().in_order.capacity();
        assert!(room < 8, "room for {room} of two");
        link.set(true);
        instance.turn(Some(std::time::Duration::ZERO)).expect("looking never fails");
        assert_eq!(*instance.context(), 2);
    }

    #[test]
    fn equal_machines_of_two_loops_are_both_woken() {
        let (mut one, first) = watchers(1);
        let (mut other, second) = watchers(1);
        assert_eq!(first[0].token(), second[0].token());
        let link = Link::new();
        first.iter().chain(&second).for_each(|notifier| link.watch(notifier.clone()));
        link.set(true);
        for instance in [&mut one, &mut other] {
            instance.turn(Some(std::time::Duration::ZERO)).expect("looking never fails");
            assert_eq!(*instance.context(), 1);
        }
    }

    #[test]
    fn many_watchers_are_looked_through_for_the_dead_a_few_times_only() {
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
