//! Simulated sockets one by one, without faults or with one: what the kernel's would do, and when.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use rotor_core::net::{
    DatagramSocket, ListenOptions, Listener, StreamSocket, TcpListener, TcpStream,
};
use rotor_core::{Config, EventSet, Interest, Loop, LoopInstance, Response, Scope, Time};
use rotor_sim::net::{
    SimTcpListener, SimTcpStream, SimUdpSocket, SimUnixDatagram, SimUnixListener, SimUnixStream,
};
use rotor_sim::{Crash, Failure, Fault, Faults, Host, Network, Sim, SimBackend};

#[path = "machines/driver.rs"]
mod driver;

use driver::Holder;

type Held<T> = Rc<RefCell<Option<T>>>;
type Machine<T> = Holder<Held<T>>;
type EarlyScope<'a> = Scope<'a, Vec<EventSet>>;

/// A host with one machine, which registers what `make` makes; the test reaches that through the
/// second value.
fn hold<T: rotor_core::Source + 'static>(
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

fn edges<T: 'static>(sim: &mut Sim, host: Host<Machine<T>>) -> Vec<EventSet> {
    sim.with(host, |instance| std::mem::take(instance.context_mut())).unwrap_or_default()
}

/// Two connected streams on two hosts, and the time that passes until an edge of one has come to
/// the other.
struct Pair {
    sim: Sim,
    client_host: Host<Machine<SimTcpStream>>,
    server_host: Host<Machine<SimTcpListener>>,
    client: Held<SimTcpStream>,
    server: SimTcpStream,
    listener: Held<SimTcpListener>,
}

const MS: Duration = Duration::from_millis(1);

fn pair(network: Network) -> Result<Pair, Failure> {
    let mut sim = Sim::new(1);
    sim.set_network(network);
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    let (server_host, listener) = hold(&mut sim, "server", move |scope| {
        SimTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it binds")
    })?;
    let (client_host, client) = hold(&mut sim, "client", move |scope| {
        SimTcpStream::connect(&address, scope).expect("it begins")
    })?;
    assert!(!client.borrow().as_ref().expect("held").is_connected());
    sim.run_for(10 * MS)?;
    let (server, peer) =
        listener.borrow_mut().as_mut().expect("held").accept().expect("a connection");
    assert_eq!(server.peer_address(), peer);
    assert_eq!(edges(&mut sim, server_host), [EventSet::READABLE]);
    assert_eq!(edges(&mut sim, client_host), [EventSet::WRITABLE]);
    Ok(Pair { sim, client_host, server_host, client, server, listener })
}

impl Pair {
    fn client<R>(&self, f: impl FnOnce(&mut SimTcpStream) -> R) -> R {
        of(&self.client, f)
    }
}

fn of<R>(held: &Held<SimTcpStream>, f: impl FnOnce(&mut SimTcpStream) -> R) -> R {
    f(held.borrow_mut().as_mut().expect("held"))
}

fn kind<T>(result: std::io::Result<T>) -> ErrorKind {
    result.map(drop).expect_err("it fails").kind()
}

#[test]
fn bytes_arrive_after_the_latency_and_an_edge_with_them() -> Result<(), Failure> {
    let mut pair = pair(Network::new().latency(MS..MS))?;
    let mut buffer = [0; 8];
    assert_eq!(kind(pair.client(|client| client.read(&mut buffer))), ErrorKind::WouldBlock);
    assert_eq!(pair.server.write(b"hello").expect("there is room"), 5);
    pair.sim.run_for(MS / 2)?;
    assert_eq!(kind(pair.client(|client| client.read(&mut buffer))), ErrorKind::WouldBlock);
    pair.sim.run_for(MS)?;
    assert_eq!(edges(&mut pair.sim, pair.client_host), [EventSet::READABLE]);
    assert_eq!(pair.client(|client| client.read(&mut buffer)).expect("it is there"), 5);
    assert_eq!(&buffer[..5], b"hello");
    Ok(())
}

