//! The job that is made of a closure: whether it is to be begun, and who is told what came of it.

use std::fmt;
use std::time::Duration;

use super::under_way::UnderWay;
use super::work::{Begun, JobEnd, OffloadWork};
use crate::future::{Lost, Port};
use crate::time::Time;

/// What a job that was made by [`Scope::job`](crate::Scope::job) can ask while it runs: a long one
/// looks now and then whether anybody still waits.
pub struct Job<'a> {
    is_cancelled: &'a dyn Fn() -> bool,
    queued_for: Duration,
    begin_before: Time,
}

impl Job<'_> {
    /// Returns whether the future was dropped, or its machine has ended: nobody waits for the
    /// result. It takes a lock that is hardly ever held.
    #[doc(alias = "cancellation")]
    pub fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }

    /// Returns how long the job has waited for a thread.
    pub fn queued_for(&self) -> Duration {
        self.queued_for
    }

    /// Returns the time before which the job was to begin; [`Time::NEVER`] if it was not said.
    pub fn begin_before(&self) -> Time {
        self.begin_before
    }
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job(queued for {:?})", self.queued_for)
    }
}

/// Until when a job is to begin: as loop time, and from when it was given away, so that it takes no
/// clock to decide.
#[derive(Clone, Copy)]
pub(crate) struct BeginBefore {
    pub(crate) time: Time,
    pub(crate) within: Duration,
}

impl BeginBefore {
    pub(crate) const NEVER: BeginBefore = BeginBefore { time: Time::NEVER, within: Duration::MAX };
}

/// A closure, and who is told what came of it.
pub(crate) struct Work<T, F> {
    pub(crate) f: F,
    pub(crate) port: Port<T>,
    pub(crate) under_way: UnderWay,
    pub(crate) begin_before: BeginBefore,
}

impl<T, F> OffloadWork for Work<T, F>
where
    F: FnOnce(&Job<'_>) -> T + Send,
    T: Send,
{
    fn run(self: Box<Self>, begun: &Begun<'_>) -> JobEnd {
        let Work { f, port, under_way, begin_before } = *self;
        // Nobody waits any more: work that has not begun need not be done.
        if port.is_cancelled() {
            under_way.was_not_claimed();
            return JobEnd::Cancelled;
        }
        let queued_for = begun.queued_for();
        if queued_for > begin_before.within {
            port.lose(Lost::Late);
            return JobEnd::Late;
        }
        let is_cancelled = || port.is_cancelled();
        // A panic in here drops the port while the thread unwinds, which tells the future.
        let value =
            f(&Job { is_cancelled: &is_cancelled, queued_for, begin_before: begin_before.time });
        if port.set(value).is_err() {
            under_way.was_not_claimed();
        }
        JobEnd::Done
    }
}
