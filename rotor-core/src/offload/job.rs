//! The job that is made of a closure: whether it still has to begin, and who is told of its result.

use std::fmt;
use std::sync::Weak;
use std::time::Duration;

use super::under_way::UnderWay;
use super::work::{Begun, JobEnd, OffloadWork, QueueAgain};
use crate::clock::Clock;
use crate::coordination::{Permit, Permits, WaitingJob};
use crate::future::{Leave, Lost, Port};
use crate::guard::{drop_guarded, guard, log_guarded};
use crate::time::Time;

/// What a job made by [`Scope::job`](crate::Scope::job) can ask while it runs. A long job should
/// ask now and then whether anybody still waits for it.
pub struct Job<'a> {
    is_cancelled: &'a dyn Fn() -> bool,
    queued_for: Duration,
    begin_before: Time,
    clock: Option<Clock>,
}

impl Job<'_> {
    /// Returns whether the future was dropped, or its machine has ended, so that nobody waits for
    /// the result. It takes a lock that is almost never contended.
    #[doc(alias = "cancellation")]
    pub fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }

    /// Returns how long the job has waited for a thread.
    pub fn queued_for(&self) -> Duration {
        self.queued_for
    }

    /// Reads the clock that runs are measured by; `None` if they are not measured.
    pub(crate) fn now(&self) -> Option<Time> {
        Some(self.clock?.now())
    }

    /// Returns the time before which the job had to begin; [`Time::NEVER`] if none was set.
    pub fn begin_before(&self) -> Time {
        self.begin_before
    }
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job(queued for {:?})", self.queued_for)
    }
}

/// Until when a job must begin: as loop time, and as time since it was given away, so that it takes
/// no clock to decide.
#[derive(Clone, Copy)]
pub(crate) struct BeginBefore {
    pub(crate) time: Time,
    pub(crate) within: Duration,
}

impl BeginBefore {
    pub(crate) const NEVER: BeginBefore = BeginBefore { time: Time::NEVER, within: Duration::MAX };
}

/// A closure, and who is told of its result.
pub(crate) struct Work<T, F> {
    pub(crate) f: F,
    pub(crate) port: Port<T>,
    pub(crate) under_way: UnderWay,
    pub(crate) begin_before: BeginBefore,
    /// The permits of which the job needs one.
    pub(crate) permits: Option<Permits>,
    /// The permit, once it has it.
    pub(crate) permit: Option<Permit>,
}

impl<T, F> OffloadWork for Work<T, F>
where
    F: FnOnce(&Job<'_>) -> T + Send + 'static,
    T: Send + 'static,
{
    fn run(mut self: Box<Self>, begun: &Begun<'_>) -> JobEnd {
        // Whatever becomes of the job now, it needed a permit: it did not just forget about it.
        if let Some(permit) = &mut self.permit {
            permit.note_used();
        }
        // Nobody waits any more: work that has not begun need not be done.
        if self.port.is_cancelled() {
            self.under_way.was_not_claimed();
            return JobEnd::Cancelled;
        }
        let queued_for = begun.queued_for();
        // A thread takes the end of its last job as the beginning of the next one. That job may
        // have come later: then it has not waited at all, and may be too late all the same.
        if queued_for >= self.begin_before.within {
            self.port.lose(Lost::Late);
            return JobEnd::Late;
        }
        if let Some(permits) = self.permits.take() {
            match permits.try_take() {
                Some(permit) => self.permit = Some(permit),
                None => {
                    self.wait_for(&permits, begun);
                    return JobEnd::Waits;
                }
            }
        }
        self.begin(begun);
        JobEnd::Done
    }
}

impl<T, F> Work<T, F>
where
    F: FnOnce(&Job<'_>) -> T + Send + 'static,
    T: Send + 'static,
{
    fn begin(self, begun: &Begun<'_>) {
        let Work { f, port, under_way, begin_before, mut permit, .. } = self;
        if let Some(permit) = &mut permit {
            permit.note_used();
        }
        let is_cancelled = || port.is_cancelled();
        let begin_before = begin_before.time;
        // A panic in here drops the port while the thread unwinds, which tells the future.
        let value = f(&Job {
            is_cancelled: &is_cancelled,
            queued_for: begun.queued_for(),
            begin_before,
            clock: begun.clock(),
        });
        // Before the result is set, so that the machine that gets it finds the permit free.
        drop(permit);
        if port.set(value).is_err() {
            under_way.was_not_claimed();
        }
    }

    /// Waits in line for a permit; then the job is queued anew. If the backend has no queue, the
    /// job is run by whoever gives the permit back.
    fn wait_for(self: Box<Self>, permits: &Permits, begun: &Begun<'_>) {
        let queue_again = begun.queue_again();
        let queued_for = begun.queued_for();
        permits.take_or_wait(Box::new(InLine { work: self, queue_again, queued_for }));
    }
}

/// A job that stands in line for a permit.
struct InLine<T, F> {
    work: Box<Work<T, F>>,
    queue_again: Option<QueueAgain>,
    queued_for: Duration,
}

impl<T, F> WaitingJob for InLine<T, F>
where
    F: FnOnce(&Job<'_>) -> T + Send + 'static,
    T: Send + 'static,
{
    fn leave_on_cancel(&self, line: Weak<dyn Leave>, place: u64) -> bool {
        self.work.port.leave_on_cancel(line, place)
    }

    fn give(mut self: Box<Self>, permit: Permit) {
        self.work.permit = Some(permit);
        self.begin_again();
    }

    fn lose(self: Box<Self>, lost: Lost) {
        // Its pool will find that it is cancelled, count that, and get the place back.
        if self.work.port.is_cancelled() {
            return self.begin_again();
        }
        let Work { f, port, .. } = *self.work;
        port.lose(lost);
        // The closure is foreign code: if its drop panics, the others in line must still be told.
        drop_guarded(f, "a job without a permit");
    }
}

impl<T, F> InLine<T, F>
where
    F: FnOnce(&Job<'_>) -> T + Send + 'static,
    T: Send + 'static,
{
    fn begin_again(self) {
        match self.queue_again {
            Some(queue_again) => queue_again(self.work),
            None => run_guarded(self.work, &Begun::after(self.queued_for)),
        }
    }
}

fn run_guarded(work: Box<dyn OffloadWork>, begun: &Begun<'_>) {
    if let Err(panicked) = guard(|| work.run(begun)) {
        log_guarded!(error, "work that was offloaded {panicked}");
    }
}
