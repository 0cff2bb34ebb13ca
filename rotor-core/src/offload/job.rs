//! The job that is made of a closure: whether it may still begin, and who gets its result.

use std::fmt;
use std::sync::Weak;
use std::time::Duration;

use super::in_flight::InFlightGuard;
use super::work::{JobEnd, JobStart, KeptPlace, OffloadWork};
use crate::clock::Clock;
use crate::coordination::{JobWaiter, Permit, Permits};
use crate::future::{FutureError, Port};
use crate::guard::{drop_guarded, guard, log_guarded};
use crate::time::Time;
use crate::waiter_queue::WaiterQueue;

/// The handle through which a running job reads its own state. [`Scope::job`](crate::Scope::job)
/// passes it to the closure. A long job should check now and then whether its result is still
/// wanted.
pub struct Job<'a> {
    is_cancelled: &'a dyn Fn() -> bool,
    queued_for: Duration,
    begin_before: Time,
    clock: Option<Clock>,
}

impl Job<'_> {
    /// Returns whether the result is no longer wanted, because the future was dropped or its
    /// machine has ended. This takes a lock that is almost never contended.
    #[doc(alias = "cancellation")]
    pub fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }

    /// Returns how long the job has waited for a thread.
    pub fn queued_for(&self) -> Duration {
        self.queued_for
    }

    /// Reads the clock by which runs are measured; `None` if they are not measured.
    pub(crate) fn now(&self) -> Option<Time> {
        Some(self.clock?.now())
    }

    /// Returns the time before which the job had to begin; [`Time::NEVER`] if there is no such
    /// limit.
    pub fn begin_before(&self) -> Time {
        self.begin_before
    }
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job(queued for {:?})", self.queued_for)
    }
}

/// The time before which a job must begin: as loop time, and as a duration since the job was given
/// away, so that no clock need be read to decide.
#[derive(Clone, Copy)]
pub(crate) struct BeginBefore {
    pub(crate) time: Time,
    pub(crate) within: Duration,
}

impl BeginBefore {
    pub(crate) const NEVER: BeginBefore = BeginBefore { time: Time::NEVER, within: Duration::MAX };
}

/// A closure, and the port for its result.
pub(crate) struct ClosureJob<T, F> {
    pub(crate) f: F,
    pub(crate) port: Port<T>,
    pub(crate) in_flight: InFlightGuard,
    pub(crate) begin_before: BeginBefore,
    /// The permits, if the job needs one of them.
    pub(crate) permits: Option<Permits>,
    /// The permit, once the job has it.
    pub(crate) permit: Option<Permit>,
    /// The job runs although nobody waits for its result.
    pub(crate) is_detached: bool,
}

impl<T, F> ClosureJob<T, F> {
    /// Returns whether the job need not be done any more.
    fn is_cancelled(&self) -> bool {
        !self.is_detached && self.port.is_cancelled()
    }

    /// Reports that the job is not done. If it is detached, only the log is left for that.
    fn lose(self, lost: FutureError, why: &str, clock: Option<Clock>) {
        let ClosureJob { f, port, mut in_flight, .. } = self;
        // A simulated loop has no clock here: its log has the first one.
        in_flight.log_loss(why, clock.map_or(Time::ZERO, |clock| clock.now()));
        port.fail(lost);
        // The closure is foreign code: even if its drop panics, the other jobs must be seen to.
        drop_guarded(f, "a job that was not begun");
    }
}

