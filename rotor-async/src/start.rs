//! `Start`: what is done behind a poll, with the scope of that.

use rotor_core::{Future as Value, Scope};

/// Who gives work to other threads: a scope, whatever its context.
pub(crate) trait Pool {
    /// Absent: it is full.
    fn give(&self, job: Box<dyn FnOnce() + Send>) -> Option<Value<()>>;
}

impl<C> Pool for Scope<'_, C> {
    fn give(&self, job: Box<dyn FnOnce() + Send>) -> Option<Value<()>> {
        self.offload(job).ok()
    }
}

/// What is done once a poll has returned.
pub(crate) type Start = Box<dyn FnOnce(&dyn Pool)>;