#[test]
fn a_window_holds_the_writer_up_until_the_reader_has_read() -> Result<(), Failure> {
    let mut pair = pair(Network::new().window(10))?;
    assert_eq!(pair.client(|client| client.write(&[1; 25])).expect("there is room"), 10);
    assert_eq!(kind(pair.client(|client| client.write(&[1]))), ErrorKind::WouldBlock);
    pair.sim.run_for(5 * MS)?;
    assert_eq!(edges(&mut pair.sim, pair.client_host), []);
    assert_eq!(pair.server.read(&mut [0; 4]).expect("they are there"), 4);
    pair.sim.run_for(5 * MS)?;
    assert_eq!(edges(&mut pair.sim, pair.client_host), [EventSet::WRITABLE]);
    assert_eq!(pair.client(|client| client.write(&[1; 25])).expect("there is room"), 4);
    Ok(())
}

#[test]
fn a_narrow_wire_spreads_bytes_over_time() -> Result<(), Failure> {
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
fn half_a_close_lets_the_other_half_go_on() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.client(|client| {
        client.write_all(b"last words").expect("there is room");
        client.shutdown(Shutdown::Write).expect("it is connected");
        assert_eq!(kind(client.write(b"more")), ErrorKind::BrokenPipe);
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

#[test]
fn what_was_written_before_a_close_arrives_and_what_comes_after_is_answered_with_a_reset()
-> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.server.write_all(b"bye").expect("there is room");
    drop(pair.server);
    pair.sim.run_for(5 * MS)?;
    let mut buffer = [0; 8];
    assert_eq!(of(&pair.client, |client| client.read(&mut buffer)).expect("it is there"), 3);
    assert_eq!(of(&pair.client, |client| client.read(&mut buffer)).expect("the end"), 0);
    of(&pair.client, |client| client.write(b"too late")).expect("nobody knows yet");
    pair.sim.run_for(5 * MS)?;
    assert_eq!(
        kind(of(&pair.client, |client| client.read(&mut buffer))),
        ErrorKind::ConnectionReset
    );
    assert_eq!(kind(of(&pair.client, |client| client.write(b"again"))), ErrorKind::BrokenPipe);
    Ok(())
}

#[test]
fn a_close_with_unread_bytes_resets() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.client(|client| client.write(b"unread")).expect("there is room");
    pair.sim.run_for(5 * MS)?;
    drop(pair.server);
    edges(&mut pair.sim, pair.client_host);
    pair.sim.run_for(5 * MS)?;
    let seen = edges(&mut pair.sim, pair.client_host);
    assert!(seen.iter().any(|edge| edge.contains(EventSet::ERROR)), "{seen:?}");
    let error = of(&pair.client, |client| client.take_error()).expect("asking works");
    assert_eq!(error.expect("there is one").kind(), ErrorKind::ConnectionReset);
    Ok(())
}

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

#[test]
fn a_partition_holds_bytes_back_and_a_heal_lets_them_go() -> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.sim.partition(pair.client_host, pair.server_host);
    pair.client(|client| client.write(b"held")).expect("there is room");
    pair.sim.run_for(Duration::from_secs(10))?;
    assert_eq!(kind(pair.server.read(&mut [0; 8])), ErrorKind::WouldBlock);
    pair.sim.join(pair.client_host, pair.server_host);
    pair.sim.run_for(Duration::from_secs(1))?;
    assert_eq!(pair.server.read(&mut [0; 8]).expect("they are there"), 4);
    Ok(())
}

#[test]
fn a_crash_of_the_process_ends_connections_and_one_of_the_power_is_not_heard_of()
-> Result<(), Failure> {
    for (how, seen_at_once) in [(Crash::Process, true), (Crash::Power, false)] {
        let mut pair = pair(Network::new())?;
        // The server's end is the test's own; a machine that would hold it is the client's.
        let (sim, client_host, server_host) = (&mut pair.sim, pair.client_host, pair.server_host);
        pair.client.borrow_mut().as_mut().expect("held").write_all(b"x").expect("there is room");
        sim.run_for(5 * MS)?;
        assert_eq!(pair.server.read(&mut [0; 8]).expect("it is there"), 1);
        // The held socket lives in a cell of the test: let the machine's host own it alone.
        let own: Held<SimTcpStream> = Rc::new(RefCell::new(pair.client.borrow_mut().take()));
        sim.with(client_host, |instance| {
            instance.add_machine_with(|_| Response::ok(Holder::new(own))).expect("there is room")
        });
        sim.crash(client_host, how);
        sim.run_for(5 * MS)?;
        let end = pair.server.read(&mut [0; 8]);
        assert_eq!(matches!(end, Ok(0)), seen_at_once, "{how:?}: {end:?}");
        // Once it is up again, what comes for a connection that it knows nothing of is answered
        // with a reset.
        pair.server.write_all(b"are you there?").expect("nobody knows yet");
        sim.restart(client_host)?;
        sim.run_for(Duration::from_secs(1))?;
        assert_eq!(kind(pair.server.read(&mut [0; 8])), ErrorKind::ConnectionReset);
        assert_eq!(sim.open_sockets(server_host), 2, "its listener, and the test's own end");
        drop(pair.listener);
    }
    Ok(())
}

