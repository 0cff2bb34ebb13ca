//! Individual simulated sockets, without faults or with one: what the kernel's sockets would do,
//! and when.

#[path = "../machines/driver.rs"]
mod driver;

mod connecting;
mod datagrams;
mod faults;
mod ownership;

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use driver::Holder;
use rotor_core::net::{ListenOptions, Listener, StreamSocket};
use rotor_core::{EventSet, Interest, LoopInstance, Response, Scope, Time};
use rotor_sim::net::{SimTcpListener, SimTcpStream, SimUnixListener, SimUnixStream};
use rotor_sim::{Crash, Failure, Fault, Faults, Host, Network, Sim, SimBackend};

type Held<T> = Rc<RefCell<Option<T>>>;
type Machine<T> = Holder<Held<T>>;
type EarlyScope<'a> = Scope<'a, Vec<EventSet>>;

/// A host with one machine, which registers the source that `make` returns; the test reaches that
/// source through the second value.
fn host_with_socket<T: rotor_core::Source + 'static>(
    sim: &mut Sim,
    name: &str,
    make: impl Fn(&EarlyScope<'_>) -> T + 'static,
) -> Result<(Host<Machine<T>>, Held<T>), Failure> {
    let host = sim.host(name, |boot| Ok(boot.new_loop()?.instantiate(Vec::new())))?;
    let held: Held<T> = Rc::default();
    let kept = held.clone();
    sim.with(host, |instance: &mut LoopInstance<Machine<T>, SimBackend>| {
        let added = instance.add_machine_with(|scope| {
            let mut socket = make(scope);
            scope.register(&mut socket, Interest::Both).expect("it registers");
            *kept.borrow_mut() = Some(socket);
            Response::ok(Holder::new(kept))
        });
        added.expect("there is room");
    });
    Ok((host, held))
}

fn take_edges<T: 'static>(sim: &mut Sim, host: Host<Machine<T>>) -> Vec<EventSet> {
    sim.with(host, |instance| std::mem::take(instance.context_mut())).unwrap_or_default()
}

/// Two connected streams on two hosts, after enough time for an edge of one to reach the other.
struct ConnectedPair {
    sim: Sim,
    client_host: Host<Machine<SimTcpStream>>,
    server_host: Host<Machine<SimTcpListener>>,
    client: Held<SimTcpStream>,
    server: SimTcpStream,
    listener: Held<SimTcpListener>,
}

const MS: Duration = Duration::from_millis(1);

fn pair(network: Network) -> Result<ConnectedPair, Failure> {
    let mut sim = Sim::new(1);
    sim.set_network(network);
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    let (server_host, listener) = host_with_socket(&mut sim, "server", move |scope| {
        SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
    })?;
    let (client_host, client) = host_with_socket(&mut sim, "client", move |scope| {
        SimTcpStream::connect(&address, scope).expect("it begins")
    })?;
    assert!(!client.borrow().as_ref().expect("held").is_connected());
    sim.run_for(10 * MS)?;
    let (server, peer) =
        listener.borrow_mut().as_mut().expect("held").accept().expect("a connection");
    assert_eq!(server.peer_address(), peer);
    assert_eq!(take_edges(&mut sim, server_host), [EventSet::READABLE]);
    assert_eq!(take_edges(&mut sim, client_host), [EventSet::WRITABLE]);
    Ok(ConnectedPair { sim, client_host, server_host, client, server, listener })
}

impl ConnectedPair {
    fn client<R>(&self, f: impl FnOnce(&mut SimTcpStream) -> R) -> R {
        with_stream(&self.client, f)
    }
}

fn with_stream<R>(held: &Held<SimTcpStream>, f: impl FnOnce(&mut SimTcpStream) -> R) -> R {
    f(held.borrow_mut().as_mut().expect("held"))
}

fn error_kind<T>(result: std::io::Result<T>) -> ErrorKind {
    result.map(drop).expect_err("it fails").kind()
}

