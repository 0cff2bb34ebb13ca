//! `sleep`: waiting for the loop's time in a future.

use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use rotor_core::Time;

use crate::poller;

/// Waits for that time, by the clock of the loop that drives the future, from the first poll on.
///
/// In a simulation this is virtual time. It never ends early; it is as precise as a machine's
/// deadline ([`TICK`](rotor_core::TICK)), which it uses.
///
/// # Panics
///
/// If anything but a [`Poller`](crate::Poller) polls it (a [`Driven`](crate::Driven) future, a
/// [`Task`](crate::Task) and an async handler have one): a task on tokio has no loop's time. Like
/// any panic in a future, it ends that future.
///
/// # Examples
///
/// The first of two futures:
///
/// ```
/// use std::pin::pin;
/// use std::task::Poll;
/// use std::time::Duration;
///
/// async fn within<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
///     let (mut work, mut sleep) = (pin!(work), pin!(rotor_async::sleep(time)));
///     std::future::poll_fn(|context| {
///         if let Poll::Ready(value) = work.as_mut().poll(context) {
///             return Poll::Ready(Some(value));
///         }
///         sleep.as_mut().poll(context).map(|()| None)
///     })
///     .await
/// }
/// ```
pub fn sleep(time: Duration) -> Sleep {
    Sleep { until: Until::After(time), number: NUMBERS.fetch_add(1, Relaxed) }
}

/// Waits until the clock of the loop that drives the future has reached `time`; see [`sleep`].
pub fn sleep_until(time: Time) -> Sleep {
    Sleep { until: Until::At(time), number: NUMBERS.fetch_add(1, Relaxed) }
}

/// Tells sleeps of the same time apart, in the order in which they were made.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The future of [`sleep`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    until: Until,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    /// It was not polled yet.
    After(Duration),
    At(Time),
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Sleep>, context: &mut Context<'_>) -> Poll<()> {
        let now = poller::now().expect("`sleep` is polled where a loop drives it; see its docs");
        let until = match self.until {
            Until::After(time) => now + time,
            Until::At(time) => time,
        };
        self.until = Until::At(until);
        if until <= now {
            poller::forget(until, self.number);
            return Poll::Ready(());
        }
        poller::sleep_until(until, self.number, context.waker());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Until::At(time) = self.until {
            poller::forget(time, self.number);
        }
    }
}