#[test]
fn datagrams_are_lost_doubled_and_overtaken_as_the_faults_say() -> Result<(), Failure> {
    for (fault, expected) in
        [(None, 20), (Some(Fault::DatagramLost), 0), (Some(Fault::DatagramTwice), 40)]
    {
        let mut sim = Sim::new(1);
        let bind = |port: u16| {
            move |scope: &EarlyScope<'_>| {
                let address = SocketAddr::new("0.0.0.0".parse().expect("an address"), port);
                SimUdpSocket::bind(&address, scope).expect("it binds")
            }
        };
        let (_, sender) = hold(&mut sim, "sender", bind(0))?;
        let (_, receiver) = hold(&mut sim, "receiver", bind(53))?;
        if let Some(fault) = fault {
            sim.set_faults(Faults::none().set(fault, 1.0));
        }
        let target: SocketAddr = "10.0.0.2:53".parse().expect("an address");
        for number in 0..20 {
            let sent = sender.borrow_mut().as_mut().expect("held").send_to(&[number], &target);
            assert_eq!(sent.expect("there is room"), 1);
        }
        sim.run_for(Duration::from_secs(1))?;
        let mut received = Vec::new();
        let mut buffer = [0; 8];
        while let Ok((len, from)) =
            receiver.borrow_mut().as_mut().expect("held").receive_from(&mut buffer)
        {
            assert_eq!((len, from.ip().to_string().as_str()), (1, "10.0.0.1"));
            received.push(buffer[0]);
        }
        assert_eq!(received.len(), expected, "{fault:?}");
    }
    Ok(())
}

#[test]
fn a_datagram_socket_that_is_tied_to_a_peer_hears_of_it_and_of_nobody_else() -> Result<(), Failure>
{
    let mut sim = Sim::new(1);
    let bind = |port: u16| {
        move |scope: &EarlyScope<'_>| {
            SimUdpSocket::bind(&SocketAddr::from(([0, 0, 0, 0], port)), scope).expect("it binds")
        }
    };
    let (host, client) = hold(&mut sim, "client", bind(1_000))?;
    let (_, peer) = hold(&mut sim, "peer", bind(53))?;
    let (_, stranger) = hold(&mut sim, "stranger", bind(53))?;
    let with = |held: &Held<SimUdpSocket>, act: &mut dyn FnMut(&mut SimUdpSocket)| {
        act(held.borrow_mut().as_mut().expect("held"));
    };
    let own: SocketAddr = "10.0.0.1:1000".parse().expect("an address");
    with(&client, &mut |client| {
        assert_eq!(kind(client.send(b"?")), ErrorKind::NotConnected);
        client.connect(&"10.0.0.2:53".parse().expect("an address")).expect("nothing is sent");
        assert_eq!(client.send(b"?").expect("there is room"), 1);
    });
    with(&stranger, &mut |stranger| {
        assert_eq!(stranger.send_to(b"forged", &own).expect("there is room"), 6);
    });
    sim.run_for(5 * MS)?;
    with(&peer, &mut |peer| {
        let (len, from) = peer.receive_from(&mut [0; 8]).expect("it has come");
        assert_eq!((len, from), (1, own));
        assert_eq!(peer.send_to(b"!", &from).expect("there is room"), 1);
    });
    sim.run_for(5 * MS)?;
    with(&client, &mut |client| {
        assert_eq!(client.receive_from(&mut [0; 8]).expect("it has come").0, 1);
        assert_eq!(kind(client.receive_from(&mut [0; 8])), ErrorKind::WouldBlock);
    });
    // Nobody is there any more: it is told once, with an edge, and only because it is tied to the
    // peer.
    drop(peer.borrow_mut().take());
    with(&client, &mut |client| assert_eq!(client.send(b"?").expect("there is room"), 1));
    edges(&mut sim, host);
    sim.run_for(5 * MS)?;
    assert!(edges(&mut sim, host).iter().any(|events| events.contains(EventSet::ERROR)));
    with(&client, &mut |client| {
        assert_eq!(kind(client.receive_from(&mut [0; 8])), ErrorKind::ConnectionRefused);
        assert_eq!(kind(client.receive_from(&mut [0; 8])), ErrorKind::WouldBlock);
    });
    with(&stranger, &mut |stranger| {
        let nobody = "10.0.0.2:53".parse().expect("an address");
        assert_eq!(stranger.send_to(b"?", &nobody).expect("there is room"), 1);
    });
    sim.run_for(5 * MS)?;
    with(&stranger, &mut |stranger| {
        assert_eq!(kind(stranger.receive_from(&mut [0; 8])), ErrorKind::WouldBlock);
    });
    Ok(())
}

