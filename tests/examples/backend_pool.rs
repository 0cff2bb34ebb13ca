//! HTTP requests that become questions over a pool of connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use rotor_bench::server::Server;

use crate::support::{PATIENCE, again, connect, example, start_example};

/// The example with a server of the test's, over two connections.
fn start(server: &TcpListener) -> (Server, [TcpStream; 2]) {
    let mut command = example("backend_pool");
    command.arg("127.0.0.1:0").arg(server.local_addr().expect("it is bound").to_string()).arg("2");
    let pool = Server::start(command, PATIENCE).expect("it listens");
    (pool, [accept(server), accept(server)])
}

fn accept(server: &TcpListener) -> TcpStream {
    let (socket, _) = server.accept().expect("it connects");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    socket
}

/// Posts a question. The answer can be read from the socket.
fn post(address: SocketAddr, question: &str) -> TcpStream {
    let mut client = connect(address);
    let length = question.len();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{question}"
    );
    client.write_all(request.as_bytes()).expect("the server takes it");
    client
}

fn response(mut client: TcpStream) -> String {
    let mut response = String::new();
    client.read_to_string(&mut response).expect("text, and the end");
    response
}

fn read_question(server: &mut TcpStream) -> String {
    let mut length = [0; 4];
    again(|| server.read_exact(&mut length)).expect("a length");
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    server.read_exact(&mut text).expect("as many bytes");
    String::from_utf8(text).expect("text")
}

fn write_answer(server: &mut TcpStream, text: &str) {
    let length = u32::try_from(text.len()).expect("it is short").to_be_bytes();
    server.write_all(&[&length, text.as_bytes()].concat()).expect("the pool reads");
}

/// Returns the connection on which the next question comes, first, and the other one.
fn find_asked([first, second]: [TcpStream; 2]) -> [TcpStream; 2] {
    first.set_nonblocking(true).expect("a TCP socket");
    second.set_nonblocking(true).expect("a TCP socket");
    let asked = |socket: &TcpStream| socket.peek(&mut [0; 4]).is_ok_and(|count| count == 4);
    let found = loop {
        if asked(&first) {
            break [first, second];
        }
        if asked(&second) {
            break [second, first];
        }
        std::thread::yield_now();
    };
    found.iter().for_each(|socket| socket.set_nonblocking(false).expect("a TCP socket"));
    found
}

#[test]
fn the_pool_of_the_example_asks_the_server_of_the_example() {
    let pool = start_example("backend_pool");
    let asks = pool.next_line(PATIENCE).unwrap_or_default();
    assert!(
        asks.starts_with("asking 127.0.0.1:") && asks.ends_with(" over 4 connections"),
        "{asks}"
    );
    let clients: Vec<_> =
        (0..20).map(|number| (number, post(pool.address(), &format!("hello {number}")))).collect();
    for (number, client) in clients {
        let response = response(client);
        assert!(response.ends_with(&format!("\r\n\r\nHELLO {number}")), "{response}");
    }
    let refused = response({
        let mut client = connect(pool.address());
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .expect("it reads");
        client
    });
    assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
    let ended = pool.terminate(PATIENCE).expect("both ends of its connections end");
    assert!(ended.success(), "{ended}");
}

#[test]
fn a_lost_question_is_asked_on_the_other_connection_and_then_given_up() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (pool, connections) = start(&server);
    let client = post(pool.address(), "hello");
    let [mut first, mut second] = find_asked(connections);
    assert_eq!(read_question(&mut first), "hello");
    drop(first);
    assert_eq!(read_question(&mut second), "hello");
    drop(second);
    let response = response(client);
    assert!(
        response.starts_with("HTTP/1.1 502 ")
            && response.ends_with("the peer has ended the stream\n"),
        "{response}"
    );
    // Both are made again.
    let client = post(pool.address(), "again");
    let [mut asked, _other] = find_asked([accept(&server), accept(&server)]);
    assert_eq!(read_question(&mut asked), "again");
    write_answer(&mut asked, "yes");
    assert!(self::response(client).ends_with("\r\n\r\nyes"));
}

#[test]
fn a_request_under_way_is_answered_in_a_drain() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (pool, connections) = start(&server);
    let client = post(pool.address(), "hello");
    let [mut asked, mut other] = find_asked(connections);
    assert_eq!(read_question(&mut asked), "hello");
    let signal = std::process::Command::new("kill").arg(pool.pid().to_string()).status();
    assert!(signal.expect("a Unix system").success());
    write_answer(&mut asked, "still here");
    assert!(response(client).ends_with("\r\n\r\nstill here"));
    for socket in [&mut asked, &mut other] {
        assert_eq!(again(|| socket.read(&mut [0])).expect("a good end"), 0);
    }
}
