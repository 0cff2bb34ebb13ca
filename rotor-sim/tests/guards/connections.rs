//! Checks of connections: why an attempt fails, what a drain leaves behind, who waits for whom.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{EventSet, Infallible, Interest, Machine, Response, Scope, Time};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::property::{
    ATTEMPT_FAILS_FOR_A_REASON, NOTHING_ARRIVED_IS_LOST, WAITING_IS_BOUNDED,
};
use rotor_sim::{Failure, Fault, Faults, Host, Network, Script, ScriptClient, Sim, attempt_failed};

use crate::failure;

/// Reports after a second that its connection attempt has failed.
struct FailedAttempt(io::ErrorKind);

impl Machine for FailedAttempt {
    type Context = ();
    type Seed = Infallible;
    fn timeout(self, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        attempt_failed(&io::Error::other(io::Error::from(self.0)), scope);
        Response::done()
    }
}

#[test]
fn an_unexplained_connect_failure_is_detected() -> Result<(), Failure> {
    for (kind, is_seen) in
        [(io::ErrorKind::ConnectionRefused, false), (io::ErrorKind::NotConnected, true)]
    {
        let mut sim = Sim::new(1);
        let host =
            sim.host("client", |boot| Ok(boot.new_loop::<FailedAttempt>()?.instantiate(())))?;
        sim.with(host, |instance| {
            instance.add_machine_with(|scope| {
                Response::ok(FailedAttempt(kind)).deadline(scope.now() + Duration::from_secs(1))
            })
        });
        let failed = sim.run_for(Duration::from_secs(2)).err();
        assert_eq!(failed.is_some(), is_seen, "{kind:?}");
        assert!(failed.is_none_or(|failure| failure.property() == ATTEMPT_FAILS_FOR_A_REASON));
    }
    Ok(())
}

/// Listens, and ends when it is notified of a drain, even if received data is unread.
struct CarelessListener {
    listener: SimTcpListener,
    accepts: bool,
    reads: bool,
    accepted: Option<SimTcpStream>,
}

impl Machine for CarelessListener {
    type Context = ();
    type Seed = Infallible;
    fn ready(mut self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        if self.accepts {
            self.accepted = self.listener.accept().ok().map(|(socket, _)| socket);
        }
        Response::keep(self)
    }
    fn draining(mut self, _: Time, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        if self.reads {
            let _ = self.accepted.as_mut().map(|socket| io::Read::read(socket, &mut [0; 100]));
        }
        Response::done()
    }
}

#[test]
fn a_drain_that_discards_received_data_is_detected() -> Result<(), Failure> {
    let cases = [
        (false, false, Some("1 connections were never accepted")),
        (true, false, Some("6 bytes of connection 1 were never read")),
        (true, true, None),
    ];
    for (accepts, reads, expected) in cases {
        let mut sim = Sim::new(1);
        let server = sim.host("server", move |boot| {
            let mut creator = boot.new_loop()?;
            let address = std::net::SocketAddr::new(boot.address(), 80);
            creator.add_machine_with(|scope| {
                Response::attempt(|| {
                    let mut listener =
                        SimTcpListener::bind(&address, &ListenOptions::new(), scope)?;
                    scope.register(&mut listener, Interest::Readable)?;
                    Ok(Response::ok(CarelessListener { listener, accepts, reads, accepted: None }))
                })
            })?;
            Ok(creator.instantiate(()))
        })?;
        let clients = sim.host("clients", |boot| Ok(boot.new_loop()?.instantiate(())))?;
        let target = std::net::SocketAddr::new(sim.address(server), 80);
        let (client, _) =
            Script::new().send(b"an ask").expect_end().client::<SimTcpStream, ()>(target);
        sim.with(clients, |instance| instance.add_machine_with(|scope| client.start(scope)));
        sim.run_for(Duration::from_secs(1))?;
        assert_eq!(sim.delivered(clients, server), 6);
        let failed = sim.drain_losing_nothing(server, Duration::from_secs(5)).err();
        assert_eq!(failed.as_ref().map(Failure::message), expected);
        assert!(failed.is_none_or(|failure| failure.property() == NOTHING_ARRIVED_IS_LOST));
    }
    Ok(())
}

/// Accepts from only some of its listeners.
struct PartialAcceptor {
    favoured: Vec<SimTcpListener>,
    _other: Vec<SimTcpListener>,
}

impl Machine for PartialAcceptor {
    type Context = ();
    type Seed = Infallible;
    fn ready(mut self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        for listener in &mut self.favoured {
            while listener.accept().is_ok() {}
        }
        Response::keep(self)
    }
}

