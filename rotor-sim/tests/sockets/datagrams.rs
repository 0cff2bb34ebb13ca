//! Datagrams: latencies, peers, ports.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rotor_core::net::DatagramSocket;
use rotor_core::{EventSet, Interest, Response};
use rotor_sim::net::{SimUdpSocket, SimUnixDatagram};
use rotor_sim::{Failure, Fault, Faults, Host, Sim};

use crate::{
    EarlyScope, Held, MS, Machine, driver::Holder, error_kind, host_with_socket, take_edges,
};

#[test]
fn datagrams_are_lost_and_duplicated_according_to_the_faults() -> Result<(), Failure> {
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
        let (_, sender) = host_with_socket(&mut sim, "sender", bind(0))?;
        let (_, receiver) = host_with_socket(&mut sim, "receiver", bind(53))?;
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
fn a_connected_datagram_socket_receives_from_its_peer_only() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let bind = |port: u16| {
        move |scope: &EarlyScope<'_>| {
            SimUdpSocket::bind(&SocketAddr::from(([0, 0, 0, 0], port)), scope).expect("it binds")
        }
    };
    let (host, client) = host_with_socket(&mut sim, "client", bind(1_000))?;
    let (_, peer) = host_with_socket(&mut sim, "peer", bind(53))?;
    let (_, stranger) = host_with_socket(&mut sim, "stranger", bind(53))?;
    let with_socket = |held: &Held<SimUdpSocket>, act: &mut dyn FnMut(&mut SimUdpSocket)| {
        act(held.borrow_mut().as_mut().expect("held"));
    };
    let own: SocketAddr = "10.0.0.1:1000".parse().expect("an address");
    with_socket(&client, &mut |client| {
        assert_eq!(error_kind(client.send(b"?")), ErrorKind::NotConnected);
        client.connect(&"10.0.0.2:53".parse().expect("an address")).expect("nothing is sent");
        assert_eq!(client.send(b"?").expect("there is room"), 1);
    });
    with_socket(&stranger, &mut |stranger| {
        assert_eq!(stranger.send_to(b"forged", &own).expect("there is room"), 6);
    });
    sim.run_for(5 * MS)?;
    with_socket(&peer, &mut |peer| {
        let (len, from) = peer.receive_from(&mut [0; 8]).expect("it has come");
        assert_eq!((len, from), (1, own));
        assert_eq!(peer.send_to(b"!", &from).expect("there is room"), 1);
    });
    sim.run_for(5 * MS)?;
    with_socket(&client, &mut |client| {
        assert_eq!(client.receive_from(&mut [0; 8]).expect("it has come").0, 1);
        assert_eq!(error_kind(client.receive_from(&mut [0; 8])), ErrorKind::WouldBlock);
    });
    // The peer is gone. The client is told once, with an edge, and only because it is connected to
    // the peer.
    drop(peer.borrow_mut().take());
    with_socket(&client, &mut |client| assert_eq!(client.send(b"?").expect("there is room"), 1));
    take_edges(&mut sim, host);
    sim.run_for(5 * MS)?;
    assert!(take_edges(&mut sim, host).iter().any(|events| events.contains(EventSet::ERROR)));
    with_socket(&client, &mut |client| {
        assert_eq!(error_kind(client.receive_from(&mut [0; 8])), ErrorKind::ConnectionRefused);
        assert_eq!(error_kind(client.receive_from(&mut [0; 8])), ErrorKind::WouldBlock);
    });
    with_socket(&stranger, &mut |stranger| {
        let nobody = "10.0.0.2:53".parse().expect("an address");
        assert_eq!(stranger.send_to(b"?", &nobody).expect("there is room"), 1);
    });
    sim.run_for(5 * MS)?;
    with_socket(&stranger, &mut |stranger| {
        assert_eq!(error_kind(stranger.receive_from(&mut [0; 8])), ErrorKind::WouldBlock);
    });
    Ok(())
}

#[test]
fn an_interrupted_send_has_sent_nothing() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let bind = |scope: &EarlyScope<'_>| {
        SimUdpSocket::bind(&SocketAddr::from(([0, 0, 0, 0], 53)), scope).expect("it binds")
    };
    let (_, sender) = host_with_socket(&mut sim, "sender", bind)?;
    let (_, receiver) = host_with_socket(&mut sim, "receiver", bind)?;
    let send = || {
        let target = "10.0.0.2:53".parse().expect("an address");
        sender.borrow_mut().as_mut().expect("held").send_to(b"?", &target)
    };
    sim.set_faults(Faults::none().set(Fault::Interrupted, 1.0));
    assert_eq!(error_kind(send()), ErrorKind::Interrupted);
    sim.set_faults(Faults::none());
    assert_eq!(send().expect("there is room"), 1);
    sim.run_for(5 * MS)?;
    let receive = || receiver.borrow_mut().as_mut().expect("held").receive_from(&mut [0; 8]);
    assert_eq!(receive().expect("one was sent").0, 1);
    assert_eq!(error_kind(receive()), ErrorKind::WouldBlock);
    Ok(())
}