#[test]
fn a_port_that_is_bound_is_not_given_out_again_when_all_others_have_been() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let bind = |scope: &EarlyScope<'_>| {
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let lasting = SimUdpSocket::bind(&any, scope).expect("there are ports");
        let own = lasting.local_address().expect("it is bound");
        for _ in 0..17_000 {
            let passing = SimUdpSocket::bind(&any, scope).expect("there are ports");
            assert_ne!(passing.local_address().expect("it is bound"), own);
        }
        lasting
    };
    hold(&mut sim, "a", bind)?;
    Ok(())
}

#[test]
fn paths_name_sockets_of_one_host() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let path = PathBuf::from("/run/service");
    let host =
        sim.host("host", |boot| Ok(boot.new_loop::<Machine<()>>()?.instantiate(Vec::new())))?;
    let other =
        sim.host("other", |boot| Ok(boot.new_loop::<Machine<()>>()?.instantiate(Vec::new())))?;
    sim.with(host, |instance| {
        let added = instance.add_machine_with(|scope| {
            let mut listener =
                SimUnixListener::bind(&path, &ListenOptions::new(), scope).expect("it binds");
            assert_eq!(
                kind(SimUnixListener::bind(&path, &ListenOptions::new(), scope)),
                ErrorKind::AddrInUse
            );
            let client = SimUnixStream::connect(&path, scope).expect("somebody listens");
            assert!(client.is_connected() && client.peer_address().is_none());
            let (_server, peer) = listener.accept().expect("it waits already");
            assert_eq!(peer, None);
            let datagrams = SimUnixDatagram::bind(&path, scope).expect("it binds");
            assert_eq!(datagrams.local_address().expect("it has one"), path);
            Response::ok(Holder::new(Rc::default()))
        });
        added.expect("there is room");
    });
    sim.with(other, |instance| {
        let added = instance.add_machine_with(|scope| {
            assert_eq!(kind(SimUnixStream::connect(&path, scope)), ErrorKind::NotFound);
            Response::ok(Holder::new(Rc::default()))
        });
        added.expect("there is room");
    });
    Ok(())
}

#[test]
fn a_socket_on_a_loop_that_cannot_serve_it_is_unsupported_and_both_are_named() -> Result<(), Failure>
{
    let address: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let mut creator: Loop<Machine<()>> = Loop::new(&Config::new()).expect("a loop");
    let added = creator.add_machine_with(|scope| {
        let error = SimTcpStream::connect(&address, scope).expect_err("it is simulated");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = "a simulated TCP stream cannot be used on a loop of the mio backend";
        assert_eq!(error.to_string(), text);
        let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope);
        assert_eq!(kind(listener), ErrorKind::Unsupported);
        Response::ok(Holder::new(Rc::default()))
    });
    added.expect("there is room");

    let mut sim = Sim::new(1);
    let host =
        sim.host("host", |boot| Ok(boot.new_loop::<Machine<()>>()?.instantiate(Vec::new())))?;
    sim.with(host, |instance| {
        let added = instance.add_machine_with(|scope| {
            let error = <TcpStream as StreamSocket>::connect(&address, scope)
                .expect_err("it is the kernel's");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let text = "a TCP socket cannot be used on a loop of the simulation backend";
            assert_eq!(error.to_string(), text);
            let listener = <TcpListener as Listener>::bind(&address, &ListenOptions::new(), scope);
            assert_eq!(kind(listener), ErrorKind::Unsupported);
            Response::ok(Holder::new(Rc::default()))
        });
        added.expect("there is room");
    });
    Ok(())
}

