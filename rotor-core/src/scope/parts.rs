//! Parts: of the scope, next to the context; and of the machine, each with a scope of its own.

use super::context_ref::ContextRef;
use super::{EarlyScope, NoContext, Scope};

impl<'a, C> Scope<'a, C> {
    /// Splits the scope into the context and a scope that can do everything else.
    ///
    /// `scope.members.insert(scope.token(), ..)` does not compile (E0502): `members` is reached
    /// through the scope, which is borrowed until the call. Values that can be copied can be read
    /// before the call. For the rest, this method returns two borrows:
    ///
    /// ```
    /// # use rotor_core::{Notifier, Scope, Token};
    /// # use std::collections::BTreeMap;
    /// # struct Room { members: BTreeMap<Token, Notifier>, names: BTreeMap<Token, u32> }
    /// # fn join(scope: &mut Scope<'_, Room>) {
    /// let token = scope.token();
    /// scope.names.insert(token, 1);
    ///
    /// let (room, scope) = scope.split();
    /// room.members.insert(scope.token(), scope.notifier());
    /// # }
    /// ```
    pub fn split(&mut self) -> (&mut C, EarlyScope<'_>) {
        // This does not allocate: the type has no size.
        let nothing = Box::leak(Box::new(NoContext));
        let may_be_taken = self.context.takeover_holder().is_some();
        let early = Scope {
            context: if may_be_taken {
                ContextRef::split_off(nothing)
            } else {
                ContextRef::direct(nothing)
            },
            environment: self.environment,
            token: self.token,
            part: self.part,
            woken: self.woken,
        };
        (self.context.get_mut(), early)
    }

    /// Returns the same scope for a part of this machine. Notifiers, ports, mailboxes and waits for
    /// a slot that are made with it wake the machine under that part's number
    /// ([`woken_parts`](Scope::woken_parts)).
    ///
    /// This is for a layer that runs children of its own, such as the streams of a multiplexed
    /// connection. Part 0 is the machine itself.
    pub fn part(&mut self, part: u32) -> Scope<'_, C> {
        Scope {
            context: self.context.reborrow(),
            environment: self.environment,
            token: self.token,
            part,
            woken: self.woken,
        }
    }

    /// Returns, in `wakeup`, the parts that were woken, in ascending order and without duplicates;
    /// 0 stands for the machine itself. In other handlers it returns none.
    pub fn woken_parts(&self) -> impl Iterator<Item = u32> + use<'a, C> {
        self.woken.whole.then_some(0).into_iter().chain(self.woken.parts.iter().copied())
    }
}
