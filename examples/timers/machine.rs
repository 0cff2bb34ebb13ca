//! A machine that needs only its deadline: it rings a number of times, at random intervals.

use std::time::Duration;

use rotor::{Infallible, Machine, Response, Scope, Time};

/// The counts of all timers of the loop.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) rings: u64,
    /// Rings before their deadline. A loop promises that there are none.
    pub(crate) early: u64,
    /// The longest delay of a ring after its deadline.
    pub(crate) latest: Duration,
}

pub(crate) struct Timer {
    deadline: Time,
    rings_left: u32,
    interval_max: Duration,
}

impl Timer {
    /// Makes a timer that rings `rings` times (at least once), each time after at most
    /// `interval_max`.
    pub(crate) fn start<C>(
        rings: u32,
        interval_max: Duration,
        scope: &Scope<'_, C>,
    ) -> Response<Timer> {
        Timer { deadline: Time::ZERO, rings_left: rings, interval_max }.wait(scope)
    }

    /// The deadline is part of the answer, so no timer is left behind when the machine ends, and
    /// none is forgotten.
    fn wait<C>(mut self, scope: &Scope<'_, C>) -> Response<Timer> {
        self.deadline =
            scope.now() + self.interval_max.mul_f64(scope.random_u64() as f64 / u64::MAX as f64);
        let deadline = self.deadline;
        Response::ok(self).deadline(deadline)
    }
}

impl Machine for Timer {
    type Context = Record;
    type Seed = Infallible;

    fn timeout(mut self, scope: &mut Scope<'_, Record>) -> Response<Self, Infallible> {
        let now = scope.now();
        scope.rings += 1;
        scope.early += u64::from(now < self.deadline);
        scope.latest = scope.latest.max(now - self.deadline);
        self.rings_left = self.rings_left.saturating_sub(1);
        if self.rings_left == 0 { Response::done() } else { self.wait(scope) }
    }
}
