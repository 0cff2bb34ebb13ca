//! How connections are established, and how that fails.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use rotor_core::net::{DatagramSocket, ListenOptions, Listener, StreamSocket};
use rotor_core::{EventSet, Response};
use rotor_sim::net::{
    SimTcpListener, SimTcpStream, SimUnixDatagram, SimUnixListener, SimUnixStream,
};
use rotor_sim::{Crash, Failure, Fault, Faults, Host, Network, Sim};

use crate::{
    EarlyScope, Held, MS, Machine, driver::Holder, error_kind, host_with_socket, take_edges,
    with_stream,
};

#[test]
fn a_closed_port_refuses_and_a_missing_host_times_out() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    for (target, after, kind) in [
        ("10.0.0.1:9", Duration::from_millis(5), ErrorKind::ConnectionRefused),
        ("10.9.9.9:9", Duration::from_secs(128), ErrorKind::TimedOut),
    ] {
        let target: SocketAddr = target.parse().expect("an address");
        let (host, socket) = host_with_socket(&mut sim, "host", move |scope| {
            SimTcpStream::connect(&target, scope).expect("it begins")
        })?;
        sim.run_for(after)?;
        assert_eq!(take_edges(&mut sim, host).len(), 1);
        let error = socket.borrow().as_ref().expect("held").take_error().expect("asking works");
        assert_eq!(error.expect("it failed").kind(), kind);
    }
    Ok(())
}

#[test]
fn an_address_of_ipv6_is_unreachable_at_once_unless_it_is_mapped() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    let (_, listener) = host_with_socket(&mut sim, "server", move |scope| {
        SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
    })?;
    let (host, _client) = host_with_socket(&mut sim, "client", |scope| {
        let six = "[2001:db8::1]:80".parse().expect("an address");
        let error = SimTcpStream::connect(&six, scope).expect_err("there is no route");
        assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
        let mapped = "[::ffff:10.0.0.1]:80".parse().expect("an address");
        SimTcpStream::connect(&mapped, scope).expect("it begins")
    })?;
    assert_eq!(sim.open_sockets(host), 1);
    sim.run_for(5 * MS)?;
    listener.borrow_mut().as_mut().expect("held").accept().expect("a connection");
    Ok(())
}

#[test]
fn a_path_is_found_but_refuses_after_the_end_of_its_socket() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let (host, _socket) = host_with_socket(&mut sim, "host", |scope| {
        let [service, datagrams] = ["/run/service", "/run/datagrams"].map(PathBuf::from);
        let mut sender = SimUnixDatagram::bind(&"/run/sender".into(), scope).expect("it is free");
        let errors = |sender: &mut SimUnixDatagram| {
            let stream = error_kind(SimUnixStream::connect(&service, scope));
            let sent = error_kind(sender.send_to(b"?", &datagrams));
            [stream, sent, error_kind(sender.connect(&datagrams))]
        };
        for expected in [ErrorKind::NotFound, ErrorKind::ConnectionRefused] {
            assert_eq!(errors(&mut sender), [expected; 3]);
            let options = ListenOptions::new();
            SimUnixListener::bind(&service, &options, scope).expect("nobody has it");
            SimUnixDatagram::bind(&datagrams, scope).expect("nobody has it");
        }
        sender
    })?;
    assert_eq!(sim.open_sockets(host), 1);
    Ok(())
}

#[test]
fn a_full_backlog_keeps_connections_out_until_one_is_accepted() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    let (_, listener) = host_with_socket(&mut sim, "server", move |scope| {
        SimTcpListener::bind(&address, &ListenOptions::new().backlog(1), scope).expect("it binds")
    })?;
    let connect =
        move |scope: &EarlyScope<'_>| SimTcpStream::connect(&address, scope).expect("it begins");
    let clients =
        [host_with_socket(&mut sim, "a", connect)?.1, host_with_socket(&mut sim, "b", connect)?.1];
    let connected = |clients: &[Held<SimTcpStream>; 2]| {
        clients
            .iter()
            .filter(|client| client.borrow().as_ref().expect("held").is_connected())
            .count()
    };
    sim.run_for(500 * MS)?;
    assert_eq!(connected(&clients), 1);
    let _accepted = listener.borrow_mut().as_mut().expect("held").accept().expect("the first");
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(connected(&clients), 2);
    Ok(())
}

