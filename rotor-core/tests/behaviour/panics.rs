//! A panic costs one machine: the loop, its slab and the other machines go on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor_core::{
    Config, Event, EventSet, Exit, ExitPolicy, FailureCause, Held, InPlace, Infallible, Lock,
    LoopInstance, Lost, Machine, OnPanic, Outcome, Port, Response, Scope, Token, Verdict,
};

use crate::actor::{Actor, Call, Reply, Seed, actor, idle};
use crate::manual::{Manual, settle};

type Log = Vec<&'static str>;
type Instance = LoopInstance<Actor<Log>, Manual>;

/// What the observer saw.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
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

/// A machine that comes to the call of that name by itself, and panics in it.
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
fn a_panic_in_any_handler_loses_that_machine_and_nothing_else() {
    for call in CALLS {
        let (manual, seen) = (Manual::new(), Seen::default());
        let mut instance = empty(&manual, &seen.config().machines_max(8));
        let noting = |call: Call<Log>, scope: &mut Scope<'_, Log>| {
            scope.push(call.name());
            Response::keep(())
        };
        let (before, _) = add(&mut instance, noting);
        let mut notifier = None;
        let made = instance.add_machine_with(|scope| {
            notifier = Some(scope.notifier());
            Response::ok(bomb(call))
        });
        let bomb = made.expect("there is room");
        let (after, woken) = add(&mut instance, noting);
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
        // The slot is good for another machine, and the others still hear of events.
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
fn a_panic_in_create_is_the_parents_to_hear_and_the_observers() {
    let (manual, seen) = (Manual::new(), Seen::default());
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
fn what_a_turn_still_had_to_do_after_a_panic_is_done_in_that_turn() {
    let (manual, seen) = (Manual::new(), Seen::default());
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
fn a_panic_does_not_give_an_overdue_machine_a_second_call_in_one_turn() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Seen::default().config());
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
fn stop_loop_ends_the_run_with_the_machines_token_and_it_can_go_on() {
    for call in CALLS {
        let (manual, seen) = (Manual::new(), Seen::default());
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
fn stop_loop_does_not_lose_what_the_turn_still_had_to_do() {
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
fn a_panic_in_create_stops_the_loop_too_where_that_is_wanted() {
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
fn a_guarded_panic_costs_the_guarded_part_only() {
    let (manual, seen) = (Manual::new(), Seen::default());
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

/// Panics when it is dropped.
struct Fragile(&'static str);

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("{}", self.0);
    }
}

fn fragile(name: &'static str) -> Actor<Log> {
    let fragile = Fragile(name);
    actor(move |call, _| {
        let _kept = &fragile;
        match call {
            Call::Ready(_) => Response::done(),
            _ => Response::keep(()),
        }
    })
}

#[test]
fn a_machine_whose_drop_panics_costs_itself_only_however_it_ends() {
    for how in ["done", "scan", "drain", "loop"] {
        let (manual, seen) = (Manual::new(), Seen::default());
        let mut instance = empty(&manual, &seen.config());
        let mut tokens = Vec::new();
        for name in ["one", "two", "three"] {
            let made = instance.add_machine_with(|_| Response::ok(fragile(name)));
            tokens.push(made.expect("there is room"));
        }
        match how {
            "done" => tokens.iter().for_each(|token| manual.feed(*token, EventSet::READABLE)),
            "scan" => {
                let _ = instance.machines().scan(rotor_core::Cursor::START, |_, _| Verdict::End);
            }
            "drain" => instance.handle().drain(Duration::ZERO),
            _ => {
                drop(instance);
                continue;
            }
        }
        settle(&mut instance);
        assert_eq!(instance.machines().len(), 0, "{how}");
        assert_eq!(seen.take().len(), 3, "{how}");
        let stats = instance.stats().read();
        assert_eq!((stats.panicked, stats.ended), (3, 0), "{how}: each is counted once");
    }
}

#[test]
fn seeds_whose_drop_panics_do_not_end_the_loop() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new().spawns_per_event(1));
    for name in ["one", "two"] {
        let (token, _) = add(&mut instance, move |call, _| match call {
            Call::Ready(_) | Call::Spawned => {
                let fragile = Fragile(name);
                Response::spawn(
                    (),
                    Seed::new(name, move |_| {
                        std::mem::forget(fragile);
                        Response::ok(idle())
                    }),
                )
            }
            _ => Response::keep(()),
        });
        manual.feed(token, EventSet::READABLE);
    }
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    instance.handle().drain(Duration::ZERO);
    assert!(matches!(instance.run().expect("it can wait"), Exit::Drained { .. }));
}

#[test]
fn an_observer_that_panics_costs_nothing() {
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

/// An error that panics when it is printed, and another when it is dropped.
#[derive(Debug)]
struct Unprintable;

impl std::fmt::Display for Unprintable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("in Display")
    }
}

impl std::error::Error for Unprintable {}

#[derive(Debug)]
struct Undroppable;

impl std::fmt::Display for Undroppable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("undroppable")
    }
}

impl std::error::Error for Undroppable {}

impl Drop for Undroppable {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

#[test]
fn an_error_that_panics_is_counted_and_observed_once() {
    let (manual, seen) = (Manual::new(), Seen::default());
    let mut instance = empty(&manual, &seen.config());
    let (first, _) = add(&mut instance, |_, _| Response::error(Unprintable));
    let (second, _) = add(&mut instance, |_, _| Response::error(Undroppable));
    let (third, _) = add(&mut instance, |call, scope| {
        scope.push(call.name());
        Response::keep(())
    });
    for token in [first, second, third] {
        manual.feed(token, EventSet::READABLE);
    }
    settle(&mut instance);
    let stats = instance.stats().read();
    assert_eq!((stats.failed, stats.panicked, stats.alive), (2, 0, 1));
    assert_eq!(seen.take(), ["actor: error undroppable"]);
    assert_eq!(*instance.context(), ["ready"]);
}

#[test]
fn posted_and_repeated_closures_that_panic_cost_themselves_only() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Seen::default().config());
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

/// Its very name panics.
struct Nameless;

impl Machine for Nameless {
    type Context = Log;
    type Seed = Infallible;

    fn type_name(&self) -> &'static str {
        panic!("in type_name")
    }
}