impl<T, F> OffloadWork for ClosureJob<T, F>
where
    F: FnOnce(&Job<'_>) -> T + Send + 'static,
    T: Send + 'static,
{
    fn run(mut self: Box<Self>, begun: &JobStart<'_>) -> JobEnd {
        // Whatever happens to the job now, it has made use of the permit.
        if let Some(permit) = &mut self.permit {
            permit.note_used();
        }
        // The result is no longer wanted, so work that has not begun is skipped.
        if self.is_cancelled() {
            self.in_flight.count_unclaimed();
            return JobEnd::Cancelled;
        }
        let queued_for = begun.queued_for();
        // A thread uses the time when its last job ended as the time when the next one begins. The
        // next job may have been queued after that: then it has not waited at all, and may be too
        // late all the same.
        if queued_for >= self.begin_before.within {
            self.lose(FutureError::Late, "it was too late (begin_before)", begun.clock());
            return JobEnd::Late;
        }
        if let Some(permits) = self.permits.take() {
            match permits.try_take() {
                Some(permit) => self.permit = Some(permit),
                None => {
                    self.wait_for_permit(&permits, begun);
                    return JobEnd::Waits;
                }
            }
        }
        self.execute(begun);
        JobEnd::Done
    }
}

impl<T, F> ClosureJob<T, F>
where
    F: FnOnce(&Job<'_>) -> T + Send + 'static,
    T: Send + 'static,
{
    fn execute(self, begun: &JobStart<'_>) {
        let ClosureJob { f, port, mut in_flight, begin_before, mut permit, is_detached, .. } = self;
        in_flight.note_begun();
        if let Some(permit) = &mut permit {
            permit.note_used();
        }
        let is_cancelled = || !is_detached && port.is_cancelled();
        let begin_before = begin_before.time;
        // A panic in `f` drops the port during unwinding, which completes the future.
        let value = f(&Job {
            is_cancelled: &is_cancelled,
            queued_for: begun.queued_for(),
            begin_before,
            clock: begun.clock(),
        });
        // Before the result is set, so that the machine that gets it finds the permit free.
        drop(permit);
        let unclaimed = port.set(value);
        // Counted before it is dropped, at the end of this function, because that may panic.
        if unclaimed.is_err() && !is_detached {
            in_flight.count_unclaimed();
        }
    }

    /// Waits in the queue for a permit; then the job is queued again. If the backend has no queue,
    /// the job runs on the thread that returns the permit.
    fn wait_for_permit(self: Box<Self>, permits: &Permits, begun: &JobStart<'_>) {
        let kept_place = begun.keep_place();
        let (queued_for, clock) = (begun.queued_for(), begun.clock());
        let request = PermitRequest { work: self, kept_place, queued_for, clock };
        permits.take_or_enqueue(Box::new(request));
    }
}

/// A job that waits in the queue for a permit.
struct PermitRequest<T, F> {
    work: Box<ClosureJob<T, F>>,
    /// Its place in the pool, if the backend has one.
    kept_place: Option<Box<dyn KeptPlace>>,
    queued_for: Duration,
    /// The clock of that pool.
    clock: Option<Clock>,
}

impl<T, F> JobWaiter for PermitRequest<T, F>
where
    F: FnOnce(&Job<'_>) -> T + Send + 'static,
    T: Send + 'static,
{
    fn leave_queue_on_cancel(&self, queue: Weak<dyn WaiterQueue>, place: u64) -> bool {
        let kept_place = self.kept_place.as_ref();
        kept_place.is_none_or(|kept| kept.leave_queue_on_close(queue.clone(), place))
            && (self.work.is_detached || self.work.port.leave_queue_on_cancel(queue, place))
    }

    fn give(mut self: Box<Self>, permit: Permit) {
        self.work.permit = Some(permit);
        self.requeue();
    }

    fn fail(self: Box<Self>, lost: FutureError) {
        // The pool will find that it is cancelled, count that, and free its place.
        if self.work.is_cancelled() {
            return self.requeue();
        }
        let is_pool_closed = self.kept_place.as_ref().is_some_and(|kept| kept.is_pool_closed());
        let (lost, why) = match lost {
            _ if is_pool_closed => (FutureError::Dropped, "its pool is gone"),
            FutureError::Cancelled => (lost, "its permits were closed"),
            _ => (lost, "its permits are gone"),
        };
        self.work.lose(lost, why, self.clock);
    }
}

impl<T, F> PermitRequest<T, F>
where
    F: FnOnce(&Job<'_>) -> T + Send + 'static,
    T: Send + 'static,
{
    fn requeue(self) {
        match self.kept_place {
            Some(kept_place) => kept_place.requeue(self.work),
            None => run_guarded(self.work, &JobStart::after(self.queued_for)),
        }
    }
}

fn run_guarded(work: Box<dyn OffloadWork>, begun: &JobStart<'_>) {
    if let Err(panicked) = guard(|| work.run(begun)) {
        log_guarded!(error, "work that was offloaded {panicked}");
    }
}
