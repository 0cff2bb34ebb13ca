//! `LoopInstance::handing_over`.

use std::io;

use super::LoopInstance;
use super::handle::Exit;
use super::relay::{Relay, RelayGuard};
use crate::backend::Backend;
use crate::machine::Machine;

impl<M: Machine, B: Backend> LoopInstance<M, B> {
    /// Makes the loop go on while a handler blocks. [`run`](LoopInstance::run) then calls the
    /// handlers on threads of its own, one at a time, and a handler that calls
    /// [`Scope::blocking`](crate::Scope::blocking) delays its own machine, but no other.
    ///
    /// Machines, seeds, the context and the backend move between threads, so they must be `Send`.
    /// Thread-local variables do not move with a handler's machine.
    /// [`Config::blocking`](crate::Config::blocking) sets how many threads there may be, and which
    /// sections are worth one; without it the defaults apply, including the watchdog. A thread that
    /// waits for the loop spins for up to 100 µs before it sleeps, as long as spinning has been
    /// worth it; after spinning in vain, up to 63 waits pass without it.
    ///
    /// When `run` returns, handlers may still be away: if the loop was stopped, or if the time of a
    /// drain was over, in which case their machines count as dropped. If the loop is run again,
    /// handlers come back whose machines still belong to it. If the loop is dropped, handlers are
    /// unwound when they come back.
    ///
    /// If the system has no thread for the loop when `run` begins, handlers are called on the thread
    /// that called `run`. A section there holds up the loop, which counts in
    /// [`Stats::no_thread`](crate::Stats::no_thread); after that turn the loop moves to another
    /// thread, if there is one by then.
    ///
    /// [`turn`](LoopInstance::turn) does not hand the loop over, and no handler comes back in it. A
    /// second call of this method has no effect.
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use std::time::Duration;
    /// use rotor::{Config, Infallible, Loop, Machine, Response, Scope};
    ///
    /// /// Does a slow lookup.
    /// struct Lookup(u32);
    ///
    /// impl Machine for Lookup {
    ///     type Context = Vec<u32>;
    ///     type Seed = Infallible;
    ///
    ///     fn wakeup(self, scope: &mut Scope<'_, Vec<u32>>) -> Response<Self, Infallible> {
    ///         let key = self.0;
    ///         // The other machine does the same meanwhile.
    ///         let found = scope.blocking(move || {
    ///             std::thread::sleep(Duration::from_millis(20));
    ///             key * 10
    ///         });
    ///         scope.push(found);
    ///         Response::done()
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut creator = Loop::new(&Config::new())?;
    /// for key in 1..=2 {
    ///     creator.add_machine_with(|scope| {
    ///         scope.wake_self();
    ///         Response::ok(Lookup(key))
    ///     })?;
    /// }
    /// let mut instance = creator.instantiate(Vec::new()).handing_over();
    /// instance.run()?;
    /// assert_eq!(instance.stats().read().handed_over, 2);
    /// assert_eq!(instance.into_context().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "block_in_place")]
    #[doc(alias = "spawn_blocking")]
    pub fn handing_over(mut self) -> LoopInstance<M, B>
    where
        M: Machine<Seed: Send, Context: Send> + Send + 'static,
        B: Backend<Handle: Send + Sync> + Send + 'static,
    {
        if self.relay.is_some() && !cfg!(rotor_handed) {
            return self;
        }
        let blocking = self.core_mut().enable_blocking();
        let relay = Relay::new(self.environment.clone(), self.control.clone(), blocking);
        self.relay = Some(RelayGuard(relay));
        self.run = Some(LoopInstance::run_on_threads);
        self
    }

    /// Lets sections be lent, and returns what the watchdog, which the models do not have, does at
    /// each check: it takes a loop that is still lent since before the previous check.
    #[cfg(rotor_loom)]
    pub fn rescuer(&mut self) -> impl FnMut() + Send + 'static
    where
        M: Machine<Seed: Send, Context: Send> + Send + 'static,
        B: Backend<Handle: Send + Sync> + Send + 'static,
    {
        if let Some(baton) = &mut self.baton {
            baton.loop_state.is_watched = true;
        }
        let relay = self.relay.as_ref().map(|guard| std::sync::Arc::downgrade(&guard.0));
        let mut seen = 0;
        move || {
            if let Some(relay) = relay.as_ref().and_then(std::sync::Weak::upgrade) {
                seen = relay.pass_on_lent(seen);
            }
        }
    }

    /// What `run` does if other threads run the loop.
    pub(super) fn run_on_threads(&mut self) -> io::Result<Exit>
    where
        M: Machine<Seed: Send, Context: Send> + Send + 'static,
        B: Backend<Handle: Send + Sync> + Send + 'static,
    {
        let relay = self.relay.as_ref().map(|guard| guard.0.clone());
        let (Some(relay), Some(baton)) = (relay, self.baton.take()) else {
            return Err(io::Error::other("the loop is with other threads"));
        };
        let (mut baton, ended) = relay.run(baton);
        baton.run_end_functions();
        self.baton = Some(baton);
        ended
    }
}