#[test]
fn a_machine_whose_name_panics_is_lost_with_its_slot_given_back() {
    let (manual, seen) = (Manual::new(), Seen::default());
    let config = seen.config().machines_max(2);
    let mut instance = manual.start(&config, Log::new(), |_| Response::ok(Nameless));
    let token =
        instance.add_machine_with(|_| Response::ok(Nameless)).expect("there is room for two");
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!((instance.machines().len(), instance.stats().read().panicked), (1, 1));
    assert_eq!(seen.take().len(), 1);
    instance.handle().drain(Duration::ZERO);
    settle(&mut instance);
    assert_eq!(instance.machines().len(), 0);
    let made = instance.add_machine_with(|_| Response::ok(Nameless));
    assert!(made.is_ok(), "no slot was lost");
}

/// Panics in its handler, which is called where it stands, or by name, and again as it is dropped.
struct TwiceInPlace {
    by_name: bool,
}

impl Drop for TwiceInPlace {
    fn drop(&mut self) {
        panic!("in drop")
    }
}

impl Machine for TwiceInPlace {
    type Context = ();
    type Seed = Infallible;

    fn handle_in_place(
        &mut self,
        _: Event<Infallible>,
        _: &mut Scope<'_, ()>,
    ) -> InPlace<Infallible> {
        panic!("in a handler")
    }

    fn type_name(&self) -> &'static str {
        if self.by_name {
            panic!("in type_name");
        }
        "twice"
    }
}

/// Holds a value and owes an answer, and panics where it stands.
struct Owes {
    _held: Held<u32>,
    _port: Port<u32>,
}

impl Machine for Owes {
    type Context = ();
    type Seed = Infallible;

    fn handle_in_place(
        &mut self,
        _: Event<Infallible>,
        _: &mut Scope<'_, ()>,
    ) -> InPlace<Infallible> {
        panic!("in a handler")
    }
}

