//! A panic costs one machine: the loop, its slab and the other machines continue.

mod dropped;
mod in_place;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor_core::{
    AddError, Config, EventSet, Exit, ExitPolicy, FailureCause, LoopInstance, OnPanic, Response,
    Scope, Token, Verdict,
};

use crate::actor::{Actor, Call, Reply, Seed, actor, idle};
use crate::manual::{Manual, settle};

type Log = Vec<&'static str>;
type Instance = LoopInstance<Actor<Log>, Manual>;

/// What the observer saw.
#[derive(Clone, Default)]
struct FailureLog(Arc<Mutex<Vec<String>>>);

impl FailureLog {
    fn config(&self) -> Config {
        let seen = self.clone();
        Config::new().exit(ExitPolicy::OnRequest).observer(move |failure| {
            let cause = match &failure.cause {
                FailureCause::Error(error) => format!("error {error}"),
                FailureCause::Panic(panicked) => format!("panic {}", panicked.message()),
                other => format!("{other}"),
            };
            seen.0
                .lock()
                .expect("nothing panics in here")
                .push(format!("{}: {cause}", failure.machine));
        })
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("nothing panics in here"))
    }
}

fn add(
    instance: &mut Instance,
    handler: impl FnMut(Call<Log>, &mut Scope<'_, Log>) -> Reply<Log> + Send + 'static,
) -> (Token, rotor_core::Notifier) {
    let mut notifier = None;
    let made = instance.add_machine_with(|scope| {
        notifier = Some(scope.notifier());
        Response::ok(actor(handler))
    });
    (made.expect("there is room"), notifier.expect("the closure ran"))
}

fn empty(manual: &Manual, config: &Config) -> Instance {
    manual.creator(config).instantiate(Log::new())
}

/// A machine that gets the named call by its own doing, and panics in it.
fn bomb(call: &'static str) -> Actor<Log> {
    actor(move |met, scope: &mut Scope<'_, Log>| {
        if met.name() == call {
            panic!("in {call}");
        }
        match met {
            Call::Ready(_) => match call {
                "spawned" => Response::spawn((), Seed::idle("child")),
                "spawn_error" => Response::spawn((), Seed::new("child", |_| Response::done())),
                "wakeup" => {
                    scope.notifier().wakeup();
                    Response::keep(())
                }
                "timeout" => Response::ok(()).deadline(scope.now() + Duration::from_millis(1)),
                _ => Response::keep(()),
            },
            _ => Response::keep(()),
        }
    })
}

const CALLS: [&str; 6] = ["ready", "spawned", "spawn_error", "timeout", "wakeup", "draining"];

#[test]
fn a_panic_in_any_handler_ends_only_that_machine() {
    for call in CALLS {
        let (manual, seen) = (Manual::new(), FailureLog::default());
        let mut instance = empty(&manual, &seen.config().machines_max(8));
        let recorder = |call: Call<Log>, scope: &mut Scope<'_, Log>| {
            scope.push(call.name());
            Response::keep(())
        };
        let (before, _) = add(&mut instance, recorder);
        let mut notifier = None;
        let made = instance.add_machine_with(|scope| {
            notifier = Some(scope.notifier());
            Response::ok(bomb(call))
        });
        let bomb = made.expect("there is room");
        let (after, woken) = add(&mut instance, recorder);
        for token in [before, bomb, after] {
            manual.feed(token, EventSet::READABLE);
        }
        woken.wakeup();
        if call == "draining" {
            let _ = instance.machines().scan(rotor_core::Cursor::START, |token, _| {
                if token == bomb { Verdict::Drain } else { Verdict::Keep }
            });
        }
        settle(&mut instance);
        manual.advance(Duration::from_millis(5));
        settle(&mut instance);
        assert_eq!(seen.take(), [format!("actor: panic in {call}")], "logged and observed once");
        assert!(instance.machines().get(bomb).is_none());
        assert!(!notifier.expect("the closure ran").wakeup());
        let stats = instance.stats().read();
        assert_eq!((stats.panicked, stats.failed, stats.ended), (1, 0, 0), "{call}");
        assert_eq!(*instance.context(), ["ready", "ready", "wakeup"], "{call}");
        assert_eq!(instance.machines().len(), if call == "spawned" { 3 } else { 2 });
        // The slot can be used by another machine, and the others still receive events.
        while instance.spawn(Seed::idle("more")).is_ok() {}
        assert_eq!(instance.machines().len(), 8);
        instance.context_mut().clear();
        manual.feed(before, EventSet::READABLE);
        manual.feed(after, EventSet::READABLE);
        settle(&mut instance);
        assert_eq!(*instance.context(), ["ready", "ready"]);
    }
}

