//! Datagrams between two stacks.
#![forbid(unsafe_code)]

mod rig;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use rig::{CLIENT, Host, Rig, SERVER, config, not_yet, six};
use rotor_core::net::DatagramSocket;
use rotor_core::{EventSet, Interest};
use rotor_smoltcp::{Medium, MemoryConfig, SmoltcpUdpSocket};

fn bind(host: &mut Host, address: SocketAddr) -> SmoltcpUdpSocket {
    host.with(|scope| {
        let mut socket = SmoltcpUdpSocket::bind(&address, scope).expect("it is free");
        scope.register(&mut socket, Interest::Both).expect("of this backend");
        socket
    })
}

fn receive(rig: &mut Rig, socket: &mut SmoltcpUdpSocket) -> (Vec<u8>, SocketAddr) {
    let (mut buffer, mut received) = ([0; 2_000], None);
    rig.until(|_| {
        received = not_yet(socket.receive_from(&mut buffer));
        received.is_some()
    });
    let (len, from) = received.expect("as asked");
    (buffer[..len].to_vec(), from)
}

#[test]
fn datagrams_arrive_on_both_mediums_and_ip_versions() {
    for medium in [Medium::Ip, Medium::Ethernet] {
        for (here, there) in [(SERVER, CLIENT), (six(1), six(2))] {
            let mut rig = Rig::on(MemoryConfig::new().medium(medium));
            let mut server = bind(&mut rig.server, (here, 53).into());
            let mut client = bind(&mut rig.client, (there, 0).into());
            let own = client.local_address().expect("it is bound");
            assert!(own.port() >= 49_152);
            assert_eq!(client.send_to(b"who?", &(here, 53).into()).expect("it is sent"), 4);
            assert_eq!(receive(&mut rig, &mut server), (b"who?".to_vec(), own));
            assert!(rig.server.take_events().contains(&EventSet::READABLE));
            assert_eq!(server.send_to(b"", &own).expect("it is sent"), 0);
            assert_eq!(receive(&mut rig, &mut client), (Vec::new(), (here, 53).into()));
            let nothing = server.receive_from(&mut [0; 9]).expect_err("there is none");
            assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        }
    }
}

#[test]
fn a_long_datagram_is_truncated_and_an_oversized_one_is_refused() {
    let mut rig = Rig::new();
    let mut server = bind(&mut rig.server, (SERVER, 53).into());
    let mut client = bind(&mut rig.client, (CLIENT, 0).into());
    let target = (SERVER, 53).into();
    client.send_to(b"first and long", &target).expect("it is sent");
    client.send_to(b"second", &target).expect("it is sent");
    let mut buffer = [0; 5];
    rig.until(|_| not_yet(server.receive_from(&mut buffer)).is_some());
    assert_eq!(&buffer, b"first");
    assert_eq!(receive(&mut rig, &mut server).0, b"second");
    assert_eq!(client.send_to(&[1; 1_472], &target).expect("it fits 1,500"), 1_472);
    assert_eq!(receive(&mut rig, &mut server).0.len(), 1_472);
    let error = client.send_to(&[1; 1_473], &target).expect_err("it does not");
    assert_eq!(error.raw_os_error(), Some(90), "EMSGSIZE");
    let error = client.send_to(b"x", &(six(1), 53).into()).expect_err("it is of the other version");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(client.send(b"x").expect_err("it has no peer").kind(), ErrorKind::NotConnected);
}

