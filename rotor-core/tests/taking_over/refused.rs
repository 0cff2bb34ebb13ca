//! Loops that cannot be taken over: without a thread, or without a context for it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rotor_core::{
    Blocking, Config, Exit, Infallible, Loop, Machine, Response, Scope, SharedContext, StuckOutcome,
};

use crate::rig::{Rig, blocking, trap};

#[test]
fn a_lack_of_threads_is_reported_and_the_loop_resumes_afterwards() {
    let (reports, reported) = mpsc::channel();
    let reports = Arc::new(Mutex::new(reports));
    let hook = move |stuck: &rotor_core::StuckReport<'_>| {
        let _ = reports.lock().expect("no panic").send(stuck.outcome);
    };
    let blocking = blocking().threads_max(0).on_stuck(hook.clone()).on_still_stuck(hook);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    rig.add(move |_, scope| {
        while reported.recv().expect("the watchdog looks") != StuckOutcome::NoThread {}
        scope.record("back");
        Response::done()
    });
    let (exit, log, stats) = rig.run();
    assert_eq!((exit, log), (Exit::Empty, vec!["back".to_owned()]));
    assert_eq!((stats.taken_over, stats.late_answers, stats.threads_most), (0, 0, 1));
    assert!(stats.no_thread >= 1, "{stats:?}");
}

#[test]
fn repeated_attempts_to_take_the_loop_count_as_one_stuck_call() {
    let (reports, reported) = mpsc::channel();
    let reports = Arc::new(Mutex::new(reports));
    let patience = Duration::from_millis(5);
    let blocking = Blocking::new().patience(patience).threads_max(0);
    let hook = move |stuck: &rotor_core::StuckReport<'_>| {
        let _ = reports.lock().expect("no panic").send((stuck.calls, stuck.outcome, stuck.time));
    };
    let blocking = blocking.on_stuck(hook.clone()).on_still_stuck(hook);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    rig.add(move |_, scope| {
        // Earlier reports, of a loop that got no CPU, do not matter.
        let is_refused =
            |(_, outcome, _): &(_, StuckOutcome, _)| *outcome == StuckOutcome::NoThread;
        let first = reported.iter().find(is_refused);
        assert!(first.is_some(), "the watchdog looks");
        // A watchdog that got no CPU for a hundred times the patience has made all its reports of
        // this stall; then the test needs another stall.
        let Ok((calls, outcome, time)) = reported.recv_timeout(Duration::from_secs(5)) else {
            scope.wake_self();
            return Response::keep(());
        };
        scope.record(format!("{calls} {outcome:?} {}", time >= patience * 10));
        Response::done()
    });
    let (_, log, _) = rig.run();
    assert_eq!(log, ["1 NoThread true"]);
}

/// Otherwise later handlers would be called on other threads, as soon as there are some.
#[test]
fn a_type_whose_loop_could_not_be_taken_is_no_suspect() {
    let (reports, reported) = mpsc::channel();
    let reports = Arc::new(Mutex::new(reports));
    let patience = Duration::from_millis(20);
    let blocking = blocking().patience(patience).patience_behind(patience).threads_max(1);
    let hook = move |stuck: &rotor_core::StuckReport<'_>| {
        let _ = reports.lock().expect("no panic").send(stuck.outcome);
    };
    let blocking = blocking.on_stuck(hook.clone()).on_still_stuck(hook);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let (section, key) = trap();
    rig.add(move |_, scope| {
        // The only other thread goes on with the loop.
        scope.blocking(|| section.block());
        scope.record("back");
        Response::done()
    });
    rig.add(move |_, _| {
        // A loop that gets no CPU is reported, too.
        while reported.recv().expect("the watchdog looks") != StuckOutcome::NoThread {}
        Response::done()
    });
    rig.add(move |_, _| {
        let _ = key.end.send(());
        Response::done()
    });
    let mut left = 1_000;
    rig.add(move |_, scope| {
        left -= i32::from(!scope.entries().is_empty());
        scope.wake_self();
        if left == 0 { Response::done() } else { Response::keep(()) }
    });
    let (_, log, stats) = rig.run();
    assert_eq!((log, stats.taken_over), (vec!["back".to_owned()], 0));
    assert!(stats.no_thread >= 1, "{stats:?}");
}

#[derive(Default)]
struct UncloneableContext {
    is_cloned: AtomicBool,
}

impl Clone for UncloneableContext {
    fn clone(&self) -> UncloneableContext {
        self.is_cloned.store(true, SeqCst);
        panic!("on purpose");
    }
}

impl SharedContext for UncloneableContext {}

/// Is stuck until the watchdog has reported it.
struct StuckMachine(mpsc::Receiver<StuckOutcome>);

impl Machine for StuckMachine {
    type Context = UncloneableContext;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, UncloneableContext>) -> Response<Self, Infallible> {
        assert!(scope.is_cloned.load(SeqCst));
        assert_eq!(self.0.recv(), Ok(StuckOutcome::Watched));
        // A declared section cannot be handed over either, and holds up the loop.
        scope.blocking(|| {});
        Response::done()
    }
}

#[test]
fn a_context_whose_clone_panics_is_not_handed_to_another_thread() {
    let (reports, reported) = mpsc::channel();
    let reports = Arc::new(Mutex::new(reports));
    let hook = move |stuck: &rotor_core::StuckReport<'_>| {
        let _ = reports.lock().expect("no panic").send(stuck.outcome);
    };
    let blocking = blocking().on_stuck(hook.clone()).on_still_stuck(hook);
    let mut creator = Loop::new(&Config::new().blocking(blocking)).expect("descriptors are left");
    let made = creator.add_machine_with(|scope| {
        scope.wake_self();
        Response::ok(StuckMachine(reported))
    });
    made.expect("there is room");
    let mut instance = creator.instantiate(UncloneableContext::default()).taking_over();
    assert_eq!(instance.run().expect("it waits"), Exit::Empty);
    let stats = instance.stats().read();
    assert_eq!((stats.taken_over, stats.handed_over, stats.blocked_inline), (0, 0, 1));
    assert_eq!((stats.panicked, stats.ended), (0, 1));
}