/// A host with listeners at ports 80 and 81, in one machine or in one machine each. A connection
/// may be passed over up to this many times.
fn partial_server(
    sim: &mut Sim,
    in_one: bool,
    passed_over_max: u64,
) -> Result<Host<PartialAcceptor>, Failure> {
    let server = sim.host("server", move |boot| {
        let mut creator = boot.new_loop()?;
        let ports: &[&[u16]] = if in_one { &[&[80, 81]] } else { &[&[80], &[81]] };
        for ports in ports {
            let mut machine = PartialAcceptor { favoured: Vec::new(), _other: Vec::new() };
            creator.add_machine_with(|scope| {
                Response::attempt(|| {
                    for &port in *ports {
                        let at = SocketAddr::new(boot.address(), port);
                        let mut made = SimTcpListener::bind(&at, &ListenOptions::new(), scope)?;
                        scope.register(&mut made, Interest::Readable)?;
                        let place =
                            if port == 80 { &mut machine.favoured } else { &mut machine._other };
                        place.push(made);
                    }
                    Ok(Response::ok(machine))
                })
            })?;
        }
        Ok(creator.instantiate(()))
    })?;
    sim.bound_waiting(server, passed_over_max);
    Ok(server)
}

type Caller = ScriptClient<SimTcpStream, ()>;

/// A client connects to a port of the server, and then `time` passes.
fn connect_once(
    sim: &mut Sim,
    server: Host<PartialAcceptor>,
    clients: Host<Caller>,
    port: u16,
    time: Duration,
) -> Result<(), Failure> {
    let target = SocketAddr::new(sim.address(server), port);
    let (client, _) = Script::new().expect_end().client::<SimTcpStream, ()>(target);
    sim.with(clients, |instance| instance.add_machine_with(|scope| client.start(scope)));
    sim.run_for(time)
}

#[test]
fn a_connection_passed_over_too_often_is_detected() -> Result<(), Failure> {
    for (most, is_too_few) in [(5, false), (4, true)] {
        let mut sim = Sim::new(1);
        let server = partial_server(&mut sim, true, most)?;
        let clients = sim.host("clients", |boot| Ok(boot.new_loop()?.instantiate(())))?;
        let a_while = Duration::from_millis(10);
        connect_once(&mut sim, server, clients, 81, a_while)?;
        let result = (0..5).try_for_each(|_| connect_once(&mut sim, server, clients, 80, a_while));
        assert_eq!(result.is_err(), is_too_few);
        assert!(result.is_ok() || failure(result).property() == WAITING_IS_BOUNDED);
        assert_eq!(sim.most_passed_over(server), 5);
    }
    Ok(())
}

#[test]
fn a_spurious_edge_starts_the_wait_of_a_connection() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let way = Duration::from_micros(100);
    sim.set_network(Network::new().latency(way..way));
    let server = partial_server(&mut sim, false, 100)?;
    let clients = sim.host("clients", |boot| Ok(boot.new_loop()?.instantiate(())))?;
    // The edge of this connection is late, by up to 20 ms; each turn gets a spurious edge for one
    // of the two listeners.
    sim.set_faults(Faults::none().set(Fault::LateEdge, 1.0));
    connect_once(&mut sim, server, clients, 81, 2 * way)?;
    sim.set_faults(Faults::none().set(Fault::SpuriousEdge, 1.0));
    (0..8).try_for_each(|_| connect_once(&mut sim, server, clients, 80, 2 * way))?;
    assert!(sim.most_passed_over(server) > 0);
    Ok(())
}

#[test]
fn the_wait_of_a_connection_starts_when_its_edge_is_delivered() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let way = Duration::from_micros(100);
    sim.set_network(Network::new().latency(way..way));
    let server = partial_server(&mut sim, false, 4)?;
    let clients = sim.host("clients", |boot| Ok(boot.new_loop()?.instantiate(())))?;
    // The edge of this connection is late, by up to 20 ms; the edges of the others overtake it.
    sim.set_faults(Faults::none().set(Fault::LateEdge, 1.0));
    connect_once(&mut sim, server, clients, 81, 2 * way)?;
    sim.set_faults(Faults::none());
    (0..5).try_for_each(|_| connect_once(&mut sim, server, clients, 80, 2 * way))?;
    assert_eq!(sim.most_passed_over(server), 0);
    sim.run_for(Duration::from_millis(20))?;
    let result = (0..5).try_for_each(|_| connect_once(&mut sim, server, clients, 80, 2 * way));
    assert_eq!(failure(result).property(), WAITING_IS_BOUNDED);
    Ok(())
}
