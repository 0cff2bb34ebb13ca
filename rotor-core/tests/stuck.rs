//! Handlers that block their loop, as the watchdog sees them. Runs in its own process, whose logger
//! keeps the messages. Handlers wait for reports, never for time.
//!
//! Not with `--cfg rotor_handed`: there each handler begins by waiting until another thread has had
//! the loop. On a busy computer this takes longer than the patience of these tests, so it is
//! reported too, and which report comes first depends on the scheduler.
#![cfg(not(rotor_handed))]

use std::hint;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use log::{Level, LevelFilter, Log, Metadata, Record};
use rotor_core::threads::LoopGroup;
use rotor_core::{
    Blocking, Config, Exit, ExitPolicy, Infallible, Loop, LoopInstance, Machine, Response, Scope,
    Stats, StuckOutcome, StuckReport, ThreadState, Token,
};

struct MemoryLogger(Mutex<Vec<(Level, String)>>);

static LOGGER: MemoryLogger = MemoryLogger(Mutex::new(Vec::new()));

impl Log for MemoryLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let text = record.args().to_string();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((record.level(), text));
    }

    fn flush(&self) {}
}

/// Owned by each hook. The watchdog's thread drops the hook when it ends, some time after the loop
/// has ended; until then it may still log something.
struct HookGuard;

static HOOKS: AtomicUsize = AtomicUsize::new(0);

impl HookGuard {
    fn new() -> HookGuard {
        HOOKS.fetch_add(1, SeqCst);
        HookGuard
    }
}

impl Drop for HookGuard {
    fn drop(&mut self) {
        HOOKS.fetch_sub(1, SeqCst);
    }
}

/// One test at a time, since they share the log; and no watchdog left over from the previous test.
fn lock_tests() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    let alone = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    while HOOKS.load(SeqCst) > 0 {
        std::thread::yield_now();
    }
    let _ = log::set_logger(&LOGGER);
    log::set_max_level(LevelFilter::Warn);
    take_logged();
    alone
}

fn take_logged() -> Vec<(Level, String)> {
    std::mem::take(&mut *LOGGER.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// An owned copy of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Report {
    loop_name: String,
    token: Option<Token>,
    machine: &'static str,
    time: Duration,
    calls: u64,
    thread: ThreadState,
    outcome: StuckOutcome,
}

impl From<&StuckReport<'_>> for Report {
    fn from(stuck: &StuckReport<'_>) -> Report {
        let StuckReport { token, machine, time, calls, thread, outcome, .. } = *stuck;
        let loop_name = stuck.loop_name.to_owned();
        Report { loop_name, token, machine, time, calls, thread, outcome }
    }
}

/// A closure that blocks; it is the loop's context.
type Block = Box<dyn FnMut()>;

/// Blocks once in its handler.
struct BlockingMachine;

impl Machine for BlockingMachine {
    type Context = Block;
    type Seed = Infallible;

    fn timeout(self, scope: &mut Scope<'_, Block>) -> Response<Self, Infallible> {
        (*scope)();
        Response::done()
    }
}

/// A loop with one machine that blocks.
fn blocking_loop(
    config: &Config,
    block: impl FnMut() + 'static,
) -> (LoopInstance<BlockingMachine>, Token) {
    let mut creator = Loop::new(config).expect("a loop");
    let made =
        creator.add_machine_with(|scope| Response::ok(BlockingMachine).deadline(scope.now()));
    (creator.instantiate(Box::new(block)), made.expect("a slot"))
}

/// Watches with a patience of 1 ms, and sends each report.
fn reporting_config() -> (Config, mpsc::Receiver<Report>) {
    let (sender, reports) = mpsc::channel();
    let (report, hooked) = (Arc::new(Mutex::new(sender)), Arc::new(HookGuard::new()));
    let hook = move |stuck: &StuckReport<'_>| {
        let _owned = &hooked;
        let _ = report.lock().expect("nobody panics").send(Report::from(stuck));
    };
    let blocking = Blocking::new().patience(Duration::from_millis(1));
    let blocking = blocking.on_stuck(hook.clone()).on_still_stuck(hook);
    (Config::new().blocking(blocking), reports)
}

fn run(mut instance: LoopInstance<BlockingMachine>) -> Stats {
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    instance.stats().read()
}