/// Linux takes a descriptor before it checks the queue (accept(2)), and still reports the next
/// connection.
#[test]
fn an_accept_without_descriptors_still_arms_the_next_edge() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    let (server, listener) = host_with_socket(&mut sim, "server", move |scope| {
        SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
    })?;
    let connect =
        move |scope: &EarlyScope<'_>| SimTcpStream::connect(&address, scope).expect("it begins");
    let accept = || listener.borrow_mut().as_mut().expect("held").accept().map(|_| ());
    let error = || accept().expect_err("there is no descriptor").raw_os_error();
    // The backend omits edges that no operation has armed.
    for name in ["a", "b"] {
        sim.set_faults(
            Faults::none().set(Fault::UnarmedEdgeLost, 1.0).set(Fault::AcceptExhausted, 1.0),
        );
        assert_eq!(error(), Some(24));
        let _client = host_with_socket(&mut sim, name, connect)?;
        sim.run_for(10 * MS)?;
        assert_eq!(take_edges(&mut sim, server), [EventSet::READABLE]);
        assert_eq!(error(), Some(24));
        sim.set_faults(Faults::none());
        accept().expect("it waited");
    }
    assert_eq!(error_kind(accept()), ErrorKind::WouldBlock);
    Ok(())
}

#[test]
fn an_abandoned_attempt_resets_the_connection_it_left_at_the_server() -> Result<(), Failure> {
    for way in [MS..MS, 300 * MS..300 * MS] {
        let mut sim = Sim::new(1);
        sim.set_network(Network::new().latency(way.clone()));
        let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
        let (_, listener) = host_with_socket(&mut sim, "server", move |scope| {
            SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
        })?;
        let (_, client) = host_with_socket(&mut sim, "client", move |scope| {
            SimTcpStream::connect(&address, scope).expect("it begins")
        })?;
        sim.run_for(way.start * 3 / 2)?;
        assert!(!client.borrow().as_ref().expect("held").is_connected());
        drop(client.borrow_mut().take());
        let (mut server, _) =
            listener.borrow_mut().as_mut().expect("held").accept().expect("it is queued");
        assert_eq!(error_kind(server.read(&mut [0; 8])), ErrorKind::WouldBlock);
        sim.run_for(way.start * 2)?;
        assert_eq!(error_kind(server.read(&mut [0; 8])), ErrorKind::ConnectionReset);
    }
    Ok(())
}

type ListenerHost = Host<Machine<SimTcpListener>>;
type ClientHost = Host<Machine<SimTcpStream>>;

/// A listener, and a client that is connecting to it; the latency is the same in both directions.
fn connecting(
    sim: &mut Sim,
    way: Duration,
) -> Result<(ListenerHost, Held<SimTcpListener>, ClientHost, Held<SimTcpStream>), Failure> {
    sim.set_network(Network::new().latency(way..way));
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    let (server, listener) = host_with_socket(sim, "server", move |scope| {
        SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
    })?;
    let (client_host, client) = host_with_socket(sim, "client", move |scope| {
        SimTcpStream::connect(&address, scope).expect("it begins")
    })?;
    Ok((server, listener, client_host, client))
}

