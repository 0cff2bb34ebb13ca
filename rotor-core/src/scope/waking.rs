//! Waking the machine itself, now or from elsewhere.

use super::Scope;
use crate::notifier::Notifier;

impl<C> Scope<'_, C> {
    /// A handle that wakes this machine (or this part of it) from anywhere.
    ///
    /// Woken by itself in a handler, a machine hears of it in the next turn, behind the others;
    /// woken in [`create`](crate::Machine::create), in the same turn.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(self.environment.wakes.clone(), self.token, self.part)
    }

    /// Wakes this machine (or this part of it) as its own [notifier](Scope::notifier) would, for
    /// less: a machine that has more to do than one event is worth, and lets the others go first.
    ///
    /// Called in a handler, `wakeup` comes in the next turn, once, however often this was called
    /// and whoever else has woken the machine meanwhile; after an answer of
    /// [`spawn`](crate::Response::spawn), when it has heard of its spawn. Called in
    /// [`create`](crate::Machine::create), it comes in the same turn, in line. A handler that
    /// panics or ends the machine takes it back; one that panics under [`guard`](Scope::guard) does
    /// not.
    ///
    /// It is a plain write, where a notifier takes five atomic steps; in `create` it takes three of
    /// them, and for a part all.
    ///
    /// A machine that has more to do with its *socket* answers
    /// [`again`](crate::Response::again): the loop looks at the others' sockets first.
    #[doc(alias = "yield_now")]
    #[doc(alias = "wake_by_ref")]
    #[inline]
    pub fn wake_self(&self) {
        if self.part != 0 {
            self.wake_own_part();
        } else if let Some(hand) = self.context.other_hand() {
            if !hand.note_woke_itself() {
                self.wake_own_part();
            }
        } else {
            self.environment.note_woke_itself();
        }
    }

    /// By a notifier, since the number of the part travels in its channel. Not inlined, so that the
    /// usual way is.
    #[cold]
    fn wake_own_part(&self) {
        self.notifier().wakeup();
    }
}
