//! A loop that other threads go on with while its handlers block. All by events: handlers wait for
//! each other, or for the test, never for time.
#![expect(clippy::disallowed_methods, reason = "tests play the outside world: its threads")]

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use rotor_core::{
    Blocking, Config, Exit, ExitPolicy, Loop, LoopHandle, LoopInstance, Machine, Notifier, Permits,
    Response, Scope, SpawnError, Stats, StatsHandle, Time,
};

/// What a loop's machines share: what they did, in order.
#[derive(Default)]
struct Log {
    said: Vec<String>,
    /// A handler runs, and is not in a section.
    is_busy: Arc<AtomicBool>,
}

type Handler = Box<dyn FnMut(Call, &mut Scope<'_, Log>) -> Response<(), Seed> + Send>;
type Make = Box<dyn FnOnce(&mut Scope<'_, Log>) -> Response<Actor> + Send>;

struct Seed(Make);

#[derive(Debug)]
enum Call {
    Wakeup,
    Timeout,
    Draining,
    Spawned,
    SpawnError,
}

/// A machine whose handlers are one closure.
struct Actor(Handler);

fn actor(
    handler: impl FnMut(Call, &mut Scope<'_, Log>) -> Response<(), Seed> + Send + 'static,
) -> Actor {
    Actor(Box::new(handler))
}

impl Actor {
    fn call(mut self, call: Call, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        (self.0)(call, scope).map(|()| self, |seed| seed)
    }
}

impl Machine for Actor {
    type Context = Log;
    type Seed = Seed;

    fn create(seed: Seed, scope: &mut Scope<'_, Log>) -> Response<Self> {
        (seed.0)(scope)
    }

    fn wakeup(self, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        self.call(Call::Wakeup, scope)
    }

    fn timeout(self, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        self.call(Call::Timeout, scope)
    }

    fn draining(self, _: Time, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        self.call(Call::Draining, scope)
    }

    fn spawned(self, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        self.call(Call::Spawned, scope)
    }

    fn spawn_error(self, _: SpawnError<Seed>, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        self.call(Call::SpawnError, scope)
    }

    fn type_name(&self) -> &'static str {
        "actor"
    }
}

/// Hands over at once, whatever a section took before.
fn config() -> Config {
    Config::new().blocking(Blocking::new().patience_declared(Duration::ZERO))
}

/// A loop under construction, whose machines are all woken at the start.
struct Rig {
    creator: Loop<Actor>,
    notifiers: Vec<Notifier>,
}

impl Rig {
    fn new(config: &Config) -> Rig {
        let creator = Loop::new(config).expect("descriptors are left");
        Rig { creator, notifiers: Vec::new() }
    }

    /// A machine that is woken at the start.
    fn add(
        &mut self,
        handler: impl FnMut(Call, &mut Scope<'_, Log>) -> Response<(), Seed> + Send + 'static,
    ) -> Notifier {
        let mut notifier = None;
        let made = self.creator.add_machine_with(|scope| {
            scope.wake_self();
            notifier = Some(scope.notifier());
            Response::ok(actor(handler))
        });
        made.expect("there is room");
        self.notifiers.extend(notifier.clone());
        notifier.expect("it was made")
    }

    fn instance(self) -> LoopInstance<Actor> {
        self.creator.instantiate(Log::default()).handing_over()
    }

    fn run(self) -> (Exit, Vec<String>, Stats) {
        let mut instance = self.instance();
        let exit = instance.run().expect("it waits");
        let stats = instance.stats().read();
        instance.check_invariants().expect("the books agree");
        (exit, instance.into_context().said, stats)
    }
}

/// A section that lasts until `end` is sent or dropped, and says that it has begun.
fn section(began: &Sender<()>, end: &Receiver<()>) {
    let _ = began.send(());
    let _ = end.recv();
}

fn gate() -> (Sender<()>, Receiver<()>) {
    mpsc::channel()
}

#[test]
fn sections_of_several_machines_overlap() {
    const MACHINES: usize = 20;
    let mut rig = Rig::new(&config());
    // Nobody passes it unless all are in it at a time.
    let barrier = Arc::new(Barrier::new(MACHINES));
    for number in 0..MACHINES {
        let barrier = barrier.clone();
        rig.add(move |_, scope| {
            assert!(scope.hands_over());
            scope.blocking(|| barrier.wait());
            scope.said.push(format!("{number}"));
            Response::done()
        });
    }
    let (exit, said, stats) = rig.run();
    assert_eq!((exit, said.len()), (Exit::Empty, MACHINES));
    assert_eq!((stats.handed_over, stats.no_thread, stats.ended), (20, 0, 20));
    assert!(stats.threads_most >= 20, "{stats:?}");
}

#[test]
fn handlers_never_overlap_outside_of_sections() {
    let mut rig = Rig::new(&config());
    for _ in 0..8 {
        let mut left = 50;
        rig.add(move |_, scope| {
            let is_busy = scope.is_busy.clone();
            assert!(!is_busy.swap(true, SeqCst), "two handlers at a time");
            let mine = thread::current().id();
            is_busy.store(false, SeqCst);
            let there: ThreadId = scope.blocking(|| {
                thread::yield_now();
                thread::current().id()
            });
            assert!(!is_busy.swap(true, SeqCst), "two handlers at a time");
            assert_eq!(mine, there);
            assert_eq!(mine, thread::current().id(), "a handler goes on where it began");
            left -= 1;
            scope.said.push("done".into());
            scope.wake_self();
            is_busy.store(false, SeqCst);
            if left == 0 { Response::done() } else { Response::keep(()) }
        });
    }
    let (exit, said, stats) = rig.run();
    assert_eq!((exit, said.len(), stats.panicked), (Exit::Empty, 400, 0));
}

#[test]
fn a_loop_that_does_not_hand_over_blocks_and_counts() {
    let mut rig = Rig::new(&Config::new());
    rig.add(|_, scope| {
        assert!(!scope.hands_over());
        scope.blocking(|| {});
        Response::done()
    });
    let mut instance = rig.creator.instantiate(Log::default());
    instance.run().expect("it waits");
    let stats = instance.stats().read();
    assert_eq!((stats.blocked_inline, stats.handed_over, stats.threads_most), (1, 0, 0));
}

#[test]
fn one_who_comes_back_while_the_loop_sleeps_wakes_it() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        scope.said.push("back".into());
        Response::done()
    });
    let running = thread::spawn(move || rig.run());
    begins.recv().expect("the section begins");
    drop(end);
    let (exit, said, stats) = running.join().expect("no panic");
    assert_eq!((exit, said, stats.handed_over), (Exit::Empty, vec!["back".to_owned()], 1));
}

