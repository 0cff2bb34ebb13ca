//! The phases of a drain: announced, draining, over.

use std::time::Duration;

use rotor_core::{Config, Drain, Exit, ExitPolicy, Grace, LoopInstance, Phase, Response, Scope};

use crate::actor::{Actor, Call, actor};
use crate::manual::{Manual, settle};

const SECOND: Duration = Duration::from_secs(1);

/// The call, the phase it was made in, and how long the machine might wait.
type DrainCall = (&'static str, Phase, Option<Duration>);
type Instance = LoopInstance<Actor<Vec<DrainCall>>, Manual>;

fn record_call(call: &Call<Vec<DrainCall>>, scope: &mut Scope<'_, Vec<DrainCall>>) {
    let grace = scope.grace_until().map(|until| until - scope.now());
    let entry = (call.name(), scope.phase(), grace);
    scope.push(entry);
}

/// Records each call, and checks the phase about every second.
fn observer() -> Actor<Vec<DrainCall>> {
    actor(|call, scope: &mut Scope<'_, Vec<DrainCall>>| {
        record_call(&call, scope);
        match call {
            Call::Timeout => Response::ok(()).deadline(scope.now() + SECOND),
            _ => Response::keep(()),
        }
    })
}

fn start(manual: &Manual, config: &Config) -> Instance {
    manual.start(config, Vec::new(), |scope| {
        Response::ok(observer()).deadline(scope.now() + SECOND / 2)
    })
}

fn run_for(instance: &mut Instance, manual: &Manual, time: Duration) -> Option<Exit> {
    let until = manual.now() + time;
    while manual.now() < until {
        let wait = (until - manual.now()).min(SECOND / 10);
        if let Some(exit) = instance.turn(Some(wait)).expect("it can wait") {
            return Some(exit);
        }
    }
    None
}

#[test]
fn a_drain_is_announced_then_delivered_then_over() {
    let manual = Manual::new();
    let mut instance = start(&manual, &Config::new());
    instance.handle().drain_with(Drain::new(SECOND * 3).announce(SECOND * 2));
    let begun = manual.now();
    assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 1 });
    assert_eq!(manual.now() - begun, SECOND * 5);
    let grace = Some(SECOND);
    assert_eq!(
        *instance.context(),
        [
            ("timeout", Phase::Announced, None),
            ("timeout", Phase::Announced, None),
            ("draining", Phase::Draining, grace),
            ("timeout", Phase::Draining, grace),
            ("timeout", Phase::Draining, grace),
            ("timeout", Phase::Draining, Some(SECOND / 2)),
        ]
    );
}

#[test]
fn a_loop_wakes_for_the_end_of_an_announcement() {
    let manual = Manual::new();
    let mut instance = manual.start(&Config::new(), Vec::new(), |_| Response::ok(observer()));
    instance.handle().drain_with(Drain::new(SECOND).announce(SECOND * 7));
    let begun = manual.now();
    assert_eq!(instance.run().expect("it does not sleep forever"), Exit::Drained { dropped: 1 });
    assert_eq!(manual.now() - begun, SECOND * 8);
}

/// Two requests to drain, the second one `after` the first: when machines are notified, and when
/// the loop ends.
struct TwoDrains {
    first: Drain,
    after: Duration,
    second: Drain,
    notified: Duration,
    ends: Duration,
}

#[test]
fn a_second_drain_request_only_shortens_each_phase() {
    let drain = |announce, time| Drain::new(SECOND * time).announce(SECOND * announce);
    let twice = |first, after: u32, second, notified: u32, ends: u32| TwoDrains {
        first,
        after: SECOND * after,
        second,
        notified: SECOND * notified,
        ends: SECOND * ends,
    };
    for case in [
        twice(drain(0, 9), 0, drain(0, 5), 0, 5),
        twice(drain(0, 5), 0, drain(0, 9), 0, 5),
        twice(drain(6, 4), 2, drain(0, 4), 2, 6),
        twice(drain(6, 4), 2, drain(0, 40), 2, 10),
        twice(drain(6, 4), 2, drain(9, 40), 6, 10),
        twice(drain(6, 9), 2, drain(9, 1), 6, 12),
        twice(drain(0, 9), 2, drain(3, 2), 0, 7),
        twice(drain(0, 9), 2, drain(30, 9), 0, 9),
    ] {
        let manual = Manual::new();
        let mut instance = manual.start(&Config::new(), Vec::new(), |_| Response::ok(observer()));
        let begun = manual.now();
        instance.handle().drain_with(case.first);
        let (mut notified, mut is_asked_again) = (None, false);
        let ended = loop {
            if !is_asked_again && manual.now() - begun >= case.after {
                is_asked_again = true;
                instance.handle().drain_with(case.second);
            }
            if notified.is_none() && !instance.context().is_empty() {
                notified = Some(manual.now() - begun);
            }
            let wait = Some(SECOND / 10);
            if let Some(exit) = instance.turn(wait).expect("it can wait") {
                break exit;
            }
        };
        assert_eq!(ended, Exit::Drained { dropped: 1 });
        let near = |time: Option<Duration>, wanted: Duration| {
            time.is_some_and(|time| wanted <= time && time <= wanted + SECOND / 5)
        };
        let (first, second) = (case.first, case.second);
        assert!(near(notified, case.notified), "{first:?}, {second:?}: told after {notified:?}");
        let ends = Some(manual.now() - begun);
        assert!(near(ends, case.ends), "{first:?}, {second:?}: ended after {ends:?}");
    }
}

