//! Single calls, one after another, without a turn.

use std::sync::Arc;
use std::time::Duration;

use super::inline_caller::InlineCaller;
use super::*;
use crate::backend::{Backend, NoWaker};
use crate::environment::Environment;
use crate::event::Event;
use crate::event_loop::run_queue::Pending;
use crate::event_set::EventSet;
use crate::mio_backend::{Mio, MioHandle};
use crate::response::{Deadline, Response};
use crate::scope::Scope;
use crate::time::Time;
use crate::token::Token;
use crate::wake_queue::WakeQueue;

/// The seed says how `ready` responds.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Behavior {
    Continues,
    Again,
    Ends,
    Spawns,
    Panics,
}

struct Scripted(Behavior);

impl Machine for Scripted {
    type Context = Vec<&'static str>;
    type Seed = Behavior;

    fn create(seed: Behavior, _: &mut Scope<'_, Self::Context>) -> Response<Self> {
        Response::ok(Scripted(seed))
    }

    fn handle(
        self,
        event: Event<Behavior>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self, Behavior> {
        scope.push(event.name());
        match (event, self.0) {
            (Event::Ready(_), Behavior::Again) => Response::again(self),
            (Event::Ready(_), Behavior::Ends) => Response::done(),
            (Event::Ready(_) | Event::Spawned, Behavior::Spawns) => {
                Response::spawn(self, Behavior::Continues)
            }
            (Event::Ready(_), Behavior::Panics) => panic!("as told"),
            _ => Response::ok(self),
        }
    }
}

struct Bench {
    dispatch: Dispatch<Scripted>,
    environment: Environment<MioHandle>,
    backend: Mio,
    config: Config,
    events: Vec<&'static str>,
}

impl Bench {
    fn new(machines: usize) -> Bench {
        let config = Config::new().machines_max(machines).spawns_per_event(1);
        let backend = Mio::new(1).expect("a descriptor is left");
        let (wakes, parts) = WakeQueue::new(machines, Arc::new(NoWaker)).expect("memory");
        let wakes = Arc::new(wakes);
        let handle = backend.handle().expect("a handle");
        let environment = Environment::new(handle, wakes.clone(), &config).expect("random bytes");
        let slots = Slots::new(machines, wakes.clone(), Time::ZERO).expect("memory");
        let dispatch = Dispatch::new(
            Scheduler::new(slots, RunQueue::new(wakes, parts, Time::ZERO)),
            Counters::new(Arc::default(), Arc::default()),
        );
        Bench { dispatch, environment, backend, config, events: Vec::new() }
    }

    fn add(&mut self, behavior: Behavior) -> Token {
        let make = |_, behavior| Response::ok(Scripted(behavior));
        let Bench { dispatch, environment, config, .. } = self;
        let created = dispatch.create_with(environment, config, None, behavior, make);
        created.expect("a slot is free")
    }

    fn with(&mut self, f: impl FnOnce(&mut Delivery<'_, Scripted, Mio, InlineCaller>)) {
        let Bench { dispatch, environment, backend, config, events } = self;
        dispatch.queue().begin_turn(config);
        let refs = Refs { context: events, environment, backend, config };
        f(&mut Delivery { dispatch, refs, caller: InlineCaller });
    }

    fn ready(&mut self, token: Token) {
        self.with(|delivery| {
            let _ = delivery.deliver_ready(token, EventSet::READABLE);
        });
    }

    fn resume(&mut self) {
        self.with(|delivery| {
            while let Some(token) = delivery.dispatch.queue().next_runnable() {
                let _ = delivery.resume(token);
            }
        });
    }
}

#[test]
fn a_response_keeps_or_ends_the_machine() {
    let mut bench = Bench::new(2);
    let (continues, ends) = (bench.add(Behavior::Continues), bench.add(Behavior::Ends));
    bench.ready(continues);
    bench.ready(ends);
    bench.ready(ends);
    assert_eq!(bench.events, ["ready", "ready"]);
    assert_eq!(bench.dispatch.slots().len(), 1);
    let stats = bench.dispatch.stats().read();
    assert_eq!((stats.events, stats.ended, stats.stale, stats.alive), (2, 1, 1, 1));
}

#[test]
fn calls_for_a_machine_that_returned_again_are_merged() {
    let mut bench = Bench::new(1);
    let again = bench.add(Behavior::Again);
    bench.ready(again);
    bench.ready(again);
    for call in [Pending::WAKEUP_WHOLE, Pending::DRAINING] {
        bench.dispatch.scheduler().mark_pending(again, call);
    }
    assert_eq!(bench.events, ["ready"], "it is called behind the others");
    bench.resume();
    assert_eq!(bench.events, ["ready", "ready", "draining", "wakeup"]);
}

#[test]
fn a_spawn_is_reported_at_once_and_deferred_beyond_the_budget() {
    let mut bench = Bench::new(3);
    let spawns = bench.add(Behavior::Spawns);
    bench.ready(spawns);
    assert_eq!(bench.events, ["ready", "spawned"]);
    bench.ready(spawns);
    bench.resume();
    assert_eq!(bench.events.len(), 2, "the second spawn was deferred");
    assert!(bench.dispatch.check_queue().is_ok());
    bench.with(|delivery| {
        let (token, seed) =
            delivery.dispatch.queue().next_deferred_spawn().expect("it was deferred");
        let _ = delivery.resume_spawn(token, seed);
    });
    assert_eq!(bench.events[2..], ["spawned"]);
    assert_eq!(bench.dispatch.slots().len(), 3);
}

#[test]
fn a_panicking_handler_ends_only_its_machine() {
    let mut bench = Bench::new(2);
    let (panics, continues) = (bench.add(Behavior::Panics), bench.add(Behavior::Continues));
    let panicked = crate::guard::guard(|| bench.ready(panics)).expect_err("as told");
    let ended = bench.dispatch.handler_panicked(&bench.environment, &bench.config, &panicked);
    assert_eq!(ended.ok(), Some(panics));
    assert_eq!(bench.dispatch.slots().len(), 1);
    assert!(bench.dispatch.stop_reason().is_none());
    bench.ready(continues);
    assert_eq!(bench.events, ["ready", "ready"]);
}

#[test]
fn a_deadline_fires_once_even_if_it_had_passed_when_set() {
    let mut bench = Bench::new(2);
    let (token, other) = (bench.add(Behavior::Continues), bench.add(Behavior::Continues));
    let now = bench.environment.now();
    bench.dispatch.scheduler().set_deadline(bench.environment.now(), token, Deadline::At(now));
    bench.dispatch.scheduler().set_deadline(
        bench.environment.now(),
        other,
        Deadline::At(now + Duration::from_secs(1)),
    );
    bench.with(|delivery| {
        let _ = delivery.fire_deadline(token.index());
        let overdue = delivery.dispatch.queue().next_overdue(8).expect("it had passed");
        let _ = delivery.fire_overdue(overdue);
        let _ = delivery.fire_overdue(overdue);
        assert!(delivery.dispatch.queue().next_overdue(8).is_none());
    });
    assert_eq!(bench.events, ["timeout"]);
    bench.environment.set_now(now + Duration::from_secs(2));
    bench.with(|delivery| {
        let Refs { environment, backend, .. } = &mut delivery.refs;
        delivery
            .dispatch
            .scheduler()
            .collect_expired(environment.now(), |tokens| backend.order(tokens));
        while let Some(index) = delivery.dispatch.queue().next_expired() {
            let _ = delivery.fire_deadline(index);
        }
    });
    assert_eq!(bench.events, ["timeout", "timeout"]);
}