#[test]
fn a_panic_in_create_is_reported_to_the_parent_and_the_observer() {
    let (manual, seen) = (Manual::new(), FailureLog::default());
    let mut instance = empty(&manual, &seen.config());
    let (token, _) = add(&mut instance, |call, scope| {
        scope.push(call.name());
        match call {
            Call::Ready(_) => Response::spawn((), Seed::new("child", |_| panic!("in create"))),
            _ => Response::keep(()),
        }
    });
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(*instance.context(), ["ready", "spawn_error"]);
    assert_eq!(seen.take().len(), 1);
    assert_eq!((instance.stats().read().panicked, instance.machines().len()), (1, 1));
}

#[test]
fn the_rest_of_a_turn_is_done_after_a_panic() {
    let (manual, seen) = (Manual::new(), FailureLog::default());
    let mut instance = empty(&manual, &seen.config());
    let mut tokens = Vec::new();
    for index in 0..20 {
        let (token, _) = add(&mut instance, move |call, scope| {
            if index % 2 == 0 {
                panic!("machine {index}");
            }
            scope.push(call.name());
            Response::keep(())
        });
        tokens.push(token);
    }
    for token in &tokens {
        manual.feed(*token, EventSet::READABLE);
    }
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(*instance.context(), ["ready"; 10]);
    assert_eq!(seen.take().len(), 10);
}

#[test]
fn a_panic_causes_no_second_call_of_an_overdue_machine_in_a_turn() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &FailureLog::default().config());
    let (overdue, _) = add(&mut instance, |call, scope| {
        scope.push(call.name());
        Response::ok(()).deadline(scope.now())
    });
    let (bomb, _) = add(&mut instance, |call, scope| match call {
        Call::Timeout => panic!("in timeout"),
        _ => Response::ok(()).deadline(scope.now()),
    });
    manual.feed(overdue, EventSet::READABLE);
    manual.feed(bomb, EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(*instance.context(), ["ready", "timeout"]);
}

#[test]
fn stop_loop_on_panic_reports_the_token_and_the_loop_can_run_again() {
    for call in CALLS {
        let (manual, seen) = (Manual::new(), FailureLog::default());
        let mut instance = empty(&manual, &seen.config().on_panic(OnPanic::StopLoop));
        let token = instance.add_machine_with(|_| Response::ok(bomb(call))).expect("there is room");
        let (other, _) = add(&mut instance, |_, scope| {
            scope.stop_loop();
            Response::keep(())
        });
        manual.feed(token, EventSet::READABLE);
        if call == "draining" {
            let _ = instance.machines().scan(rotor_core::Cursor::START, |met, _| {
                if met == token { Verdict::Drain } else { Verdict::Keep }
            });
        }
        assert_eq!(instance.run().expect("it can wait"), Exit::Panicked { token }, "{call}");
        assert_eq!(instance.stats().read().panicked, 1);
        manual.feed(other, EventSet::READABLE);
        assert_eq!(instance.run().expect("it can wait"), Exit::Stopped, "{call}");
    }
}

