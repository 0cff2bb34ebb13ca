//! A logger that panics, which is a bug in the program: its messages are lost, but the loop and the
//! pool continue. Runs in its own process, which uses that logger.

use std::io;
use std::time::Duration;

use log::{LevelFilter, Log, Metadata, Record};
use rotor_core::{
    Config, EventSet, ExitPolicy, Future, Infallible, Loop, Machine, OffloadPool, Outcome,
    Response, Scope,
};

struct PanickingLogger;

impl Log for PanickingLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, _: &Record<'_>) {
        panic!("in the logger")
    }

    fn flush(&self) {}
}

/// What the machines have achieved.
#[derive(Default)]
struct Progress {
    posts: u32,
    value: Option<u32>,
}

enum LoggingMachine {
    /// Ends with an error, which is logged.
    Fails,
    /// Panics, which is logged.
    Panics,
    /// Asks the loop to stop. The loop logs its refusal.
    Stops,
    /// Offloads two jobs to the pool's only thread: one that panics, which is logged, and one that
    /// does not.
    Offloads(Option<[Future<u32>; 2]>),
}

impl Machine for LoggingMachine {
    type Context = Progress;
    type Seed = Infallible;

    fn ready(self, _: EventSet, scope: &mut Scope<'_, Progress>) -> Response<Self, Infallible> {
        match self {
            LoggingMachine::Fails => Response::error(io::Error::other("on purpose")),
            LoggingMachine::Panics => panic!("on purpose"),
            LoggingMachine::Stops => {
                scope.stop_loop();
                Response::keep(self)
            }
            LoggingMachine::Offloads(_) => {
                let lost =
                    scope.offload(|| -> u32 { panic!("on purpose") }).expect("there is room");
                let found = scope.offload(|| 7).expect("there is room");
                Response::keep(LoggingMachine::Offloads(Some([lost, found])))
            }
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, Progress>) -> Response<Self, Infallible> {
        let LoggingMachine::Offloads(Some([lost, found])) = self else {
            return Response::keep(self);
        };
        match found.take() {
            Outcome::Pending(found) => {
                Response::keep(LoggingMachine::Offloads(Some([lost, found])))
            }
            Outcome::Value(value) => {
                scope.value = Some(value);
                Response::done()
            }
            Outcome::Lost(lost) => panic!("{lost}"),
        }
    }
}

#[test]
fn a_panicking_logger_ends_no_loop_and_no_pool_thread() {
    log::set_logger(&PanickingLogger).expect("there is no other");
    log::set_max_level(LevelFilter::Trace);
    let pool = OffloadPool::new(1, 8);
    let config = Config::new().exit(ExitPolicy::Never).offload_pool(pool);
    let mut creator = Loop::new(&config).expect("there are descriptors");
    for machine in [
        LoggingMachine::Fails,
        LoggingMachine::Panics,
        LoggingMachine::Stops,
        LoggingMachine::Offloads(None),
    ] {
        creator.add_machine_with(|_| Response::again(machine)).expect("there is room");
    }
    let mut instance = creator.instantiate(Progress::default());
    instance.every(Duration::from_millis(1), |_, _| panic!("on purpose"));
    let broadcast = instance.broadcast();
    broadcast.post(|_, _| panic!("on purpose")).expect("there is room");
    broadcast.post(|_, scope| scope.posts += 1).expect("there is room");
    while instance.context().value.is_none() {
        instance.turn(None).expect("it can wait");
    }
    assert_eq!((instance.context().posts, instance.context().value), (1, Some(7)));
    let stats = instance.stats().read();
    assert_eq!((stats.failed, stats.panicked, stats.ended, stats.alive), (1, 1, 1, 1));
}