/// It is dropped while the panic unwinds: that is how what it held knows.
#[test]
fn what_a_machine_held_that_panics_in_place_is_told_of_the_panic() {
    let (manual, seen, lock) = (Manual::new(), Seen::default(), Lock::new(1));
    let held = lock.try_take().expect("nobody holds it");
    let mut future = None;
    let mut instance = manual.start(&seen.config(), (), |scope| {
        let (port, answer) = scope.create_future();
        future = Some(answer);
        Response::again(Owes { _held: held, _port: port })
    });
    settle(&mut instance);
    assert_eq!((instance.machines().len(), instance.stats().read().panicked), (0, 1));
    let answer = future.expect("the closure ran").take();
    assert!(matches!(answer, Outcome::Lost(Lost::Panicked)), "{answer:?}");
    assert!(lock.try_take().expect("it is back").was_panicked());
}

/// Breaks the clock with which its handler is timed: before that, as it says its name, or in it.
struct BreaksTheClock {
    manual: Manual,
    by_name: bool,
}

impl Machine for BreaksTheClock {
    type Context = ();
    type Seed = Infallible;

    fn handle_in_place(
        &mut self,
        _: Event<Infallible>,
        _: &mut Scope<'_, ()>,
    ) -> InPlace<Infallible> {
        self.manual.break_clock();
        InPlace::Handled(Response::keep(()))
    }

    fn type_name(&self) -> &'static str {
        if self.by_name {
            self.manual.break_clock();
        }
        "breaks the clock"
    }
}

#[test]
fn a_panic_of_the_clock_that_times_a_handler_costs_the_machine_and_no_slot() {
    for by_name in [true, false] {
        let (manual, seen) = (Manual::new(), Seen::default());
        let config = seen.config().machines_max(1).time_handlers(true);
        let breaks = || BreaksTheClock { manual: manual.clone(), by_name };
        let mut instance = manual.start(&config, (), |_| Response::again(breaks()));
        settle(&mut instance);
        assert_eq!((instance.machines().len(), instance.stats().read().panicked), (0, 1));
        assert_eq!(seen.take(), ["breaks the clock: panic a broken clock"]);
        let made = instance.add_machine_with(|_| Response::ok(breaks()));
        assert!(made.is_ok(), "no slot was lost");
    }
}

/// Where the panic of the drop gets out while the other one unwinds, the process ends.
#[test]
fn a_machine_that_panics_in_place_and_again_as_it_is_dropped_costs_itself_only() {
    for by_name in [false, true] {
        let (manual, seen) = (Manual::new(), Seen::default());
        let mut instance = manual.start(&seen.config().machines_max(1), (), |_| {
            Response::again(TwiceInPlace { by_name })
        });
        settle(&mut instance);
        assert_eq!((instance.machines().len(), instance.stats().read().panicked), (0, 1));
        let failure = match by_name {
            true => format!("{}: panic in type_name", std::any::type_name::<TwiceInPlace>()),
            false => "twice: panic in a handler".to_string(),
        };
        assert_eq!(seen.take(), [failure]);
        let made = instance.add_machine_with(|_| Response::ok(TwiceInPlace { by_name: false }));
        assert!(made.is_ok(), "no slot was lost");
    }
}

#[test]
fn messages_that_panic_as_they_are_dropped_with_their_mailbox_cost_nothing() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in drop")
        }
    }

    let (manual, seen) = (Manual::new(), Seen::default());
    let mut sender = None;
    let mut instance = manual.start(&seen.config(), Log::new(), |scope| {
        let (sends, mailbox) = scope.create_mailbox(8);
        sender = Some(sends);
        Response::ok(actor(move |_, _: &mut Scope<'_, Log>| {
            let _kept = &mailbox;
            Response::done()
        }))
    });
    let sender = sender.expect("the closure ran");
    for _ in 0..3 {
        assert!(sender.send(Bomb).is_ok());
    }
    settle(&mut instance);
    assert_eq!((instance.stats().read().ended, instance.stats().read().panicked), (1, 0));
}

/// In the middle of a turn, where one that unwinds would be taken for a machine's, and the poll be
/// made again for ever.
#[test]
fn a_backend_that_panics_ends_the_loop_with_an_error() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    let by = manual.clone();
    let (slow, _) = add(&mut instance, move |call, _| {
        if matches!(call, Call::Ready(_)) {
            by.advance(Duration::from_secs(2));
            by.break_down();
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
