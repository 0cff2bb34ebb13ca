//! What `hello_world_server` allocates: nothing per request, and nothing for an idle connection.
//!
//! This is a separate process with a counting allocator.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rotor::http::server::{
    Head, HttpAccept, HttpSeed, Reply, Response, Scope, ServerConfig, ServerFn, listen,
};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{Config, Loop, LoopInstance};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[path = "../examples/hello_world_server/hello.rs"]
mod hello;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The example's machine. Its function has its own type, which has no name and no size.
type Server<F> = HttpAccept<ServerFn<F, ()>, TcpListener>;

trait Function: Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, ()>) -> Reply + Clone {}
impl<F: Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, ()>) -> Reply + Clone> Function for F {}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const BODY: &[u8] = b"Hello, World!";

fn serve<F: Function + 'static>(function: F) -> (LoopInstance<Server<F>>, SocketAddr) {
    let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut creator = Loop::<Server<F>>::new(&Config::new().machines_max(2_000)).expect("a loop");
    creator
        .add_machine_with(|scope| {
            rotor::Response::attempt(|| {
                let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
                address = listener.local_address().unwrap_or(address);
                Ok(listen(listener, HttpSeed::new(function, ServerConfig::new()), scope))
            })
        })
        .expect("a listener");
    (creator.instantiate(()), address)
}

#[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).expect("the listener listens");
    client.set_nonblocking(true).expect("a socket that does not block");
    client
}

/// Sends several requests in one write, and takes turns until all are answered. It does not
/// allocate.
fn exchange<F: Function>(
    instance: &mut LoopInstance<Server<F>>,
    client: &mut TcpStream,
    requests: &[u8],
) {
    let count = requests.len() / REQUEST.len();
    client.write_all(requests).expect("it fits");
    let mut answers = [0; 8 * 1024];
    let mut got = 0;
    // The responses have one length, and each ends with the body.
    while got == 0 || !answers[..got].ends_with(BODY) || count_answers(&answers[..got]) < count {
        match client.read(&mut answers[got..]) {
            Ok(0) => panic!("the server has closed"),
            Ok(read) => got += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                instance.turn(Some(Duration::from_millis(10))).expect("the loop goes on");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(count_answers(&answers[..got]), count);
}

fn count_answers(answers: &[u8]) -> usize {
    answers.windows(BODY.len()).filter(|window| *window == BODY).count()
}

/// The number of allocations of several exchanges, on both sides.
fn allocations_of<F: Function>(
    exchanges: usize,
    instance: &mut LoopInstance<Server<F>>,
    client: &mut TcpStream,
    requests: &[u8],
) -> usize {
    let before = ALLOCATOR.stats();
    for _ in 0..exchanges {
        exchange(instance, client, requests);
    }
    let after = ALLOCATOR.stats();
    after.allocations + after.reallocations - before.allocations - before.reallocations
}

/// The size of the machine in bytes.
fn machine_bytes<F: Function>(_: &LoopInstance<Server<F>>) -> usize {
    size_of::<Server<F>>()
}

/// The number of bytes currently allocated.
fn live_bytes() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

// A single test, so that no other test allocates meanwhile.
#[test]
fn a_request_allocates_nothing_and_an_idle_connection_holds_nothing() {
    const CONNECTIONS: usize = 400;
    let (mut instance, address) = serve(hello::hello);
    let mut clients = Vec::with_capacity(CONNECTIONS);
    clients.push(connect(address));
    let pipelined = REQUEST.repeat(16);
    for requests in [REQUEST, &pipelined] {
        exchange(&mut instance, &mut clients[0], requests);
        // The test harness may allocate on its own thread meanwhile, but not in every batch.
        let allocations =
            (0..10).map(|_| allocations_of(100, &mut instance, &mut clients[0], requests)).min();
        assert_eq!(
            allocations,
            Some(0),
            "allocations in 100 exchanges of {} bytes",
            requests.len()
        );
    }
    let before = live_bytes();
    while clients.len() < CONNECTIONS {
        let mut client = connect(address);
        exchange(&mut instance, &mut client, REQUEST);
        clients.push(client);
    }
    let each = (live_bytes() - before) / CONNECTIONS as i64;
    // Everything else is in the slot: the machine and its bookkeeping, reserved when the loop was
    // created.
    assert!(each <= 8, "{each} bytes of heap for an idle connection");
    // With at most 40 bytes of bookkeeping added, that is within 0.30 KiB.
    let slot = machine_bytes(&instance);
    assert!(slot <= 264, "{slot} bytes in its slot");
}
