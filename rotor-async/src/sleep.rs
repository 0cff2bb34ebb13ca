//! `sleep`: waiting for the loop's time in a future.

use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use rotor_core::Time;

use crate::poller;

/// Sleeps for `time` by the clock of the loop that drives the future, beginning with the first
/// poll.
///
/// In a simulation the time is virtual. A sleep never ends early. It is as precise as a machine's
/// deadline, which it uses ([`TICK`](rotor_core::TICK)).
///
/// # Panics
///
/// If anything but a [`Poller`](crate::Poller) polls it. A [`Driven`](crate::Driven) future, a
/// [`Task`](crate::Task) and an async handler have one. A task on tokio has no loop's time. Like
/// any panic in a future, this ends that future.
///
/// # Examples
///
/// A time limit for another future:
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

/// Sleeps until the clock of the loop that drives the future has reached `time`; see [`sleep`].
pub fn sleep_until(time: Time) -> Sleep {
    Sleep { until: Until::At(time), number: NUMBERS.fetch_add(1, Relaxed) }
}

/// Distinguishes sleeps until the same time, in the order in which they were made.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The future of [`sleep`] and [`sleep_until`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    until: Until,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    /// Not polled yet.
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
