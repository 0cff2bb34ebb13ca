//! Sessions over UDP, and their status page.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;

use rotor_bench::server::{Server, find_address};

use crate::support::{PATIENCE, connect, receive, start_example};

/// A client of the server. Its socket has a read timeout.
struct Peer(UdpSocket);

impl Peer {
    fn of(server: &Server) -> Peer {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
        socket.connect(server.address()).expect("loopback is there");
        Peer(socket)
    }

    /// A peer that has proven its address, and its id.
    fn playing(server: &Server) -> (Peer, String) {
        let peer = Peer::of(server);
        peer.say("HELLO to everybody here");
        peer.acknowledge("WELCOME");
        let state = peer.hear("STATE");
        let id = state.split([' ', ':']).nth(2).expect("itself comes first").to_owned();
        (peer, id)
    }

    fn say(&self, datagram: impl AsRef<[u8]>) {
        self.0.send(datagram.as_ref()).expect("loopback takes it");
    }

    /// The next datagram that begins with `word`. Others are skipped.
    fn hear(&self, word: &str) -> String {
        let mut buffer = [0; 2_000];
        loop {
            let length = receive(&self.0, &mut buffer).unwrap_or_else(|e| panic!("no {word}: {e}"));
            let text = str::from_utf8(&buffer[..length]).expect("text");
            if text.split(' ').next() == Some(word) {
                return text.to_owned();
            }
        }
    }

    /// Acknowledges the next datagram that begins with `word`.
    fn acknowledge(&self, word: &str) {
        let text = self.hear(word);
        self.say(format!("ACK {}", text.split(' ').nth(1).expect("a number")));
    }
}

/// The content of the status page.
fn status(address: SocketAddr) -> String {
    let mut socket = connect(address);
    socket
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .expect("the server takes it");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("text, and the end");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer
}

fn status_address(server: &Server) -> SocketAddr {
    let line = server.next_line(PATIENCE).unwrap_or_default();
    find_address(&line).unwrap_or_else(|| panic!("the second address, not {line:?}"))
}

fn terminate(server: &Server) {
    let signal = Command::new("kill").arg(server.pid().to_string()).status();
    assert!(signal.expect("a Unix system").success());
}

#[test]
fn peers_see_each_other_move_and_leave() {
    let server = start_example("udp_sessions");
    let page = status_address(&server);
    let line = server.next_line(PATIENCE).unwrap_or_default();
    assert!(line.starts_with("try: nc -u "), "{line}");
    let ((one, _), (two, id)) = (Peer::playing(&server), Peer::playing(&server));
    assert!(status(page).contains("\n2 sessions\n"));
    two.say("MOVE 3 -4");
    let moved = format!(" {id}:3,-4");
    while !one.hear("STATE").ends_with(&moved) {}
    assert!(status(page).contains(&format!("\n{id} at 3,-4, 127.0.0.1:")));
    two.say("BYE");
    assert_eq!(two.hear("BYE"), "BYE");
    while one.hear("STATE").contains(&moved) {}
    assert!(status(page).contains("\n1 sessions\n"));
}

#[test]
fn an_unknown_command_is_reported_and_harms_no_session() {
    let server = start_example("udp_sessions");
    let page = status_address(&server);
    let (peer, id) = Peer::playing(&server);
    let long = "MOVE 1 1".to_owned() + &" ".repeat(249);
    let bad: [&[u8]; 9] = [
        b"",
        b" ",
        b"\xff\xfe",
        b"JUMP",
        b"MOVE 1",
        b"MOVE 1 2 3",
        b"MOVE 1 99999999999",
        b"ACK -1",
        long.as_bytes(),
    ];
    for datagram in bad {
        peer.say(datagram);
        assert_eq!(peer.hear("ERROR"), "ERROR", "{}", datagram.escape_ascii());
    }
    // A datagram that is one byte shorter is accepted.
    peer.say(&long[..256]);
    while !peer.hear("STATE").ends_with(&format!(" {id}:1,1")) {}
    // Unknown peers get no answer, except to a HELLO that is not shorter than the answer.
    let stranger = Peer::of(&server);
    for datagram in bad {
        stranger.say(datagram);
    }
    stranger.say("HELLO");
    stranger.say([b'x'; 60_000]);
    stranger.say("HELLO to everybody here");
    let mut first = [0; 100];
    let length = receive(&stranger.0, &mut first).expect("an answer");
    assert!(first[..length].starts_with(b"WELCOME "), "{}", first[..length].escape_ascii());
    let page = status(page);
    assert!(page.contains("ignored: 11,") && page.contains("panics: 0,"), "{page}");
}

#[test]
fn a_terminated_server_repeats_its_goodbye_until_acknowledged() {
    let server = start_example("udp_sessions");
    let ((quiet, _), (peer, _)) = (Peer::playing(&server), Peer::playing(&server));
    terminate(&server);
    peer.acknowledge("CLOSING");
    // This peer acknowledges nothing.
    let told: Vec<String> = (0..4).map(|_| quiet.hear("CLOSING")).collect();
    assert!(told.iter().all(|text| *text == told[0]), "{told:?}");
    let status = server.terminate(PATIENCE).expect("it ends");
    assert!(status.success(), "{status}");
}
