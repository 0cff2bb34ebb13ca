//! Finds and starts our own examples.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Output;
use std::time::Duration;

use rotor_bench::server::Server;
pub(crate) use rotor_test_kit::{again, example};

/// How long a test waits before it gives up. It is far longer than anything here takes, so it does
/// not measure speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// Starts an example on a free port; killed on drop.
pub(crate) fn start_example(name: &str) -> Server {
    Server::start(example(name), PATIENCE).unwrap_or_else(|e| panic!("example {name}: {e}"))
}

/// Runs an example to its end.
pub(crate) fn run_example(name: &str, arguments: &[&str]) -> Output {
    example(name).args(arguments).output().unwrap_or_else(|e| panic!("example {name}: {e}"))
}

/// The output of an example, which must exit successfully.
pub(crate) fn output_of(name: &str, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run_example(name, arguments);
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success() && stderr.is_empty(), "{name}: {status}\n{stderr}");
    String::from_utf8(stdout).expect("examples print text")
}

/// A connection with a read timeout.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("the server listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    socket.set_write_timeout(Some(PATIENCE)).expect("not zero");
    socket
}

/// Receives a datagram.
pub(crate) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    again(|| socket.recv(buffer))
}
