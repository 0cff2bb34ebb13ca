//! Starting an example, and a plain client.

use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use rotor_bench::server::Server;

/// How long anything may take before a test gives up: far more than it takes, so that it is no
/// measure of speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An example as a command without arguments.
pub(crate) fn command(name: &str) -> Command {
    // Cargo tells tests where binaries are, but not examples; they lie beside the directory of the
    // tests.
    let test = env::current_exe().expect("the system knows the path of this test");
    let file = test
        .ancestors()
        .nth(2)
        .expect("a test lies in target/PROFILE/deps")
        .join("examples")
        .join(name);
    assert!(file.exists(), "not built: cargo build --workspace --example {name}");
    Command::new(file)
}

/// Starts an example on a free port; it is killed when the value is dropped.
pub(crate) fn start(name: &str) -> Server {
    start_command(command(name))
}

/// Starts a server on a free port, which it is told as its last argument.
pub(crate) fn start_command(command: Command) -> Server {
    let name = format!("{command:?}");
    Server::start(command, PATIENCE).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn connect(server: &Server) -> TcpStream {
    let client = TcpStream::connect(server.address()).expect("the server accepts");
    client.set_read_timeout(Some(PATIENCE)).expect("not zero");
    // Small writes that follow each other would wait for what a server acknowledges late.
    client.set_nodelay(true).expect("it is TCP");
    client
}

/// Sends the bytes and reads to the end of the stream, which the bytes had better ask for.
pub(crate) fn exchange(server: &Server, bytes: impl AsRef<[u8]>) -> String {
    let mut client = connect(server);
    client.write_all(bytes.as_ref()).expect("the server reads");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("the server closes");
    String::from_utf8_lossy(&answer).into_owned()
}

/// One request on a connection of its own; the answer's head and body.
pub(crate) fn ask(server: &Server, start: &str, fields: &str, body: &str) -> (String, String) {
    let length =
        if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let request =
        format!("{start} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}{length}\r\n{body}");
    let answer = exchange(server, request);
    let (head, body) =
        answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{start}: {answer:?}"));
    (head.to_owned(), body.to_owned())
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

/// Reads until `enough` has been read, and answers all of it.
pub(crate) fn read_until(client: &mut TcpStream, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut got = Vec::new();
    let mut chunk = [0; 64 << 10];
    while !enough(&got) {
        let count = again(|| client.read(&mut chunk)).expect("the server writes");
        assert!(count > 0, "the end after {}", got.escape_ascii());
        got.extend_from_slice(&chunk[..count]);
    }
    got
}

/// The value of a field in a head.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
