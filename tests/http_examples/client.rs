//! Starts an example; and a plain client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use rotor_bench::server::Server;
pub(crate) use rotor_test_kit::again;
pub(crate) use rotor_test_kit::example as command;

/// How long a test waits before it gives up. It is far longer than anything here takes, so it does
/// not measure speed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// Starts an example on a free port; killed on drop.
pub(crate) fn start(name: &str) -> Server {
    start_command(command(name))
}

/// Starts a server on a free port. The address is appended as its last argument.
pub(crate) fn start_command(command: Command) -> Server {
    let name = format!("{command:?}");
    Server::start(command, PATIENCE).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn connect(server: &Server) -> TcpStream {
    let client = TcpStream::connect(server.address()).expect("the server accepts");
    client.set_read_timeout(Some(PATIENCE)).expect("not zero");
    // Without this, a small write would wait until the server acknowledges the previous one.
    client.set_nodelay(true).expect("it is TCP");
    client
}

/// Sends the bytes and reads up to EOF. The bytes should ask the server to close the connection.
pub(crate) fn exchange(server: &Server, bytes: impl AsRef<[u8]>) -> String {
    let mut client = connect(server);
    client.write_all(bytes.as_ref()).expect("the server reads");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("the server closes");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends one request on its own connection. Returns the head and the body of the response.
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

/// Reads until `enough` holds for what has been read, and returns all of it.
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
