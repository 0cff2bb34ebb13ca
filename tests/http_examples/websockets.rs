//! The WebSocket examples: `ws_echo`, `ws_client`, `ws_chat`, `ws_ticker`.

use std::io::{Read, Write};
use std::net::TcpStream;

use rotor_bench::process::signal;
use rotor_bench::server::Server;

use crate::client::{ask, command, connect, start, start_command};

/// A client that supports frames of up to 65,535 bytes.
struct Socket(TcpStream);

impl Socket {
    fn open(server: &Server, path: &str) -> Socket {
        let mut stream = connect(server);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut head = Vec::new();
        // Reads byte by byte, because bytes after the head belong to frames.
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a head");
            head.extend(byte);
        }
        let head = String::from_utf8_lossy(&head);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        Socket(stream)
    }

    fn send(&mut self, first: u8, payload: &[u8]) {
        self.0.write_all(&frame(first, payload)).expect("the server reads");
    }

    fn say(&mut self, text: &str) {
        self.send(0x81, text.as_bytes());
    }

    /// The next frame: its first byte and its payload.
    fn hear(&mut self) -> (u8, Vec<u8>) {
        let mut start = [0; 2];
        self.0.read_exact(&mut start).expect("a frame");
        let mut len = usize::from(start[1]);
        if len == 126 {
            let mut more = [0; 2];
            self.0.read_exact(&mut more).expect("a length");
            len = usize::from(u16::from_be_bytes(more));
        }
        let mut payload = vec![0; len];
        self.0.read_exact(&mut payload).expect("a payload");
        (start[0], payload)
    }

    fn text(&mut self) -> String {
        let (first, payload) = self.hear();
        assert_eq!(first, 0x81, "{}", payload.escape_ascii());
        String::from_utf8(payload).expect("a text")
    }

    /// The close code of the server.
    fn code(&mut self) -> u16 {
        let (first, payload) = self.hear();
        assert_eq!(first, 0x88, "{}", payload.escape_ascii());
        u16::from_be_bytes([payload[0], payload[1]])
    }
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut frame = vec![first, 0xfe];
    frame.extend((payload.len() as u16).to_be_bytes());
    if payload.len() < 126 {
        frame = vec![first, 0x80 | payload.len() as u8];
    }
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

#[test]
fn the_echo_returns_messages_and_closes_in_order() {
    let server = start("ws_echo");
    let mut socket = Socket::open(&server, "/any/path");
    socket.say("hello");
    assert_eq!(socket.text(), "hello");
    socket.send(0x82, &[7; 60_000]);
    assert_eq!(socket.hear(), (0x82, vec![7; 60_000]));
    socket.send(0x88, &[0x03, 0xe8]);
    assert_eq!(socket.code(), 1000);
    let mut rest = Vec::new();
    socket.0.read_to_end(&mut rest).expect("the server ends");
    assert!(rest.is_empty());
    let (head, _) = ask(&server, "GET /", "", "");
    assert!(head.starts_with("HTTP/1.1 426 "), "{head}");
}

#[test]
fn a_message_reaches_the_members_of_its_room_only() {
    let server = start("ws_chat");
    let (head, page) = ask(&server, "GET /", "", "");
    assert!(head.contains("text/html") && page.contains("new WebSocket("), "{head}");
    let mut anna = Socket::open(&server, "/room/lobby");
    anna.say("anna");
    assert_eq!(anna.text(), "* anna is here");
    let mut far = Socket::open(&server, "/room/other");
    far.say("far");
    assert_eq!(far.text(), "* far is here");
    let mut ben = Socket::open(&server, "/room/lobby");
    ben.say("ben");
    // Ben also gets what was sent before he joined.
    assert_eq!((ben.text(), ben.text()), ("* anna is here".into(), "* ben is here".into()));
    assert_eq!(anna.text(), "* ben is here");
    anna.say("hello <b>all</b>");
    for member in [&mut anna, &mut ben] {
        assert_eq!(member.text(), "anna: hello <b>all</b>");
    }
    drop(ben);
    assert_eq!(anna.text(), "* ben has left");
    far.say("anybody?");
    assert_eq!(far.text(), "far: anybody?");
    let mut odd = Socket::open(&server, "/room/lobby");
    odd.say("<script>");
    assert_eq!(odd.code(), 1008);
    anna.send(0x82, b"bytes");
    assert_eq!(anna.code(), 1003);
    let (head, _) = ask(&server, "GET /room/a%20b", "", "");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
}

#[test]
fn a_flood_from_one_member_gets_no_other_closed() {
    const MESSAGES: usize = 300;
    let server = start("ws_chat");
    let mut anna = Socket::open(&server, "/room/lobby");
    anna.say("anna");
    assert_eq!(anna.text(), "* anna is here");
    let mut ben = Socket::open(&server, "/room/lobby");
    ben.say("ben");
    assert_eq!((ben.text(), ben.text()), ("* anna is here".into(), "* ben is here".into()));
    anna.0.write_all(&frame(0x81, b"x").repeat(MESSAGES)).expect("the server reads");
    for _ in 0..MESSAGES {
        assert_eq!(ben.text(), "anna: x");
    }
    // Who comes later gets the last 50.
    let mut cara = Socket::open(&server, "/room/lobby");
    cara.say("cara");
    for _ in 0..50 {
        assert_eq!(cara.text(), "anna: x");
    }
    assert_eq!(cara.text(), "* cara is here");
}

#[test]
fn subscribers_of_the_ticker_receive_each_price_in_turn() {
    let mut ticker = command("ws_ticker");
    ticker.arg("5");
    let server = start_command(ticker);
    let mut sockets: Vec<Socket> = (0..20).map(|_| Socket::open(&server, "/prices")).collect();
    for socket in &mut sockets {
        let number = |text: String| text.split(' ').next().and_then(|word| word.parse().ok());
        let numbers: Vec<u64> = (0..5).filter_map(|_| number(socket.text())).collect();
        assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1), "{numbers:?}");
        assert_eq!(numbers.len(), 5);
    }
    let (_, page) = ask(&server, "GET /", "", "");
    assert_eq!(page, "20 listen to /prices\n");
}

#[test]
fn the_client_prints_how_the_connection_ended() {
    let server = start("ws_chat");
    let url = format!("ws://{}/room/lobby", server.address());
    let output = command("ws_client").args([&url, "no name"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("closed: 1008 Peer a name has 1 to 32"), "{output:?}");
    let url = format!("http://{}/", server.address());
    let output = command("ws_client").args([&url]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("the server answered 200"), "{output:?}");
}

#[test]
fn a_drain_closes_with_1001() {
    let server = start("ws_echo");
    let mut socket = Socket::open(&server, "/");
    socket.say("before");
    assert_eq!(socket.text(), "before");
    signal(server.pid(), rustix::process::Signal::TERM).expect("it is there");
    assert_eq!(socket.code(), 1001);
    socket.send(0x88, &[0x03, 0xe9]);
    let mut rest = Vec::new();
    socket.0.read_to_end(&mut rest).expect("the server ends");
    assert!(rest.is_empty());
}
