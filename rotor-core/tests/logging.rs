//! What the loop logs: one message with token and name for each machine that failed. It has its own
//! process, whose logger keeps the messages.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use log::{Level, LevelFilter, Log, Metadata, Record};
use rotor_core::threads::LoopGroup;
use rotor_core::{
    Config, Event, EventSet, Exit, ExitPolicy, Infallible, Job, Loop, Machine, OffloadPool,
    Permits, Response, Scope, Time,
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

/// Sets the logger, for one test at a time.
fn logger() -> MutexGuard<'static, ()> {
    static TESTS: Mutex<()> = Mutex::new(());
    let alone = TESTS.lock().unwrap_or_else(PoisonError::into_inner);
    let _already_set = log::set_logger(&LOGGER);
    log::set_max_level(LevelFilter::Debug);
    alone
}

/// The core's log messages at this level or a more severe one since the last call.
fn take_logged(level: Level) -> Vec<String> {
    let all = std::mem::take(&mut *LOGGER.0.lock().unwrap_or_else(PoisonError::into_inner));
    all.into_iter().filter(|(of, _)| *of <= level).map(|(_, text)| text).collect()
}

#[derive(Debug)]
struct Unprintable;

impl fmt::Display for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("in Display")
    }
}

impl std::error::Error for Unprintable {}

#[derive(Debug)]
struct ErrorWithCause(std::num::ParseIntError);

impl fmt::Display for ErrorWithCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no number")
    }
}

impl std::error::Error for ErrorWithCause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Its number says how it ends.
struct EndingMachine(u32);

impl Machine for EndingMachine {
    type Context = ();
    type Seed = Infallible;

    fn ready(self, _: EventSet, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        match self.0 {
            0 => Response::error("plain"),
            1 => Response::error(ErrorWithCause("x".parse::<u32>().expect_err("it is no number"))),
            2 => panic!("a bug"),
            3 => Response::error(Unprintable),
            4 => Response::done().deadline(scope.now()),
            5 => {
                scope.stop_loop();
                Response::done()
            }
            _ => Response::done(),
        }
    }

    fn type_name(&self) -> &'static str {
        "ends"
    }
}

/// Handles events in `handle` directly, as layers do.
struct Inner;

impl Machine for Inner {
    type Context = ();
    type Seed = Infallible;

    fn handle(self, _: Event<Infallible>, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        Response::done()
    }

    fn type_name(&self) -> &'static str {
        "inner"
    }
}

/// A layer that calls the wrong method of its inner machine.
struct OutdatedLayer(Inner);

impl Machine for OutdatedLayer {
    type Context = ();
    type Seed = Infallible;

    fn ready(self, events: EventSet, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        self.0.ready(events, scope).wrap(OutdatedLayer)
    }
}

/// Asks for a machine that cannot be made.
struct Spawner;

impl Machine for Spawner {
    type Context = ();
    type Seed = ();

    fn create((): (), _: &mut Scope<'_, ()>) -> Response<Self> {
        Response::error(ErrorWithCause("x".parse::<u32>().expect_err("it is no number")))
    }