#[test]
fn bytes_arrive_after_the_latency_and_an_edge_with_them() -> Result<(), Failure> {
    let mut pair = pair(Network::new().latency(MS..MS))?;
    let mut buffer = [0; 8];
    assert_eq!(error_kind(pair.client(|client| client.read(&mut buffer))), ErrorKind::WouldBlock);
    assert_eq!(pair.server.write(b"hello").expect("there is room"), 5);
    pair.sim.run_for(MS / 2)?;
    assert_eq!(error_kind(pair.client(|client| client.read(&mut buffer))), ErrorKind::WouldBlock);
    pair.sim.run_for(MS)?;
    assert_eq!(take_edges(&mut pair.sim, pair.client_host), [EventSet::READABLE]);
    assert_eq!(pair.client(|client| client.read(&mut buffer)).expect("it is there"), 5);
    assert_eq!(&buffer[..5], b"hello");
    Ok(())
}

#[test]
fn a_full_window_blocks_the_writer_until_the_reader_has_read() -> Result<(), Failure> {
    let mut pair = pair(Network::new().window(10))?;
    assert_eq!(pair.client(|client| client.write(&[1; 25])).expect("there is room"), 10);
    assert_eq!(error_kind(pair.client(|client| client.write(&[1]))), ErrorKind::WouldBlock);
    pair.sim.run_for(5 * MS)?;
    assert_eq!(take_edges(&mut pair.sim, pair.client_host), []);
    assert_eq!(pair.server.read(&mut [0; 4]).expect("they are there"), 4);
    pair.sim.run_for(5 * MS)?;
    assert_eq!(take_edges(&mut pair.sim, pair.client_host), [EventSet::WRITABLE]);
    assert_eq!(pair.client(|client| client.write(&[1; 25])).expect("there is room"), 4);
    Ok(())
}

#[test]
fn a_limited_bandwidth_spreads_bytes_over_time() -> Result<(), Failure> {
    let mut pair = pair(Network::new().bandwidth(1_000))?;
    for _ in 0..4 {
        assert_eq!(pair.client(|client| client.write(&[1; 500])).expect("there is room"), 500);
    }
    pair.sim.run_for(Duration::from_millis(1_100))?;
    let mut buffer = [0; 4_000];
    assert_eq!(pair.server.read(&mut buffer).expect("half is there"), 1_000);
    pair.sim.run_for(Duration::from_secs(1))?;
    assert_eq!(pair.server.read(&mut buffer).expect("the rest is there"), 1_000);
    Ok(())
}

#[test]
fn a_half_close_leaves_the_other_direction_open() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.client(|client| {
        client.write_all(b"last words").expect("there is room");
        client.shutdown(Shutdown::Write).expect("it is connected");
        assert_eq!(error_kind(client.write(b"more")), ErrorKind::BrokenPipe);
    });
    pair.sim.run_for(5 * MS)?;
    let mut words = String::new();
    assert_eq!(pair.server.read_to_string(&mut words).expect("bytes and the end"), 10);
    pair.server.write_all(b"answer").expect("this half is open");
    pair.sim.run_for(5 * MS)?;
    let mut buffer = [0; 8];
    assert_eq!(pair.client(|client| client.read(&mut buffer)).expect("it is there"), 6);
    Ok(())
}

/// `EPOLLHUP`, whichever direction ends last.
#[test]
fn a_hang_up_is_reported_once_both_directions_have_ended() -> Result<(), Failure> {
    let hang_up = EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
    for client_is_first in [true, false] {
        let mut pair = pair(Network::new())?;
        let shut_client =
            |pair: &ConnectedPair| pair.client(|client| client.shutdown(Shutdown::Write));
        if client_is_first {
            shut_client(&pair).expect("it is connected");
        }
        pair.sim.run_for(5 * MS)?;
        assert_eq!(take_edges(&mut pair.sim, pair.client_host), []);
        pair.server.shutdown(Shutdown::Write).expect("it is connected");
        pair.sim.run_for(5 * MS)?;
        let edges = take_edges(&mut pair.sim, pair.client_host);
        let expected =
            EventSet::READABLE | if client_is_first { hang_up } else { EventSet::READ_CLOSED };
        assert_eq!(edges, [expected]);
        if !client_is_first {
            shut_client(&pair).expect("it is connected");
            pair.sim.run_for(5 * MS)?;
            assert_eq!(take_edges(&mut pair.sim, pair.client_host), [hang_up]);
        }
    }
    Ok(())
}