/// The first report does not wake the handler: its thread might still wait for a CPU at the second
/// one.
#[test]
fn a_waiting_handler_is_reported_at_one_and_ten_times_the_patience() {
    let _alone = lock_tests();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (sender, is_told_twice) = mpsc::channel();
    let (hooked, sender) = (Arc::new(HookGuard::new()), Arc::new(Mutex::new(sender)));
    let hook = {
        let seen = seen.clone();
        move |stuck: &StuckReport<'_>| {
            let _owned = &hooked;
            let mut seen = seen.lock().expect("nobody panics");
            seen.push(Report::from(stuck));
            if seen.len() == 2 {
                let _ = sender.lock().expect("nobody panics").send(());
            }
        }
    };
    let blocking = Blocking::new().patience(Duration::from_millis(1));
    let blocking = blocking.on_stuck(hook.clone()).on_still_stuck(hook);
    let (mut instance, token) = blocking_loop(&Config::new().blocking(blocking), move || {
        is_told_twice.recv().expect("it is told twice");
    });
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    let stats = instance.stats().read();
    let seen = seen.lock().expect("nobody panics")[..2].to_vec();
    for report in &seen {
        assert_eq!(report.token, Some(token));
        assert_eq!(report.machine, std::any::type_name::<BlockingMachine>());
        assert_eq!((report.calls, report.outcome), (1, StuckOutcome::Watched));
        if cfg!(target_os = "linux") {
            assert!(
                matches!(report.thread, ThreadState::Waiting { syscall: Some(_) }),
                "{report:?}"
            );
        }
    }
    assert!(seen[0].time >= Duration::from_millis(1), "{seen:?}");
    assert!(seen[1].time >= Duration::from_millis(10), "{seen:?}");
    assert!(stats.lag_max >= seen[1].time, "{stats:?}");
    let logged = take_logged();
    assert!(logged.len() >= 2, "{logged:?}");
    let again = logged.iter().filter(|(_, text)| text.starts_with("still: ")).count();
    assert!(again > 0, "{logged:?}");
    assert_eq!(stats.stuck, (logged.len() - again) as u64, "counted once: {logged:?}");
    for (level, text) in &logged {
        assert_eq!(*level, Level::Warn);
        assert!(text.contains(&format!("in machine {token} (stuck::BlockingMachine)")), "{text}");
    }
}

/// The second handler waits for the report that the first handler's stall has ended. That report
/// comes whether or not the loop has polled in between.
#[test]
fn a_stall_has_one_beginning_and_one_end() {
    let _alone = lock_tests();
    let (sender, reports) = mpsc::channel();
    let begin = Mutex::new(sender.clone());
    let (end, hooked) = (Mutex::new(sender), HookGuard::new());
    let blocking = Blocking::new().patience(Duration::from_millis(1));
    let blocking = blocking
        .on_stuck(move |stuck| {
            let report = ("begins", stuck.token, stuck.calls);
            let _ = begin.lock().expect("nobody panics").send(report);
        })
        .on_unstuck(move |over| {
            let _owned = &hooked;
            let report = ("is over", over.token, over.calls);
            let _ = end.lock().expect("nobody panics").send(report);
        });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut calls = 0;
    let (mut instance, _) = blocking_loop(&Config::new().blocking(blocking), {
        let seen = seen.clone();
        move || {
            calls += 1;
            let wanted = if calls == 1 { "begins" } else { "is over" };
            let mut seen = seen.lock().expect("nobody panics");
            while !seen.iter().any(|(what, _, calls)| (*what, *calls) == (wanted, 1)) {
                seen.push(reports.recv_timeout(Duration::from_secs(60)).expect("it is told"));
            }
        }
    });
    let second =
        instance.add_machine_with(|scope| Response::ok(BlockingMachine).deadline(scope.now()));
    second.expect("a slot");
    run(instance);
    let seen = seen.lock().expect("nobody panics");
    // A stall of many calls together, on a busy computer, is a different stall.
    let mut of_first = seen.iter().filter(|(.., calls)| *calls == 1);
    let (what, first, _) = of_first.next().expect("it is told");
    let then = of_first.filter(|(_, token, _)| token == first).map(|(what, ..)| *what);
    assert_eq!((*what, then.collect::<Vec<_>>()), ("begins", vec!["is over"]), "{seen:?}");
}

#[test]
fn a_computing_handler_is_reported_as_running() {
    let _alone = lock_tests();
    let is_told = Arc::new(AtomicBool::new(false));
    let reports = Arc::new(Mutex::new(Vec::new()));
    let blocking = Blocking::new().patience(Duration::from_millis(1)).on_stuck({
        let (is_told, reports, hooked) = (is_told.clone(), reports.clone(), HookGuard::new());
        move |stuck| {
            let _owned = &hooked;
            reports.lock().expect("nobody panics").push(stuck.thread);
            is_told.store(true, Relaxed);
        }
    });
    let (instance, _) = blocking_loop(&Config::new().blocking(blocking), move || {
        while !is_told.load(Relaxed) {
            hint::spin_loop();
        }
    });
    let stats = run(instance);
    assert!(stats.stuck >= 1, "{stats:?}");
    if cfg!(target_os = "linux") {
        let first = reports.lock().expect("nobody panics")[0];
        assert!(matches!(first, ThreadState::Running | ThreadState::Preempted), "{first:?}");
    }
}

