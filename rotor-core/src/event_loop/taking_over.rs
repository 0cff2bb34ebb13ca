//! `LoopInstance::taking_over`.

use super::LoopInstance;
use super::handing::{Closes, Relay};
use crate::backend::Backend;
use crate::blocking::SharedContext;
use crate::machine::Machine;

impl<M: Machine, B: Backend> LoopInstance<M, B> {
    /// Has the loop go on while a handler blocks, whether or not that says so: as
    /// [`handing_over`](LoopInstance::handing_over) where it does, and where it does not, the
    /// watchdog takes the loop from a thread that is stuck, and has another one go on with it.
    ///
    /// **From then on that handler overlaps with others**, until it has answered. It keeps the
    /// context that it was lent, and the others have a clone, which is another handle to the same
    /// things: that is what [`SharedContext`] says. What comes for its machine meanwhile waits; its
    /// answer is applied by whoever runs the loop then.
    ///
    /// A handler is stuck that runs for longer than
    /// [`Blocking::patience`](crate::Blocking::patience) (10 ms); once the loop has not polled for
    /// so long, in one handler or in many, for longer than
    /// [`Blocking::patience_behind`](crate::Blocking::patience_behind) (100 µs). Time in which
    /// other threads had the CPU is not counted (on Linux).
    ///
    /// **Nor are those waited for whose like were stuck just now.** The next handler of a machine of the
    /// same [type](Machine::type_name) is called by another thread from the beginning, and the loop goes
    /// on at once; if it took long as well (`patience_behind`), so are more of them at a time, up to all
    /// threads that there are, and half as many for each that was short. So a hundred that block at once
    /// are let go after a few looks of the watchdog.
    ///
    /// # What is not taken
    ///
    /// The loop is its own thread's while it makes a machine ([`create`](Machine::create)), asks
    /// one for room, drops one, or calls a closure between handlers: what blocks there holds it up.
    /// So does all that blocks where no thread is left
    /// ([`Blocking::threads_max`](crate::Blocking::threads_max)), or the system had none for the
    /// watchdog. Statistics count what was [taken](crate::Stats::taken_over), what has
    /// [answered](crate::Stats::late_answers) and what had [no thread](crate::Stats::no_thread).
    ///
    /// # What else is different
    ///
    /// [`Scope::blocking`](crate::Scope::blocking) in a handler from which the loop was taken runs
    /// its section there, and holds up nobody. [`Scope::now`](crate::Scope::now) is in such a
    /// handler the loop's, and goes on. When `run` returns, such handlers may still be away: of a
    /// loop that was stopped, or drained, which counts their machines as dropped. Running it again
    /// has their answers applied; once it is dropped, they are dropped with their machines.
    /// [`into_context`](LoopInstance::into_context) returns the handle of who ran the loop last.
    ///
    /// Each event costs two steps of a lock that nobody else wants, some 15 ns. Asking again, or
    /// for `handing_over` before or after it, changes nothing: the first counts.
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use std::sync::{Arc, Mutex, mpsc};
    /// use rotor::{Config, Infallible, Loop, Machine, Response, Scope, SharedContext};
    ///
    /// #[derive(Clone, Default)]
    /// struct Shared(Arc<Mutex<Vec<&'static str>>>);
    ///
    /// impl SharedContext for Shared {}
    ///
    /// enum Task {
    ///     /// Waits for the other, and does not say that it blocks.
    ///     Waits(mpsc::Receiver<()>),
    ///     Ends(mpsc::Sender<()>),
    /// }
    ///
    /// impl Machine for Task {
    ///     type Context = Shared;
    ///     type Seed = Infallible;
    ///
    ///     fn wakeup(self, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
    ///         let done = match self {
    ///             Task::Waits(end) => end.recv().map_or("alone", |()| "late"),
    ///             Task::Ends(end) => end.send(()).map_or("alone", |()| "in time"),
    ///         };
    ///         scope.0.lock().unwrap().push(done);
    ///         Response::done()
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut creator = Loop::new(&Config::new())?;
    /// let (send, receive) = mpsc::channel();
    /// for task in [Task::Waits(receive), Task::Ends(send)] {
    ///     creator.add_machine_with(|scope| {
    ///         scope.wake_self();
    ///         Response::ok(task)
    ///     })?;
    /// }
    /// let mut instance = creator.instantiate(Shared::default()).taking_over();
    /// instance.run()?;
    /// // The other one was not waited for.
    /// assert_eq!(instance.stats().read().taken_over, 2);
    /// assert_eq!(instance.into_context().0.lock().unwrap().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "block_in_place")]
    #[doc(alias = "preemption")]
    #[doc(alias = "work stealing")]
    pub fn taking_over(mut self) -> LoopInstance<M, B>
    where
        M: Machine<Seed: Send, Context: SharedContext> + Send + 'static,
        B: Backend<Handle: Send + Sync> + Send + 'static,
    {
        if self.relay.is_some() && !cfg!(rotor_handed) {
            return self;
        }
        let blocking = self.core_mut().enable_blocking();
        let (environment, control) = (self.environment.clone(), self.control.clone());
        let relay = Relay::taking(environment, control, blocking, M::Context::clone);
        self.relay = Some(Closes(relay));
        self.run = Some(LoopInstance::run_by_threads);
        self
    }

    /// Takes the loop from the handler that runs, as the watchdog does, of which the models of what
    /// threads share have none.
    #[cfg(rotor_loom)]
    pub fn taker(&self) -> impl Fn() -> bool + Send + 'static
    where
        M: Machine<Seed: Send, Context: Send> + Send + 'static,
        B: Backend<Handle: Send + Sync> + Send + 'static,
    {
        let relay = self.relay.as_ref().map(|closes| std::sync::Arc::downgrade(&closes.0));
        move || {
            let relay = relay.as_ref().and_then(std::sync::Weak::upgrade);
            relay.is_some_and(|relay| relay.take_over(None) == crate::blocking::Taking::Taken)
        }
    }
}