#[test]
fn several_that_come_back_wait_until_a_handler_has_answered() {
    let mut rig = Rig::new(&config());
    let (order, ordered) = mpsc::channel();
    // The first three block; the fourth keeps the loop until their sections are over.
    let mut ends = Vec::new();
    let (began, begins) = gate();
    for number in 0..3 {
        let (end, ended) = gate();
        ends.push(end);
        let (began, order) = (began.clone(), order.clone());
        rig.add(move |_, scope| {
            scope.blocking(|| {
                let _ = began.send(());
                let _ = ended.recv();
                let _ = order.send(number);
            });
            scope.said.push(format!("{number}"));
            Response::done()
        });
    }
    rig.add(move |_, scope| {
        for _ in 0..3 {
            begins.recv().expect("all three are away");
        }
        for number in [2, 0, 1] {
            let _ = ends[number].send(());
            assert_eq!(ordered.recv(), Ok(number));
        }
        scope.said.push("keeps".into());
        Response::done()
    });
    let (_, mut said, _) = rig.run();
    // In which order is a matter of threads; that it is that of the line, `line` tests itself.
    said[1..].sort();
    assert_eq!(said, ["keeps", "0", "1", "2"]);
}

#[test]
fn a_panic_in_a_section_costs_its_machine_and_the_loop_is_taken_back_first() {
    let mut rig = Rig::new(&config());
    rig.add(|_, scope| {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            scope.blocking(|| panic!("on purpose"))
        }));
        assert!(caught.is_err());
        scope.said.push("the context is there".into());
        scope.blocking(|| panic!("on purpose, again"));
        Response::done()
    });
    rig.add(|_, scope| {
        let caught = scope.guard(|scope| scope.blocking(|| panic!("on purpose")));
        assert_eq!(caught.expect_err("it panicked").message(), "on purpose");
        scope.said.push("guarded".into());
        Response::done()
    });
    let (exit, mut said, stats) = rig.run();
    said.sort();
    assert_eq!((exit, stats.panicked, stats.ended), (Exit::Empty, 1, 1));
    assert_eq!(said, ["guarded", "the context is there"]);
}

