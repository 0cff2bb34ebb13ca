//! A loop for which there is no thread when it begins to run: it runs on its caller's thread.

use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use rotor_core::{Blocking, Config, Exit, ExitPolicy, Response, Scope};

use crate::rig::{Call, Log, Reply, Rig, Running, TEST_TIMEOUT, actor, gate, section, start};

/// All loops share one thread beside their first ones.
fn config() -> Config {
    let blocking = Blocking::new().patience_declared(Duration::ZERO).keep_idle(Duration::ZERO);
    Config::new().exit(ExitPolicy::OnRequest).blocking(blocking.threads_max(1))
}

/// Runs a loop that has a handler in a section, and therefore needs the shared thread. Returns when
/// the loop is handed over; the section lasts until the sender is dropped.
fn hand_over_one(config: &Config) -> (Running, Sender<()>) {
    let mut rig = Rig::new(config);
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        Response::keep(())
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    while running.stats.read().threads < 2 {
        thread::yield_now();
    }
    (running, end)
}

/// Runs a loop on its caller's thread, where `handler` is called after the shared thread has become
/// free. A handler of another machine is in a section until the sender is dropped.
fn run_without_thread(
    mut handler: impl FnMut(Call, &mut Scope<'_, Log>) -> Reply + Send + 'static,
) -> (Running, Sender<()>) {
    let config = config();
    let (stopped, end) = hand_over_one(&config);
    stopped.handle.stop();
    let (mut instance, _) = stopped.thread.join().expect("no panic");
    while stopped.stats.read().threads > 1 {
        thread::yield_now();
    }
    // From now on the other loop has the thread.
    let (busy, end_of_busy) = hand_over_one(&config);
    let ((called, is_called), (go, may_go)) = (gate(), gate());
    let made = instance.add_machine_with(|scope| {
        scope.wake_self();
        Response::ok(actor(move |call, scope| {
            let _ = called.send(());
            let _ = may_go.recv();
            handler(call, scope)
        }))
    });
    made.expect("there is room");
    let running = Running::start(instance);
    is_called.recv().expect("it is called");
    busy.handle.stop();
    drop(end_of_busy);
    drop(busy.thread.join().expect("no panic"));
    while busy.stats.read().threads > 0 {
        thread::yield_now();
    }
    drop(go);
    (running, end)
}

#[test]
fn a_section_on_the_callers_thread_does_not_keep_a_stopped_loop_from_ending() {
    let ((began, begins), (end, ends)) = (gate(), gate());
    let (running, _end) = run_without_thread(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        scope.entries.push("back".into());
        Response::keep(())
    });
    begins.recv().expect("the section begins");
    running.handle.stop();
    // If another thread had the loop, the loop would have ended there.
    while running.stats.read().threads > 1 {
        thread::yield_now();
    }
    drop(end);
    let (ended, has_ended) = mpsc::channel();
    let thread = running.thread;
    thread::spawn(move || ended.send(thread.join().expect("no panic")));
    let (instance, exit) = has_ended.recv_timeout(TEST_TIMEOUT).expect("it ends");
    assert_eq!((exit, &instance.context().entries[..]), (Exit::Stopped, &["back".to_owned()][..]));
}

#[test]
fn a_loop_leaves_its_callers_thread_after_a_section_that_blocked_it() {
    let mut calls = 0;
    let (running, _end) = run_without_thread(move |_, scope| {
        let here = thread::current().name().unwrap_or("the caller's").to_owned();
        scope.entries.push(here);
        calls += 1;
        if calls == 1 {
            scope.blocking(|| {});
            scope.wake_self();
        } else {
            scope.stop_loop();
        }
        Response::keep(())
    });
    let (instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Stopped);
    assert_eq!(instance.context().entries, ["the caller's", "rotor-spare"]);
    let stats = running.stats.read();
    assert_eq!((stats.handed_over, stats.blocked_inline, stats.no_thread), (0, 1, 1), "{stats:?}");
}
