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
/// continues, and its result is dropped. If the machine that polled this future ends before the work
/// has begun, except by a panic in that poll, another machine that waits for it offers the work
/// again. In a simulation, the
/// simulation decides when the work is done.
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

/// The work, until it begins.
type Work<T> = Box<dyn FnOnce() -> T + Send>;

enum Stage<T> {
    New(Work<T>),
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
    /// The work, if it was dropped before it began.
    unbegun: Option<Work<T>>,
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

/// Does the work, and reports its end; without a value if this is dropped, for example by a panic.
struct Job<T> {
    shared: Arc<Shared<T>>,
    /// `None` once the work has begun.
    work: Option<Work<T>>,
}

impl<T> Job<T> {
    fn run(mut self) {
        if let Some(work) = self.work.take() {
            let value = work();
            self.complete(Ok(value));
        }
    }

    fn complete(&mut self, value: Result<T, FutureError>) {
        let mut state = self.shared.lock();
        if state.value.is_some() || matches!(state.job, JobState::Cancelled) {
            return;
        }
        state.value = Some(value);
        state.unbegun = self.work.take();
        let waker = state.waker.clone();
        drop(state);
        // This also wakes the machine, but the future may be in a set that polls only futures whose
        // own waker is called.
        waker.wake();
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.complete(Err(if panicking() { FutureError::Panicked } else { FutureError::Dropped }));
    }
}

fn deferred_start<T: Send + 'static>(shared: Arc<Shared<T>>, work: Work<T>) -> DeferredStart {
    // Made now, so that the loss is reported if the poll panics and nothing is started.
    let job = Job { shared: shared.clone(), work: Some(work) };
    Box::new(move |pool| {
        let mut state = shared.lock();
        if matches!(state.job, JobState::Cancelled) {
            return;
        }
        state.job = JobState::Submitting;
        drop(state);
        // If the pool refuses the work, it is dropped, which reports its end without a value at
        // once.
        let submitted = pool.submit(Box::new(move || job.run()));
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
                let state =
                    State { job: JobState::NotSubmitted, value: None, unbegun: None, waker };
                let shared = Arc::new(Shared(Mutex::new(state)));
                let is_deferred = poller::defer_start(deferred_start(shared.clone(), work));
                assert!(is_deferred, "`offload` is polled where a loop drives it; see its docs");
                self.stage = Stage::Asked(shared);
                return Poll::Pending;
            }
            Stage::Asked(shared) => shared,
            Stage::Over => return Poll::Pending,
        };
        let mut state = shared.lock();
        if let Some((work, ended_job)) = state.take_abandoned(context.waker()) {
            // Dropped without the lock, like any job.
            drop(state);
            drop(ended_job);
            let _is_deferred = poller::defer_start(deferred_start(shared.clone(), work));
            self.stage = Stage::Asked(shared);
            return Poll::Pending;
        }
        let ended = state.poll_result(context.waker());
        drop(state);
        if ended.is_pending() {
            self.stage = Stage::Asked(shared);
        }
        ended
    }
}

impl<T> State<T> {
    /// Returns work that was not begun because the machine that had requested it has ended, and its
    /// job. The machine that polls now has to request the work anew.
    fn take_abandoned(&mut self, waker: &Waker) -> Option<(Work<T>, JobState)> {
        let JobState::Submitted(job) = &self.job else { return None };
        let work = self.unbegun.take_if(|_| poller::is_of_another_machine(job))?;
        self.value = None;
        self.waker.clone_from(waker);
        Some((work, std::mem::replace(&mut self.job, JobState::NotSubmitted)))
    }

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
