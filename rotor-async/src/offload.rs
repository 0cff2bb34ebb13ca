//! `offload`: work for another thread, requested within a future.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::panicking;

use rotor_core::{Future as Value, Lost, Outcome};

use crate::poller;
use crate::start::Start;

/// Has a thread of the loop's pool do `work`, and returns its result. It is
/// [`Scope::offload`](rotor_core::Scope::offload) for a future, which has no scope.
///
/// The work is offered once the poll in which this future is first polled has returned. If the
/// future is dropped before the work has begun, the work is not done; work that has begun goes on,
/// and its value is dropped. In a simulation, the simulation decides when the work is done.
///
/// # Errors
///
/// [`Unworked`]: the pool is full, or the work panicked.
///
/// # Panics
///
/// If anything but a [`Poller`](crate::Poller) polls it, as with [`sleep`](crate::sleep).
///
/// # Examples
///
/// ```
/// # fn heavy() -> u32 { 42 }
/// async fn answer() -> String {
///     match rotor_async::offload(heavy).await {
///         Ok(number) => number.to_string(),
///         Err(unworked) => unworked.to_string(),
///     }
/// }
/// # let _ = answer;
/// ```
#[doc(alias = "spawn_blocking")]
pub fn offload<T, F>(work: F) -> Offload<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    Offload { stage: Stage::New(Box::new(work)) }
}

/// The future of [`offload`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Offload<T> {
    stage: Stage<T>,
}

enum Stage<T> {
    New(Box<dyn FnOnce() -> T + Send>),
    Asked(Arc<Shared<T>>),
    Over,
}

// Nothing of it is ever borrowed from itself.
impl<T> Unpin for Offload<T> {}

/// What the future, the poll's end and the thread that works share.
struct Shared<T>(Mutex<State<T>>);

struct State<T> {
    job: Job,
    value: Option<Result<T, Lost>>,
    waker: Waker,
}

enum Job {
    /// The poll has not returned yet.
    Unoffered,
    /// The pool has it, and has not said yet whether it takes it.
    Offering,
    Full,
    Offered(Value<()>),
    /// Nobody waits any more.
    Cancelled,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The work's end, whatever that is: without a value where it is dropped, by a panic say.
struct End<T>(Arc<Shared<T>>);

impl<T> End<T> {
    fn tell(&self, value: Result<T, Lost>) {
        let mut state = self.0.lock();
        if state.value.is_some() || matches!(state.job, Job::Cancelled) {
            return;
        }
        state.value = Some(value);
        let waker = state.waker.clone();
        drop(state);
        // Besides the machine: the future may be in a set that polls whom its wakers name.
        waker.wake();
    }
}

impl<T> Drop for End<T> {
    fn drop(&mut self) {
        self.tell(Err(if panicking() { Lost::Panicked } else { Lost::Dropped }));
    }
}

fn start<T: Send + 'static>(shared: Arc<Shared<T>>, work: Box<dyn FnOnce() -> T + Send>) -> Start {
    // From now on: after a poll that panics, nothing is started.
    let end = End(shared.clone());
    Box::new(move |pool| {
        let mut state = shared.lock();
        if matches!(state.job, Job::Cancelled) {
            return;
        }
        state.job = Job::Offering;
        drop(state);
        // One that is refused drops the work, which ends without a value here and now.
        let given = pool.give(Box::new(move || end.tell(Ok(work()))));
        let mut state = shared.lock();
        if matches!(state.job, Job::Cancelled) {
            // Without the lock: what has not begun is not to be done any more.
            drop(state);
            drop(given);
            return;
        }
        state.job = given.map_or(Job::Full, Job::Offered);
        // Whoever was polled meanwhile, elsewhere, could not tell why there is no value.
        if matches!(state.job, Job::Full) || matches!(state.value, Some(Err(_))) {
            let waker = state.waker.clone();
            drop(state);
            waker.wake();
        }
    })
}

impl<T: Send + 'static> Future for Offload<T> {
    type Output = Result<T, Unworked>;

    fn poll(
        mut self: std::pin::Pin<&mut Offload<T>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<T, Unworked>> {
        let shared = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::New(work) => {
                let waker = context.waker().clone();
                let state = State { job: Job::Unoffered, value: None, waker };
                let shared = Arc::new(Shared(Mutex::new(state)));
                let is_begun = poller::start(start(shared.clone(), work));
                assert!(is_begun, "`offload` is polled where a loop drives it; see its docs");
                self.stage = Stage::Asked(shared);
                return Poll::Pending;
            }
            Stage::Asked(shared) => shared,
            Stage::Over => return Poll::Pending,
        };
        let ended = shared.lock().ended(context.waker());
        if ended.is_pending() {
            self.stage = Stage::Asked(shared);
        }
        ended
    }
}

impl<T> State<T> {
    fn ended(&mut self, waker: &Waker) -> Poll<Result<T, Unworked>> {
        self.waker.clone_from(waker);
        // Before a look at the value, which is there once the job is done.
        let is_lost = match std::mem::replace(&mut self.job, Job::Cancelled) {
            Job::Unoffered => {
                self.job = Job::Unoffered;
                None
            }
            Job::Offering => {
                self.job = Job::Offering;
                // A value is one, whatever the pool says; that there is none it tells.
                match self.value.take_if(|value| value.is_ok()) {
                    Some(value) => return Poll::Ready(value.map_err(Unworked::Lost)),
                    None => return Poll::Pending,
                }
            }
            Job::Full => Some(Unworked::Full),
            Job::Offered(job) => match job.take() {
                Outcome::Pending(job) => {
                    self.job = Job::Offered(job);
                    None
                }
                Outcome::Value(()) => Some(Unworked::Lost(Lost::Dropped)),
                Outcome::Lost(lost) => Some(Unworked::Lost(lost)),
            },
            Job::Cancelled => Some(Unworked::Lost(Lost::Dropped)),
        };
        match (self.value.take(), is_lost) {
            (Some(Ok(value)), _) => Poll::Ready(Ok(value)),
            // The pool knows better why there is none.
            (_, Some(lost)) => Poll::Ready(Err(lost)),
            (Some(Err(lost)), None) => Poll::Ready(Err(Unworked::Lost(lost))),
            (None, None) => Poll::Pending,
        }
    }
}

/// What has not begun need not be done. The work itself holds the other end.
impl<T> Drop for Offload<T> {
    fn drop(&mut self) {
        if let Stage::Asked(shared) = &self.stage {
            let job = std::mem::replace(&mut shared.lock().job, Job::Cancelled);
            drop(job);
        }
    }
}

impl<T> fmt::Debug for Offload<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::New(_) => "new",
            Stage::Asked(_) => "asked",
            Stage::Over => "over",
        };
        f.debug_struct("Offload").field("stage", &stage).finish()
    }
}

/// Why work for another thread came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unworked {
    /// More waits already than the pool takes: nobody's fault. Say "busy", or try again later.
    Full,
    /// It was begun, or waited for that, and has no value: it panicked, as a rule.
    Lost(Lost),
}

impl fmt::Display for Unworked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unworked::Full => f.write_str("the pool for other work is full"),
            Unworked::Lost(_) => f.write_str("work on another thread came to nothing"),
        }
    }
}

impl Error for Unworked {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Unworked::Full => None,
            Unworked::Lost(lost) => Some(lost),
        }
    }
}
