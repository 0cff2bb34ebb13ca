//! `DeferredStart`: work to be done after a poll, with the scope of the poll.

use rotor_core::{Future as Value, Scope};

/// Gives work to other threads; a scope, whatever its context.
pub(crate) trait Pool {
    /// Returns `None` if the pool is full.
    fn submit(&self, job: Box<dyn FnOnce() + Send>) -> Option<Value<()>>;
}

impl<C> Pool for Scope<'_, C> {
    fn submit(&self, job: Box<dyn FnOnce() + Send>) -> Option<Value<()>> {
        self.offload(job).ok()
    }
}

/// Work to be done after a poll.
pub(crate) type DeferredStart = Box<dyn FnOnce(&dyn Pool)>;
