//! Sections of a handler that block.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::Scope;
use super::lent::Section;
use crate::coordination::Permits;

/// The error of [`Scope::blocking_with`]: no permit was free. It returns the section, which was not
/// run.
pub struct NoPermit<F>(F);

impl<C> Scope<'_, C> {
    /// Runs `f`, which may take longer than a handler should: a lookup, a small file, a long
    /// computation.
    ///
    /// In a loop that [hands over](crate::LoopInstance::handing_over), another thread goes on with
    /// all other machines meanwhile. When `f` returns, or panics, this thread takes the loop back,
    /// first come first served, and finishes the handler. So handlers never overlap, except with
    /// these sections: **what was read of the context before may have changed after it**. Events
    /// for this machine wait until its handler has answered.
    ///
    /// Elsewhere `f` runs right here and holds up the loop: without `handing_over`, in a
    /// simulation, in [`create`](crate::Machine::create) and
    /// [`make_room`](crate::Machine::make_room), in the scopes of [`split`](Scope::split), and
    /// where no thread is left ([`Blocking::threads_max`](crate::Blocking::threads_max)).
    /// Statistics count both ([`Stats::handed_over`](crate::Stats::handed_over)). In either case
    /// [`now`](Scope::now) is read anew afterwards.
    ///
    /// If the loop is dropped before `f` returns, the handler does not go on: it is unwound from
    /// here, as by a panic that is reported to nobody, and its machine is dropped.
    #[doc(alias = "block_in_place")]
    pub fn blocking<V>(&mut self, f: impl FnOnce() -> V) -> V {
        match self.context.give_up() {
            Section::HandedOver => {}
            Section::Here => {
                let value = f();
                self.environment.count_inline();
                self.refresh_now();
                return value;
            }
            Section::Taken => return f(),
        }
        // Whatever comes of it, the loop is taken back first: what unwinds here may need it.
        let value = catch_unwind(AssertUnwindSafe(f));
        self.context.take_back();
        value.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs `f` as [`blocking`](Scope::blocking) does, but only as many at a time as there are
    /// permits, across all loops and threads: for a resource that bears few users at a time, or for
    /// work that must not take all threads.
    ///
    /// # Errors
    ///
    /// [`NoPermit`], with the closure, when no permit is free. To wait for one,
    /// [ask](Permits::ask).
    pub fn blocking_with<V, F>(&mut self, permits: &Permits, f: F) -> Result<V, NoPermit<F>>
    where
        F: FnOnce() -> V,
    {
        match permits.try_take() {
            Some(mut permit) => Ok(self.blocking(|| permit.run(f))),
            None => Err(NoPermit(f)),
        }
    }

    /// Returns whether another thread would go on with the loop during
    /// [`blocking`](Scope::blocking), as far as threads are left: for those who have a choice.
    pub fn hands_over(&self) -> bool {
        self.context.hands_over()
    }
}

impl<F> NoPermit<F> {
    /// Returns the section that was not run.
    pub fn into_closure(self) -> F {
        self.0
    }
}

impl<F> fmt::Debug for NoPermit<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoPermit(..)")
    }
}

impl<F> fmt::Display for NoPermit<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no permit is free for a section that blocks")
    }
}

impl<F> std::error::Error for NoPermit<F> {}
