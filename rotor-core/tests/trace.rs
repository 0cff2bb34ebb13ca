//! What the loop logs at level `trace`: one line per event. Runs in its own process, whose logger
//! keeps the messages.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use log::{Level, LevelFilter, Log, Metadata, Record};
use rotor_core::{Config, EventSet, ExitPolicy, Loop, Machine, Response, Scope, SpawnError};

struct MemoryLogger(Mutex<Vec<String>>);

static LOGGER: MemoryLogger = MemoryLogger(Mutex::new(Vec::new()));

impl Log for MemoryLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.level() == Level::Trace && record.target().starts_with("rotor_core") {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

fn take_logged() -> Vec<String> {
    std::mem::take(&mut *LOGGER.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Spawns two machines of its own type, with room for only one; then wakes itself, then sets a
/// deadline.
struct BusyMachine;

impl Machine for BusyMachine {
    type Context = ();
    type Seed = ();

    fn create((): (), _: &mut Scope<'_, ()>) -> Response<Self> {
        Response::ok(BusyMachine)
    }

    fn ready(self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, ()> {
        Response::spawn(self, ())
    }

    fn spawned(self, _: &mut Scope<'_, ()>) -> Response<Self, ()> {
        Response::spawn(self, ())
    }

    fn spawn_error(self, _: SpawnError<()>, scope: &mut Scope<'_, ()>) -> Response<Self, ()> {
        scope.notifier().wakeup();
        Response::ok(self)
    }

    fn wakeup(self, scope: &mut Scope<'_, ()>) -> Response<Self, ()> {
        Response::ok(self).deadline(scope.now())
    }

    fn timeout(self, _: &mut Scope<'_, ()>) -> Response<Self, ()> {
        Response::done()
    }

    fn type_name(&self) -> &'static str {
        "busy"
    }
}

#[test]
fn each_event_is_one_line_at_trace_level_and_none_at_debug() {
    log::set_logger(&LOGGER).expect("there is no other");
    let config = Config::new().exit(ExitPolicy::Never).machines_max(2);
    for (level, lines) in [
        (LevelFilter::Debug, vec![]),
        (
            LevelFilter::Trace,
            vec![
                "machine 0v1 (busy): Ready({})",
                "machine 0v1 (busy): Spawned",
                "machine 0v1 (busy): SpawnError(no slot is free (Config::machines_max))",
                "machine 0v1 (busy): Wakeup",
                "machine 0v1 (busy): Timeout",
            ],
        ),
    ] {
        log::set_max_level(level);
        let mut instance = Loop::new(&config).expect("there are descriptors").instantiate(());
        let first = instance.add_machine_with(|_| Response::done());
        assert!(first.is_err(), "it only uses up a generation");
        instance
            .add_machine_with(|_| Response::<BusyMachine>::again(BusyMachine))
            .expect("there is room");
        for _ in 0..4 {
            instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        }
        assert_eq!(take_logged(), lines);
    }
}
