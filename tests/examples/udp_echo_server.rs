//! The UDP echo server.

use std::net::{Ipv4Addr, UdpSocket};

use rotor_bench::server::Server;

use crate::support::{PATIENCE, receive, start_example};

fn client(server: &Server) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    socket.connect(server.address()).expect("loopback is there");
    socket
}

fn echoed(socket: &UdpSocket, datagram: &[u8]) -> Vec<u8> {
    let mut received = vec![0; 65_535];
    socket.send(datagram).expect("loopback takes it");
    let length = receive(socket, &mut received).expect("it comes back");
    received.truncate(length);
    received
}

#[test]
fn datagrams_of_any_size_are_echoed_whole() {
    let server = start_example("udp_echo_server");
    let line = server.next_line(PATIENCE).unwrap_or_default();
    assert!(line.starts_with("try: nc -u"), "{line:?}");
    let socket = client(&server);
    // The last length is the largest that IPv4 carries.
    for length in [0, 1, 1500, 9000, 65_507] {
        let datagram = vec![length as u8; length];
        assert!(echoed(&socket, &datagram) == datagram, "a datagram of {length} bytes");
    }
}

#[test]
fn each_peer_gets_its_own_datagrams() {
    let server = start_example("udp_echo_server");
    let clients: Vec<UdpSocket> = (0..50).map(|_| client(&server)).collect();
    for (number, socket) in clients.iter().enumerate() {
        socket.send(&[number as u8]).expect("loopback takes it");
    }
    for (number, socket) in clients.iter().enumerate() {
        let mut received = [0; 2];
        assert_eq!(receive(socket, &mut received).expect("it comes back"), 1);
        assert_eq!(usize::from(received[0]), number);
    }
}

#[test]
fn a_closed_peer_does_not_affect_others() {
    let server = start_example("udp_echo_server");
    for _ in 0..10 {
        client(&server).send(b"and away").expect("loopback takes it");
    }
    assert_eq!(echoed(&client(&server), b"still there?"), b"still there?");
    let status = server.terminate(PATIENCE).expect("it ends");
    assert!(status.success(), "{status}");
}