#[test]
fn a_datagram_to_an_address_of_ipv6_has_no_route() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let bind = |scope: &EarlyScope<'_>| {
        SimUdpSocket::bind(&SocketAddr::from(([0, 0, 0, 0], 53)), scope).expect("it binds")
    };
    let (_, socket) = host_with_socket(&mut sim, "host", bind)?;
    let mut socket = socket.borrow_mut().take().expect("held");
    let six = "[2001:db8::1]:53".parse().expect("an address");
    assert_eq!(error_kind(socket.send_to(b"?", &six)), ErrorKind::NetworkUnreachable);
    assert_eq!(error_kind(socket.connect(&six)), ErrorKind::NetworkUnreachable);
    let mapped = "[::ffff:10.0.0.1]:53".parse().expect("an address");
    assert_eq!(socket.send_to(b"?", &mapped).expect("there is room"), 1);
    sim.run_for(5 * MS)?;
    let (_, from) = socket.receive_from(&mut [0; 8]).expect("it has sent to itself");
    assert_eq!(from, socket.local_address().expect("it is bound"));
    Ok(())
}

#[test]
fn a_bound_port_is_not_assigned_again_after_a_wraparound() -> Result<(), Failure> {
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
    host_with_socket(&mut sim, "a", bind)?;
    Ok(())
}

type UnixHost = Host<Machine<SimUnixDatagram>>;

/// One more socket of a host, bound to a path.
fn bind_path(sim: &mut Sim, host: UnixHost, path: &'static str) -> Held<SimUnixDatagram> {
    let held: Held<SimUnixDatagram> = Held::default();
    let kept = held.clone();
    sim.with(host, |instance| {
        let added = instance.add_machine_with(|scope| {
            let mut socket = SimUnixDatagram::bind(&path.into(), scope).expect("the path is free");
            scope.register(&mut socket, Interest::Both).expect("it registers");
            *kept.borrow_mut() = Some(socket);
            Response::ok(Holder::new(kept))
        });
        added.expect("there is room");
    });
    held
}

fn with_socket<R>(held: &Held<SimUnixDatagram>, act: impl FnOnce(&mut SimUnixDatagram) -> R) -> R {
    act(held.borrow_mut().as_mut().expect("held"))
}

/// Two sockets of one host, bound to the paths "/a" and "/b".
fn two_at_paths(sim: &mut Sim) -> Result<(UnixHost, [Held<SimUnixDatagram>; 2]), Failure> {
    let host = sim.host("host", |boot| Ok(boot.new_loop()?.instantiate(Vec::new())))?;
    let sockets = ["/a", "/b"].map(|path| bind_path(sim, host, path));
    sim.run_for(MS)?;
    take_edges(sim, host);
    Ok((host, sockets))
}

#[test]
fn datagrams_to_a_path_arrive_once_and_in_order_despite_faults() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let (host, [one, two]) = two_at_paths(&mut sim)?;
    let faults = [Fault::DatagramLost, Fault::DatagramTwice, Fault::DatagramLate];
    sim.set_faults(faults.iter().fold(Faults::none(), |all, fault| all.set(*fault, 1.0)));
    for number in 0..20 {
        assert_eq!(
            with_socket(&one, |one| one.send_to(&[number], &"/b".into())).expect("there is room"),
            1
        );
    }
    for number in 0..20 {
        let mut bytes = [0];
        let (len, from) =
            with_socket(&two, |two| two.receive_from(&mut bytes)).expect("it is there");
        assert_eq!((len, bytes[0], from), (1, number, PathBuf::from("/a")));
    }
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(
        error_kind(with_socket(&two, |two| two.receive_from(&mut [0]))),
        ErrorKind::WouldBlock
    );
    assert_eq!(take_edges(&mut sim, host), [EventSet::READABLE], "it was told once, merged");
    assert!(faults.iter().all(|fault| sim.fault_count(*fault) == 0));
    Ok(())
}

#[test]
fn a_datagram_to_an_unbound_path_is_an_error_of_the_sender() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let (host, [one, two]) = two_at_paths(&mut sim)?;
    let third = bind_path(&mut sim, host, "/c");
    let send = |from: &Held<SimUnixDatagram>, to: &str| {
        let to = PathBuf::from(to);
        with_socket(from, |socket| socket.send_to(b"?", &to)).map_err(|error| error.kind())
    };
    assert_eq!(send(&one, "/nobody"), Err(ErrorKind::NotFound));
    assert_eq!(
        error_kind(with_socket(&one, |one| one.connect(&"/nobody".into()))),
        ErrorKind::NotFound
    );
    with_socket(&two, |two| two.connect(&"/a".into())).expect("it is there");
    assert_eq!((send(&one, "/b"), send(&third, "/b")), (Ok(1), Err(ErrorKind::PermissionDenied)));
    drop(one.borrow_mut().take());
    assert_eq!(error_kind(with_socket(&two, |two| two.send(b"?"))), ErrorKind::ConnectionRefused);
    assert_eq!(send(&third, "/a"), Err(ErrorKind::ConnectionRefused));
    Ok(())
}

