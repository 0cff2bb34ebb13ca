//! `Serve::on` in a drain. A separate test program, because a signal is for the whole process.
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "the listener is opened elsewhere, and the loop has a thread of its own"
)]

use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread::{spawn, yield_now};
use std::time::Duration;

use rotor_http::server::{Head, Next, NoUpgrade, Response, Scope, Serve, Server};
use rustix::process::{Signal, getpid, kill_process};

/// Longer than any step of this test takes.
const PATIENCE: Duration = Duration::from_secs(100);

/// Tells the test that it has a request, and never responds.
struct WaitingServer;

impl Server for WaitingServer {
    type Context = ();
    type Seed = Sender<()>;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        started: Sender<()>,
        _: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        started.send(()).expect("the test waits for it");
        Next::go_on(WaitingServer).no_deadline()
    }
}

#[test]
fn the_given_listener_is_closed_while_requests_finish() {
    let given = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = given.local_addr().expect("it is bound");
    let (started, has_started) = channel();
    let server = spawn(move || {
        Serve::on(given)
            .drain_time_max(10 * PATIENCE)
            .run::<WaitingServer>(move || (started.clone(), ()))
    });
    let connect = || TcpStream::connect_timeout(&address, PATIENCE);
    let mut client = connect().expect("it listens");
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is connected");
    has_started.recv_timeout(PATIENCE).expect("the handler is called");
    kill_process(getpid(), Signal::TERM).expect("it is this process");
    // A client that connects after that must try elsewhere, and not wait in a queue from which
    // nobody accepts. One that is in the queue when the listener is closed is reset.
    loop {
        match connect().map_err(|error| error.kind()) {
            Ok(_) | Err(ErrorKind::ConnectionReset) => yield_now(),
            refused => {
                assert_eq!(refused.err(), Some(ErrorKind::ConnectionRefused));
                break;
            }
        }
    }
    assert!(!server.is_finished(), "the request is still under way");
    // The second signal ends it at once.
    kill_process(getpid(), Signal::TERM).expect("it is this process");
    server.join().expect("no panic").expect("it was asked to end");
}
