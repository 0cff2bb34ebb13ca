//! `Busy`: a sign that a client waits for something.

use std::fmt;

use rotor_core::Scope;

use crate::backend::SimHandle;
use crate::world::Shared;

/// A sign that a client waits for something, for as long as it is kept. Faults that strike
/// meanwhile count in [`Strikes::of_busy`](crate::Strikes::of_busy). On other backends it does
/// nothing.
///
/// The client of a [`Script`](crate::Script) has one during each attempt, except in pauses. A
/// client that a test writes as a machine of its own should keep one for each request that it has
/// sent.
#[must_use]
pub struct Busy {
    world: Option<Shared>,
}

impl Busy {
    /// Marks the client as busy from now on.
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
