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
const PATIENCE: Duration = Duration::from_secs(30);

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
