//! `offload`: work on another thread, requested by a future.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::panicking;

use rotor_core::{Future as Value, FutureError, Outcome};

use crate::deferred_start::DeferredStart;
use crate::poller;

/// Runs `work` on a thread of the loop's pool, and returns its result. This is
/// [`Scope::offload`](rotor_core::Scope::offload) for futures, which have no scope.
///
/// The work is offered to the pool after the poll in which this future is first polled. If the
/// future is dropped before the work has begun, the work is not done. Work that has begun
/// continues, and its result is dropped. In a simulation, the simulation decides when the work is
/// done.
///
/// # Errors
///
/// [`OffloadError`]: the pool is full, or the work panicked.
///
/// # Panics
///
/// If anything but a [`Poller`](crate::Poller) polls it, like [`sleep`](crate::sleep).
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

// It is never pinned structurally.
impl<T> Unpin for Offload<T> {}

/// State that the future, the code after the poll and the working thread share.
struct Shared<T>(Mutex<State<T>>);

struct State<T> {
    job: JobState,
    value: Option<Result<T, FutureError>>,
    waker: Waker,
}

enum JobState {
    /// The poll has not returned yet.
    NotSubmitted,
    /// The work is being offered to the pool, and the result of that is not known yet.
    Submitting,
    Rejected,
    Submitted(Value<()>),
    /// The future no longer waits.
    Cancelled,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports the end of the work; without a value if it is dropped, for example by a panic.
struct CompletionGuard<T>(Arc<Shared<T>>);

impl<T> CompletionGuard<T> {
    fn complete(&self, value: Result<T, FutureError>) {
        let mut state = self.0.lock();
        if state.value.is_some() || matches!(state.job, JobState::Cancelled) {
            return;
        }
        state.value = Some(value);
        let waker = state.waker.clone();
        drop(state);
        // This also wakes the machine, but the future may be in a set that polls only futures whose
        // own waker is called.
        waker.wake();
    }
}

impl<T> Drop for CompletionGuard<T> {
    fn drop(&mut self) {
        self.complete(Err(if panicking() { FutureError::Panicked } else { FutureError::Dropped }));
    }
}

fn deferred_start<T: Send + 'static>(
    shared: Arc<Shared<T>>,
    work: Box<dyn FnOnce() -> T + Send>,
) -> DeferredStart {
    // Made now, so that the loss is reported if the poll panics and nothing is started.
    let guard = CompletionGuard(shared.clone());
    Box::new(move |pool| {
        let mut state = shared.lock();
        if matches!(state.job, JobState::Cancelled) {
            return;
        }
        state.job = JobState::Submitting;
        drop(state);
        // If the pool refuses the work, it is dropped, which reports its end without a value at
        // once.
        let submitted = pool.submit(Box::new(move || guard.complete(Ok(work()))));
        let mut state = shared.lock();
        if matches!(state.job, JobState::Cancelled) {
            // Dropped without the lock. Work that has not begun is cancelled by that.
            drop(state);
            drop(submitted);
            return;
        }
        state.job = submitted.map_or(JobState::Rejected, JobState::Submitted);
        // A poll on another thread in the meantime could not tell why there is no value.
        if matches!(state.job, JobState::Rejected) || matches!(state.value, Some(Err(_))) {
            let waker = state.waker.clone();
            drop(state);
            waker.wake();
        }
    })
}

impl<T: Send + 'static> Future for Offload<T> {
    type Output = Result<T, OffloadError>;

    fn poll(
        mut self: std::pin::Pin<&mut Offload<T>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<T, OffloadError>> {
        let shared = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::New(work) => {
                let waker = context.waker().clone();
                let state = State { job: JobState::NotSubmitted, value: None, waker };
                let shared = Arc::new(Shared(Mutex::new(state)));
                let is_deferred = poller::defer_start(deferred_start(shared.clone(), work));
                assert!(is_deferred, "`offload` is polled where a loop drives it; see its docs");
                self.stage = Stage::Asked(shared);
                return Poll::Pending;
            }
            Stage::Asked(shared) => shared,
            Stage::Over => return Poll::Pending,
        };
        let ended = shared.lock().poll_result(context.waker());
        if ended.is_pending() {
            self.stage = Stage::Asked(shared);
        }
        ended
    }
}

impl<T> State<T> {
    fn poll_result(&mut self, waker: &Waker) -> Poll<Result<T, OffloadError>> {
        self.waker.clone_from(waker);
        // Checked before the value, which is set before the job is done.
        let lost_reason = match std::mem::replace(&mut self.job, JobState::Cancelled) {
            JobState::NotSubmitted => {
                self.job = JobState::NotSubmitted;
                None
            }
            JobState::Submitting => {
                self.job = JobState::Submitting;
                // A value counts in any case; if there is none, the pool will say why.
                match self.value.take_if(|value| value.is_ok()) {
                    Some(value) => return Poll::Ready(value.map_err(OffloadError::Lost)),
                    None => return Poll::Pending,
                }
            }
            JobState::Rejected => Some(OffloadError::Full),
            JobState::Submitted(job) => match job.take() {
                Outcome::Pending(job) => {
                    self.job = JobState::Submitted(job);
                    None
                }
                Outcome::Value(()) => Some(OffloadError::Lost(FutureError::Dropped)),
                Outcome::Lost(lost) => Some(OffloadError::Lost(lost)),
            },
            JobState::Cancelled => Some(OffloadError::Lost(FutureError::Dropped)),
        };
        match (self.value.take(), lost_reason) {
            (Some(Ok(value)), _) => Poll::Ready(Ok(value)),
            // The pool knows more precisely why there is no value.
            (_, Some(lost)) => Poll::Ready(Err(lost)),
            (Some(Err(lost)), None) => Poll::Ready(Err(OffloadError::Lost(lost))),
            (None, None) => Poll::Pending,
        }
    }
}

/// Cancels work that has not begun. The work itself holds the other end.
impl<T> Drop for Offload<T> {
    fn drop(&mut self) {
        if let Stage::Asked(shared) = &self.stage {
            let job = std::mem::replace(&mut shared.lock().job, JobState::Cancelled);
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

/// Why work for another thread has no result.
#[doc(alias = "Unworked")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffloadError {
    /// The pool's queue is full: nobody's fault. Respond that the service is busy, or try again
    /// later.
    Full,
    /// The work was begun or waited to begin, and has no result. Usually it panicked.
    Lost(FutureError),
}

impl fmt::Display for OffloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OffloadError::Full => f.write_str("the offload pool is full"),
            OffloadError::Lost(_) => f.write_str("the work on another thread has no result"),
        }
    }
}

impl Error for OffloadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OffloadError::Full => None,
            OffloadError::Lost(lost) => Some(lost),
        }
    }
}
