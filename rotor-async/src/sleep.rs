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
    Sleep { until: SleepEnd::After(time), number: NEXT_NUMBER.fetch_add(1, Relaxed) }
}

/// Sleeps until the clock of the loop that drives the future has reached `time`; see [`sleep`].
pub fn sleep_until(time: Time) -> Sleep {
    Sleep { until: SleepEnd::At(time), number: NEXT_NUMBER.fetch_add(1, Relaxed) }
}

/// Distinguishes sleeps until the same time, in the order in which they were made.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The future of [`sleep`] and [`sleep_until`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    until: SleepEnd,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
enum SleepEnd {
    /// Not polled yet.
    After(Duration),
    At(Time),
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Sleep>, context: &mut Context<'_>) -> Poll<()> {
        let now = poller::now().expect("`sleep` is polled where a loop drives it; see its docs");
        let until = match self.until {
            SleepEnd::After(time) => now + time,
            SleepEnd::At(time) => time,
        };
        self.until = SleepEnd::At(until);
        if until <= now {
            poller::cancel_sleep(until, self.number);
            return Poll::Ready(());
        }
        poller::register_sleep(until, self.number, context.waker());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let SleepEnd::At(time) = self.until {
            poller::cancel_sleep(time, self.number);
        }
    }
}