#[test]
fn a_panic_of_a_hook_affects_only_that_call() {
    let _alone = lock_tests();
    let (sender, reports) = mpsc::channel();
    let (sender, hooked) = (Mutex::new(sender), HookGuard::new());
    let blocking = Blocking::new().patience(Duration::from_millis(1)).on_stuck(move |_| {
        let _owned = &hooked;
        let _ = sender.lock().unwrap_or_else(PoisonError::into_inner).send(());
        panic!("a bug in the hook");
    });
    let (mut instance, _) = blocking_loop(&Config::new().blocking(blocking), move || {
        // A watchdog that ended when its hook panicked would never send the second report.
        reports.recv_timeout(Duration::from_secs(60)).expect("it is told again");
    });
    let second =
        instance.add_machine_with(|scope| Response::ok(BlockingMachine).deadline(scope.now()));
    second.expect("a slot");
    assert!(run(instance).stuck >= 2);
    let errors = take_logged().into_iter().filter(|(level, _)| *level == Level::Error);
    let errors: Vec<String> = errors.map(|(_, text)| text).collect();
    // The second message may not have reached the log yet.
    assert!(!errors.is_empty());
    for text in errors {
        assert!(text.contains("hook") && text.contains("a bug in the hook"), "{text}");
    }
}

#[test]
fn closures_between_handlers_are_reported_as_closures() {
    let _alone = lock_tests();
    let (config, reports) = reporting_config();
    let (instance, _) = blocking_loop(&config.exit(ExitPolicy::OnRequest), || {});
    let mut instance = instance;
    let seen = Arc::new(Mutex::new(Vec::new()));
    instance.every(Duration::from_millis(1), {
        let seen = seen.clone();
        move |_, scope| {
            seen.lock().expect("nobody panics").extend(reports.iter().take(1));
            scope.stop_loop();
        }
    });
    assert_eq!(instance.run().expect("it runs"), Exit::Stopped);
    let (sender, posted) = mpsc::channel();
    drop(instance);
    let seen = seen.lock().expect("nobody panics");
    assert_eq!((seen[0].token, seen[0].machine), (None, "a repeated closure"));

    let (config, reports) = reporting_config();
    let (mut instance, _) = blocking_loop(&config.exit(ExitPolicy::OnRequest), || {});
    let post = instance.broadcast().post(move |_, scope| {
        let _ = sender.send(reports.recv());
        scope.stop_loop();
    });
    post.expect("there is room");
    assert_eq!(instance.run().expect("it runs"), Exit::Stopped);
    let report = posted.recv().expect("it was run").expect("it was reported");
    assert_eq!((report.token, report.machine), (None, "a posted closure"));
}

#[test]
fn loops_of_one_config_share_a_watchdog_and_are_reported_by_name() {
    let _alone = lock_tests();
    let (sender, reports) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let (sender, released) = (Mutex::new(sender), Arc::new(Mutex::new(released)));
    let hooked = HookGuard::new();
    let blocking = Blocking::new().patience(Duration::from_millis(1)).on_stuck(move |stuck| {
        let _owned = &hooked;
        let name = std::thread::current().name().map(str::to_owned);
        let report = (stuck.loop_name.to_owned(), name, std::thread::current().id());
        let _ = sender.lock().expect("nobody panics").send(report);
    });
    let config = Config::new().blocking(blocking);
    let group = LoopGroup::start([(), ()], move |(), _| {
        let released = released.clone();
        Ok(blocking_loop(&config, move || {
            // One waits in the channel, the other for the lock around it.
            let _ = released.lock().unwrap_or_else(PoisonError::into_inner).recv();
        })
        .0)
    });
    let group = group.expect("two loops");
    let mut names = [String::new(), String::new()];
    let mut threads = Vec::new();
    while names.iter().any(String::is_empty) {
        let (loop_name, watchdog, thread) = reports.recv().expect("the watchdog is there");
        assert_eq!(watchdog.as_deref(), Some("watchdog"));
        threads.push(thread);
        let index = usize::from(loop_name == "loop-1");
        names[index] = loop_name;
    }
    drop(release);
    assert_eq!(names, ["loop-0", "loop-1"]);
    assert!(threads.iter().all(|thread| *thread == threads[0]));
    for exit in group.join() {
        assert_eq!(exit.expect("it runs"), Exit::Empty);
    }
}