#[test]
fn a_part_and_what_is_guarded_hand_over_and_create_does_not() {
    let mut rig = Rig::new(&config());
    let barrier = Arc::new(Barrier::new(2));
    for _ in 0..2 {
        let barrier = barrier.clone();
        rig.add(move |_, scope| {
            let inner = scope.guard(|scope| {
                let mut part = scope.part(7);
                part.blocking(|| barrier.wait());
                part.said.push("part".into());
            });
            assert!(inner.is_ok());
            let (_, early) = scope.split();
            assert!(!early.hands_over());
            Response::done()
        });
    }
    rig.add(|call, _| match call {
        Call::Wakeup => Response::spawn(
            (),
            Seed(Box::new(|scope| {
                assert!(!scope.hands_over());
                scope.blocking(|| {});
                scope.wake_self();
                Response::ok(actor(|_, scope| {
                    scope.blocking(|| {});
                    Response::done()
                }))
            })),
        ),
        call => {
            assert!(matches!(call, Call::Spawned), "{call:?}");
            Response::done()
        }
    });
    let (_, said, stats) = rig.run();
    assert_eq!((said.len(), stats.handed_over, stats.blocked_inline), (2, 3, 1));
    assert_eq!(stats.panicked, 0);
}

#[test]
fn who_hears_of_its_spawn_may_block_there_and_spawn_again() {
    let mut rig = Rig::new(&config().spawns_per_event(2));
    let mut left = 5;
    rig.add(move |_, scope| {
        scope.blocking(|| {});
        scope.said.push("parent".into());
        left -= 1;
        if left == 0 {
            return Response::done();
        }
        Response::spawn((), Seed(Box::new(|_| Response::done())))
    });
    let (exit, said, stats) = rig.run();
    assert_eq!((exit, said.len(), stats.handed_over), (Exit::Empty, 5, 5));
}

#[test]
fn what_comes_for_a_machine_that_is_away_waits_for_it_and_comes_once() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    let mut first = true;
    let away = rig.add(move |call, scope| {
        scope.said.push(format!("{call:?}"));
        if std::mem::take(&mut first) {
            scope.wake_self();
            scope.blocking(|| section(&began, &ends));
            scope.said.push("back".into());
            // It has passed while this was away.
            return Response::keep(());
        }
        if scope.said.iter().any(|said| said == "Timeout")
            && scope.said.iter().filter(|said| *said == "Wakeup").count() > 1
        {
            return Response::done();
        }
        Response::keep(())
    });
    let mut deadlines = 0;
    rig.add(move |call, scope| {
        if let Call::Wakeup = call {
            begins.recv().expect("it is away");
            for _ in 0..3 {
                away.wakeup();
            }
            return Response::ok(()).deadline(scope.now());
        }
        // Some turns, in which what came for the other could be lost.
        deadlines += 1;
        away.wakeup();
        if deadlines < 5 {
            return Response::ok(()).deadline(scope.now());
        }
        let _ = end.send(());
        Response::done()
    });
    let mut instance = rig.instance();
    instance.every(Duration::from_millis(1), |_, _| {});
    // The deadline of the first machine, which passes while it is away.
    assert_eq!(instance.machines().len(), 2);
    instance.broadcast();
    let mut cursor = rotor_core::Cursor::START;
    let mut is_first = true;
    while let Some(next) = instance.machines().scan(cursor, |_, _| {
        if std::mem::take(&mut is_first) {
            rotor_core::Verdict::Expire
        } else {
            rotor_core::Verdict::Keep
        }
    }) {
        cursor = next;
    }
    instance.run().expect("it waits");
    let said = instance.into_context().said;
    let (back, calls) = (said.iter().position(|said| said == "back"), said.len());
    assert_eq!(back, Some(1), "nothing was called while it was away: {said:?}");
    assert_eq!(calls, 4, "the wake-ups were merged: {said:?}");
}

