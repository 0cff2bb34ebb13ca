//! `Port::poll_cancelled`, for async code that computes the value of a future.

use std::task::{Context, Poll};

use super::{OnCancel, Port};

impl<V> Port<V> {
    /// Polls for cancellation: returns `Ready` if the value would not be received
    /// ([`is_cancelled`](Port::is_cancelled)). Otherwise the task is woken when the future is
    /// dropped, instead of what would have been woken before. This is for async code, on any
    /// executor, that should end when its result is not wanted any more.
    ///
    /// If the machine ends but its future lives on elsewhere, the task is not woken.
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use std::pin::Pin;
    /// use std::task::Poll;
    ///
    /// use rotor::Port;
    ///
    /// /// Works on the value until it is there, or nobody wants it any more.
    /// async fn answer<V>(port: Port<V>, mut work: Pin<Box<dyn Future<Output = V> + Send>>) {
    ///     let value = std::future::poll_fn(|context| match port.poll_cancelled(context) {
    ///         Poll::Ready(()) => Poll::Ready(None),
    ///         Poll::Pending => work.as_mut().poll(context).map(Some),
    ///     });
    ///     if let Some(value) = value.await {
    ///         let _nobody_waits_any_more = port.set(value);
    ///     }
    /// }
    /// ```
    #[doc(alias = "poll_closed")]
    #[doc(alias = "async")]
    pub fn poll_cancelled(&self, context: &mut Context<'_>) -> Poll<()> {
        let Some(cell) = &self.cell else { return Poll::Ready(()) };
        let is_known = matches!(
            &cell.lock().on_cancel,
            OnCancel::Waker(waker) if waker.will_wake(context.waker())
        );
        if !is_known {
            cell.set_on_cancel(OnCancel::Waker(context.waker().clone()));
        }
        // Checked after the waker is set: a future that was dropped before did not wake it.
        if self.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }
}