#[test]
fn the_shorter_of_two_grace_periods_applies() {
    for (grace, left) in [
        (Grace::WholeDrain, SECOND * 2),
        (Grace::For(SECOND * 9), SECOND * 2),
        (Grace::For(SECOND / 4), SECOND / 4),
        (Grace::For(Duration::ZERO), Duration::ZERO),
    ] {
        let manual = Manual::new();
        let mut instance = manual.start(&Config::new(), Vec::new(), |_| Response::ok(observer()));
        let handle = instance.handle();
        handle.drain_with(Drain::new(SECOND * 5).grace(grace));
        handle.drain_with(Drain::new(SECOND * 5).grace(Grace::For(SECOND * 2)));
        settle(&mut instance);
        assert_eq!(*instance.context(), [("draining", Phase::Draining, Some(left))]);
    }
}

#[test]
fn an_empty_loop_skips_the_announcement_if_it_exits_when_empty() {
    let announced = Drain::new(SECOND).announce(SECOND * 9);
    for (policy, takes) in [(ExitPolicy::WhenEmpty, 0), (ExitPolicy::OnRequest, 9)] {
        let manual = Manual::new();
        let config = Config::new().exit(policy);
        let mut instance = manual.creator::<Actor<Vec<DrainCall>>>(&config).instantiate(Vec::new());
        let begun = manual.now();
        instance.handle().drain_with(announced);
        assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 0 });
        assert_eq!(manual.now() - begun, SECOND * takes, "{policy:?}");
    }
}

#[test]
fn a_loop_that_runs_again_after_a_drain_is_in_the_serving_phase() {
    let manual = Manual::new();
    let mut instance = start(&manual, &Config::new());
    instance.handle().drain(Duration::ZERO);
    assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 1 });
    instance.context_mut().clear();
    instance
        .add_machine_with(|scope| Response::ok(observer()).deadline(scope.now() + SECOND))
        .expect("there is room");
    run_for(&mut instance, &manual, SECOND * 2);
    assert_eq!(instance.context().first(), Some(&("timeout", Phase::Serving, None)));
}

#[test]
fn a_loop_that_skipped_an_announcement_serves_when_it_runs_again() {
    let manual = Manual::new();
    let mut instance =
        manual.creator::<Actor<Vec<DrainCall>>>(&Config::new()).instantiate(Vec::new());
    instance.handle().drain_with(Drain::new(SECOND).announce(SECOND * 9));
    assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 0 });
    instance
        .add_machine_with(|scope| Response::ok(observer()).deadline(scope.now() + SECOND))
        .expect("there is room");
    assert_eq!(run_for(&mut instance, &manual, SECOND * 11), None);
    assert_eq!(instance.context().last(), Some(&("timeout", Phase::Serving, None)));
}

#[test]
fn a_drain_whose_phase_never_ends_is_no_time_to_wait_for() {
    for drain in [Drain::new(Duration::MAX), Drain::new(SECOND).announce(Duration::MAX)] {
        let manual = Manual::new();
        let mut instance = manual.start(&Config::new(), Vec::new(), |_| Response::ok(observer()));
        instance.handle().drain_with(drain);
        settle(&mut instance);
        assert_eq!(instance.next_deadline(), None, "{drain:?}");
        instance.handle().drain(SECOND);
        assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 1 }, "{drain:?}");
    }
}