type UnixHost = Host<Machine<SimUnixStream>>;

/// Two connected Unix sockets of a host; its machine has the first.
fn unix_pair(sim: &mut Sim) -> Result<(UnixHost, Held<SimUnixStream>, SimUnixStream), Failure> {
    let other: Held<SimUnixStream> = Rc::default();
    let kept = other.clone();
    let (host, client) = host_with_socket(sim, "host", move |scope| {
        let path = PathBuf::from("/run/service");
        let mut listener =
            SimUnixListener::bind(&path, &ListenOptions::new(), scope).expect("it binds");
        let client = SimUnixStream::connect(&path, scope).expect("somebody listens");
        *kept.borrow_mut() = Some(listener.accept().expect("it waits").0);
        client
    })?;
    let other = other.borrow_mut().take().expect("it was accepted");
    Ok((host, client, other))
}

/// There is nobody left to read, which a Unix socket knows without a write.
#[test]
fn a_hang_up_is_reported_once_the_peer_of_a_unix_socket_has_closed() -> Result<(), Failure> {
    let hang_up = EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
    for ends_first in [true, false] {
        let mut sim = Sim::new(1);
        let (host, _client, mut server) = unix_pair(&mut sim)?;
        sim.run_for(5 * MS)?;
        assert_eq!(take_edges(&mut sim, host), [EventSet::WRITABLE]);
        if ends_first {
            server.shutdown(Shutdown::Write).expect("it is connected");
            sim.run_for(5 * MS)?;
            let end = EventSet::READABLE | EventSet::READ_CLOSED;
            assert_eq!(take_edges(&mut sim, host), [end]);
        }
        drop(server);
        sim.run_for(5 * MS)?;
        let expected = if ends_first { hang_up } else { EventSet::READABLE | hang_up };
        assert_eq!(take_edges(&mut sim, host), [expected]);
    }
    Ok(())
}

/// As on Linux: `EPIPE` for each write, and `ECONNRESET` for the first read.
#[test]
fn a_write_to_a_closed_unix_socket_leaves_the_reset_to_the_reader() -> Result<(), Failure> {
    for has_ended in [false, true] {
        let mut sim = Sim::new(1);
        let (_, client, mut server) = unix_pair(&mut sim)?;
        let mut client = client.borrow_mut().take().expect("held");
        assert_eq!(client.write(b"unread").expect("there is room"), 6);
        sim.run_for(5 * MS)?;
        if has_ended {
            server.shutdown(Shutdown::Write).expect("it is connected");
            sim.run_for(5 * MS)?;
        }
        drop(server);
        sim.run_for(5 * MS)?;
        for _ in 0..2 {
            assert_eq!(error_kind(client.write(b"again")), ErrorKind::BrokenPipe);
        }
        assert_eq!(error_kind(client.read(&mut [0; 8])), ErrorKind::ConnectionReset);
        assert_eq!(client.read(&mut [0; 8]).expect("the end"), 0);
    }
    Ok(())
}