#[test]
fn stop_loop_on_panic_keeps_the_rest_of_the_turn_for_the_next_run() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).on_panic(OnPanic::StopLoop);
    let mut instance = empty(&manual, &config);
    let (first, _) = add(&mut instance, |_, _| panic!("first"));
    let (second, _) = add(&mut instance, |call, scope| {
        scope.push(call.name());
        scope.stop_loop();
        Response::keep(())
    });
    manual.feed(first, EventSet::READABLE);
    manual.feed(second, EventSet::READABLE);
    assert_eq!(instance.run().expect("it can wait"), Exit::Panicked { token: first });
    assert_eq!(*instance.context(), Log::new());
    assert_eq!(instance.run().expect("it can wait"), Exit::Stopped);
    assert_eq!(*instance.context(), ["ready"]);
}

#[test]
fn a_panic_in_create_stops_the_loop_if_configured() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).on_panic(OnPanic::StopLoop);
    let mut instance = empty(&manual, &config);
    let (token, _) = add(&mut instance, |call, _| match call {
        Call::Ready(_) => Response::spawn((), Seed::new("child", |_| panic!("in create"))),
        _ => Response::keep(()),
    });
    manual.feed(token, EventSet::READABLE);
    assert!(matches!(instance.run().expect("it can wait"), Exit::Panicked { .. }));
}

#[test]
fn the_first_panic_of_a_turn_is_why_the_loop_stops() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).on_panic(OnPanic::StopLoop);
    let mut instance = empty(&manual, &config);
    let (token, _) = add(&mut instance, |call, _| match call {
        Call::Ready(_) => Response::spawn((), Seed::new("child", |_| panic!("in create"))),
        _ => panic!("at the error of the spawn"),
    });
    manual.feed(token, EventSet::READABLE);
    let exit = instance.run().expect("it can wait");
    assert!(matches!(exit, Exit::Panicked { token: first } if first != token), "{exit:?}");
    assert_eq!(instance.stats().read().panicked, 2);
}

#[test]
fn a_panic_in_an_added_machines_closure_does_not_stop_the_loop() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).on_panic(OnPanic::StopLoop);
    let mut instance = empty(&manual, &config);
    let adding = instance.broadcast().add_machine_with(|_| panic!("in the closure"));
    let adding = adding.expect("there is room");
    assert_eq!(instance.turn(Some(Duration::ZERO)).expect("polling never fails"), None);
    assert!(matches!(adding.wait(), Err(AddError::NotMade(_))));
}

#[test]
fn a_guarded_panic_ends_only_the_guarded_part() {
    let (manual, seen) = (Manual::new(), FailureLog::default());
    let mut instance = empty(&manual, &seen.config());
    let (token, _) = add(&mut instance, |_, scope| {
        let lost = scope.guard(|scope| {
            scope.push("inside");
            assert!(scope.is_empty(), "a bug");
        });
        let panicked = lost.expect_err("it panicked");
        assert_eq!(panicked.message(), "a bug");
        assert_eq!(scope.guard(|scope| scope.len()), Ok(1));
        scope.push("outside");
        Response::keep(())
    });
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(*instance.context(), ["inside", "outside"]);
    assert_eq!((seen.take().len(), instance.stats().read().panicked), (0, 0));
}

#[test]
fn a_panicking_observer_has_no_effect_on_the_loop() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).observer(|_| panic!("in the observer"));
    let mut instance = empty(&manual, &config);
    for _ in 0..2 {
        let (token, _) = add(&mut instance, |call, _| match call {
            Call::Ready(events) if events.is_readable() => Response::error("no"),
            _ => panic!("a bug"),
        });
        manual.feed(token, EventSet::READABLE);
        let (token, _) = add(&mut instance, |_, _| panic!("a bug"));
        manual.feed(token, EventSet::READABLE);
    }
    settle(&mut instance);
    let stats = instance.stats().read();
    assert_eq!((stats.failed, stats.panicked, stats.alive), (2, 2, 0));
}

