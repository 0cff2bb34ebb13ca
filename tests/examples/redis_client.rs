//! The Redis client with a misbehaving server in the test; `tests/outside` has a real server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{ChildStdout, Stdio};

use rotor_test_kit::Process;

use crate::support::{PATIENCE, example};

/// How many commands may be in flight; the same as in the example.
const PIPELINE_MAX: usize = 128;

struct Redis {
    process: Process,
    shown: BufReader<ChildStdout>,
    server: TcpListener,
}

impl Redis {
    fn start() -> Redis {
        let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut command = example("redis_client");
        command.arg(server.local_addr().expect("it is bound").to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process::from(command.spawn().expect("it is built"));
        let shown = BufReader::new(process.stdout.take().expect("it is a pipe"));
        Redis { process, shown, server }
    }

    fn accept(&self) -> TcpStream {
        let (socket, _) = self.server.accept().expect("it connects");
        socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
        socket
    }

    fn type_in(&mut self, text: &str) {
        self.process
            .stdin
            .as_mut()
            .expect("it is open")
            .write_all(text.as_bytes())
            .expect("it reads");
    }

    fn shown(&mut self) -> String {
        let mut line = String::new();
        self.shown.read_line(&mut line).expect("text");
        line
    }

    /// Closes the input, and checks that no more output comes.
    fn ends(mut self) {
        self.process.stdin = None;
        assert_eq!(self.shown(), "");
        let status = self.process.wait().expect("it was started");
        assert!(status.success(), "{status}");
    }
}

/// A command as it is sent, with two words of one letter each.
fn command(name: &str, argument: &str) -> String {
    format!("*2\r\n$1\r\n{name}\r\n$1\r\n{argument}\r\n")
}

fn expect(server: &mut TcpStream, expected: &str) {
    let mut received = vec![0; expected.len()];
    server.read_exact(&mut received).expect("it sends");
    assert_eq!(String::from_utf8_lossy(&received), expected);
}

#[test]
fn commands_are_pipelined_and_answers_are_shown_in_order() {
    let mut redis = Redis::start();
    let mut server = redis.accept();
    redis.type_in(&"g a\n".repeat(2 * PIPELINE_MAX));
    for turn in 0..2 {
        // All of them arrive before any is answered.
        expect(&mut server, &command("g", "a").repeat(PIPELINE_MAX));
        let answers: String =
            (0..PIPELINE_MAX).map(|number| format!(":{turn}{number}\r\n")).collect();
        server.write_all(answers.as_bytes()).expect("it reads");
    }
    for turn in 0..2 {
        for number in 0..PIPELINE_MAX {
            let expected: i64 = format!("{turn}{number}").parse().expect("a number");
            assert_eq!(redis.shown(), format!("(integer) {expected}\n"));
        }
    }
    redis.ends();
}

#[test]
fn answers_are_shown_whole_however_they_are_split() {
    let mut redis = Redis::start();
    let mut server = redis.accept();
    server.set_nodelay(true).expect("a TCP socket");
    redis.type_in("g a\n\n  g   b  \n");
    expect(&mut server, &(command("g", "a") + &command("g", "b")));
    for byte in b"*3\r\n$4\r\n\r\n\"\x01\r\n:-7\r\n$-1\r\n-ERR no\r\n" {
        server.write_all(&[*byte]).expect("it reads");
    }
    assert_eq!(redis.shown(), "[\"\\r\\n\\\"\\x01\", (integer) -7, (nil)]\n");
    assert_eq!(redis.shown(), "(error) ERR no\n");
    redis.ends();
}

#[test]
fn a_broken_connection_is_reopened_and_commands_in_flight_are_lost() {
    let mut redis = Redis::start();
    let mut server = redis.accept();
    redis.type_in("g a\ng b\n");
    expect(&mut server, &(command("g", "a") + &command("g", "b")));
    server.write_all(b"+one\r\n$9\r\nhalf").expect("it reads");
    drop(server);
    assert_eq!(redis.shown(), "one\n");
    assert!(redis.shown().starts_with("(lost) "));
    let mut server = redis.accept();
    redis.type_in("g c\n");
    expect(&mut server, &command("g", "c"));
    server.write_all(b"+three\r\n").expect("it reads");
    assert_eq!(redis.shown(), "three\n");
    redis.ends();
}

#[test]
fn a_server_of_another_protocol_is_disconnected_and_retried() {
    let mut redis = Redis::start();
    let mut server = redis.accept();
    redis.type_in("g a\n");
    expect(&mut server, &command("g", "a"));
    server.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it reads");
    assert_eq!(
        redis.shown(),
        "(lost) the server does not speak RESP: a reply of an unknown kind\n"
    );
    let mut server = redis.accept();
    redis.type_in("g b\n");
    expect(&mut server, &command("g", "b"));
    server.write_all(b"+two\r\n").expect("it reads");
    assert_eq!(redis.shown(), "two\n");
    redis.ends();
}