#[test]
fn bytes_before_a_close_arrive_and_later_ones_are_answered_with_a_reset() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.server.write_all(b"bye").expect("there is room");
    drop(pair.server);
    pair.sim.run_for(5 * MS)?;
    let mut buffer = [0; 8];
    assert_eq!(
        with_stream(&pair.client, |client| client.read(&mut buffer)).expect("it is there"),
        3
    );
    assert_eq!(with_stream(&pair.client, |client| client.read(&mut buffer)).expect("the end"), 0);
    with_stream(&pair.client, |client| client.write(b"too late")).expect("nobody knows yet");
    pair.sim.run_for(5 * MS)?;
    // As on Linux, the end stays what it was.
    assert_eq!(with_stream(&pair.client, |client| client.read(&mut buffer)).expect("the end"), 0);
    let error = with_stream(&pair.client, |client| client.take_error()).expect("asking works");
    assert_eq!(error.expect("there is one").kind(), ErrorKind::BrokenPipe);
    assert_eq!(
        error_kind(with_stream(&pair.client, |client| client.write(b"again"))),
        ErrorKind::BrokenPipe
    );
    Ok(())
}

#[test]
fn a_close_with_unread_bytes_resets_the_connection() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.client(|client| client.write(b"unread")).expect("there is room");
    pair.sim.run_for(5 * MS)?;
    drop(pair.server);
    take_edges(&mut pair.sim, pair.client_host);
    pair.sim.run_for(5 * MS)?;
    let seen = take_edges(&mut pair.sim, pair.client_host);
    assert!(seen.iter().any(|edge| edge.contains(EventSet::ERROR)), "{seen:?}");
    let error = with_stream(&pair.client, |client| client.take_error()).expect("asking works");
    assert_eq!(error.expect("there is one").kind(), ErrorKind::ConnectionReset);
    Ok(())
}

#[test]
fn a_partition_holds_bytes_back_until_it_is_healed() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.sim.partition(pair.client_host, pair.server_host);
    pair.client(|client| client.write(b"held")).expect("there is room");
    pair.sim.run_for(Duration::from_secs(10))?;
    assert_eq!(error_kind(pair.server.read(&mut [0; 8])), ErrorKind::WouldBlock);
    pair.sim.join(pair.client_host, pair.server_host);
    pair.sim.run_for(Duration::from_secs(1))?;
    assert_eq!(pair.server.read(&mut [0; 8]).expect("they are there"), 4);
    Ok(())
}

#[test]
fn window_updates_do_not_pass_a_partition() -> Result<(), Failure> {
    let mut pair = pair(Network::new().window(10))?;
    assert_eq!(pair.client(|client| client.write(&[1; 25])).expect("there is room"), 10);
    assert_eq!(error_kind(pair.client(|client| client.write(&[1]))), ErrorKind::WouldBlock);
    pair.sim.run_for(5 * MS)?;
    pair.sim.partition(pair.client_host, pair.server_host);
    assert_eq!(pair.server.read(&mut [0; 4]).expect("they are there"), 4);
    pair.sim.run_for(Duration::from_secs(10))?;
    assert_eq!(take_edges(&mut pair.sim, pair.client_host), []);
    pair.sim.join(pair.client_host, pair.server_host);
    pair.sim.run_for(Duration::from_secs(1))?;
    assert_eq!(take_edges(&mut pair.sim, pair.client_host), [EventSet::WRITABLE]);
    // And again, as before.
    assert_eq!(pair.client(|client| client.write(&[1; 25])).expect("there is room"), 4);
    assert_eq!(error_kind(pair.client(|client| client.write(&[1]))), ErrorKind::WouldBlock);
    assert_eq!(pair.server.read(&mut [0; 9]).expect("they are there"), 6);
    pair.sim.run_for(5 * MS)?;
    assert_eq!(take_edges(&mut pair.sim, pair.client_host), [EventSet::WRITABLE]);
    Ok(())
}

#[test]
fn chaos_does_not_end_a_partition_made_by_the_test() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    // Chaos cuts off the same two hosts repeatedly, each time for up to 5 s, before and after the
    // test does.
    pair.sim.set_faults(Faults::none().set(Fault::Partition, 1.0));
    pair.sim.run_for(Duration::from_secs(1))?;
    pair.sim.partition(pair.client_host, pair.server_host);
    pair.client(|client| client.write(b"held")).expect("there is room");
    for _ in 0..100 {
        pair.sim.run_for(Duration::from_secs(1))?;
        assert_eq!(error_kind(pair.server.read(&mut [0; 8])), ErrorKind::WouldBlock);
    }
    pair.sim.set_faults(Faults::none());
    pair.sim.run_for(Duration::from_secs(10))?;
    assert_eq!(error_kind(pair.server.read(&mut [0; 8])), ErrorKind::WouldBlock);
    pair.sim.join(pair.client_host, pair.server_host);
    pair.sim.run_for(Duration::from_secs(1))?;
    assert_eq!(pair.server.read(&mut [0; 8]).expect("they are there"), 4);
    Ok(())
}

