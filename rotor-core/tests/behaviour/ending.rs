//! How loops end: by themselves, or stopped. Drained loops are in `draining`.

mod draining;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use rotor_core::{Config, EventSet, Exit, ExitPolicy, LoopInstance, Response, Scope, Token};

use crate::actor::{Actor, actor, idle};
use crate::manual::{Manual, settle};

type Log = Vec<String>;
type Instance = LoopInstance<Actor<Log>, Manual>;

const SECOND: Duration = Duration::from_secs(1);

fn empty(manual: &Manual, config: &Config) -> Instance {
    manual.creator(config).instantiate(Log::new())
}

fn add(instance: &mut Instance, machine: Actor<Log>) -> Token {
    instance.add_machine_with(|_| Response::ok(machine)).expect("there is room")
}

#[test]
fn a_loop_ends_when_its_last_machine_does() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    let token = add(&mut instance, actor(|_, _| Response::done()));
    manual.feed(token, EventSet::READABLE);
    assert_eq!(instance.run().expect("it can wait"), Exit::Empty);
    assert_eq!(instance.run().expect("it can wait"), Exit::Empty, "again, at once");
    let emptied = manual.now();
    manual.send_for(SECOND);
    assert_eq!(instance.run().expect("it can wait"), Exit::Empty);
    assert_eq!(manual.now() - emptied, SECOND, "the backend has sent everything");
    manual.send_for(SECOND);
    instance.handle().stop();
    assert_eq!(instance.run().expect("it can wait"), Exit::Stopped);
    assert_eq!(manual.now() - emptied, SECOND, "a stop does not wait");
}

#[test]
fn an_empty_loop_waits_for_machines_unless_it_exits_when_empty() {
    for policy in [ExitPolicy::OnRequest, ExitPolicy::Never] {
        let manual = Manual::new();
        let mut instance = empty(&manual, &Config::new().exit(policy));
        assert_eq!(instance.turn(Some(Duration::ZERO)).expect("polling never fails"), None);
        assert_eq!(instance.run().expect_err("nothing would ever happen").to_string(), "asleep");
        instance.handle().stop();
        assert_eq!(instance.run().expect("it can wait"), Exit::Stopped);
    }
}

#[test]
fn a_machine_may_stop_the_loop_unless_the_policy_is_never() {
    for (policy, ends) in
        [(ExitPolicy::WhenEmpty, true), (ExitPolicy::OnRequest, true), (ExitPolicy::Never, false)]
    {
        let manual = Manual::new();
        let mut instance = empty(&manual, &Config::new().exit(policy));
        let mut tokens = Vec::new();
        for _ in 0..2 {
            tokens.push(add(
                &mut instance,
                actor(|_, scope: &mut Scope<'_, Log>| {
                    scope.push("called".into());
                    scope.stop_loop();
                    Response::keep(())
                }),
            ));
        }
        tokens.iter().for_each(|token| manual.feed(*token, EventSet::READABLE));
        let ended = instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        assert_eq!(ended, ends.then_some(Exit::Stopped), "{policy:?}");
        assert_eq!(instance.context().len(), 2, "the turn is finished");
        assert_eq!(instance.machines().len(), 2, "machines stay where they are");
        assert_eq!(
            instance.turn(Some(Duration::ZERO)).expect("polling never fails"),
            None,
            "asked once"
        );
    }
}

#[test]
fn a_stop_request_during_setup_ends_the_loop_before_it_sleeps() {
    let manual = Manual::new();
    let mut instance = manual.start(&Config::new(), Log::new(), |scope| {
        scope.stop_loop();
        Response::ok(idle())
    });
    assert_eq!(instance.run().expect("it does not sleep"), Exit::Stopped);
    let made = instance.add_machine_with(|scope| {
        scope.stop_loop();
        Response::ok(idle())
    });
    made.expect("there is room");
    assert_eq!(instance.run().expect("it does not sleep"), Exit::Stopped);
    let mut instance = manual.start(&Config::new().exit(ExitPolicy::Never), Log::new(), |scope| {
        scope.stop_loop();
        Response::ok(idle())
    });
    settle(&mut instance);
    assert_eq!(instance.next_deadline(), None, "a request that is refused is not due forever");
}

#[test]
fn a_stop_from_a_handle_ends_the_loop_even_before_it_runs() {
    let manual = Manual::new();
    let mut creator = manual.creator::<Actor<Log>>(&Config::new().exit(ExitPolicy::Never));
    creator.handle().stop();
    creator.add_machine_with(|_| Response::ok(idle())).expect("there is room");
    let mut instance = creator.instantiate(Log::new());
    assert_eq!(instance.run().expect("it can wait"), Exit::Stopped);
    let handle = instance.handle();
    drop(instance);
    handle.stop();
    handle.drain(SECOND);
}

#[test]
fn machines_are_dropped_before_the_context() {
    /// The machine, which is dropped first, sees that the context is still alive.
    struct Context(Arc<AtomicBool>);
    impl Drop for Context {
        fn drop(&mut self) {
            self.0.store(false, SeqCst);
        }
    }
    struct ContextChecker(Arc<AtomicBool>, Arc<AtomicU32>);
    impl Drop for ContextChecker {
        fn drop(&mut self) {
            assert!(self.0.load(SeqCst), "the context went first");
            self.1.fetch_add(1, SeqCst);
        }
    }
    let (alive, dropped) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let manual = Manual::new();
    let checks = ContextChecker(alive.clone(), dropped.clone());
    let instance = manual.start(&Config::new(), Context(alive.clone()), move |_| {
        Response::ok(actor(move |_, _: &mut Scope<'_, Context>| {
            let _kept = &checks;
            Response::keep(())
        }))
    });
    drop(instance);
    assert_eq!((alive.load(SeqCst), dropped.load(SeqCst)), (false, 1));
}