#[test]
fn a_connected_socket_receives_only_from_its_peer() {
    let mut rig = Rig::new();
    let mut server = bind(&mut rig.server, (SERVER, 53).into());
    let mut stranger = bind(&mut rig.server, (SERVER, 54).into());
    let mut client = bind(&mut rig.client, (CLIENT, 0).into());
    client.connect(&(SERVER, 53).into()).expect("there is a route");
    let own = client.local_address().expect("it is bound");
    stranger.send_to(b"forged", &own).expect("it is sent");
    client.send(b"who?").expect("it is sent");
    assert_eq!(receive(&mut rig, &mut server), (b"who?".to_vec(), own));
    server.send_to(b"me", &own).expect("it is sent");
    assert_eq!(receive(&mut rig, &mut client).0, b"me");
    let nothing = client.receive_from(&mut [0; 9]).expect_err("the stranger's is thrown away");
    assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_socket_limits_its_datagrams_and_reports_room() {
    let few = |last| config(last).datagrams_max(3);
    let mut rig = Rig::with(MemoryConfig::new(), few(1), few(2));
    let mut server = bind(&mut rig.server, (SERVER, 53).into());
    let mut client = bind(&mut rig.client, (CLIENT, 0).into());
    for _ in 0..3 {
        client.send_to(b"x", &(SERVER, 53).into()).expect("there is room");
    }
    let full = client.send_to(b"x", &(SERVER, 53).into()).expect_err("there is none");
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    rig.until(|rig| rig.client.take_events().iter().any(|events| events.is_writable()));
    client.send_to(b"lost", &(SERVER, 53).into()).expect("there is room");
    rig.pass(Duration::from_millis(10));
    let mut buffer = [0; 9];
    let kept = (0..9).filter_map(|_| not_yet(server.receive_from(&mut buffer))).count();
    assert_eq!(kept, 3, "the fourth came to a full socket");
}

#[test]
fn a_dropped_socket_frees_its_address_and_sends_its_datagrams() {
    let mut rig = Rig::new();
    let mut server = bind(&mut rig.server, (SERVER, 53).into());
    let mut client = bind(&mut rig.client, (CLIENT, 99).into());
    let taken = rig
        .client
        .with(|scope| SmoltcpUdpSocket::bind(&([0, 0, 0, 0], 99).into(), scope).map(drop));
    assert_eq!(taken.expect_err("it is taken").kind(), ErrorKind::AddrInUse);
    client.send_to(b"last", &(SERVER, 53).into()).expect("there is room");
    drop(client);
    assert_eq!(receive(&mut rig, &mut server).0, b"last");
    bind(&mut rig.client, (CLIENT, 99).into());
}

/// On Ethernet the first datagram waits for the resolution of the address. A lost request is sent
/// again.
#[test]
fn a_datagram_waits_for_the_hardware_address_of_its_target() {
    let cable = MemoryConfig::new().medium(Medium::Ethernet).lost(600).seed(3);
    let mut rig = Rig::on(cable);
    let mut server = bind(&mut rig.server, (SERVER, 53).into());
    let mut client = bind(&mut rig.client, (CLIENT, 0).into());
    let mut buffer = [0; 9];
    // The datagram itself may be lost as well; then another one is sent.
    for _ in 0..20 {
        client.send_to(b"who?", &(SERVER, 53).into()).expect("there is room");
        rig.pass(Duration::from_secs(10));
        if not_yet(server.receive_from(&mut buffer)).is_some() {
            return;
        }
    }
    panic!("none has come: {rig:?}");
}

#[test]
fn datagrams_to_an_unknown_host_expire() {
    let mut rig = Rig::on(MemoryConfig::new().medium(Medium::Ethernet));
    let mut server = bind(&mut rig.server, (SERVER, 53).into());
    let mut client = bind(&mut rig.client, (CLIENT, 7).into());
    for datagram in [&b"in vain"[..], b""] {
        server.send_to(datagram, &([10, 0, 0, 77], 7).into()).expect("it is sent");
        rig.pass(Duration::from_secs(10));
    }
    assert_eq!(rig.server.stats().unsent, 2);
    server.send_to(b"to you", &(CLIENT, 7).into()).expect("it is sent");
    assert_eq!(receive(&mut rig, &mut client).0, b"to you");
    server.send_to(b"and more", &(CLIENT, 7).into()).expect("it is sent");
    assert_eq!(receive(&mut rig, &mut client).0, b"and more");
}

/// The answer to a query with a forged sender waits for a host that does not exist. Answers to
/// other hosts are sent meanwhile.
#[test]
fn an_unknown_host_does_not_delay_other_targets() {
    let mut rig = Rig::on(MemoryConfig::new().medium(Medium::Ethernet));
    let mut server = bind(&mut rig.server, (SERVER, 53).into());
    let mut client = bind(&mut rig.client, (CLIENT, 7).into());
    // After this, each host knows the other's hardware address.
    client.send_to(b"who?", &(SERVER, 53).into()).expect("there is room");
    assert_eq!(receive(&mut rig, &mut server).0, b"who?");
    for last in 70..80 {
        server.send_to(b"in vain", &([10, 0, 0, last], 7).into()).expect("there is room");
    }
    server.send_to(b"me", &(CLIENT, 7).into()).expect("there is room");
    rig.pass(Duration::from_millis(100));
    let mut buffer = [0; 9];
    assert_eq!(not_yet(client.receive_from(&mut buffer)).map(|(len, _)| len), Some(2));
    assert_eq!(rig.server.stats().unsent, 0);
    rig.pass(Duration::from_secs(10));
    assert_eq!(rig.server.stats().unsent, 10);
}

/// A full queue of datagrams waits for hosts that do not exist; then they make room.
#[test]
fn a_queue_full_of_unknown_hosts_does_not_delay_other_targets() {
    let mut rig = Rig::on(MemoryConfig::new().medium(Medium::Ethernet));
    let mut server = bind(&mut rig.server, (SERVER, 53).into());
    let mut client = bind(&mut rig.client, (CLIENT, 7).into());
    client.send_to(b"who?", &(SERVER, 53).into()).expect("there is room");
    assert_eq!(receive(&mut rig, &mut server).0, b"who?");
    for number in 0..64 {
        let target = ([10, 0, 0, 70 + number % 20], 7).into();
        server.send_to(b"in vain", &target).expect("there is room");
    }
    rig.pass(Duration::from_millis(100));
    for _ in 0..100 {
        server.send_to(b"me", &(CLIENT, 7).into()).expect("others make room");
        assert_eq!(receive(&mut rig, &mut client).0, b"me");
    }
}

/// All in one turn, before any address resolution.
#[test]
fn a_blocked_sender_is_notified_once_there_is_room() {
    let mut rig = Rig::on(MemoryConfig::new().medium(Medium::Ethernet));
    let mut server = bind(&mut rig.server, (SERVER, 53).into());
    let mut client = bind(&mut rig.client, (CLIENT, 7).into());
    client.send_to(b"who?", &(SERVER, 53).into()).expect("there is room");
    assert_eq!(receive(&mut rig, &mut server).0, b"who?");
    let nowhere = |last| SocketAddr::from(([10, 0, 0, last], 7));
    for (to, is_told) in [((CLIENT, 7).into(), true), (nowhere(71), true), (nowhere(70), false)] {
        for _ in 0..64 {
            server.send_to(b"in vain", &nowhere(70)).expect("there is room");
        }
        let error = server.send_to(b"me", &to).expect_err("nobody was asked for yet");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        rig.server.take_events();
        rig.pass(Duration::from_millis(100));
        assert_eq!(rig.server.take_events().contains(&EventSet::WRITABLE), is_told, "{to}");
        assert_eq!(not_yet(server.send_to(b"me", &to)).is_some(), is_told, "{to}");
        // The waiting datagrams are given up.
        rig.pass(Duration::from_secs(10));
    }
    assert!(rig.server.take_events().contains(&EventSet::WRITABLE), "there is room");
}

/// Forged senders may have no port or no address. A datagram to such a target is refused
/// immediately and delays no other.
#[test]
fn a_target_without_a_port_or_address_is_refused() {
    for medium in [Medium::Ip, Medium::Ethernet] {
        let mut rig = Rig::on(MemoryConfig::new().medium(medium));
        let mut server = bind(&mut rig.server, (SERVER, 53).into());
        let mut client = bind(&mut rig.client, (CLIENT, 7).into());
        client.send_to(b"who?", &(SERVER, 53).into()).expect("there is room");
        assert_eq!(receive(&mut rig, &mut server).0, b"who?");
        for nowhere in [(CLIENT, 0), (std::net::Ipv4Addr::UNSPECIFIED.into(), 7), (six(2), 7)] {
            let refused = server.send_to(b"in vain", &nowhere.into());
            assert_eq!(refused.map_err(|error| error.kind()), Err(ErrorKind::InvalidInput));
            let tied = server.connect(&nowhere.into());
            assert_eq!(tied.map_err(|error| error.kind()), Err(ErrorKind::InvalidInput));
        }
        server.send_to(b"me", &(CLIENT, 7).into()).expect("there is room");
        assert_eq!(receive(&mut rig, &mut client).0, b"me");
        assert_eq!(rig.server.stats().unsent, 0, "{medium:?}");
    }
}
