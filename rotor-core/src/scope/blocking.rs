//! `Scope::blocking`: sections of a handler that block.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::Scope;
use super::context_ref::Section;
use crate::coordination::Permits;

/// The error of [`Scope::blocking_with`]: no permit was free. It contains the section, which was
/// not run.
pub struct NoPermit<F>(F);

impl<C> Scope<'_, C> {
    /// Runs `f`, which may take longer than a handler should: a lookup, a small file, a long
    /// computation.
    ///
    /// In a loop that [hands over](crate::LoopInstance::handing_over), another thread goes on with
    /// all other machines meanwhile. When `f` returns, or panics, this thread takes the loop back,
    /// first come, first served, and finishes the handler. So handlers never overlap, except with
    /// these sections: **what was read from the context before the section may have changed after
    /// it**. Events for this machine wait until its handler has answered.
    ///
    /// In all other cases `f` runs on this thread and holds up the loop: without `handing_over`, in
    /// a simulation, in [`create`](crate::Machine::create) and
    /// [`make_room`](crate::Machine::make_room), in the scopes of [`split`](Scope::split), and if
    /// no thread is left ([`Blocking::threads_max`](crate::Blocking::threads_max)). Statistics
    /// count both cases ([`Stats::handed_over`](crate::Stats::handed_over)). In both,
    /// [`now`](Scope::now) is read anew afterwards. If the loop was already taken from this
    /// handler, `f` simply runs.
    ///
    /// If the loop is dropped before `f` returns, the handler does not go on: it is unwound from
    /// here as by a panic, which is not reported, and its machine is dropped. In a loop that may be
    /// [taken over](crate::LoopInstance::taking_over), where the context is the handler's own, the
    /// handler goes on, and its machine is dropped with its response.
    #[doc(alias = "block_in_place")]
    pub fn blocking<V>(&mut self, f: impl FnOnce() -> V) -> V {
        let section = self.context.release_loop();
        if section == Section::Taken {
            return f();
        }
        let value = catch_unwind(AssertUnwindSafe(f));
        // First in any case: drops during unwinding may need the loop.
        if section == Section::HandedOver {
            self.context.reclaim_loop();
        } else {
            self.environment.count_inline();
            self.refresh_now();
        }
        value.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs `f` as [`blocking`](Scope::blocking) does, but at most as many sections at a time as
    /// there are permits, across all loops and threads. This is for a resource that stands only a
    /// few users at a time, or for work that must not occupy all threads.
    ///
    /// # Errors
    ///
    /// [`NoPermit`], with the closure, if no permit is free. To wait for one, use [`Permits::ask`].
    pub fn blocking_with<V, F>(&mut self, permits: &Permits, f: F) -> Result<V, NoPermit<F>>
    where
        F: FnOnce() -> V,
    {
        match permits.try_take() {
            // Moved there, so that the permit is free when the section ends. This thread may get
            // the loop back much later.
            Some(mut permit) => Ok(self.blocking(move || permit.run(f))),
            None => Err(NoPermit(f)),
        }
    }

    /// Returns whether another thread would go on with the loop during
    /// [`blocking`](Scope::blocking), provided that a thread is left. With this, code can choose
    /// between a section and the pool.
    pub fn hands_over(&self) -> bool {
        self.context.hands_over()
    }
}

impl<F> NoPermit<F> {
    /// Returns the section, which was not run.
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
