//! Outside programs and our own examples, found and started.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use rotor_bench::load::{Generator, LoadError};
use rotor_bench::program;
use rotor_bench::server::Server;

/// How long anything may take before a test gives up: far more than it takes, so that it is no
/// measure of speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Examples that outside programs meet on io_uring, where the system lets it; the others they meet
/// on mio, unless the environment says which loop. So either loop meets some.
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

/// The outside program of this name, or `None` and a line that says so.
///
/// # Panics
/// When it is missing and `ROTOR_OUTSIDE` names it.
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

/// Starts one of our examples on a free port; it is killed when the value is dropped.
pub(crate) fn start_example(name: &str) -> Server {
    start(name, example(name))
}

/// The same, in a directory.
pub(crate) fn start_example_in(name: &str, directory: &Path) -> Server {
    let mut command = example(name);
    command.current_dir(directory);
    start(name, command)
}

fn start(name: &str, command: Command) -> Server {
    Server::start(command, PATIENCE).unwrap_or_else(|e| panic!("example {name}: {e}"))
}

/// The example as a command without arguments.
pub(crate) fn example(name: &str) -> Command {
    // Cargo tells tests where binaries are, but not examples; they lie beside the directory of the
    // tests.
    let test = env::current_exe().expect("the system knows the path of this test");
    let profile = test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps");
    let file = profile.join("examples").join(name);
    assert!(file.exists(), "not built: cargo build --workspace --example {name}");
    let mut command = Command::new(file);
    // For those that have threads: two, so that more than one is at work on every machine.
    command.env("THREADS", "2");
    if env::var_os("ROTOR_BACKEND").is_none() && ON_IO_URING.contains(&name) {
        command.env("ROTOR_BACKEND", "uring");
    }
    command
}

/// Runs an outside program to its end.
///
/// # Panics
/// When it fails, with all that it printed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
    output
}

/// What a program printed, on both of its outputs.
pub(crate) fn text(output: &Output) -> String {
    let Output { stdout, stderr, .. } = output;
    format!("{}{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr))
}

/// Asks a hello server the same thing so many times over so many connections and checks each
/// answer.
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
        .args(["-q", "--silent", "--show-error", "--noproxy", "*", "--max-time", "30"])
        .args(arguments);
    run(&mut command)
}
