//! `SpawnOn`: a task on a tokio runtime whose value is sent to the machine.

use std::pin::Pin;
use std::task::{Context, Poll};

use rotor_core::{Future as Value, Port, Scope};
use tokio::runtime::Handle;

/// Runs a future on a tokio runtime, and sends its value to the machine.
pub trait SpawnOn {
    /// Spawns `future` on the runtime, where it runs on the runtime's threads. Returns a future
    /// that wakes the machine when the value has arrived.
    ///
    /// Dropping the returned future aborts the task: `future` is dropped, on the runtime, at its
    /// next `await`. If the task panics, the outcome is
    /// [`FutureError::Panicked`](rotor_core::FutureError); if the runtime is shut down before the
    /// task ends, `FutureError::Dropped`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use rotor_async::{SpawnOn, Tokio};
    /// use rotor::{Future, Scope};
    ///
    /// fn ask<C>(tokio: &Tokio, scope: &Scope<'_, C>) -> Future<u32> {
    ///     scope.spawn_on(tokio.handle(), async { 21 * 2 })
    /// }
    /// ```
    fn spawn_on<T: Send + 'static>(
        &self,
        handle: &Handle,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Value<T>;
}

impl<C> SpawnOn for Scope<'_, C> {
    fn spawn_on<T: Send + 'static>(
        &self,
        handle: &Handle,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Value<T> {
        let (port, value) = self.create_future();
        // The port reports the end of the task.
        let _task = handle.spawn(PortTask { port: Some(port), future: Box::pin(future) });
        value
    }
}

/// Polls the future until its value is ready, or nobody waits for it.
struct PortTask<T> {
    /// `None` while the future is polled, and at the end.
    port: Option<Port<T>>,
    future: Pin<Box<dyn Future<Output = T> + Send>>,
}

impl<T> Unpin for PortTask<T> {}

impl<T> Future for PortTask<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut PortTask<T>>, context: &mut Context<'_>) -> Poll<()> {
        // Taken out, so that a panic drops the port during unwinding, which reports the panic.
        let Some(port) = self.port.take() else { return Poll::Ready(()) };
        if port.poll_cancelled(context).is_ready() {
            return Poll::Ready(());
        }
        match self.future.as_mut().poll(context) {
            Poll::Ready(value) => {
                // `Err`: nobody waits any more.
                let _nobody_waits = port.set(value);
                Poll::Ready(())
            }
            Poll::Pending => {
                self.port = Some(port);
                Poll::Pending
            }
        }
    }
}
