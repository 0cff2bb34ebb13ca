//! How connections are made, and how not.

use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::EventSet;
use rotor_core::net::{ListenOptions, Listener, StreamSocket};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Failure, Fault, Faults, Network, Sim};

use crate::{EarlyScope, Held, MS, edges, hold, kind};

#[test]
fn nobody_listening_refuses_and_nobody_at_all_times_out() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    for (target, after, kind) in [
        ("10.0.0.1:9", Duration::from_millis(5), ErrorKind::ConnectionRefused),
        ("10.9.9.9:9", Duration::from_secs(128), ErrorKind::TimedOut),
    ] {
        let target: SocketAddr = target.parse().expect("an address");
        let (host, socket) = hold(&mut sim, "host", move |scope| {
            SimTcpStream::connect(&target, scope).expect("it begins")
        })?;
        sim.run_for(after)?;
        assert_eq!(edges(&mut sim, host).len(), 1);
        let error = socket.borrow().as_ref().expect("held").take_error().expect("asking works");
        assert_eq!(error.expect("it failed").kind(), kind);
    }
    Ok(())
}

#[test]
fn a_full_backlog_keeps_connections_out_until_one_is_accepted() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    let (_, listener) = hold(&mut sim, "server", move |scope| {
        SimTcpListener::bind(&address, &ListenOptions::new().backlog(1), scope).expect("it binds")
    })?;
    let connect =
        move |scope: &EarlyScope<'_>| SimTcpStream::connect(&address, scope).expect("it begins");
    let clients = [hold(&mut sim, "a", connect)?.1, hold(&mut sim, "b", connect)?.1];
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

/// Linux takes a descriptor before it looks at the queue (accept(2)), and reports whoever comes
/// next.
#[test]
fn without_descriptors_an_empty_queue_is_no_different_and_the_next_connection_is_told_of()
-> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    let (server, listener) = hold(&mut sim, "server", move |scope| {
        SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
    })?;
    let connect =
        move |scope: &EarlyScope<'_>| SimTcpStream::connect(&address, scope).expect("it begins");
    let accept = || listener.borrow_mut().as_mut().expect("held").accept().map(|_| ());
    let error = || accept().expect_err("there is no descriptor").raw_os_error();
    // Edges that nothing has made due are left out.
    for name in ["a", "b"] {
        sim.set_faults(
            Faults::none().set(Fault::UnarmedEdgeLost, 1.0).set(Fault::AcceptExhausted, 1.0),
        );
        assert_eq!(error(), Some(24));
        let _client = hold(&mut sim, name, connect)?;
        sim.run_for(10 * MS)?;
        assert_eq!(edges(&mut sim, server), [EventSet::READABLE]);
        assert_eq!(error(), Some(24));
        sim.set_faults(Faults::none());
        accept().expect("it waited");
    }
    assert_eq!(kind(accept()), ErrorKind::WouldBlock);
    Ok(())
}

#[test]
fn who_gives_up_an_attempt_that_has_reached_the_server_resets_what_it_left_there()
-> Result<(), Failure> {
    for way in [MS..MS, 300 * MS..300 * MS] {
        let mut sim = Sim::new(1);
        sim.set_network(Network::new().latency(way.clone()));
        let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
        let (_, listener) = hold(&mut sim, "server", move |scope| {
            SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
        })?;
        let (_, client) = hold(&mut sim, "client", move |scope| {
            SimTcpStream::connect(&address, scope).expect("it begins")
        })?;
        sim.run_for(way.start * 3 / 2)?;
        assert!(!client.borrow().as_ref().expect("held").is_connected());
        drop(client.borrow_mut().take());
        let (mut server, _) =
            listener.borrow_mut().as_mut().expect("held").accept().expect("it is queued");
        assert_eq!(kind(server.read(&mut [0; 8])), ErrorKind::WouldBlock);
        sim.run_for(way.start * 2)?;
        assert_eq!(kind(server.read(&mut [0; 8])), ErrorKind::ConnectionReset);
    }
    Ok(())
}