#[test]
fn a_wake_up_of_oneself_before_a_section_is_ones_own() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        scope.said.push(format!("first {calls}"));
        if calls == 1 {
            scope.wake_self();
            scope.blocking(|| section(&began, &ends));
            // A deadline as well, so that there is an end to a test in which it is not woken.
            return Response::ok(()).deadline(scope.now() + Duration::from_secs(2));
        }
        Response::done()
    });
    let mut calls = 0;
    rig.add(move |call, scope| {
        calls += 1;
        scope.said.push(format!("second {calls} {call:?}"));
        begins.recv().expect("the first is away");
        let _ = end.send(());
        Response::done()
    });
    let (_, said, stats) = rig.run();
    assert_eq!(said[..3], ["first 1", "second 1 Wakeup", "first 2"]);
    assert_eq!((stats.wakeups, stats.timeouts), (3, 0));
}

/// A loop that runs in a thread of its own.
struct Running {
    thread: JoinHandle<(LoopInstance<Actor>, Exit)>,
    handle: LoopHandle,
    stats: StatsHandle,
}

fn start(rig: Rig) -> Running {
    let mut instance = rig.instance();
    let (handle, stats) = (instance.handle(), instance.stats());
    let thread = thread::spawn(move || {
        let exit = instance.run().expect("it waits");
        (instance, exit)
    });
    Running { thread, handle, stats }
}

#[test]
fn a_drain_counts_one_that_never_comes_back_as_dropped() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    let (dropped, is_dropped) = gate();
    rig.add(move |_, scope| {
        let _tells = &dropped;
        scope.blocking(|| section(&began, &ends));
        scope.said.push("back".into());
        Response::keep(())
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.drain(Duration::from_millis(1));
    // `run` returns though the section has not.
    let (mut instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Drained { dropped: 1 });
    instance.check_invariants().expect("the books agree");
    assert_eq!(instance.machines().len(), 0);
    // Dropped with its machine, once the section ends.
    assert!(is_dropped.try_recv() == Err(mpsc::TryRecvError::Empty));
    drop(instance);
    drop(end);
    assert!(is_dropped.recv().is_err(), "the machine is gone");
    assert_eq!(running.stats.read().panicked, 0);
}

#[test]
fn one_that_a_drain_gave_up_ends_quietly_when_the_loop_runs_again() {
    let mut rig = Rig::new(&config().exit(ExitPolicy::OnRequest));
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.wake_self();
        scope.blocking(|| section(&began, &ends));
        scope.said.push("back".into());
        scope.stop_loop();
        Response::keep(())
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.drain(Duration::ZERO);
    let (mut instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Drained { dropped: 1 });
    // The slot is another one's now.
    let other = instance.add_machine_with(|_| Response::ok(actor(|_, _| Response::keep(()))));
    drop(end);
    assert_eq!(instance.run().expect("it waits"), Exit::Stopped);
    instance.check_invariants().expect("the books agree");
    assert_eq!(instance.context().said, ["back"]);
    assert_eq!((other.is_ok(), instance.machines().len()), (true, 1));
}

#[test]
fn a_loop_that_was_stopped_goes_on_with_those_who_were_away() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        scope.said.push("back".into());
        Response::done()
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.stop();
    let (mut instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Stopped);
    instance.check_invariants().expect("the books agree");
    // Turns of an embedded loop do not wait for it.
    assert_eq!(instance.turn(Some(Duration::ZERO)).expect("it waits"), None);
    drop(end);
    assert_eq!(instance.run().expect("it waits"), Exit::Empty);
    assert_eq!(instance.context().said, ["back"]);
}

#[test]
fn turns_of_a_loop_that_was_stopped_wait_though_one_wants_it_back() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        scope.said.push("back".into());
        Response::done()
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.stop();
    let (mut instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Stopped);
    assert_eq!(instance.turn(Some(Duration::ZERO)).expect("it waits"), None);
    drop(end);
    // Woken by who is back.
    assert_eq!(instance.turn(None).expect("it waits"), None);
    assert_eq!(instance.next_deadline(), None);
    // It is the same loop, whose threads are those that it has.
    let mut instance = instance.handing_over();
    assert_eq!(instance.run().expect("it waits"), Exit::Empty);
    assert_eq!(instance.context().said, ["back"]);
}

