//! `Driven`: a future inside a machine.

use std::fmt;
use std::pin::Pin;
use std::task::Poll;

use rotor_core::{Scope, Time};

use crate::poller::Poller;

/// A future that a machine keeps, and polls when it is woken.
///
/// **The future runs on the loop, in the handlers of its machine; what it awaits wakes that
/// machine.** It need not be `Send`; a machine that holds one is not `Send` either, and stays with
/// its loop.
///
/// * Poll it in `wakeup` and, if it [sleeps](crate::sleep), also in `timeout`, with
///   [`deadline`](Driven::deadline) as the machine's deadline. Unneeded polls do no harm (wake-ups
///   may be spurious), nor do polls after its end.
/// * The machine must also make the first poll; nothing does that for it. [`Scope::wake_self`]
///   causes a `wakeup` in which to make it.
/// * A future that wakes itself is polled again in the next turn, after the other machines. A
///   future that computes for long, or awaits only what is always ready, holds up the loop like any
///   handler that blocks ([`Blocking`](rotor_core::Blocking) names its machine).
/// * To cancel the future, drop this value: the future is dropped, wherever it is. If a waker of it
///   remains, it wakes nothing, or wakes the machine spuriously.
/// * A panic in a poll is a panic in the machine's handler: that machine is lost, and the future is
///   dropped.
///
/// # Examples
///
/// A machine that waits for a number, and ends when it has it:
///
/// ```
/// # use rotor_core as rotor;
/// use std::task::Poll;
///
/// use rotor_async::Driven;
/// use rotor::{Config, Infallible, Loop, Machine, Response, Scope};
///
/// struct Sum(Driven<u32>);
///
/// impl Machine for Sum {
///     type Context = u32;
///     type Seed = Infallible;
///
///     fn wakeup(mut self, scope: &mut Scope<'_, u32>) -> Response<Self> {
///         match self.0.poll(scope) {
///             Poll::Ready(sum) => {
///                 **scope = sum;
///                 Response::done()
///             }
///             Poll::Pending => Response::keep(self),
///         }
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = Loop::new(&Config::new())?;
/// creator.add_machine_with(|scope| {
///     let (port, future) = scope.create_future();
///     std::thread::spawn(move || port.set(20));
///     scope.wake_self();
///     Response::ok(Sum(Driven::new(async { rotor_async::wait(future).await.unwrap_or(0) + 1 }, scope)))
/// })?;
/// let mut instance = creator.instantiate(0);
/// instance.run()?;
/// assert_eq!(*instance.context(), 21);
/// # Ok(())
/// # }
/// ```
pub struct Driven<T> {
    /// `None` once the future has ended.
    future: Option<Pin<Box<dyn Future<Output = T>>>>,
    poller: Poller,
}

impl<T> Driven<T> {
    /// Makes a driven future for the machine of this scope. The future is not polled yet.
    pub fn new<C>(future: impl Future<Output = T> + 'static, scope: &Scope<'_, C>) -> Driven<T> {
        Driven { future: Some(Box::pin(future)), poller: Poller::new(scope) }
    }

    /// Polls the future. Once the future has ended it is dropped, and further polls return
    /// `Pending`.
    pub fn poll<C>(&mut self, scope: &Scope<'_, C>) -> Poll<T> {
        // Taken out, so that a future that panics is not polled again.
        let Some(mut future) = self.future.take() else { return Poll::Pending };
        let polled = self.poller.poll(scope, |context| future.as_mut().poll(context));
        match polled {
            Poll::Pending => self.future = Some(future),
            Poll::Ready(_) => {
                drop(future);
                self.poller.release_sleeps();
            }
        }
        polled
    }

    /// Returns when the first of the future's [sleeps](crate::sleep) ends, by which time the future
    /// must be polled. Returns `None` if it does not sleep, or has ended.
    pub fn deadline(&self) -> Option<Time> {
        if self.is_ended() { None } else { self.poller.deadline() }
    }

    /// Returns whether the future has ended, or was dropped because of a panic.
    pub fn is_ended(&self) -> bool {
        self.future.is_none()
    }
}

impl<T> fmt::Debug for Driven<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driven")
            .field("is_ended", &self.is_ended())
            .field("poller", &self.poller)
            .finish()
    }
}
