//! A server behind the examples that ask one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::client::PATIENCE;

/// An upstream that notes each head it is sent, and lets `answer` do the rest.
pub(crate) fn upstream(
    answer: impl Fn(&mut TcpStream, &str) + Send + Sync + 'static,
) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (heads, received) = channel();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(client) = client else { return };
            let (heads, answer) = (heads.clone(), answer.clone());
            thread::spawn(move || converse(client, &heads, &*answer));
        }
    });
    (address, received)
}

fn converse(mut client: TcpStream, heads: &Sender<String>, answer: &dyn Fn(&mut TcpStream, &str)) {
    client.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let (mut head, mut octet) = (Vec::new(), [0]);
    // `read_exact` goes on where the process was stopped and went on (signal(7)).
    while client.read_exact(&mut octet).is_ok() {
        head.extend_from_slice(&octet);
        if head.ends_with(b"\r\n\r\n") {
            let text = String::from_utf8(std::mem::take(&mut head)).expect("ASCII");
            let _test_is_over = heads.send(text.clone());
            answer(&mut client, &text);
        }
    }
}

/// An address where nobody listens as long as this process lives: its port is that of a socket
/// that is connected elsewhere.
pub(crate) fn nobody() -> SocketAddr {
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = elsewhere.local_addr().and_then(TcpStream::connect).expect("it listens");
    let address = taken.local_addr().expect("it is bound");
    std::mem::forget((elsewhere, taken));
    address
}

/// The head of what comes on a socket, and nothing behind it.
pub(crate) fn read_head(socket: &mut (impl Read + ?Sized)) -> String {
    let (mut head, mut octet) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        // It goes on where the process was stopped and went on (signal(7)).
        socket.read_exact(&mut octet).expect("a head");
        head.push(octet[0]);
    }
    String::from_utf8(head).expect("ASCII")
}

/// What a server of WebSockets, such as `ws_echo`, answers to this request, with more fields.
pub(crate) fn agreement(server: SocketAddr, head: &str, more: &str) -> String {
    let mut server = TcpStream::connect(server).expect("it listens");
    server.write_all(head.as_bytes()).expect("it reads");
    let answer = read_head(&mut server);
    assert!(answer.starts_with("HTTP/1.1 101 "), "{head}\n{answer}");
    answer.replacen("\r\n\r\n", &format!("\r\n{more}\r\n"), 1)
}

/// What it always answers.
pub(crate) fn says(bytes: &'static [u8]) -> impl Fn(&mut TcpStream, &str) + Send + Sync {
    move |client, _| {
        let _proxy_is_gone = client.write_all(bytes);
    }
}
