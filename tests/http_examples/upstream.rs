//! An upstream server for the examples that need one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::client::PATIENCE;

/// An upstream that records the head of each request, and calls `answer` for the rest.
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
    // `read_exact` repeats a read that was interrupted because the process was stopped and
    // continued (signal(7)).
    while client.read_exact(&mut octet).is_ok() {
        head.extend_from_slice(&octet);
        if head.ends_with(b"\r\n\r\n") {
            let text = String::from_utf8(std::mem::take(&mut head)).expect("ASCII");
            let _test_is_over = heads.send(text.clone());
            answer(&mut client, &text);
        }
    }
}

/// An address where nobody listens as long as this process lives: the local port of a connected
/// socket.
pub(crate) fn nobody() -> SocketAddr {
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = elsewhere.local_addr().and_then(TcpStream::connect).expect("it listens");
    let address = taken.local_addr().expect("it is bound");
    std::mem::forget((elsewhere, taken));
    address
}

/// Reads the head of a message from a socket, and nothing after it.
pub(crate) fn read_head(socket: &mut (impl Read + ?Sized)) -> String {
    let (mut head, mut octet) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        // It repeats a read that was interrupted because the process was stopped and continued
        // (signal(7)).
        socket.read_exact(&mut octet).expect("a head");
        head.push(octet[0]);
    }
    String::from_utf8(head).expect("ASCII")
}

/// The response of a WebSocket server, such as `ws_echo`, to this request, with additional fields.
pub(crate) fn agreement(server: SocketAddr, head: &str, more: &str) -> String {
    let mut server = TcpStream::connect(server).expect("it listens");
    server.write_all(head.as_bytes()).expect("it reads");
    let answer = read_head(&mut server);
    assert!(answer.starts_with("HTTP/1.1 101 "), "{head}\n{answer}");
    answer.replacen("\r\n\r\n", &format!("\r\n{more}\r\n"), 1)
}

/// A response that is always the same.
pub(crate) fn says(bytes: &'static [u8]) -> impl Fn(&mut TcpStream, &str) + Send + Sync {
    move |client, _| {
        let _proxy_is_gone = client.write_all(bytes);
    }
}
