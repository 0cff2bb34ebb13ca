//! Handlers that the loop does not wait for, since handlers of their type were stuck.

use rotor_core::{Config, Exit, Response, Scope, Stats};

use crate::rig::{Actor, Key, Log, Rig, Seed, actor, blocking, config, trap};

/// Adds a machine that is stuck until it is released: the loop is taken from it, and does not wait
/// for the next handler.
fn add_stuck_machine(rig: &mut Rig) -> Key {
    let (stuck, key) = trap();
    rig.add(move |_, scope| {
        stuck.block();
        scope.record("back");
        Response::done()
    });
    key
}

/// A machine that wakes itself immediately, and ends at that first call.
fn child(scope: &mut Scope<'_, Log>) -> Response<Actor> {
    scope.wake_self();
    Response::ok(actor(|_, _| Response::done()))
}

/// A short handler after one that is stuck until the short one runs. Returns how the loop ends, the
/// log, and the counters.
fn run_short_handler_behind_stuck_one(config: &Config) -> (Exit, Vec<String>, Stats) {
    let mut rig = Rig::new(config);
    let key = add_stuck_machine(&mut rig);
    rig.add(move |_, scope| {
        scope.record("next");
        let _ = key.end.send(());
        Response::done()
    });
    rig.run()
}

#[test]
fn the_next_handler_of_a_type_that_was_stuck_runs_on_another_thread() {
    let (exit, log, stats) = run_short_handler_behind_stuck_one(&config());
    assert_eq!((exit, log), (Exit::Empty, ["next", "back"].map(String::from).to_vec()));
    assert_eq!((stats.taken_over, stats.late_answers, stats.ended), (2, 2, 2));
}

#[test]
fn other_machines_are_called_while_a_detached_handler_blocks() {
    let mut rig = Rig::new(&config());
    let key = add_stuck_machine(&mut rig);
    let (blocks, other) = trap();
    rig.add(move |_, scope| {
        blocks.block();
        scope.record("blocked");
        let _ = key.end.send(());
        Response::done()
    });
    rig.add(move |_, scope| {
        scope.record("last");
        let _ = other.end.send(());
        Response::done()
    });
    assert_eq!(rig.run().1, ["last", "blocked", "back"]);
}

#[test]
fn the_answer_of_a_detached_handler_is_applied() {
    for (answer, next) in [("wakes itself", "Wakeup"), ("waits", "Timeout"), ("spawns", "Spawned")]
    {
        let mut rig = Rig::new(&config());
        let key = add_stuck_machine(&mut rig);
        let mut is_first = true;
        rig.add(move |call, scope| {
            if !std::mem::take(&mut is_first) {
                scope.record(format!("{call:?}"));
                let _ = key.end.send(());
                return Response::done();
            }
            match answer {
                "wakes itself" => scope.wake_self(),
                "waits" => return Response::ok(()).deadline(scope.now()),
                _ => return Response::spawn((), Seed(Box::new(child))),
            }
            // One wake-up, although it wakes itself twice.
            scope.wake_self();
            Response::keep(())
        });
        let (exit, log, stats) = rig.run();
        assert_eq!((exit, log), (Exit::Empty, [next, "back"].map(String::from).to_vec()));
        // The last call is detached as well if the one before took long, for want of a CPU.
        assert!(stats.taken_over >= 2, "{answer}: {stats:?}");
        assert_eq!(stats.late_answers, stats.taken_over, "{answer}");
    }
}

#[test]
fn the_loop_calls_the_handler_itself_when_no_thread_is_left() {
    let config = Config::new().blocking(blocking().threads_max(1));
    let (exit, log, stats) = run_short_handler_behind_stuck_one(&config);
    assert_eq!((exit, log), (Exit::Empty, ["next", "back"].map(String::from).to_vec()));
    assert_eq!((stats.taken_over, stats.late_answers, stats.ended), (1, 1, 2));
}

#[test]
fn a_panic_of_a_detached_handler_ends_its_machine() {
    let mut rig = Rig::new(&config());
    let key = add_stuck_machine(&mut rig);
    rig.add(|_, scope| {
        scope.wake_self();
        panic!("on purpose");
    });
    rig.add(move |_, _| {
        let _ = key.end.send(());
        Response::done()
    });
    let (exit, log, stats) = rig.run();
    assert_eq!((exit, log), (Exit::Empty, vec!["back".to_owned()]));
    assert_eq!((stats.panicked, stats.ended, stats.late_answers), (1, 2, stats.taken_over));
}

#[test]
fn a_section_of_a_detached_handler_runs_inline() {
    let mut rig = Rig::new(&config());
    let key = add_stuck_machine(&mut rig);
    rig.add(move |_, scope: &mut Scope<'_, Log>| {
        let _ = scope.blocking(|| key.end.send(()));
        scope.record("next");
        Response::done()
    });
    let (_, log, stats) = rig.run();
    assert_eq!(log.len(), 2);
    assert_eq!((stats.handed_over, stats.handed_quick, stats.blocked_inline), (0, 0, 0));
}
