//! A system that can start no thread: sections that would be handed over hold up their loop, and
//! the loop is not taken from stuck handlers. Runs in its own process, whose limit it lowers.
#![cfg(target_os = "linux")]

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rotor_core::{
    Blocking, Config, Exit, Infallible, Loop, Machine, Response, Scope, StuckOutcome,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Blocks, both declared and undeclared, where no thread can be started.
struct BlockingMachine(mpsc::Receiver<StuckOutcome>);

impl Machine for BlockingMachine {
    type Context = ();
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        let before = getrlimit(Resource::As);
        let none = Rlimit { current: Some(mapped_bytes() + HEADROOM), maximum: before.maximum };
        setrlimit(Resource::As, none).expect("it may be lowered");
        scope.blocking(|| {});
        // The watchdog may look while the section asks for a thread, before it looks at the
        // handler. It makes three reports.
        let mut outcomes = self.0.iter().take(3);
        let is_said = outcomes.find(|outcome| *outcome != StuckOutcome::Watched);
        setrlimit(Resource::As, before).expect("it may be raised again");
        assert_eq!(is_said, Some(StuckOutcome::NoThread));
        Response::done()
    }
}

/// The memory that may still be mapped: too little for a thread's stack (2 MiB), and enough for the
/// watchdog's reports in the meantime.
const HEADROOM: u64 = 1 << 20;

/// Bytes mapped by the process (proc_pid_status(5)).
fn mapped_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.strip_suffix("kB"));
    size.and_then(|size| size.trim().parse::<u64>().ok()).expect("a number") * 1024
}

#[test]
fn a_loop_stays_on_its_thread_when_no_thread_can_be_started() {
    let (reports, reported) = mpsc::channel();
    let reports = Arc::new(Mutex::new(reports));
    let hook = move |stuck: &rotor_core::StuckReport<'_>| {
        let _ = reports.lock().expect("no panic").send(stuck.outcome);
    };
    // Longer than it takes to lower the limit: until then a thread could be started to take over
    // the loop.
    let blocking = Blocking::new()
        .patience(Duration::from_millis(500))
        .on_stuck(hook.clone())
        .on_still_stuck(hook);
    let config = Config::new().blocking(blocking.patience_declared(Duration::ZERO));
    let mut creator = Loop::new(&config).expect("descriptors are left");
    let made = creator.add_machine_with(|scope| {
        scope.wake_self();
        Response::ok(BlockingMachine(reported))
    });
    made.expect("there is room");
    let mut instance = creator.instantiate(()).taking_over();
    assert_eq!(instance.run().expect("it waits"), Exit::Empty);
    let stats = instance.stats().read();
    assert_eq!((stats.ended, stats.panicked), (1, 0));
    assert_eq!((stats.handed_over, stats.taken_over, stats.blocked_inline), (0, 0, 1));
    assert!(stats.no_thread >= 2, "{stats:?}");
}
