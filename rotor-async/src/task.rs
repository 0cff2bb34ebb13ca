//! `Task`: a machine that drives one future.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::Poll;

use rotor_core::{Machine, Response, Scope};

use crate::driven::Driven;

/// A machine that drives one future, and ends with it.
///
/// Spawn it with a [`TaskSeed`], or add it to a loop with [`start`](Task::start). The future is
/// first polled in the next turn, so a panic in it ends the task, not its spawner. A task has no
/// result: let the future send results through a [`Port`](rotor_core::Port) or a
/// [`Sender`](rotor_core::Sender). At the end of a drain the future is dropped, wherever it is.
///
/// # Examples
///
/// ```
/// # use rotor_core as rotor;
/// use std::time::Duration;
///
/// use rotor_async::Task;
/// use rotor::{Config, Exit, Loop};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = Loop::<Task<()>>::new(&Config::new())?;
/// creator.add_machine_with(|scope| {
///     Task::start(async { rotor_async::sleep(Duration::from_millis(1)).await }, scope)
/// })?;
/// assert_eq!(creator.instantiate(()).run()?, Exit::Empty);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "spawn")]
pub struct Task<C> {
    driven: Driven<()>,
    context: PhantomData<fn(C)>,
}

/// The seed of a [`Task`]: its future.
#[must_use = "a future does nothing unless it is driven"]
pub struct TaskSeed(Pin<Box<dyn Future<Output = ()>>>);

impl TaskSeed {
    /// Makes a seed for this future.
    pub fn new(future: impl Future<Output = ()> + 'static) -> TaskSeed {
        TaskSeed(Box::pin(future))
    }
}

impl<C> Task<C> {
    /// Makes the machine of this scope a task that drives `future`.
    pub fn start<N>(
        future: impl Future<Output = ()> + 'static,
        scope: &Scope<'_, impl Sized>,
    ) -> Response<Task<C>, N> {
        scope.wake_self();
        Response::ok(Task { driven: Driven::new(future, scope), context: PhantomData })
    }

    fn poll(mut self, scope: &Scope<'_, C>) -> Response<Task<C>, TaskSeed> {
        match self.driven.poll(scope) {
            Poll::Ready(()) => Response::done(),
            Poll::Pending => {
                let deadline = self.driven.deadline();
                Response::ok(self).deadline_opt(deadline)
            }
        }
    }
}

impl<C> Machine for Task<C> {
    type Context = C;
    type Seed = TaskSeed;

    fn create(seed: TaskSeed, scope: &mut Scope<'_, C>) -> Response<Task<C>> {
        Task::start(seed.0, scope)
    }

    fn wakeup(self, scope: &mut Scope<'_, C>) -> Response<Task<C>, TaskSeed> {
        self.poll(scope)
    }

    fn timeout(self, scope: &mut Scope<'_, C>) -> Response<Task<C>, TaskSeed> {
        self.poll(scope)
    }
}

impl<C> fmt::Debug for Task<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.driven).finish()
    }
}

impl fmt::Debug for TaskSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskSeed")
    }
}