#[test]
fn chaos_does_not_restart_a_host_crashed_by_the_test() -> Result<(), Failure> {
    for seed in 0..20 {
        let mut sim = Sim::new(seed);
        let host = sim.host("host", |boot| {
            Ok(boot.new_loop::<Machine<SimTcpListener>>()?.instantiate(Vec::new()))
        })?;
        sim.set_faults(Faults::none().set(Fault::Crash, 1.0));
        let is_down = |sim: &mut Sim| sim.stats(host).is_none();
        sim.run_until(Duration::from_secs(60), is_down)?;
        // Chaos would restart the host within 5 s. Depending on the seed, the host is up or down
        // when the test crashes it.
        if seed % 2 == 0 {
            sim.restart(host)?;
        }
        sim.set_faults(Faults::none());
        sim.crash(host, Crash::Process);
        sim.run_for(Duration::from_secs(60))?;
        assert!(is_down(&mut sim), "seed {seed}");
        sim.eventually(Duration::from_secs(1), |sim| sim.stats(host).is_some())?;
    }
    Ok(())
}

#[test]
fn a_process_crash_ends_connections_and_a_power_failure_is_silent() -> Result<(), Failure> {
    for (how, seen_at_once) in [(Crash::Process, true), (Crash::Power, false)] {
        let mut pair = pair(Network::new())?;
        // The test itself owns the server's end; only the client's end will belong to a machine.
        let (sim, client_host, server_host) = (&mut pair.sim, pair.client_host, pair.server_host);
        pair.client.borrow_mut().as_mut().expect("held").write_all(b"x").expect("there is room");
        sim.run_for(5 * MS)?;
        assert_eq!(pair.server.read(&mut [0; 8]).expect("it is there"), 1);
        // The test shares the client's socket: give it to the host alone.
        let own: Held<SimTcpStream> = Rc::new(RefCell::new(pair.client.borrow_mut().take()));
        sim.with(client_host, |instance| {
            instance.add_machine_with(|_| Response::ok(Holder::new(own))).expect("there is room")
        });
        sim.crash(client_host, how);
        sim.run_for(5 * MS)?;
        let end = pair.server.read(&mut [0; 8]);
        assert_eq!(matches!(end, Ok(0)), seen_at_once, "{how:?}: {end:?}");
        // After the restart, data for an unknown connection is answered with a reset.
        pair.server.write_all(b"are you there?").expect("nobody knows yet");
        sim.restart(client_host)?;
        sim.run_for(Duration::from_secs(1))?;
        let error = pair.server.take_error().expect("asking works").expect("there is one");
        let expected =
            if seen_at_once { ErrorKind::BrokenPipe } else { ErrorKind::ConnectionReset };
        assert_eq!(error.kind(), expected);
        assert_eq!(sim.open_sockets(server_host), 2, "its listener, and the test's own end");
        drop(pair.listener);
    }
    Ok(())
}

#[test]
fn time_moves_only_when_nothing_can_run() -> Result<(), Failure> {
    let mut pair = pair(Network::new().latency(MS..MS))?;
    assert_eq!(pair.sim.now(), Time::ZERO + 10 * MS);
    let steps = pair.sim.step();
    pair.sim.run_for(Duration::from_secs(3_600))?;
    assert_eq!(pair.sim.now(), Time::ZERO + 10 * MS + Duration::from_secs(3_600));
    assert_eq!(pair.sim.step(), steps, "an hour in which nothing happens costs nothing");
    Ok(())
}

