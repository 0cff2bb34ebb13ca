//! A handler that is woken at a given time, within its deadline.

use rotor_core::Time;
use rotor_http::Limits;
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Scope, Server, ServerConfig,
};
use rotor_stream::testing::Driver;

use crate::probe::{get, post, seconds};
use crate::wire::transcript;

/// Wants to be woken at the interval of its path, in seconds, and records when it was.
struct PeriodicHandler {
    pace: u64,
}

impl Server for PeriodicHandler {
    type Context = Vec<Time>;
    type Seed = ();
    type Upgrade = NoUpgrade<Vec<Time>>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Vec<Time>>,
    ) -> Next<Self> {
        let pace = head.path()[1..].parse().expect("seconds");
        match head.has_body() {
            true => Next::recv(PeriodicHandler { pace }, RecvMode::Buffered(100)).keep_deadline(),
            false => Next::wake_at(PeriodicHandler { pace }, scope.now() + seconds(pace)),
        }
    }

    fn request_received(
        self,
        _: &[u8],
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Vec<Time>>,
    ) -> Next<Self> {
        let time = scope.now() + seconds(self.pace);
        Next::wake_at(self, time)
    }

    fn wakeup(self, _: &mut Response<'_>, scope: &mut Scope<'_, Vec<Time>>) -> Next<Self> {
        let now = scope.now();
        scope.push(now);
        let time = now + seconds(self.pace);
        Next::wake_at(self, time)
    }
}

fn periodic_driver(limits: Limits) -> (Driver<Connection<PeriodicHandler>>, ServerConfig) {
    let config = ServerConfig::new().limits(limits);
    let view = ServerConfig::new().count_with(config.counters());
    (Driver::new(HttpSeed::new((), config), Vec::new()), view)
}

fn handler_timeouts(config: &ServerConfig) -> u64 {
    let counters = config.counters();
    let count = counters.iter().find(|(name, _)| *name == "handler_timeouts");
    count.expect("a counter of this name").1
}

#[test]
fn a_handler_is_woken_at_its_times_and_keeps_its_deadline() {
    for ask in [get("/10"), post("/10", "body")] {
        let (mut driver, config) = periodic_driver(Limits::new());
        let began = driver.now();
        driver.send(&ask);
        driver.advance(seconds(59));
        let expected: Vec<Time> = (1..6).map(|count| began + seconds(10 * count)).collect();
        assert_eq!(*driver.context(), expected);
        assert_eq!((driver.take_received(), handler_timeouts(&config)), (Vec::new(), 0));
        driver.advance(seconds(1));
        assert_eq!(transcript(&driver.take_received()), "503 close");
        assert_eq!(
            (driver.context().len(), handler_timeouts(&config)),
            (5, 1),
            "the deadline comes first"
        );
    }
}

#[test]
fn a_wakeup_after_the_deadline_is_not_delivered() {
    let (mut driver, config) = periodic_driver(Limits::new().handler_timeout(seconds(5)));
    driver.send(&get("/10"));
    driver.advance(seconds(100));
    assert_eq!(transcript(&driver.take_received()), "503 close");
    assert_eq!((driver.context().len(), handler_timeouts(&config)), (0, 1));
}

#[test]
fn a_rescheduled_handler_is_woken_only_at_the_later_time() {
    let (mut driver, _) = periodic_driver(Limits::new());
    let began = driver.now();
    driver.send(&get("/10"));
    driver.advance(seconds(6));
    driver.wakeup();
    driver.advance(seconds(10));
    assert_eq!(*driver.context(), [began + seconds(6), began + seconds(16)]);
}

/// Wants to be woken after ten seconds, and meanwhile waits for another timer, for the seconds of
/// its path.
struct WaitingHandler {
    seconds: u64,
    is_back: bool,
}

impl Server for WaitingHandler {
    type Context = Vec<Time>;
    type Seed = ();
    type Upgrade = NoUpgrade<Vec<Time>>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Vec<Time>>,
    ) -> Next<Self> {
        let handler =
            WaitingHandler { seconds: head.path()[1..].parse().expect("seconds"), is_back: false };
        Next::wake_at(handler, scope.now() + seconds(10))
    }

    fn wakeup(mut self, _: &mut Response<'_>, scope: &mut Scope<'_, Vec<Time>>) -> Next<Self> {
        let now = scope.now();
        if self.is_back {
            scope.push(now);
            return Next::go_on(self).no_deadline();
        }
        self.is_back = true;
        Next::after(now + seconds(self.seconds), |_, _| Next::go_on(self).no_deadline())
    }
}

#[test]
fn a_wakeup_due_during_a_wait_is_delivered_to_the_next_handler() {
    for (pause, woken_after) in [(2, 10), (20, 21)] {
        let seed = HttpSeed::new((), ServerConfig::new());
        let mut driver = Driver::<Connection<WaitingHandler>>::new(seed, Vec::new());
        let began = driver.now();
        driver.send(&get(&format!("/{pause}")));
        driver.advance(seconds(1));
        driver.wakeup();
        driver.advance(seconds(60));
        assert_eq!(*driver.context(), [began + seconds(woken_after)], "{pause}");
    }
}

/// Wants to be woken after the seconds of its path, and goes on after its deadline.
struct PatientHandler;

impl Server for PatientHandler {
    type Context = Vec<(&'static str, Time)>;
    type Seed = ();
    type Upgrade = NoUpgrade<Self::Context>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let pause = head.path()[1..].parse().expect("seconds");
        Next::wake_at(PatientHandler, scope.now() + seconds(pause))
    }

    fn timeout(self, _: &mut Response<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let now = scope.now();
        scope.push(("timeout", now));
        Next::go_on(self).keep_deadline()
    }

    fn wakeup(self, _: &mut Response<'_>, scope: &mut Scope<'_, Self::Context>) -> Next<Self> {
        let now = scope.now();
        scope.push(("wakeup", now));
        Next::go_on(self).keep_deadline()
    }
}

#[test]
fn a_wakeup_that_is_due_together_with_the_deadline_is_replaced_by_it() {
    for (pause, expected) in [
        (3, &[("wakeup", 3), ("timeout", 5)][..]),
        (5, &[("timeout", 5)]),
        (7, &[("timeout", 5), ("wakeup", 7)]),
    ] {
        let config = ServerConfig::new().limits(Limits::new().handler_timeout(seconds(5)));
        let seed = HttpSeed::new((), config);
        let mut driver = Driver::<Connection<PatientHandler>>::new(seed, Vec::new());
        let began = driver.now();
        driver.send(&get(&format!("/{pause}")));
        driver.advance(seconds(60));
        let expected: Vec<_> =
            expected.iter().map(|(event, after)| (*event, began + seconds(*after))).collect();
        assert_eq!(*driver.context(), expected, "{pause}");
    }
}
