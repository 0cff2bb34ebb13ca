//! Datagrams: their ways, their peers, their ports.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::EventSet;
use rotor_core::net::DatagramSocket;
use rotor_sim::net::SimUdpSocket;
use rotor_sim::{Failure, Fault, Faults, Sim};

use crate::{EarlyScope, Held, MS, edges, hold, kind};

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
