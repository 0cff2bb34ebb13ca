//! `Tokio`: a tokio runtime on a thread beside the loops.

use std::fmt;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::unconstrained;

/// A tokio runtime whose timers and sockets are watched by one thread of its own, for futures that
/// are polled on rotor's loops.
///
/// Libraries on tokio look for a runtime when they make a timer or a socket, or spawn a task.
/// [`compat`](Tokio::compat) gives them this one while their future is polled on a loop. Its thread
/// only wakes that future, and runs the tasks that are spawned. Clones are the same runtime. When
/// the last of them is dropped, it is shut down, without waiting for what is under way.
///
/// What blocks in a future blocks the loop that polls it, even `block_in_place`. `spawn_blocking`
/// uses threads of the runtime (512 at most, tokio's default).
#[derive(Clone)]
pub struct Tokio {
    handle: Handle,
    /// Absent where the runtime is another's.
    owned: Option<Arc<Owned>>,
}

struct Owned(Option<Runtime>);

impl Drop for Owned {
    fn drop(&mut self) {
        // The last clone may go on a thread of the runtime itself, which must not wait for it.
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
    /// There is no thread or descriptor left for it.
    pub fn new() -> io::Result<Tokio> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("rotor-tokio")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Tokio { handle, owned: Some(Arc::new(Owned(Some(runtime)))) })
    }

    /// Uses a runtime that is there: it has to have threads of its own
    /// (`flavor = "multi_thread"`), since nobody else would watch its timers and sockets.
    pub fn of(handle: Handle) -> Tokio {
        Tokio { handle, owned: None }
    }

    /// Uses the runtime in which the caller is, or starts one: also where that one has no thread but
    /// the caller's (`flavor = "current_thread"`, `#[tokio::test]` by itself), which is the loop's
    /// from then on.
    ///
    /// # Errors
    ///
    /// As [`new`](Tokio::new).
    pub fn current_or_new() -> io::Result<Tokio> {
        match Handle::try_current() {
            Ok(handle) if handle.runtime_flavor() != RuntimeFlavor::CurrentThread => {
                Ok(Tokio::of(handle))
            }
            _ => Tokio::new(),
        }
    }

    /// Returns the runtime's handle: for [`SpawnOn`](crate::SpawnOn), and for libraries that ask
    /// for it.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Makes `future` one that is in the runtime's context in each of its polls, and when it is
    /// dropped: tokio's timers and sockets work in it, and `tokio::spawn`.
    pub fn compat<F: Future>(&self, future: F) -> Compat<F> {
        Compat { future: Some(Box::pin(future)), tokio: self.clone() }
    }

    /// Calls `f` in the runtime's context, without a budget: a future that is always ready has to
    /// yield by itself.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let _in_it = self.handle.enter();
        // A loop in `#[tokio::main]` runs within one poll of tokio's. What that may do before it
        // yields (128 steps) is no measure for all polls of the loop: once it was used up, nothing
        // of tokio's would be ready there any more.
        let mut result = None;
        let once = unconstrained(async { result = Some(f()) });
        let _at_once = pin!(once).poll(&mut Context::from_waker(Waker::noop()));
        result.expect("the future above awaits nothing")
    }
}

impl fmt::Debug for Tokio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokio").field("is_owned", &self.owned.is_some()).finish_non_exhaustive()
    }
}

/// The future of [`Tokio::compat`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Compat<F: Future> {
    /// Absent once it has ended, and while it is dropped.
    future: Option<Pin<Box<F>>>,
    tokio: Tokio,
}

// The future has a place of its own.
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
