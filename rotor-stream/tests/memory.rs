//! The memory use of connections; and that a request allocates nothing.
//!
//! Runs in its own process, with a counting allocator.

use std::alloc::System;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::time::Duration;

use rotor_core::net::{ListenOptions, TcpListener, TcpStream};
use rotor_core::{Config, Loop, LoopInstance, Scope};
use rotor_stream::{Accept, AcceptConfig, Exception, Intent, Matched, Protocol, Stream, Transport};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Sends each line back.
struct Echo;

impl Protocol for Echo {
    type Context = ();
    type Seed = ();
    fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::of(Echo).delimiter(b"\r\n", 4096).deadline(scope.now() + Duration::from_secs(600))
    }
    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        if transport.output.write_all(&transport.input[..line.len()]).is_err() {
            return Intent::done();
        }
        line.consume(transport.input);
        Intent::of(self).keep().deadline(scope.now() + Duration::from_secs(600))
    }
    fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }
}

type Server = Accept<Stream<Echo, TcpStream>, TcpListener>;

fn serve() -> (LoopInstance<Server>, SocketAddr) {
    let mut creator = Loop::<Server>::new(&Config::new().machines_max(2_000)).expect("a loop");
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    creator
        .add_machine_with(|scope| {
            Accept::bind(&address, &ListenOptions::new(), (), AcceptConfig::new(), scope)
        })
        .expect("a listener");
    let mut instance = creator.instantiate(());
    let address = instance.machines().iter().find_map(|(_, machine)| machine.local_address());
    (instance, address.expect("an address"))
}

#[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
fn connect(address: SocketAddr) -> StdStream {
    let client = StdStream::connect(address).expect("the listener listens");
    client.set_nonblocking(true).expect("a socket that does not block");
    client
}

/// Sends a line and runs turns until its echo arrives. Allocates nothing itself.
fn exchange(instance: &mut LoopInstance<Server>, client: &mut StdStream) {
    client.write_all(b"a line\r\n").expect("it fits");
    let mut answer = [0; 8];
    let mut got = 0;
    while got < answer.len() {
        match client.read(&mut answer[got..]) {
            Ok(0) => panic!("the server has closed"),
            Ok(count) => got += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                instance.turn(Some(Duration::from_millis(10))).expect("the loop goes on");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(&answer, b"a line\r\n");
}

/// The number of allocations for this many exchanges, on both sides.
fn allocations_of(
    exchanges: usize,
    instance: &mut LoopInstance<Server>,
    client: &mut StdStream,
) -> usize {
    let before = ALLOCATOR.stats();
    for _ in 0..exchanges {
        exchange(instance, client);
    }
    let after = ALLOCATOR.stats();
    after.allocations + after.reallocations - before.allocations - before.reallocations
}

/// Bytes currently allocated.
fn live_bytes() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

// A single test, so that no other test allocates in the meantime.
#[test]
fn connections_and_requests_stay_within_their_memory_limits() {
    const CONNECTIONS: usize = 400;
    /// In bytes. With debug assertions, mio stores 16 more bytes in each socket: the poller that it
    /// is registered with.
    const SLOT: usize = if cfg!(debug_assertions) { 224 } else { 208 };
    let (mut instance, address) = serve();
    let mut clients: Vec<StdStream> = Vec::with_capacity(CONNECTIONS);
    clients.push(connect(address));
    exchange(&mut instance, &mut clients[0]);

    // The test harness may allocate on its own thread in the meantime, but not in every batch.
    let allocations = (0..10).map(|_| allocations_of(100, &mut instance, &mut clients[0])).min();
    assert_eq!(allocations, Some(0), "allocations in 100 requests, each with its answer");

    let before = live_bytes();
    while clients.len() < CONNECTIONS {
        clients.push(connect(address));
        let client = clients.len() - 1;
        exchange(&mut instance, &mut clients[client]);
    }
    let each = (live_bytes() - before) / CONNECTIONS as i64;
    // Everything else is in the slot: the machine and its bookkeeping, allocated when the loop was
    // made.
    assert!(each <= 8, "{each} bytes of heap for an idle connection");
    let slot = size_of::<Server>();
    assert!(slot <= SLOT, "{slot} bytes in its slot");

    let before = live_bytes();
    for client in &mut clients {
        client.write_all(b"half a line").expect("it fits");
    }
    // The kernel reports all of them in one turn or in the next.
    for _ in 0..3 {
        instance.turn(Some(Duration::from_millis(10))).expect("the loop goes on");
    }
    let each = (live_bytes() - before) / CONNECTIONS as i64;
    // 64 for the line, plus the loop's own queue for this many events in one turn.
    assert!((64..=100).contains(&each), "{each} bytes of heap for half a line");

    clients.clear();
    while instance.machines().len() > 1 {
        instance.turn(Some(Duration::from_millis(10))).expect("the loop goes on");
    }
    let left = live_bytes() - before;
    // The loop keeps its queue for this many events: 16 bytes each, rounded up to a power of two.
    assert!(left <= 512 * 16, "{left} bytes are left of {CONNECTIONS} connections");
}
