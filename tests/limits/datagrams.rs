//! The UDP echo server: its budget, and another kind of datagram socket.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net as unix;

use rotor::net::{self, DatagramSocket, UnixDatagram};
use rotor::{Config, Loop, LoopInstance, Response};
use rotor_test_kit::Directory;

use crate::driving::{PATIENCE, drive, run_until_idle};
use crate::udp_echo::UdpEcho;

fn udp_echo_server() -> (LoopInstance<UdpEcho<net::UdpSocket>>, SocketAddr) {
    let mut creator = Loop::new(&Config::new()).expect("a descriptor is left");
    let mut address = (Ipv4Addr::LOCALHOST, 0).into();
    let added = creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let socket = net::UdpSocket::bind(&address, scope)?;
            address = socket.local_address()?;
            Ok(Response::ok(UdpEcho::new(socket, scope)?))
        })
    });
    added.expect("a free port");
    (creator.instantiate(()), address)
}

#[test]
fn datagrams_beyond_the_budget_of_one_event_are_handled_in_later_turns() {
    let (mut instance, address) = udp_echo_server();
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    client.set_read_timeout(Some(PATIENCE)).expect("not zero");
    for number in 0..150 {
        client.send_to(&[number], address).expect("loopback takes it");
    }
    run_until_idle(&mut instance);
    for number in 0..150 {
        let mut received = [0; 2];
        // A receive with a timeout fails with EINTR if the process was stopped and continued
        // meanwhile (signal(7)).
        let length = loop {
            match client.recv(&mut received) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                length => break length.expect("it comes back"),
            }
        };
        assert_eq!(length, 1);
        assert_eq!(received[0], number);
    }
    let stats = instance.stats().read();
    assert!((3..6).contains(&stats.events), "64 an event: {stats:?}");
}

#[test]
fn the_udp_echo_server_serves_unix_datagram_sockets_unchanged() {
    let directory = Directory::create();
    let (path, client_path) = (directory.join("datagram"), directory.join("client"));
    let mut creator =
        Loop::<UdpEcho<UnixDatagram>>::new(&Config::new()).expect("a descriptor is left");
    let added = creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let address = unix::SocketAddr::from_pathname(&path)?;
            let socket = UnixDatagram::bind(&address, scope)?;
            Ok(Response::ok(UdpEcho::new(socket, scope)?))
        })
    });
    added.expect("a free path");
    let mut instance = creator.instantiate(());
    let nameless = unix::UnixDatagram::unbound().expect("a descriptor is left");
    nameless.send_to(b"nowhere to send it back to", &path).expect("the socket is open");
    let client = unix::UnixDatagram::bind(&client_path).expect("a free path");
    client.set_nonblocking(true).expect("a socket");
    client.send_to(b"hello", &path).expect("the socket is open");
    let mut received = [0; 10];
    drive(&mut instance, || {
        client.recv(&mut received).is_ok_and(|length| &received[..length] == b"hello")
    });
    for path in [path, client_path] {
        fs::remove_file(path).expect("it was bound");
    }
}
