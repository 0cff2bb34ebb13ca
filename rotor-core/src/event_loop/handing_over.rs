//! `LoopInstance::handing_over`.

use std::io;

use super::LoopInstance;
use super::handing::{Closes, Relay};
use super::handle::Exit;
use crate::backend::Backend;
use crate::machine::Machine;

impl<M: Machine, B: Backend> LoopInstance<M, B> {
    /// Has the loop go on while a handler blocks: [`run`](LoopInstance::run) has its handlers run
    /// by threads of its own, one at a time, and a handler that calls
    /// [`Scope::blocking`](crate::Scope::blocking) costs its machine the time, and no other.
    ///
    /// Machines, seeds, context and backend go from thread to thread, so they are `Send`; what a
    /// handler keeps in thread-local variables stays behind. How many threads there may be, and
    /// which sections are worth one, is set by [`Config::blocking`](crate::Config::blocking); where
    /// that is not set its defaults hold, the watchdog included. A thread that waits for the loop
    /// spins for up to 100 µs before it sleeps, as long as what it waits for comes meanwhile; where
    /// it did not, up to 63 waits are left out.
    ///
    /// When `run` returns, handlers may still be away: of a loop that was stopped, or in a drain
    /// whose deadline has come, which counts their machines as dropped. Running it again has those
    /// come back that are machines of the loop; once it is dropped, they are unwound when they do.
    ///
    /// [`turn`](LoopInstance::turn) does not hand over, and nobody comes back in it. Asking again
    /// changes nothing.
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use std::time::Duration;
    /// use rotor::{Config, Infallible, Loop, Machine, Response, Scope};
    ///
    /// /// Looks something up where that takes long.
    /// struct Lookup(u32);
    ///
    /// impl Machine for Lookup {
    ///     type Context = Vec<u32>;
    ///     type Seed = Infallible;
    ///
    ///     fn wakeup(self, scope: &mut Scope<'_, Vec<u32>>) -> Response<Self, Infallible> {
    ///         let key = self.0;
    ///         // Meanwhile the other machine does the same.
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
        self.relay = Some(Closes(relay));
        self.run = Some(LoopInstance::run_by_threads);
        self
    }

    /// What `run` does where other threads run the loop.
    pub(super) fn run_by_threads(&mut self) -> io::Result<Exit>
    where
        M: Machine<Seed: Send, Context: Send> + Send + 'static,
        B: Backend<Handle: Send + Sync> + Send + 'static,
    {
        let relay = self.relay.as_ref().map(|closes| closes.0.clone());
        let (Some(relay), Some(baton)) = (relay, self.baton.take()) else {
            return Err(io::Error::other("the loop is with other threads"));
        };
        let (mut baton, ended) = relay.run(baton);
        baton.run_ends();
        self.baton = Some(baton);
        ended
    }
}
