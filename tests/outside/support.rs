//! Finds and starts outside programs and our own examples.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use rotor_bench::load::{Generator, LoadError};
use rotor_bench::program;
use rotor_bench::server::Server;

/// How long a test waits before it gives up. It is far longer than anything here takes, so it does
/// not measure speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// Examples that run on io_uring if the system allows it. The others run on mio, unless the
/// environment chooses the loop. So outside programs are tested with both.
const ON_IO_URING: [&str; 8] = [
    "https_server",
    "mqtt_broker",
    "static_files",
    "streaming",
    "todo_backend",
    "upload",
    "upload_to_disk",
    "which_loop",
];

/// Finds an outside program. If it is missing, prints a line that says so and returns `None`.
///
/// # Panics
/// If it is missing and `ROTOR_OUTSIDE` names it.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let found = program::find(name);
    if found.is_none() {
        let required = env::var("ROTOR_OUTSIDE").unwrap_or_default();
        assert!(
            !required.split_whitespace().any(|word| word == name),
            "ROTOR_OUTSIDE names {name}: not found"
        );
        eprintln!("skipped: no {name}");
    }
    found
}

/// Starts an example on a free port; killed on drop.
pub(crate) fn start_example(name: &str) -> Server {
    start(name, example(name))
}

/// The same, in a working directory.
pub(crate) fn start_example_in(name: &str, directory: &Path) -> Server {
    let mut command = example(name);
    command.current_dir(directory);
    start(name, command)
}

/// Starts an example with arguments; its address is appended to them.
pub(crate) fn start(name: &str, command: Command) -> Server {
    Server::start(command, PATIENCE).unwrap_or_else(|e| panic!("example {name}: {e}"))
}

/// An example as a command without arguments.
pub(crate) fn example(name: &str) -> Command {
    let mut command = rotor_test_kit::example(name);
    // Examples with threads use two, so that more than one runs on any machine.
    command.env("THREADS", "2");
    if env::var_os("ROTOR_BACKEND").is_none() && ON_IO_URING.contains(&name) {
        command.env("ROTOR_BACKEND", "uring");
    }
    command
}

/// Runs an outside program to its end.
///
/// # Panics
/// If it fails. The message has all its output.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
    output
}

/// The combined standard output and standard error of a program.
pub(crate) fn text(output: &Output) -> String {
    let Output { stdout, stderr, .. } = output;
    format!("{}{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr))
}

/// Sends the same request to a hello server many times over several connections, and checks each
/// response.
pub(crate) fn ask(
    server: &Server,
    connections: usize,
    pipeline: usize,
    requests: u64,
) -> Result<Generator, LoadError> {
    let mut generator = Generator::connect(server.address(), connections, pipeline)?;
    generator.run(requests)?;
    Ok(generator)
}

/// The URL of a path on a server.
pub(crate) fn url(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.address())
}

/// Runs curl without the user's configuration and without a proxy.
pub(crate) fn curl(curl: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(curl);
    command
        .args(["-q", "--silent", "--show-error", "--noproxy", "*", "--max-time", "100"])
        .args(arguments);
    run(&mut command)
}