#[test]
fn a_panicking_posted_or_repeated_closure_affects_only_itself() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &FailureLog::default().config());
    add(&mut instance, |_, _| Response::keep(()));
    let broadcast = instance.broadcast();
    broadcast.post(|_, _| panic!("posted")).expect("there is room");
    broadcast.post(|_, scope| scope.push("posted after")).expect("there is room");
    let mut calls = 0;
    instance.every(Duration::from_millis(1), move |_, scope| {
        calls += 1;
        assert!(calls < 3, "repeated");
        scope.push("every");
    });
    instance.every(Duration::from_millis(2), |_, scope| scope.push("other"));
    for _ in 0..6 {
        manual.advance(Duration::from_millis(1));
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    let log = instance.context();
    assert_eq!(log.iter().filter(|entry| **entry == "posted after").count(), 1);
    assert_eq!(
        log.iter().filter(|entry| **entry == "every").count(),
        2,
        "not called again: {log:?}"
    );
    assert_eq!(log.iter().filter(|entry| **entry == "other").count(), 3);
    assert_eq!((instance.machines().len(), instance.stats().read().panicked), (1, 0));
}

/// The backend panics in the middle of a turn. If the panic unwound there, it would be attributed
/// to a machine, and the poll would be repeated forever.
#[test]
fn a_panicking_backend_ends_the_loop_with_an_error() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    let by = manual.clone();
    let (slow, _) = add(&mut instance, move |call, _| {
        if matches!(call, Call::Ready(_)) {
            by.advance(Duration::from_secs(2));
            by.break_waits();
        }
        Reply::keep(())
    });
    let made = instance.add_machine_with(|scope| {
        Response::ok(idle()).deadline(scope.now() + Duration::from_secs(1))
    });
    made.expect("there is room");
    manual.feed(slow, EventSet::READABLE);
    let error = instance.run().expect_err("it cannot go on");
    assert!(error.to_string().contains("a broken backend"), "{error}");
}

#[test]
fn a_backend_that_panics_in_the_wait_of_a_turn_ends_it_with_an_error() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    let (token, _) = add(&mut instance, |_, _| Reply::done());
    manual.break_waits();
    manual.feed(token, EventSet::READABLE);
    let error = instance.run().expect_err("it cannot go on");
    assert!(error.to_string().contains("a broken backend"), "{error}");
    assert_eq!(instance.machines().len(), 1, "the machines are unchanged");
}

/// At the beginning of a turn, and at its end.
#[test]
fn a_clock_that_panics_between_handlers_ends_the_loop_with_an_error() {
    for breaks_in_closure in [false, true] {
        let manual = Manual::new();
        let mut instance = empty(&manual, &Config::new());
        let (token, _) = add(&mut instance, |_, _| Reply::keep(()));
        manual.feed(token, EventSet::READABLE);
        let by = manual.clone();
        if breaks_in_closure {
            let posted = instance.broadcast().post(move |_, _| by.break_clock());
            posted.expect("there is room");
        } else {
            manual.break_clock();
        }
        let error = instance.run().expect_err("it has no time");
        assert!(error.to_string().contains("a broken clock"), "{error}");
        assert!(instance.turn(Some(Duration::ZERO)).expect("it works again").is_none());
        assert_eq!(instance.machines().len(), 1);
    }
}

/// The clock reading before the deadlines would be repeated forever.
#[test]
fn a_clock_that_always_panics_ends_the_loop_with_an_error() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    let by = manual.clone();
    let (token, _) = add(&mut instance, move |_, _| {
        by.break_clock_permanently();
        Reply::done()
    });
    manual.feed(token, EventSet::READABLE);
    let error = instance.run().expect_err("it cannot go on");
    assert!(error.to_string().contains("a broken clock"), "{error}");
    assert_eq!(instance.stats().read().panicked, 0, "no machine's handler did");
}