#[test]
fn a_loop_that_runs_again_is_watched_again() {
    let _alone = lock_tests();
    let (sender, reports) = mpsc::channel();
    let (sender, hooked) = (Mutex::new(sender), HookGuard::new());
    // Only the beginning of each stall: later reports of a stall could be received in the next run.
    let blocking = Blocking::new().patience(Duration::from_millis(1)).on_stuck(move |_| {
        let _owned = &hooked;
        let _ = sender.lock().expect("nobody panics").send(());
    });
    let (mut instance, _) = blocking_loop(&Config::new().blocking(blocking), move || {
        reports.recv().expect("it is told each time");
    });
    for run in 1..=3 {
        assert_eq!(instance.run().expect("it runs"), Exit::Empty);
        assert!(instance.stats().read().stuck >= run);
        let added =
            instance.add_machine_with(|scope| Response::ok(BlockingMachine).deadline(scope.now()));
        added.expect("a slot");
    }
}

#[test]
fn an_embedded_loop_or_one_without_watchdog_is_not_watched() {
    let _alone = lock_tests();
    let (config, reports) = reporting_config();
    let (mut instance, _) = blocking_loop(&config, || {});
    while instance.turn(None).expect("it turns").is_none() {}
    let (mut plain, _) = blocking_loop(&Config::new(), || {});
    assert_eq!(plain.run().expect("it runs"), Exit::Empty);
    for stats in [instance.stats().read(), plain.stats().read()] {
        assert_eq!((stats.stuck, stats.starved, stats.lag_max), (0, 0, Duration::ZERO));
    }
    drop((instance, plain, config));
    // The hook has no owner left, so no thread can call it.
    assert!(reports.recv().is_err());
}

#[test]
fn the_end_of_a_stall_is_reported_though_its_loop_has_ended() {
    let _alone = lock_tests();
    let (release, released) = mpsc::channel::<()>();
    let (returned, has_returned) = mpsc::channel::<()>();
    let (over, is_over) = mpsc::channel();
    let hooked = Arc::new(HookGuard::new());
    let on_stuck = Mutex::new((release, has_returned));
    let blocking = Blocking::new().patience(Duration::from_millis(1)).on_stuck(move |_| {
        let _owned = &hooked;
        // The loop ends before the watchdog checks it again.
        let (release, has_returned) = &*on_stuck.lock().expect("nobody panics");
        let _ = release.send(());
        let _ = has_returned.recv();
    });
    let over = Mutex::new(over);
    let blocking = blocking.on_unstuck(move |unstuck| {
        let _ = over.lock().expect("nobody panics").send((unstuck.token, unstuck.calls));
    });
    let config = Config::new().blocking(blocking);
    let (instance, token) = blocking_loop(&config, move || _ = released.recv());
    assert_eq!(run(instance).stuck, 1);
    drop((returned, config));
    assert_eq!(is_over.recv(), Ok((Some(token), 1)));
}

/// Computes for some microseconds per call, as many times as its number says.
struct ComputingMachine(u32);

impl Machine for ComputingMachine {
    type Context = u64;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, u64>) -> Response<Self, Infallible> {
        for _ in 0..10_000 {
            **scope = hint::black_box(scope.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7));
        }
        if self.0 == 0 {
            return Response::done();
        }
        scope.notifier().wakeup();
        Response::keep(ComputingMachine(self.0 - 1))
    }
}

/// A false alarm that the watchdog must not raise: the computer has eight times too much to do, so
/// loops are always late, and no handler is to blame.
#[test]
#[ignore = "takes seconds and all CPUs: tests/long/starved"]
fn a_busy_loop_on_an_overloaded_computer_is_never_reported_as_stuck() {
    let _alone = lock_tests();
    let cpus = std::thread::available_parallelism().map_or(2, usize::from);
    let is_over = AtomicBool::new(false);
    let stats = std::thread::scope(|scope| {
        for _ in 0..8 * cpus {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        let mut creator = Loop::new(&Config::new().blocking(Blocking::new())).expect("a loop");
        for _ in 0..20 {
            let made = creator.add_machine_with(|scope| {
                scope.notifier().wakeup();
                Response::ok(ComputingMachine(5_000))
            });
            made.expect("a slot");
        }
        let mut instance = creator.instantiate(1);
        let ended = instance.run();
        is_over.store(true, Relaxed);
        assert_eq!(ended.expect("it runs"), Exit::Empty);
        instance.stats().read()
    });
    assert_eq!(stats.stuck, 0, "{stats:?} {:?}", take_logged());
    if cfg!(target_os = "linux") {
        assert!(stats.lag_max > Duration::from_millis(10), "the machine was not loaded");
    }
}
