//! HTTP requests that become questions over a pool of connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

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

/// Returns the response. `None` if the example says that the answer has come too late: it has limits
/// of its own, which a test on a busy machine may miss.
fn response(mut client: TcpStream) -> Option<String> {
    let mut response = String::new();
    client.read_to_string(&mut response).expect("text, and the end");
    let is_late = ["HTTP/1.1 503 ", "HTTP/1.1 504 "].iter().any(|late| response.starts_with(late));
    (!is_late).then_some(response)
}

/// Reads a question. `None` if the pool has given it up.
fn read_question(server: &mut TcpStream) -> Option<String> {
    let mut length = [0; 4];
    again(|| server.read_exact(&mut length)).ok()?;
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    again(|| server.read_exact(&mut text)).ok()?;
    Some(String::from_utf8(text).expect("text"))
}

/// Writes an answer. `None` if the pool has given up the question.
fn write_answer(server: &mut TcpStream, text: &str) -> Option<()> {
    let length = u32::try_from(text.len()).expect("it is short").to_be_bytes();
    server.write_all(&[&length, text.as_bytes()].concat()).ok()
}

/// Waits for a question on one of these connections, and returns which one. `None` if the client has
/// its response before that.
fn find_asked(connections: &[&TcpStream], client: &TcpStream) -> Option<usize> {
    let has = |socket: &TcpStream, least: usize| {
        socket.set_nonblocking(true).expect("a TCP socket");
        let peeked = socket.peek(&mut [0; 4]);
        socket.set_nonblocking(false).expect("a TCP socket");
        peeked.is_ok_and(|count| count >= least)
    };
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(at) = connections.iter().position(|socket| has(socket, 4)) {
            return Some(at);
        }
        if has(client, 0) {
            return None;
        }
        std::thread::yield_now();
    }
    panic!("no question, and no response");
}

/// Returns the connection on which the question of this client comes, first, and the other one.
fn in_order([first, second]: [TcpStream; 2], client: &TcpStream) -> Option<[TcpStream; 2]> {
    match find_asked(&[&first, &second], client)? {
        0 => Some([first, second]),
        _ => Some([second, first]),
    }
}

/// Tries again until no answer was too late.
fn until_in_time(attempt: impl Fn() -> Option<()>) {
    let begun = Instant::now();
    while attempt().is_none() {
        assert!(begun.elapsed() < PATIENCE, "answers are too late each time");
    }
}

#[test]
fn the_pool_of_the_example_asks_the_server_of_the_example() {
    let pool = start_example("backend_pool");
    let asks = pool.next_line(PATIENCE).unwrap_or_default();
    assert!(
        asks.starts_with("asking 127.0.0.1:") && asks.ends_with(" over 4 connections"),
        "{asks}"
    );
    until_in_time(|| {
        let clients: Vec<_> = (0..20)
            .map(|number| (number, post(pool.address(), &format!("hello {number}"))))
            .collect();
        for (number, client) in clients {
            let response = response(client)?;
            assert!(response.ends_with(&format!("\r\n\r\nHELLO {number}")), "{response}");
        }
        Some(())
    });
    let mut client = connect(pool.address());
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("it reads");
    let refused = response(client).expect("nobody is asked");
    assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
    let ended = pool.terminate(PATIENCE).expect("both ends of its connections end");
    assert!(ended.success(), "{ended}");
}

#[test]
fn a_lost_question_is_asked_on_the_other_connection_and_then_given_up() {
    until_in_time(|| {
        let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (pool, connections) = start(&server);
        let client = post(pool.address(), "hello");
        let [mut first, mut second] = in_order(connections, &client)?;
        assert_eq!(read_question(&mut first)?, "hello");
        drop(first);
        find_asked(&[&second], &client)?;
        assert_eq!(read_question(&mut second)?, "hello");
        drop(second);
        let given_up = response(client)?;
        assert!(
            given_up.starts_with("HTTP/1.1 502 ")
                && given_up.ends_with("the peer has ended the stream\n"),
            "{given_up}"
        );
        // Both are made again.
        let client = post(pool.address(), "again");
        let [mut asked, _other] = in_order([accept(&server), accept(&server)], &client)?;
        assert_eq!(read_question(&mut asked)?, "again");
        write_answer(&mut asked, "yes")?;
        assert!(response(client)?.ends_with("\r\n\r\nyes"));
        Some(())
    });
}

#[test]
fn a_request_under_way_is_answered_in_a_drain() {
    until_in_time(|| {
        let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (pool, connections) = start(&server);
        let client = post(pool.address(), "hello");
        let [mut asked, mut other] = in_order(connections, &client)?;
        assert_eq!(read_question(&mut asked)?, "hello");
        let signal = std::process::Command::new("kill").arg(pool.pid().to_string()).status();
        assert!(signal.expect("a Unix system").success());
        write_answer(&mut asked, "still here")?;
        assert!(response(client)?.ends_with("\r\n\r\nstill here"));
        for socket in [&mut asked, &mut other] {
            assert_eq!(again(|| socket.read(&mut [0])).expect("a good end"), 0);
        }
        Some(())
    });
}