#[test]
fn a_socket_connected_to_a_path_notices_its_lost_peer_after_a_rebind() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let (host, [one, two]) = two_at_paths(&mut sim)?;
    let (a, b) = (PathBuf::from("/a"), PathBuf::from("/b"));
    with_socket(&one, |one| one.connect(&b)).expect("it is there");
    let third = bind_path(&mut sim, host, "/c");
    // A connected socket accepts only its peer.
    assert_eq!(
        error_kind(with_socket(&third, |third| third.connect(&a))),
        ErrorKind::PermissionDenied
    );
    with_socket(&two, |two| two.connect(&a)).expect("it is its peer");
    assert_eq!(with_socket(&one, |one| one.send(b"?")).ok(), Some(1));
    drop(two.borrow_mut().take());
    let again = bind_path(&mut sim, host, "/b");
    // As Linux 6.18 behaves.
    assert_eq!(
        error_kind(with_socket(&again, |again| again.send_to(b"?", &a))),
        ErrorKind::PermissionDenied
    );
    assert_eq!(error_kind(with_socket(&one, |one| one.send(b"?"))), ErrorKind::ConnectionRefused);
    assert_eq!(error_kind(with_socket(&one, |one| one.send(b"?"))), ErrorKind::NotConnected);
    assert_eq!(with_socket(&again, |again| again.send_to(b"?", &a)).ok(), Some(1));
    assert_eq!(with_socket(&one, |one| one.send_to(b"?", &b)).ok(), Some(1));
    with_socket(&one, |one| one.connect(&b)).expect("it is there");
    assert_eq!(with_socket(&one, |one| one.send(b"?")).ok(), Some(1));
    Ok(())
}

#[test]
fn a_sender_to_a_full_path_gets_an_edge_when_there_is_room() -> Result<(), Failure> {
    for is_dropped in [false, true] {
        let mut sim = Sim::new(1);
        let (host, [one, two]) = two_at_paths(&mut sim)?;
        sim.set_faults(Faults::none().set(Fault::UnarmedEdgeLost, 1.0));
        let to = PathBuf::from("/b");
        let sent = (0..1_000)
            .take_while(|_| with_socket(&one, |one| one.send_to(b"?", &to)).is_ok())
            .count();
        assert_eq!(sent, 256);
        assert_eq!(
            error_kind(with_socket(&one, |one| one.send_to(b"?", &to))),
            ErrorKind::WouldBlock
        );
        sim.run_for(MS)?;
        assert_eq!(take_edges(&mut sim, host), [EventSet::READABLE]);
        if is_dropped {
            drop(two.borrow_mut().take());
        } else {
            with_socket(&two, |two| two.receive_from(&mut [0; 8])).expect("it is there");
        }
        sim.run_for(MS)?;
        assert_eq!(take_edges(&mut sim, host), [EventSet::WRITABLE]);
        let again = with_socket(&one, |one| one.send_to(b"?", &to)).map_err(|error| error.kind());
        assert_eq!(again, if is_dropped { Err(ErrorKind::ConnectionRefused) } else { Ok(1) });
        if !is_dropped {
            with_socket(&two, |two| two.receive_from(&mut [0; 8])).expect("it is there");
        }
        sim.run_for(MS)?;
        let edges = take_edges(&mut sim, host);
        assert!(!edges.iter().any(|events| events.contains(EventSet::WRITABLE)), "once: {edges:?}");
    }
    Ok(())
}

#[test]
fn a_sender_to_several_full_paths_gets_an_edge_for_each() -> Result<(), Failure> {
    let mut sim = Sim::new(1);
    let (host, [one, two]) = two_at_paths(&mut sim)?;
    let third = bind_path(&mut sim, host, "/c");
    for path in ["/b", "/c", "/b"] {
        let to = PathBuf::from(path);
        while with_socket(&one, |one| one.send_to(b"?", &to)).is_ok() {}
    }
    sim.run_for(MS)?;
    take_edges(&mut sim, host);
    for full in [&third, &two] {
        with_socket(full, |full| full.receive_from(&mut [0; 8])).expect("it is there");
        sim.run_for(MS)?;
        assert_eq!(take_edges(&mut sim, host), [EventSet::WRITABLE]);
    }
    Ok(())
}
