//! Values that panic when they are dropped or printed: machines, seeds, errors, messages.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use rotor_core::{Calls, Config, EventSet, Exit, Machine, Response, Scope, Verdict};

use super::{FailureLog, Log, add, empty};
use crate::actor::{Actor, Call, Seed, actor, idle};
use crate::manual::{Manual, settle};

/// Panics when it is dropped.
#[derive(Debug)]
pub(super) struct PanicsOnDrop(pub(super) &'static str);

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("{}", self.0);
    }
}

fn panicking_on_drop(name: &'static str) -> Actor<Log> {
    let fragile = PanicsOnDrop(name);
    actor(move |call, _| {
        let _kept = &fragile;
        match call {
            Call::Ready(_) => Response::done(),
            _ => Response::keep(()),
        }
    })
}

#[test]
fn a_panic_in_a_machines_drop_affects_only_that_machine() {
    for how in ["done", "scan", "drain", "loop"] {
        let (manual, seen) = (Manual::new(), FailureLog::default());
        let mut instance = empty(&manual, &seen.config());
        let mut tokens = Vec::new();
        for name in ["one", "two", "three"] {
            let made = instance.add_machine_with(|_| Response::ok(panicking_on_drop(name)));
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
fn a_repeated_closure_that_panics_twice_affects_only_itself() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    add(&mut instance, |_, _| Response::keep(()));
    let fragile = PanicsOnDrop("dropped");
    instance.every(Duration::from_millis(1), move |_, _| {
        let kept = &fragile;
        panic!("not {}", kept.0);
    });
    instance.every(Duration::from_millis(1), |_, scope| scope.push("other"));
    for _ in 0..3 {
        manual.advance(Duration::from_millis(1));
        instance.turn(Some(Duration::ZERO)).expect("the loop goes on");
    }
    assert_eq!(*instance.context(), ["other"; 3]);
}

#[test]
fn seeds_whose_drop_panics_do_not_end_the_loop() {
    for spawners_end in [false, true] {
        let manual = Manual::new();
        let mut instance = empty(&manual, &Config::new().spawns_per_event(1));
        for name in ["one", "two"] {
            let (token, _) = add(&mut instance, move |call, _| match call {
                Call::Ready(_) | Call::Spawned => {
                    let fragile = PanicsOnDrop(name);
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
        if spawners_end {
            let _ = instance.machines().scan(rotor_core::Cursor::START, |_, _| Verdict::End);
            settle(&mut instance);
        }
        instance.handle().drain(Duration::ZERO);
        assert!(matches!(instance.run().expect("it can wait"), Exit::Drained { .. }));
    }
}

/// Spawns a machine for which there is no room. The default handlers do the rest.
struct Spawner {
    _counted: Arc<()>,
}

impl Machine for Spawner {
    type Context = ();
    type Seed = PanicsOnDrop;

    fn create(_: PanicsOnDrop, _: &mut Scope<'_, ()>) -> Response<Spawner> {
        unreachable!("there is no room")
    }

    fn ready(self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Spawner, PanicsOnDrop> {
        Response::spawn(self, PanicsOnDrop("seed"))
    }

    fn wakeup(self, _: &mut Scope<'_, ()>) -> Response<Spawner, PanicsOnDrop> {
        Response::keep(self)
    }

    fn timeout(self, _: &mut Scope<'_, ()>) -> Response<Spawner, PanicsOnDrop> {
        Response::keep(self)
    }
}

#[test]
fn a_machine_is_dropped_when_the_drop_of_its_refused_seed_panics() {
    let (manual, counted) = (Manual::new(), Arc::new(()));
    let mut token = None;
    let mut instance = manual.start(&Config::new().machines_max(1), (), |scope| {
        token = Some(scope.token());
        Response::ok(Spawner { _counted: counted.clone() })
    });
    manual.feed(token.expect("the closure ran"), EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(instance.stats().read().panicked, 1);
    assert_eq!(Arc::strong_count(&counted), 1, "it leaked");
}

#[test]
fn an_unwanted_answer_is_dropped_when_the_drop_of_its_request_panics() {
    type Requests = Calls<PanicsOnDrop, Arc<()>>;
    let manual = Manual::new();
    let mut made = None;
    let instance = manual.start(&Config::new(), Log::new(), |scope| {
        made = Some(scope.create_service(1));
        Response::ok(idle())
    });
    let (service, mut calls): (_, Requests) = made.expect("the closure ran");
    drop(service.ask_from_thread(PanicsOnDrop("request")).expect("there is room"));
    let call = calls.receive().expect("it was sent");
    let counted = Arc::new(());
    let answer = counted.clone();
    let answered = catch_unwind(AssertUnwindSafe(|| call.answer(answer).is_err()));
    assert!(answered.is_err(), "the request was dropped");
    assert_eq!(Arc::strong_count(&counted), 1, "the answer leaked");
    drop(instance);
}

/// An error that panics when it is printed, and another that panics when it is dropped.
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
    let (manual, seen) = (Manual::new(), FailureLog::default());
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
fn messages_that_panic_in_drop_do_not_affect_the_machine_or_loop() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in drop")
        }
    }

    let (manual, seen) = (Manual::new(), FailureLog::default());
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