#[test]
fn a_file_is_sent_as_far_as_there_is_room_in_one_call() -> Result<(), Failure> {
    let mut pair = pair(Network::new().window(100_000))?;
    let file = std::fs::File::open("/dev/zero").expect("there is one");
    assert_eq!(
        pair.client(|client| client.send_file(&file, 0, 60_000)).expect("there is room"),
        60_000
    );
    assert_eq!(
        pair.client(|client| client.send_file(&file, 60_000, 60_000)).expect("some is left"),
        40_000
    );
    assert_eq!(
        error_kind(pair.client(|client| client.send_file(&file, 100_000, 20_000))),
        ErrorKind::WouldBlock
    );
    let empty = std::fs::File::open("/dev/null").expect("there is one");
    pair.sim.run_for(10 * MS)?;
    assert_eq!(pair.server.read(&mut vec![1; 200_000]).expect("all is there"), 100_000);
    assert_eq!(pair.client(|client| client.send_file(&empty, 0, 1)).expect("it is at its end"), 0);
    Ok(())
}

/// After a short read no `WouldBlock` is needed: the next edge comes without one, and EOF is
/// reported whenever it comes.
#[test]
fn a_socket_whose_short_reads_drain_gets_an_edge_after_one() -> Result<(), Failure> {
    let mut pair = pair(Network::new().draining(1.0))?;
    pair.sim.set_faults(Faults::none().set(Fault::UnarmedEdgeLost, 1.0).set(Fault::ShortRead, 1.0));
    assert!(pair.server.short_read_drains() && pair.client(|client| client.short_read_drains()));
    for _ in 0..3 {
        pair.server.write_all(b"some").expect("there is room");
        pair.sim.run_for(5 * MS)?;
        assert_eq!(take_edges(&mut pair.sim, pair.client_host), [EventSet::READABLE]);
        assert_eq!(
            pair.client(|client| client.read(&mut [0; 8])).expect("it is there"),
            4,
            "all there is"
        );
    }
    // Two edges are due, and no read follows the first: EOF is still reported.
    pair.server.write_all(b"last").expect("there is room");
    pair.sim.run_for(5 * MS)?;
    pair.server.shutdown(Shutdown::Write).expect("it is connected");
    pair.sim.run_for(5 * MS)?;
    let edges = take_edges(&mut pair.sim, pair.client_host);
    assert_eq!(edges, [EventSet::READABLE, EventSet::READABLE | EventSet::READ_CLOSED]);
    assert_eq!(pair.sim.fault_count(Fault::ShortRead), 0);
    Ok(())
}

#[test]
fn a_socket_whose_short_reads_do_not_drain_gets_no_edge_after_one() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.sim.set_faults(Faults::none().set(Fault::UnarmedEdgeLost, 1.0));
    assert!(!pair.client(|client| client.short_read_drains()));
    for expected in [&[EventSet::READABLE][..], &[]] {
        pair.server.write_all(b"some").expect("there is room");
        pair.sim.run_for(5 * MS)?;
        assert_eq!(take_edges(&mut pair.sim, pair.client_host), expected);
        assert_eq!(pair.client(|client| client.read(&mut [0; 8])).expect("it is there"), 4);
    }
    Ok(())
}

#[test]
fn a_spurious_edge_may_carry_any_event() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.sim.set_faults(Faults::none().set(Fault::SpuriousEdge, 1.0));
    pair.sim.run_for(Duration::from_secs(60))?;
    let edges = take_edges(&mut pair.sim, pair.client_host);
    let edges = edges.into_iter().fold(EventSet::EMPTY, |all, edge| all | edge);
    for event in [
        EventSet::READABLE,
        EventSet::WRITABLE,
        EventSet::READ_CLOSED,
        EventSet::WRITE_CLOSED,
        EventSet::ERROR,
        EventSet::URGENT,
    ] {
        assert!(edges.contains(event), "no edge said {event:?}");
    }
    Ok(())
}
