//! `Tokio`: a tokio runtime on a thread beside the loops.

use std::fmt;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::unconstrained;

/// A tokio runtime for futures that are polled on rotor's loops; a single thread runs its timers
/// and sockets.
///
/// Libraries for tokio look for a runtime when they make a timer or a socket, or spawn a task.
/// [`compat`](Tokio::compat) makes this runtime available while their future is polled on a loop.
/// The runtime's thread only wakes that future, and runs spawned tasks. Clones are handles to the
/// same runtime. When the last clone is dropped, the runtime is shut down without waiting for its
/// tasks.
///
/// A future that blocks holds up the loop that polls it, even with `block_in_place`.
/// `spawn_blocking` uses threads of the runtime (at most 512, tokio's default).
///
/// Run the loop on a thread that does not run tokio's tasks, or in the main future of a runtime with
/// `flavor = "multi_thread"`. In a spawned task, and in `block_on` of a `current_thread` runtime,
/// `tokio::task::yield_now` never returns on the loop: there tokio keeps its waker until the poll
/// under way returns, and that is the poll in which the loop runs.
#[derive(Clone)]
pub struct Tokio {
    handle: Handle,
    /// `None` if the runtime belongs to somebody else.
    owned: Option<Arc<OwnedRuntime>>,
}

struct OwnedRuntime(Option<Runtime>);

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        // The last clone may be dropped on a thread of the runtime, which must not wait for itself.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Tokio {
    /// Starts a runtime, with one thread.
    ///
    /// # Errors
    ///
    /// No thread or file descriptor is available.
    pub fn new() -> io::Result<Tokio> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("rotor-tokio")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Tokio { handle, owned: Some(Arc::new(OwnedRuntime(Some(runtime)))) })
    }

    /// Uses an existing runtime. It must have threads of its own (`flavor = "multi_thread"`),
    /// because nothing else would run its timers and sockets.
    pub fn of(handle: Handle) -> Tokio {
        Tokio { handle, owned: None }
    }

    /// Uses the runtime in which it is called, or starts one. It also starts one if the current
    /// runtime has no thread but the caller's (`flavor = "current_thread"`, or `#[tokio::test]`
    /// without a flavor), because that thread will run the loop.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Tokio::new).
    pub fn current_or_new() -> io::Result<Tokio> {
        match Handle::try_current() {
            Ok(handle) if handle.runtime_flavor() != RuntimeFlavor::CurrentThread => {
                Ok(Tokio::of(handle))
            }
            _ => Tokio::new(),
        }
    }

    /// Returns the runtime's handle, for [`SpawnOn`](crate::SpawnOn) and for libraries that take
    /// one.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Wraps `future` so that each of its polls, and its drop, happen in the runtime's context. In
    /// it, tokio's timers, sockets and `tokio::spawn` work.
    pub fn compat<F: Future>(&self, future: F) -> Compat<F> {
        Compat { future: Some(Box::pin(future)), tokio: self.clone() }
    }

    /// Calls `f` in the runtime's context, without tokio's cooperative budget. So a future that is
    /// always ready has to yield by itself.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let _guard = self.handle.enter();
        without_budget(f)
    }
}

/// Calls `f` without tokio's cooperative budget. A loop in `#[tokio::main]` runs within a single
/// poll of tokio's. The budget of one poll (128 steps) must not apply to all polls of the loop: once
/// it was used up, no resource of tokio's would be ready there any more.
pub(crate) fn without_budget<R>(f: impl FnOnce() -> R) -> R {
    let mut result = None;
    let once = unconstrained(async { result = Some(f()) });
    let _polled = pin!(once).poll(&mut Context::from_waker(Waker::noop()));
    result.expect("the future above awaits nothing")
}

impl fmt::Debug for Tokio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokio").field("is_owned", &self.owned.is_some()).finish_non_exhaustive()
    }
}

/// The future of [`Tokio::compat`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Compat<F: Future> {
    /// `None` once the future has ended, and while it is dropped.
    future: Option<Pin<Box<F>>>,
    tokio: Tokio,
}

// The future is boxed, so moving this does not move it.
impl<F: Future> Unpin for Compat<F> {}

impl<F: Future> Future for Compat<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Compat<F>>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Compat { future, tokio } = &mut *self;
        tokio.enter(|| {
            let Some(polled) = future else { return Poll::Pending };
            let polled = polled.as_mut().poll(context);
            if polled.is_ready() {
                *future = None;
            }
            polled
        })
    }
}

impl<F: Future> Drop for Compat<F> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.tokio.enter(|| drop(future));
        }
    }
}

impl<F: Future> fmt::Debug for Compat<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compat").field("is_ended", &self.future.is_none()).finish_non_exhaustive()
    }
}
