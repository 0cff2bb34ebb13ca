//! `LoopInstance::taking_over`.

use super::LoopInstance;
use super::relay::{Relay, RelayGuard};
use crate::backend::Backend;
use crate::blocking::SharedContext;
use crate::machine::Machine;

impl<M: Machine, B: Backend> LoopInstance<M, B> {
    /// Makes the loop go on while a handler blocks, whether or not the handler declares that.
    /// Declared sections work as with [`handing_over`](LoopInstance::handing_over). If a handler
    /// blocks without a declaration, the watchdog takes the loop from its thread, and another
    /// thread goes on with it.
    ///
    /// **From then on that handler overlaps with others**, until it returns. It keeps the context
    /// that it was lent, and the other thread has a clone, which must be another handle to the same
    /// data: that is the promise of [`SharedContext`]. Events for its machine wait meanwhile, and
    /// its response is applied by the thread that runs the loop at that time.
    ///
    /// A handler counts as stuck when it has run for longer than
    /// [`Blocking::patience`](crate::Blocking::patience) (10 ms). If the loop has not polled for so
    /// long, in one handler or in many,
    /// [`Blocking::patience_behind`](crate::Blocking::patience_behind) (100 µs) applies instead.
    /// Time in which other threads had the CPU is not counted (on Linux), except, while the loop is
    /// behind, before the thread of a handler was first sampled.
    ///
    /// **The loop does not wait for machines of the same type as a stuck one.** The next handler of
    /// a machine of that [type](Machine::type_name) is called on another thread from the beginning,
    /// and the loop goes on at once. Each such handler that takes long as well (`patience_behind`)
    /// allows more of them at a time, up to the number of threads; each short one halves that
    /// number. So if a hundred handlers block at once, the loop is free of them after a few checks
    /// of the watchdog.
    ///
    /// # When the loop is not taken
    ///
    /// The loop is not taken from its thread while it makes a machine
    /// ([`create`](Machine::create)), calls `make_room`, drops a machine, or calls a closure
    /// between handlers: code that blocks there holds up the loop. The same holds if no thread is
    /// left ([`Blocking::threads_max`](crate::Blocking::threads_max)), or if the system had none
    /// for the watchdog. The statistics count handlers from which the loop was
    /// [taken](crate::Stats::taken_over), those of them that have
    /// [returned](crate::Stats::late_answers), and those for which there was [no
    /// thread](crate::Stats::no_thread).
    ///
    /// # Other differences
    ///
    /// In a handler from which the loop was taken, [`Scope::blocking`](crate::Scope::blocking) runs
    /// its section on the spot, which holds up nothing. [`Scope::now`](crate::Scope::now) still
    /// returns the loop's time there, which goes on. When `run` returns, such handlers may still be
    /// away: if the loop was stopped, or drained, in which case their machines count as dropped. If
    /// the loop is run again, their responses are applied. If it is dropped, they are dropped with
    /// their machines. [`into_context`](LoopInstance::into_context) returns the handle of the
    /// thread that ran the loop last.
    ///
    /// Each event costs two operations on an uncontended lock, some 15 ns. A second call of this
    /// method, or a call of `handing_over` before or after it, has no effect: the first call
    /// counts.
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
    ///     /// Waits for the other task, without declaring that it blocks.
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
    /// // The loop did not wait for the other handler.
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
        let relay = Relay::with_takeover(environment, control, blocking, M::Context::clone);
        self.relay = Some(RelayGuard(relay));
        self.run = Some(LoopInstance::run_on_threads);
        self
    }

    /// Takes the loop from the running handler, as the watchdog does, which the models do not have.
    #[cfg(rotor_loom)]
    pub fn taker(&self) -> impl Fn() -> bool + Send + 'static
    where
        M: Machine<Seed: Send, Context: Send> + Send + 'static,
        B: Backend<Handle: Send + Sync> + Send + 'static,
    {
        let relay = self.relay.as_ref().map(|guard| std::sync::Arc::downgrade(&guard.0));
        move || {
            let relay = relay.as_ref().and_then(std::sync::Weak::upgrade);
            relay.is_some_and(|relay| {
                relay.take_over(None) == crate::blocking::TakeoverResult::Taken
            })
        }
    }
}
