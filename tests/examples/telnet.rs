//! The client on standard input, with a server in the test and with our chat.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Output, Stdio};
use std::thread;

use crate::support::{PATIENCE, again, connect, example, run_example, start_example};

struct Telnet {
    child: Child,
    address: SocketAddr,
}

impl Telnet {
    fn start(address: SocketAddr) -> Telnet {
        let mut command = example("telnet");
        command
            .arg(address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Telnet { child: command.spawn().expect("it is built"), address }
    }

    fn type_in(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().expect("it is open").write_all(bytes).expect("it reads");
    }

    /// Waits for its exit, with the input left open unless it was closed before. Returns what it
    /// printed of the server's data, which must be its whole output.
    fn shown(mut self) -> Vec<u8> {
        let input = self.child.stdin.take();
        let Output { status, stdout, stderr } =
            self.child.wait_with_output().expect("it was started");
        drop(input);
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(status.success() && stderr.is_empty(), "{status}\n{stderr}");
        let greeting = format!("connecting to {}\n", self.address);
        stdout.strip_prefix(greeting.as_bytes()).expect("it says where it goes").to_vec()
    }

    fn end_input(&mut self) {
        self.child.stdin = None;
    }
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    (listener, address)
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (socket, _) = listener.accept().expect("it connects");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    socket.set_write_timeout(Some(PATIENCE)).expect("not zero");
    socket
}

#[test]
fn piped_input_and_its_end_are_sent_and_the_answer_is_shown() {
    let (listener, address) = listen();
    let mut telnet = Telnet::start(address);
    let mut server = accept(&listener);
    telnet.type_in(b"one\n\ntwo\nand half a line");
    telnet.end_input();
    let mut received = Vec::new();
    server.read_to_end(&mut received).expect("the end is passed on");
    assert_eq!(received, b"one\n\ntwo\nand half a line");
    // The other direction is still open.
    server.write_all(b"that was all\n").expect("it is connected");
    drop(server);
    assert_eq!(telnet.shown(), b"that was all\n");
}

#[test]
fn an_empty_input_ends_the_stream_immediately() {
    let (listener, address) = listen();
    let mut telnet = Telnet::start(address);
    telnet.end_input();
    let mut server = accept(&listener);
    assert_eq!(again(|| server.read(&mut [0])).expect("a good end"), 0);
    drop(server);
    assert_eq!(telnet.shown(), b"");
}

#[test]
fn the_client_ends_with_the_server_while_its_input_is_open() {
    let (listener, address) = listen();
    let mut telnet = Telnet::start(address);
    let mut server = accept(&listener);
    telnet.type_in(b"hello\n");
    let mut line = [0; 6];
    server.read_exact(&mut line).expect("it is sent at once");
    server.write_all(b"no time").expect("it is connected");
    drop(server);
    assert_eq!(telnet.shown(), b"no time");
}

#[test]
fn a_large_input_is_sent_whole_however_late_it_is_read() {
    let (listener, address) = listen();
    let mut telnet = Telnet::start(address);
    let mut server = accept(&listener);
    let text: Vec<u8> =
        (0..400_000).flat_map(|number| format!("line {number}\n").into_bytes()).collect();
    let typed = text.clone();
    let mut input = telnet.child.stdin.take().expect("it is open");
    let typing = thread::spawn(move || input.write_all(&typed).expect("it reads"));
    let mut received = Vec::new();
    server.read_to_end(&mut received).expect("the end is passed on");
    typing.join().expect("it types");
    assert!(received == text, "{} bytes became {}", text.len(), received.len());
    let sending = thread::spawn(move || {
        server.write_all(&received).expect("it reads");
        server.shutdown(Shutdown::Both).expect("it is connected");
    });
    let shown = telnet.shown();
    sending.join().expect("it sends");
    assert!(shown == text, "{} bytes became {}", text.len(), shown.len());
}

fn failure(output: Output, address: SocketAddr) -> String {
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.starts_with(&format!("error: {address}: ")) && message.lines().count() == 1,
        "{message}"
    );
    message
}

#[test]
fn a_refused_connection_is_an_error() {
    // The local port of a connected socket: it is in use, but nobody listens there.
    let (_listener, elsewhere) = listen();
    let holder = connect(elsewhere);
    let taken = holder.local_addr().expect("it is bound");
    let message = failure(run_example("telnet", &[&taken.to_string()]), taken);
    assert!(message.contains("cannot connect: ") && message.contains("refused"), "{message}");
}

#[test]
fn a_broken_connection_is_an_error() {
    let (listener, address) = listen();
    let mut telnet = Telnet::start(address);
    let server = accept(&listener);
    telnet.type_in(b"hello\n");
    // Closing a connection with unread input resets it.
    again(|| server.peek(&mut [0])).expect("it is sent at once");
    drop(server);
    let input = telnet.child.stdin.take();
    let output = telnet.child.wait_with_output().expect("it was started");
    drop(input);
    let message = failure(output, address);
    assert!(message.contains("reset"), "{message}");
}

#[test]
fn telnet_works_with_the_line_chat() {
    let chat = start_example("line_chat");
    let mut other = BufReader::new(connect(chat.address()));
    let mut hear = || {
        let mut line = String::new();
        other.read_line(&mut line).expect("the server speaks");
        line
    };
    assert_eq!(hear(), "* you are 1\n");
    let mut telnet = Telnet::start(chat.address());
    assert_eq!(hear(), "* 2 joined\n");
    telnet.type_in(b"hello from afar\n");
    assert_eq!(hear(), "2: hello from afar\n");
    telnet.end_input();
    assert_eq!(hear(), "* 2 left\n");
    assert_eq!(telnet.shown(), b"* you are 2\n");
}
