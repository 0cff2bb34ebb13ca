//! Ending a process with signals, whatever its loop does.
#![cfg(unix)]
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "a clock outside of any loop, for a loop that is stuck"
)]

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, exit};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rotor_core::signals::{drain_on_termination, on_hangup};
use rotor_core::{Config, Infallible, Loop, Machine, Response, Scope};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::low_level::raise;

/// How long the stuck process runs if nothing ends it: far longer than needed.
const PATIENCE: Duration = Duration::from_secs(100);

/// Tells the test program that it is the process to end.
const STUCK: &str = "ROTOR_TEST_STUCK";

/// Its handler does not return.
struct StuckMachine;

impl Machine for StuckMachine {
    type Context = ();
    type Seed = Infallible;

    fn timeout(self, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        let began = Instant::now();
        // Signals coalesce until they are handled, so the number needed for three to be handled is
        // unknown.
        while began.elapsed() < PATIENCE {
            raise(SIGTERM).expect("there is such a signal");
            thread::yield_now();
        }
        exit(0)
    }
}

fn run_stuck_process() {
    let mut creator = Loop::new(&Config::new()).expect("a loop");
    drain_on_termination(creator.handle(), PATIENCE).expect("handlers");
    creator
        .add_machine_with(|scope| Response::ok(StuckMachine).deadline(scope.now()))
        .expect("a machine");
    creator.instantiate(()).run().expect("it is stuck");
}

#[test]
fn a_third_signal_ends_a_process_whose_loop_is_stuck() {
    if env::var_os(STUCK).is_some() {
        return run_stuck_process();
    }
    let mut stuck =
        Command::new(env::current_exe().expect("the system knows the path of this test"));
    stuck.args(["--exact", "a_third_signal_ends_a_process_whose_loop_is_stuck"]).env(STUCK, "1");
    let output = stuck.output().expect("it starts");
    assert_eq!(output.status.signal(), Some(SIGTERM), "{output:?}");
}

/// Tells the test program that it is the process that can start no thread.
#[cfg(target_os = "linux")]
const NO_THREAD: &str = "ROTOR_TEST_NO_THREAD";

/// Lowers the limit so that no thread can be started, and says whether signals are handled.
#[cfg(target_os = "linux")]
fn run_process_without_thread() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let creator = Loop::<StuckMachine>::new(&Config::new()).expect("a loop");
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.strip_suffix("kB"));
    let mapped = size.and_then(|size| size.trim().parse::<u64>().ok()).expect("a number") * 1024;
    let before = getrlimit(Resource::As);
    // Too little for a thread's stack, and enough for everything else.
    let none = Rlimit { current: Some(mapped + (1 << 20)), maximum: before.maximum };
    setrlimit(Resource::As, none).expect("it may be lowered");
    let refused = drain_on_termination(creator.handle(), PATIENCE);
    setrlimit(Resource::As, before).expect("it may be raised again");
    refused.expect_err("there is no thread");
    raise(SIGTERM).expect("there is such a signal");
    exit(0)
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_still_ends_a_process_that_had_no_thread_to_wait_for_it() {
    if env::var_os(NO_THREAD).is_some() {
        return run_process_without_thread();
    }
    let mut process = Command::new(env::current_exe().expect("the system knows the path"));
    process
        .args(["--exact", "a_signal_still_ends_a_process_that_had_no_thread_to_wait_for_it"])
        .env(NO_THREAD, "1");
    let output = process.output().expect("it starts");
    assert_eq!(output.status.signal(), Some(SIGTERM), "{output:?}");
}

#[test]
fn a_hangup_is_handled_after_the_function_panicked_at_the_last_one() {
    let (calls, called) = mpsc::channel();
    let reopen = move || {
        calls.send(()).expect("the test listens");
        panic!("the log cannot be opened");
    };
    on_hangup(reopen).expect("handlers");
    for number in 1..=2 {
        raise(SIGHUP).expect("there is such a signal");
        assert_eq!(called.recv(), Ok(()), "hangup {number}");
    }
}
