//! A server that is restarted under load: no request fails. `tests/long/restarts` does the work,
//! and tests more.

use std::path::Path;
use std::process::Command;

use crate::support::{example, program, run};

#[test]
fn no_request_fails_when_a_server_is_restarted() {
    let Some(python) = program("python3") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("long/restarts");
    let server = example("threaded_hello_world");
    let mut command = Command::new(python);
    command.arg(script).args(["--short", "--restarts", "3", "--server"]).arg(server.get_program());
    run(&mut command);
}

#[test]
fn no_request_fails_in_a_rolling_restart_behind_haproxy() {
    let (Some(python), Some(_)) = (program("python3"), program("haproxy")) else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("long/rolling");
    let server = example("threaded_hello_world");
    let mut command = Command::new(python);
    command.arg(script).args(["--short", "--server"]).arg(server.get_program());
    run(&mut command);
}