#[test]
fn a_power_failure_goes_unnoticed_even_by_unaccepted_connections() -> Result<(), Failure> {
    for (how, is_told) in [(Crash::Process, true), (Crash::Power, false)] {
        let mut sim = Sim::new(1);
        let (server, listener, _, client) = connecting(&mut sim, MS)?;
        sim.run_for(10 * MS)?;
        assert!(with_stream(&client, |client| client.is_connected()));
        // Only the host owns the listener, so the crash drops it.
        let own = Rc::new(RefCell::new(listener.borrow_mut().take()));
        sim.with(server, |instance| {
            instance.add_machine_with(|_| Response::ok(Holder::new(own))).expect("there is room")
        });
        sim.crash(server, how);
        assert_eq!(
            error_kind(with_stream(&client, |client| client.read(&mut [0; 8]))),
            ErrorKind::WouldBlock
        );
        sim.run_for(5 * MS)?;
        let seen = error_kind(with_stream(&client, |client| client.read(&mut [0; 8])));
        let expected = if is_told { ErrorKind::ConnectionReset } else { ErrorKind::WouldBlock };
        assert_eq!(seen, expected, "{how:?}");
        if is_told {
            continue;
        }
        // Nor after the restart, until the waiting client sends something.
        sim.restart(server)?;
        sim.run_for(Duration::from_secs(1))?;
        assert_eq!(
            error_kind(with_stream(&client, |client| client.read(&mut [0; 8]))),
            ErrorKind::WouldBlock
        );
        with_stream(&client, |client| client.write_all(b"are you there?"))
            .expect("nobody knows yet");
        sim.run_for(5 * MS)?;
        let seen = error_kind(with_stream(&client, |client| client.read(&mut [0; 8])));
        assert_eq!(seen, ErrorKind::ConnectionReset);
    }
    Ok(())
}

#[test]
fn a_closed_listener_is_noticed_when_the_partition_ends() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let (server, listener, client_host, client) = connecting(&mut sim, MS)?;
    sim.run_for(10 * MS)?;
    sim.partition(server, client_host);
    drop(listener.borrow_mut().take());
    sim.run_for(Duration::from_secs(10))?;
    assert_eq!(
        error_kind(with_stream(&client, |client| client.read(&mut [0; 8]))),
        ErrorKind::WouldBlock
    );
    sim.join(server, client_host);
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(
        error_kind(with_stream(&client, |client| client.read(&mut [0; 8]))),
        ErrorKind::ConnectionReset
    );
    assert_eq!(sim.open_sockets(server), 0);
    Ok(())
}

#[test]
fn no_data_arrives_before_the_connection_is_established() -> Result<(), Failure> {
    for seed in 0..20 {
        let mut sim = Sim::new(seed);
        let (_, listener, client_host, client) = connecting(&mut sim, MS)?;
        // The server's data may overtake its handshake reply.
        sim.set_network(Network::new().latency(MS..100 * MS));
        let (mut server, mut is_connected, mut events_seen) = (None, false, EventSet::EMPTY);
        for _ in 0..500 {
            sim.run_for(MS)?;
            if let Ok((mut socket, _)) = listener.borrow_mut().as_mut().expect("held").accept() {
                socket.write_all(b"hello").expect("there is room");
                server = Some(socket);
            }
            is_connected |= with_stream(&client, |client| client.is_connected());
            for events in take_edges(&mut sim, client_host) {
                events_seen |= events;
            }
            let read = with_stream(&client, |client| client.read(&mut [0; 8]));
            assert!(
                is_connected || read.is_err() && !events_seen.is_readable(),
                "seed {seed}: {events_seen:?}"
            );
            if read.is_ok() {
                break;
            }
        }
        assert!(
            server.is_some() && is_connected && events_seen.is_readable(),
            "seed {seed}: {events_seen:?}"
        );
    }
    Ok(())
}

#[test]
fn an_attempt_whose_answer_is_lost_times_out() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let (server, listener, client_host, client) = connecting(&mut sim, 100 * MS)?;
    // The request has arrived, and the reply is in flight.
    sim.run_for(150 * MS)?;
    sim.partition(server, client_host);
    sim.run_for(Duration::from_secs(126))?;
    assert_eq!(take_edges(&mut sim, client_host), []);
    sim.run_for(Duration::from_secs(2))?;
    assert_eq!(take_edges(&mut sim, client_host).len(), 1);
    let error = with_stream(&client, |client| client.take_error()).expect("asking works");
    assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::TimedOut));
    // The server considered the connection established; it learns otherwise once it can.
    let (mut socket, _) =
        listener.borrow_mut().as_mut().expect("held").accept().expect("it is queued");
    assert_eq!(error_kind(socket.read(&mut [0; 8])), ErrorKind::WouldBlock);
    sim.join(server, client_host);
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(error_kind(socket.read(&mut [0; 8])), ErrorKind::ConnectionReset);
    Ok(())
}