#[test]
fn a_socket_belongs_to_its_host_and_its_simulation() -> Result<(), Failure> {
    let mut sims = [Sim::new(1), Sim::new(1)];
    let mut strays = Vec::new();
    for sim in &mut sims {
        let target: SocketAddr = "10.0.0.1:1".parse().expect("an address");
        let (_, held) =
            hold(sim, "a", move |scope| SimTcpStream::connect(&target, scope).expect("it begins"))?;
        strays.extend(held.borrow_mut().take());
    }
    let other =
        sims[0].host("b", |boot| Ok(boot.new_loop::<Machine<()>>()?.instantiate(Vec::new())))?;
    sims[0].with(other, |instance| {
        let added = instance.add_machine_with(|scope| {
            let texts =
                ["is of another simulation", "of host a cannot be used on the loop of host b"];
            for text in texts {
                let mut stray = strays.pop().expect("two of them");
                let error =
                    scope.register(&mut stray, Interest::Both).expect_err("it is not of this loop");
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.to_string().ends_with(text), "{error}");
            }
            Response::ok(Holder::new(Rc::default()))
        });
        added.expect("there is room");
    });
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
        kind(pair.client(|client| client.send_file(&file, 100_000, 20_000))),
        ErrorKind::WouldBlock
    );
    let empty = std::fs::File::open("/dev/null").expect("there is one");
    pair.sim.run_for(10 * MS)?;
    assert_eq!(pair.server.read(&mut vec![1; 200_000]).expect("all is there"), 100_000);
    assert_eq!(pair.client(|client| client.send_file(&empty, 0, 1)).expect("it is at its end"), 0);
    Ok(())
}

/// A short read is asked for no `WouldBlock`, so an edge follows it without one, and the end is
/// told of whenever it comes.
#[test]
fn a_socket_whose_short_reads_drain_hears_of_what_comes_behind_one() -> Result<(), Failure> {
    let mut pair = pair(Network::new().draining(1.0))?;
    pair.sim.set_faults(Faults::none().set(Fault::UnarmedEdgeLost, 1.0).set(Fault::ShortRead, 1.0));
    assert!(pair.server.short_read_drains() && pair.client(|client| client.short_read_drains()));
    for _ in 0..3 {
        pair.server.write_all(b"some").expect("there is room");
        pair.sim.run_for(5 * MS)?;
        assert_eq!(edges(&mut pair.sim, pair.client_host), [EventSet::READABLE]);
        assert_eq!(
            pair.client(|client| client.read(&mut [0; 8])).expect("it is there"),
            4,
            "all there is"
        );
    }
    // Two edges are due, and the first was not answered by a read: the end is told of all the same.
    pair.server.write_all(b"last").expect("there is room");
    pair.sim.run_for(5 * MS)?;
    pair.server.shutdown(Shutdown::Write).expect("it is connected");
    pair.sim.run_for(5 * MS)?;
    let told = edges(&mut pair.sim, pair.client_host);
    assert_eq!(told, [EventSet::READABLE, EventSet::READABLE | EventSet::READ_CLOSED]);
    assert_eq!(pair.sim.fault_count(Fault::ShortRead), 0);
    Ok(())
}

#[test]
fn a_socket_whose_short_reads_do_not_drain_says_so_and_hears_of_nothing_before_it_would_block()
-> Result<(), Failure> {
    let mut pair = pair(Network::new())?;
    pair.sim.set_faults(Faults::none().set(Fault::UnarmedEdgeLost, 1.0));
    assert!(!pair.client(|client| client.short_read_drains()));
    for expected in [&[EventSet::READABLE][..], &[]] {
        pair.server.write_all(b"some").expect("there is room");
        pair.sim.run_for(5 * MS)?;
        assert_eq!(edges(&mut pair.sim, pair.client_host), expected);
        assert_eq!(pair.client(|client| client.read(&mut [0; 8])).expect("it is there"), 4);
    }
    Ok(())
}