    fn ready(self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, ()> {
        Response::spawn(self, ())
    }
}

#[test]
fn a_failed_machine_is_logged_once_and_a_finished_one_is_not() {
    let _alone = logger();
    let config = Config::new().exit(ExitPolicy::Never);
    let mut instance = Loop::new(&config).expect("there are descriptors").instantiate(());
    let texts = [
        Some("machine 0v0 (ends) ended: plain"),
        Some("machine 0v1 (ends) ended: no number: invalid digit found in string"),
        Some("machine 0v2 (ends) ended: panicked: a bug"),
        Some(
            "machine 0v3 (ends) ended with an error that panicked: in Display, when it was printed",
        ),
        Some("a deadline on an answer that ends the machine is ignored"),
        Some(
            "a machine asked the loop to stop, which ExitPolicy::Never refuses (0 such messages \
             were suppressed)",
        ),
        None,
    ];
    for (how, text) in (0..).zip(texts) {
        instance.add_machine_with(|_| Response::again(EndingMachine(how))).expect("there is room");
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        assert_eq!(
            take_logged(Level::Debug),
            text.map(str::to_string).into_iter().collect::<Vec<_>>()
        );
    }
    for _ in 0..3 {
        instance.add_machine_with(|_| Response::again(EndingMachine(5))).expect("there is room");
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    assert_eq!(take_logged(Level::Debug), Vec::<String>::new(), "machines can ask in each event");
    assert_eq!(instance.stats().read().alive, 0);

    let mut layers = Loop::new(&config).expect("there are descriptors").instantiate(());
    layers.add_machine_with(|_| Response::again(OutdatedLayer(Inner))).expect("there is room");
    layers.turn(Some(Duration::ZERO)).expect("polling never fails");
    let warned = take_logged(Level::Debug);
    let text = "machine 0v0 (inner) has no handler `ready` for {}; if it has `handle`, the layer \
                around it is to call that";
    assert_eq!(warned, if cfg!(debug_assertions) { vec![text] } else { vec![] });

    // No thread can have a stack of that size.
    let pool = OffloadPool::builder().stack_bytes(usize::MAX / 4).build().expect("no thread yet");
    for _ in 0..3 {
        assert!(!pool.offer(&mut || Box::new(|| {})), "there is no thread for it");
    }
    let warned = take_logged(Level::Debug);
    let text = "no thread for work that was offloaded: ";
    assert!(matches!(&warned[..], [once] if once.starts_with(text)), "{warned:?}");

    let mut spawning = Loop::new(&config).expect("there are descriptors").instantiate(());
    let made = spawning.add_machine_with(|_| Response::again(Spawner));
    let token = made.expect("there is room");
    spawning.turn(Some(Duration::ZERO)).expect("polling never fails");
    let why = "the machine could not be made: no number: invalid digit found in string";
    let text = format!("machine {token} (logging::Spawner) could not spawn: {why}");
    assert_eq!(take_logged(Level::Warn), [text]);
}

/// Ends in a drain if it is told to.
struct Draining {
    name: &'static str,
    ends: bool,
}

impl Machine for Draining {
    type Context = ();
    type Seed = Infallible;

    fn draining(self, _: Time, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        if self.ends { Response::done() } else { Response::keep(self) }
    }

    fn type_name(&self) -> &'static str {
        self.name
    }
}

#[test]
fn machines_that_a_drain_drops_are_logged_by_type() {
    let _alone = logger();
    let drain = |machines: &[(&'static str, bool)]| {
        let mut instance =
            Loop::new(&Config::new()).expect("there are descriptors").instantiate(());
        for &(name, ends) in machines {
            instance
                .add_machine_with(|_| Response::ok(Draining { name, ends }))
                .expect("there is room");
        }
        instance.handle().drain(Duration::ZERO);
        let exit = instance.run().expect("it can wait");
        let dropped = machines.iter().filter(|(_, ends)| !ends).count();
        assert_eq!(exit, Exit::Drained { dropped });
        take_logged(Level::Info)
    };
    let machines = [("Line", false), ("Pool", false), ("Ends", true), ("Line", false)];
    assert_eq!(drain(&machines), ["the time of the drain is over: dropped 2 Line, 1 Pool"]);
    assert_eq!(drain(&[("Ends", true)]), [""; 0]);
}

#[test]
fn the_end_of_one_loop_of_a_group_is_logged_unless_it_was_requested() {
    let _alone = logger();
    let start = |policy| {
        let config = Config::new().exit(policy);
        let make = move |_, _| Ok(Loop::<EndingMachine>::new(&config)?.instantiate(()));
        LoopGroup::start(0..2, make).expect("they can be made")
    };
    start(ExitPolicy::WhenEmpty).join();
    let logged = take_logged(Level::Info);
    let texts = [0, 1].map(|index| {
        vec![format!("loop {index} has ended (Empty), and other loops of its group go on")]
    });
    assert!(texts.contains(&logged), "{logged:?}");
    let group = start(ExitPolicy::OnRequest);
    group.handle().stop();
    group.join();
    assert_eq!(take_logged(Level::Info), Vec::<String>::new());
}

#[test]
fn detached_jobs_that_are_not_run_are_logged_once_in_a_while() {
    let _alone = logger();
    let pool = OffloadPool::new(1, 4);
    // Permits that are closed, and permits whose last handle is dropped.
    for (close, why) in [(true, "its permits were closed"), (false, "its permits are gone")] {
        let permits = Permits::new(0);
        let mut creator =
            Loop::<EndingMachine>::new(&Config::new()).expect("there are descriptors");
        let ended = creator.add_machine_with(|scope| {
            for _ in 0..2 {
                let job = scope.job(|_| panic!("it is begun")).on(&pool).permits(&permits);
                job.start_detached::<()>().expect("there is room");
            }
            Response::done()
        });
        assert!(ended.is_err());
        while permits.waiting() < 2 || pool.stats().running > 0 {
            std::thread::yield_now();
        }
        if close {
            permits.close();
        }
        drop(permits);
        let text = format!("a detached job was not begun: {why} (0 such messages were suppressed)");
        assert_eq!(take_logged(Level::Warn), [text]);
    }
    // Jobs that wait for a thread when their pool ends.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let mut creator = Loop::<EndingMachine>::new(&Config::new()).expect("there are descriptors");
    let ended = creator.add_machine_with(|scope| {
        let hold = move |_: &Job<'_>| released.recv().is_err();
        scope.job(hold).on(&pool).start_detached().expect("there is room");
        for _ in 0..3 {
            let job = scope.job(|_| panic!("it is begun")).on(&pool);
            job.start_detached::<()>().expect("there is room");
        }
        Response::done()
    });
    assert!(ended.is_err());
    while pool.stats().running == 0 {
        std::thread::yield_now();
    }
    drop(pool);
    drop(release);
    let text = "a detached job was not begun: its pool is gone (0 such messages were suppressed)";
    assert_eq!(take_logged(Level::Warn), [text]);
}
