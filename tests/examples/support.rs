//! Our own examples, found and started.

use std::env;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Command, Output};
use std::time::Duration;

use rotor_bench::server::Server;

/// How long anything may take before a test gives up: far more than it takes, so that it is no
/// measure of speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Starts one of our examples on a free port; it is killed when the value is dropped.
pub(crate) fn start_example(name: &str) -> Server {
    Server::start(example(name), PATIENCE).unwrap_or_else(|e| panic!("example {name}: {e}"))
}

/// The example as a command without arguments.
pub(crate) fn example(name: &str) -> Command {
    // Cargo tells tests where binaries are, but not examples; they lie beside the directory of the
    // tests.
    let test = env::current_exe().expect("the system knows the path of this test");
    let profile = test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps");
    let file = profile.join("examples").join(name);
    assert!(file.exists(), "not built: cargo build --workspace --example {name}");
    Command::new(file)
}

/// Runs an example to its end.
pub(crate) fn run_example(name: &str, arguments: &[&str]) -> Output {
    example(name).args(arguments).output().unwrap_or_else(|e| panic!("example {name}: {e}"))
}

/// What an example printed, which must have ended well.
pub(crate) fn output_of(name: &str, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run_example(name, arguments);
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success() && stderr.is_empty(), "{name}: {status}\n{stderr}");
    String::from_utf8(stdout).expect("examples print text")
}

/// A connection that gives up after a while.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("the server listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    socket.set_write_timeout(Some(PATIENCE)).expect("not zero");
    socket
}

/// What a socket says within its time limit. A process that was stopped meanwhile, and went on, is
/// told to ask again (signal(7)).
pub(crate) fn again<T>(mut ask: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match ask() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            said => return said,
        }
    }
}

/// The next datagram.
pub(crate) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    again(|| socket.recv(buffer))
}
