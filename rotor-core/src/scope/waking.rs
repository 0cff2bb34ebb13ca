//! Waking the machine itself, now or from somewhere else.

use super::Scope;
use crate::notifier::Notifier;

impl<C> Scope<'_, C> {
    /// Returns a handle that wakes this machine (or this part of it) from anywhere.
    ///
    /// A machine that is woken in its own handler is called in the next turn, after the others. A
    /// machine that is woken in its own [`create`](crate::Machine::create) is called in the same
    /// turn, if an event or a wake-up led to its spawn, and in the next turn if a deadline or a
    /// closure did.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(self.environment.wakes.clone(), self.token, self.part)
    }

    /// Wakes this machine (or this part of it), as its own [notifier](Scope::notifier) would, but
    /// at a lower cost. This is for a machine that has more to do than one event should take, and
    /// lets the others go first.
    ///
    /// Called in a handler, it leads to one `wakeup` in the next turn, however often it was called
    /// and whoever else has woken the machine meanwhile. After an answer of
    /// [`spawn`](crate::Response::spawn), that `wakeup` comes after the result of the spawn, and a
    /// turn later if the spawn was deferred. Called in [`create`](crate::Machine::create), it leads
    /// to a `wakeup` in the same turn if an event or a wake-up led to the spawn, otherwise in the
    /// next one. If the handler panics or ends the machine, the wake-up is cancelled; after a panic
    /// under [`guard`](Scope::guard) it is not.
    ///
    /// It costs a plain write, in `create` too, whereas a new notifier takes five atomic operations
    /// from its creation to the call of `wakeup`. For a part, each call costs as much as a new
    /// notifier of a part: an allocation, and an entry in a channel, which is read in the next turn.
    /// So keep a [notifier](Scope::notifier) if a part wakes itself often.
    ///
    /// A machine that has more to do with its *socket* answers [`again`](crate::Response::again)
    /// instead: the loop then polls the sockets of the other machines first.
    #[doc(alias = "yield_now")]
    #[doc(alias = "wake_by_ref")]
    #[inline]
    pub fn wake_self(&self) {
        if self.part != 0 {
            self.wake_by_notifier();
        } else if let Some(holder) = self.context.takeover_holder() {
            if !holder.record_self_wakeup() {
                self.wake_by_notifier();
            }
        } else {
            self.environment.record_self_wakeup();
        }
    }

    /// Wakes the machine through a notifier, since the number of the part is sent through its
    /// channel. Not inlined, so that the usual path is.
    #[cold]
    fn wake_by_notifier(&self) {
        self.notifier().wakeup();
    }
}
