//! `Link`: shows whether a persistent connection is up, and ends it.

use std::fmt;
use std::sync::{Arc, PoisonError};

use rotor_core::Notifier;

use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::{Mutex, MutexGuard};
use crate::watchers::Watchers;

/// Shows whether a persistent connection is up, and ends it.
///
/// Clones belong to the same connection; any thread may hold one.
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

impl Link {
    /// Makes the link of a connection that does not exist yet.
    pub fn new() -> Link {
        Link::default()
    }

    /// Returns whether the connection is up: the protocol's `create` was called, and the protocol
    /// has not ended since.
    pub fn is_up(&self) -> bool {
        self.shared.is_up.load(SeqCst)
    }

    /// Wakes a machine whenever the connection goes up or down, until that machine ends. Calling it
    /// again for the same machine changes nothing.
    ///
    /// The machine is woken for changes after this call, so check [`is_up`](Link::is_up) after it.
    pub fn watch(&self, watcher: Notifier) {
        self.watchers().add(watcher);
    }

    /// Ends the persistent connection: the machine ends at its next turn, and the connection with
    /// it. If the peer has not taken all output, the connection is reset.
    pub fn close(&self) {
        // Before the wake-up, so that the woken machine sees it. If there is no owner yet, the
        // machine checks this itself when it begins.
        self.shared.is_closed.store(true, SeqCst);
        if let Some(owner) = &*self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner) {
            owner.wakeup();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed.load(SeqCst)
    }

    pub(crate) fn set_owner(&self, owner: Notifier) {
        *self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner) = Some(owner);
    }

    pub(crate) fn set_is_up(&self, is_up: bool) {
        // Machines that have ended are removed here: `wakeup` returns whether the machine exists.
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
    use super::*;
    use crate::watchers::testing::watchers;

    #[test]
    fn a_repeated_watcher_is_stored_and_woken_once() {
        let (mut instance, notifiers) = watchers(2);
        let link = Link::new();
        for _ in 0..1_000 {
            notifiers.iter().for_each(|notifier| link.watch(notifier.clone()));
        }
        assert_eq!(link.watchers().len(), 2);
        link.set_is_up(true);
        instance.turn(Some(std::time::Duration::ZERO)).expect("looking never fails");
        assert_eq!(*instance.context(), 2);
    }

    #[test]
    fn watchers_with_equal_tokens_in_two_loops_are_both_woken() {
        let (mut one, first) = watchers(1);
        let (mut other, second) = watchers(1);
        assert_eq!(first[0].token(), second[0].token());
        let link = Link::new();
        first.iter().chain(&second).for_each(|notifier| link.watch(notifier.clone()));
        link.set_is_up(true);
        for instance in [&mut one, &mut other] {
            instance.turn(Some(std::time::Duration::ZERO)).expect("looking never fails");
            assert_eq!(*instance.context(), 1);
        }
    }
}