#[test]
fn a_machine_that_is_killed_while_it_is_away_is_dropped_when_it_answers() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        scope.said.push("back".into());
        Response::keep(())
    });
    let mut instance = rig.instance();
    let broadcast = instance.broadcast();
    let running = thread::spawn(move || {
        let exit = instance.run().expect("it waits");
        (instance, exit)
    });
    begins.recv().expect("the section begins");
    let (seen, sees) = mpsc::channel();
    let posted = broadcast.post(move |mut machines, _| {
        machines.scan(rotor_core::Cursor::START, |_, machine| {
            let _ = seen.send(matches!(machine, rotor_core::Seen::Busy));
            rotor_core::Verdict::End
        });
    });
    assert!(posted.is_ok());
    assert_eq!(sees.recv(), Ok(true));
    drop(end);
    let (instance, exit) = running.join().expect("no panic");
    assert_eq!((exit, instance.context().said.len()), (Exit::Empty, 1));
    assert_eq!(instance.stats().read().ended, 1);
}

#[test]
fn without_threads_left_sections_run_inline() {
    let blocking = Blocking::new().patience_declared(Duration::ZERO).threads_max(0);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    for _ in 0..3 {
        rig.add(|_, scope| {
            scope.wake_self();
            scope.blocking(|| {});
            scope.said.push("inline".into());
            Response::done()
        });
    }
    let (_, said, stats) = rig.run();
    assert_eq!((said.len(), stats.handed_over), (3, 0));
    assert_eq!((stats.no_thread, stats.blocked_inline, stats.threads_most), (3, 3, 1));
}

#[test]
fn threads_are_of_one_budget_for_all_loops_and_come_back_to_it() {
    let blocking = Blocking::new().patience_declared(Duration::ZERO);
    let blocking = blocking.threads_max(1).keep_idle(Duration::ZERO);
    let config = Config::new().blocking(blocking);
    let ((began, begins), (end, ends)) = (gate(), gate());
    let mut rig = Rig::new(&config);
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        Response::done()
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    let other = |handed| {
        let mut rig = Rig::new(&config);
        rig.add(|_, scope| {
            scope.blocking(|| {});
            Response::done()
        });
        let (_, _, stats) = rig.run();
        (stats.handed_over == 1) == handed
    };
    assert!(other(false), "the one thread is the other loop's");
    drop(end);
    drop(running.thread.join().expect("no panic"));
    while !other(true) {
        thread::yield_now();
    }
    while running.stats.read().threads > 0 {
        thread::yield_now();
    }
}

#[test]
fn permits_bound_sections_and_refuse_at_once() {
    let permits = Permits::new(1);
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add({
        let permits = permits.clone();
        move |_, scope| {
            let done = scope.blocking_with(&permits, || section(&began, &ends));
            assert!(done.is_ok());
            Response::done()
        }
    });
    rig.add({
        let permits = permits.clone();
        move |_, scope| {
            begins.recv().expect("the other has it");
            let refused = scope.blocking_with(&permits, || 7).expect_err("none is free");
            assert_eq!((refused.into_closure())(), 7);
            let _ = end.send(());
            Response::done()
        }
    });
    let (_, _, stats) = rig.run();
    assert_eq!((stats.panicked, stats.handed_over), (0, 1));
    assert_eq!((permits.available(), permits.stats().unused), (1, 0));
}

#[test]
fn sections_of_a_type_that_were_short_cost_no_hand_over() {
    let blocking = Blocking::new().patience_declared(Duration::from_secs(1_000));
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let mut left = 10;
    rig.add(move |_, scope| {
        scope.blocking(|| {});
        left -= 1;
        scope.wake_self();
        if left == 0 { Response::done() } else { Response::keep(()) }
    });
    let (_, _, stats) = rig.run();
    assert_eq!((stats.handed_over, stats.handed_quick), (1, 9));
}

