//! `Busy`: that a client waits for something.

use std::fmt;

use rotor_core::Scope;

use crate::backend::SimHandle;
use crate::world::Shared;

/// Says that a client waits for something, as long as it is kept: what strikes then counts in
/// [`Strikes::of_busy`](crate::Strikes::of_busy). On other backends it says nothing.
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
