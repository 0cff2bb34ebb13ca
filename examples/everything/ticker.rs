//! `Ticker`: a machine that needs only its deadline. It ends each interval and reports what
//! happened in it.

use std::time::Duration;

use rotor::{Infallible, Machine, Response, Scope, Time};

use super::machine::Shared;

pub(crate) struct Ticker {
    every: Duration,
    began: Time,
}

impl Ticker {
    /// Begins the first interval.
    pub(crate) fn start<C>(every: Duration, scope: &Scope<'_, C>) -> Response<Ticker> {
        let began = scope.now();
        Response::ok(Ticker { every, began }).deadline(began + every)
    }
}

impl Machine for Ticker {
    type Context = Shared;
    type Seed = Infallible;

    fn timeout(self, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        let now = scope.now();
        // If the loop was held up, the interval is longer, and the rates are still right.
        let elapsed = now - self.began;
        if let Some(report) = scope.stats.end_interval(elapsed.as_secs_f64()) {
            (scope.report)(&report);
        }
        Response::ok(Ticker { began: now, ..self }).deadline(now + self.every)
    }

    fn draining(self, _: Time, _: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        Response::done()
    }
}