#[test]
fn one_that_was_to_be_short_and_is_not_is_handed_over_all_the_same() {
    let blocking = Blocking::new().patience_declared(Duration::from_secs(1_000));
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let ((began, begins), (end, ends)) = (gate(), gate());
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        scope.wake_self();
        if calls < 3 {
            scope.blocking(|| {});
            return Response::keep(());
        }
        // Until the other machine ends it, for which somebody has to go on with the loop.
        scope.blocking(|| section(&began, &ends));
        scope.said.push("back".into());
        Response::done()
    });
    rig.add(move |_, scope| {
        scope.wake_self();
        if begins.try_recv().is_err() {
            return Response::keep(());
        }
        let _ = end.send(());
        Response::done()
    });
    let (_, said, stats) = rig.run();
    assert_eq!(said, ["back"]);
    assert_eq!((stats.handed_over, stats.handed_quick), (2, 1));
}

#[test]
fn a_section_that_does_not_end_is_reported() {
    let (reports, reported) = mpsc::channel();
    let reports = Mutex::new(reports);
    let blocking = Blocking::new().patience(Duration::from_millis(1)).on_stuck(move |stuck| {
        if stuck.outcome == rotor_core::StuckOutcome::HandedOver {
            let _ = reports.lock().expect("no panic").send(stuck.to_string());
        }
    });
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    rig.add(move |_, scope| {
        let report = scope.blocking(|| reported.recv().expect("the watchdog looks"));
        scope.said.push(report);
        Response::done()
    });
    let (_, said, stats) = rig.run();
    assert!(said[0].contains("a section has blocked for"), "{said:?}");
    assert!(said[0].contains("(actor)"), "{said:?}");
    assert!(stats.stuck > 0);
}

#[test]
fn one_that_is_stuck_after_it_came_back_is_named_itself() {
    let (reports, reported) = mpsc::channel();
    let reports = Mutex::new(reports);
    let blocking = Blocking::new().patience_declared(Duration::ZERO);
    let blocking = blocking.patience(Duration::from_millis(1)).on_stuck(move |stuck| {
        let _ = reports.lock().expect("no panic").send(stuck.token);
    });
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        let me = scope.token();
        scope.blocking(|| section(&began, &ends));
        // What was said before, of a handler that got no CPU, is of no matter.
        while reported.try_recv().is_ok() {}
        // There are three for a loop that does not poll, whoever they name.
        let mut reports = (0..3).map_while(|_| reported.recv_timeout(NEVER).ok());
        let is_named = reports.any(|token| token == Some(me));
        scope.said.push(is_named.to_string());
        Response::done()
    });
    rig.add(move |_, scope| {
        scope.wake_self();
        if begins.try_recv().is_err() {
            return Response::keep(());
        }
        let _ = end.send(());
        Response::done()
    });
    let (_, said, stats) = rig.run();
    assert_eq!((said, stats.handed_over), (vec!["true".to_owned()], 1));
}

#[test]
fn the_time_of_a_section_that_was_handed_over_is_not_its_handler_s() {
    // A handler that gets no CPU takes as long, but not each time.
    let is_without = (0..50).any(|_| {
        let mut rig = Rig::new(&config().time_handlers(true));
        rig.add(|_, scope| {
            let began = Instant::now();
            scope.blocking(|| while began.elapsed() < SECTION {});
            Response::done()
        });
        let (_, _, stats) = rig.run();
        assert_eq!(stats.handed_over, 1);
        stats.longest_handler.expect("they are timed").time < SECTION
    });
    assert!(is_without);
}

const SECTION: Duration = Duration::from_millis(10);

/// A test that waits for so long has failed.
const NEVER: Duration = Duration::from_secs(10);

#[test]
fn a_loop_that_is_dropped_unwinds_who_comes_back_later() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    let (dropped, is_dropped) = mpsc::channel::<&str>();
    rig.add(move |_, scope| {
        let _tells = &dropped;
        let came = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // No layer keeps it from unwinding.
            let _ = scope.guard(|scope| scope.blocking(|| section(&began, &ends)));
            let _ = dropped.send("not reached");
        }));
        assert!(came.is_err() && !scope.hands_over());
        let _ = dropped.send("unwound");
        Response::keep(())
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.stop();
    drop(running.thread.join().expect("no panic"));
    drop(end);
    assert_eq!(is_dropped.recv(), Ok("unwound"));
    assert!(is_dropped.recv().is_err(), "the machine is gone");
}
