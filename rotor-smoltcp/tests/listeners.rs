//! Listeners: backlog limits, floods, addresses.
#![forbid(unsafe_code)]

mod rig;

use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::time::Duration;

use rig::{CLIENT, Host, Rig, SERVER, config, not_yet, six};
use rotor_core::net::{ListenOptions, Listener, StreamSocket};
use rotor_core::{Interest, Time, with_causes};
use rotor_smoltcp::{
    Device, ManualClock, Medium, MemoryConfig, MemoryDevice, SmoltcpTcpListener, SmoltcpTcpStream,
};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};

/// A host, and a cable on which the test sends arbitrary packets to it.
struct FloodedHost {
    clock: ManualClock,
    host: Host,
    cable: MemoryDevice,
}

impl FloodedHost {
    fn new(config: rotor_smoltcp::StackConfig) -> FloodedHost {
        let clock = ManualClock::new();
        let cable = MemoryConfig::new().clock(&clock).packets_max(100_000);
        let (left, cable) = MemoryDevice::pair(&cable).expect("descriptors are left");
        FloodedHost { host: Host::open(left, &config, &clock), cable, clock }
    }

    fn send(&mut self, port: u16, control: TcpControl, numbers: (i32, Option<i32>)) {
        let segment = TcpRepr {
            src_port: port,
            dst_port: 80,
            control,
            seq_number: TcpSeqNumber(numbers.0),
            ack_number: numbers.1.map(TcpSeqNumber),
            window_len: 4_096,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &[],
        };
        let (std::net::IpAddr::V4(from), std::net::IpAddr::V4(to)) = (CLIENT, SERVER) else {
            unreachable!("they are of the fourth version")
        };
        let header = Ipv4Repr {
            src_addr: from,
            dst_addr: to,
            next_header: IpProtocol::Tcp,
            payload_len: segment.buffer_len(),
            hop_limit: 64,
        };
        let sums = ChecksumCapabilities::default();
        let mut packet = vec![0; header.buffer_len() + segment.buffer_len()];
        header.emit(&mut Ipv4Packet::new_unchecked(&mut packet), &sums);
        let payload = &mut packet[header.buffer_len()..];
        segment.emit(&mut TcpPacket::new_unchecked(payload), &CLIENT.into(), &SERVER.into(), &sums);
        self.cable.send(&packet).expect("a cable takes all");
    }

    fn turns(&mut self, count: usize) {
        (0..count).for_each(|_| self.host.turn());
    }

    /// What the host has sent since the last call: the destination port, the flags, the host's
    /// sequence number.
    fn received(&mut self) -> Vec<(u16, &'static str, i32)> {
        let (mut said, mut packet) = (Vec::new(), [0; 2_000]);
        while let Some(len) = not_yet(self.cable.receive(&mut packet)) {
            let ip = Ipv4Packet::new_checked(&packet[..len]).expect("it is one");
            let tcp = TcpPacket::new_checked(ip.payload()).expect("it is one");
            let flags = match (tcp.syn(), tcp.rst()) {
                (true, _) => "SYN",
                (_, true) => "RST",
                _ => "ACK",
            };
            said.push((tcp.dst_port(), flags, tcp.seq_number().0));
        }
        said
    }
}

#[test]
fn a_syn_flood_is_limited_to_the_backlog_and_expires() {
    for backlog in [1, 16] {
        let mut flooded = FloodedHost::new(config(1).half_open_timeout(Duration::from_secs(5)));
        let mut listener = flooded.host.listen_on((SERVER, 80).into(), backlog);
        for port in 1..=1_000 {
            flooded.send(port, TcpControl::Syn, (7, None));
        }
        flooded.turns(20);
        let stats = flooded.host.stats();
        assert_eq!(stats.half_open, backlog as usize);
        assert_eq!(stats.connections, backlog as usize);
        assert_eq!(stats.half_open_overflowed, 1_000 - u64::from(backlog));
        assert_eq!(not_yet(listener.accept()).map(|_| ()), None, "nobody has come");
        // The last SYNs of each turn are answered.
        let said: Vec<u16> = flooded.received().into_iter().map(|(port, ..)| port).collect();
        assert!(said.len() <= 4 * backlog as usize, "{said:?}");
        assert!(said.ends_with(&(1_001 - backlog as u16..=1_000).collect::<Vec<_>>()), "{said:?}");
        // They stay silent, and make room when their time is over.
        let end = flooded.clock.now() + Duration::from_secs(6);
        while flooded.clock.now() < end && flooded.clock.step_until(end) {
            flooded.host.turn();
        }
        let stats = flooded.host.stats();
        assert_eq!((stats.half_open, stats.connections), (0, 0));
        assert_eq!(stats.half_open_given_up, u64::from(backlog));
        assert_eq!(stats.accepted, 0);
    }
}

#[test]
fn a_handshake_completed_before_a_flood_fills_the_backlog_is_accepted() {
    for (between, is_accepted) in [(0, true), (15, true), (16, false), (500, false)] {
        let mut flooded = FloodedHost::new(config(1));
        let mut listener = flooded.host.listen_on((SERVER, 80).into(), 16);
        let mut flood = 1_000..;
        let mut floods = |flooded: &mut FloodedHost, count| {
            for port in flood.by_ref().take(count) {
                flooded.send(port, TcpControl::Syn, (7, None));
            }
            flooded.turns(3);
        };
        floods(&mut flooded, 100);
        flooded.send(9, TcpControl::Syn, (7, None));
        flooded.turns(3);
        let said = flooded.received();
        let [.., (9, "SYN", number)] = said[..] else { panic!("{said:?}") };
        floods(&mut flooded, between);
        flooded.received();
        flooded.send(9, TcpControl::None, (8, Some(number + 1)));
        flooded.turns(2);
        let accepted = not_yet(listener.accept()).and_then(|(_, address)| address);
        assert_eq!(accepted, is_accepted.then(|| (CLIENT, 9).into()), "{between}");
        let said = flooded.received();
        if !is_accepted {
            assert!(matches!(said[..], [(9, "RST", _)]), "who was forgotten hears so: {said:?}");
        }
        // Connections that wait to be accepted make no room.
        floods(&mut flooded, 100);
        assert_eq!(flooded.host.stats().backlog_overflowed, 0);
        assert_eq!(flooded.host.stats().half_open, 16);
    }
}

#[test]
fn a_long_flood_leaves_no_state() {
    let mut flooded = FloodedHost::new(config(1));
    let _listener = flooded.host.listen_on((SERVER, 80).into(), 4);
    for round in 0..20_000_u16 {
        flooded.send(round, TcpControl::Syn, (7, None));
        // Some handshakes are completed, some are reset.
        flooded.turns(2);
        for (port, flags, number) in flooded.received() {
            match (round % 7, flags) {
                (0, "SYN") => flooded.send(port, TcpControl::None, (8, Some(number + 1))),
                (3, "SYN") => flooded.send(port, TcpControl::Rst, (8, None)),
                _ => {}
            }
        }
    }
    flooded.turns(9);
    let stats = flooded.host.stats();
    assert_eq!((stats.accepted, stats.connections), (4, 4));
    assert!(stats.backlog_overflowed > 10_000, "{stats:?}");
}

#[test]
fn completed_handshakes_count_towards_the_backlog() {
    let mut flooded = FloodedHost::new(config(1));
    let mut listener = flooded.host.listen_on((SERVER, 80).into(), 2);
    for port in 1..=2 {
        flooded.send(port, TcpControl::Syn, (7, None));
    }
    flooded.turns(3);
    for (port, flags, number) in flooded.received() {
        assert_eq!(flags, "SYN");
        flooded.send(port, TcpControl::None, (8, Some(number + 1)));
    }
    flooded.turns(1);
    assert_eq!(flooded.host.stats().accepted, 2);
    flooded.send(3, TcpControl::Syn, (7, None));
    flooded.turns(3);
    assert_eq!(flooded.host.stats().backlog_overflowed, 1);
    assert!(listener.has_waiting());
    let (first, address) = listener.accept().expect("two wait");
    assert_eq!(address, Some((CLIENT, 1).into()));
    flooded.send(3, TcpControl::Syn, (7, None));
    flooded.turns(3);
    assert_eq!(flooded.host.stats().half_open, 1, "there is room for one more");
    drop(first);
}

#[test]
fn a_half_open_connection_that_is_reset_makes_room() {
    let mut flooded = FloodedHost::new(config(1));
    let _listener = flooded.host.listen_on((SERVER, 80).into(), 1);
    for round in 1..=10 {
        flooded.send(round, TcpControl::Syn, (7, None));
        flooded.turns(3);
        assert_eq!(flooded.host.stats().half_open, 1);
        flooded.send(round, TcpControl::Rst, (8, None));
        flooded.turns(3);
        assert_eq!(flooded.host.stats().half_open, 0);
    }
    assert_eq!(flooded.host.stats().half_open_given_up, 10);
    assert_eq!(flooded.host.stats().backlog_overflowed, 0);
}

#[test]
fn an_address_is_bound_once_and_free_after_a_drop() {
    let mut rig = Rig::new();
    let bind = |rig: &mut Rig, address: SocketAddr, options: ListenOptions| {
        rig.server.with(|scope| SmoltcpTcpListener::bind(&address, &options, scope))
    };
    let options = ListenOptions::new;
    let listener = bind(&mut rig, (SERVER, 80).into(), options()).expect("it is free");
    for address in [(SERVER, 80).into(), SocketAddr::from(([0, 0, 0, 0], 80))] {
        let taken = bind(&mut rig, address, options()).expect_err("it is taken");
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        assert!(
            with_causes(&taken).to_string().starts_with(&format!("cannot listen on {address}"))
        );
    }
    bind(&mut rig, (six(1), 80).into(), options()).expect("the other version is free");
    let strange = bind(&mut rig, (CLIENT, 80).into(), options()).expect_err("it is another's");
    assert_eq!(strange.kind(), ErrorKind::AddrNotAvailable);
    let shared = bind(&mut rig, (SERVER, 82).into(), options().reuse_port(true));
    assert_eq!(shared.expect_err("nobody shares").kind(), ErrorKind::Unsupported);
    drop(listener);
    bind(&mut rig, (SERVER, 80).into(), options()).expect("it is free again");
    let any = bind(&mut rig, (SERVER, 0).into(), options()).expect("a port is free");
    assert!(any.local_address().is_some_and(|address| address.port() >= 49_152));
}

#[test]
fn unaccepted_connections_are_reset_when_a_listener_is_dropped() {
    let mut rig = Rig::new();
    let listener = rig.server.listen_on((SERVER, 80).into(), 8);
    let mut clients: Vec<_> = (0..3).map(|_| rig.client.connect((SERVER, 80).into())).collect();
    rig.until(|rig| rig.server.stats().accepted == 3);
    drop(listener);
    for client in &mut clients {
        rig.until(|_| client.take_error().expect("it can be asked").is_some());
    }
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.server.stats().connections, 0);
    let mut late = rig.client.connect((SERVER, 80).into());
    rig.until(|_| late.has_connected().is_err());
}

#[test]
fn unaccepted_connections_of_unreachable_peers_are_removed() {
    let mut rig = Rig::on(MemoryConfig::new().medium(Medium::Ethernet));
    let listener = rig.server.listen_on((SERVER, 80).into(), 8);
    let client = rig.client.connect((SERVER, 80).into());
    rig.until(|rig| rig.server.stats().accepted == 1);
    // The client's loop gets no more turns, and its hardware address is forgotten meanwhile.
    let alone = |rig: &mut Rig, seconds| {
        let end = rig.clock.now() + Duration::from_secs(seconds);
        while rig.clock.now() < end {
            rig.server.turn();
            if !rig.clock.step_until(end) {
                rig.clock.advance(end - rig.clock.now());
            }
        }
    };
    alone(&mut rig, 120);
    assert_eq!(rig.server.stats().connections, 1);
    drop(listener);
    alone(&mut rig, 120);
    assert_eq!(rig.server.stats().connections, 0);
    drop(client);
}

#[test]
fn a_listener_is_notified_on_registration_of_waiting_connections() {
    let mut rig = Rig::new();
    let address = SocketAddr::from((SERVER, 80));
    let mut listener = rig.server.with(|scope| {
        SmoltcpTcpListener::bind(&address, &ListenOptions::new(), scope).expect("it is free")
    });
    let _client = rig.client.connect(address);
    rig.until(|_| listener.has_waiting());
    rig.server.take_events();
    rig.server.with(|scope| scope.register(&mut listener, Interest::Readable)).expect("of this");
    rig.turn();
    assert!(rig.server.take_events().iter().any(|events| events.is_readable()));
}

#[test]
fn a_peer_can_reconnect_from_the_same_port() {
    let mut flooded = FloodedHost::new(config(1));
    let mut listener = flooded.host.listen_on((SERVER, 80).into(), 2);
    for round in 0..3 {
        let own = 1_000 * round;
        flooded.send(9, TcpControl::Syn, (own, None));
        flooded.turns(3);
        let said = flooded.received();
        let [(9, "SYN", number)] = said[..] else { panic!("{round}: {said:?}") };
        flooded.send(9, TcpControl::None, (own + 1, Some(number + 1)));
        flooded.turns(2);
        // The host ends first, so its side is the one in TIME-WAIT.
        drop(listener.accept().expect("it has come"));
        flooded.turns(2);
        flooded.send(9, TcpControl::Fin, (own + 1, Some(number + 2)));
        flooded.turns(2);
        assert_eq!(flooded.host.stats().time_wait, 1, "{round}");
        flooded.received();
    }
}

#[test]
fn a_peer_can_reconnect_before_its_reset_is_read() {
    let mut flooded = FloodedHost::new(config(1));
    let mut listener = flooded.host.listen_on((SERVER, 80).into(), 8);
    let mut held = Vec::new();
    for round in 0..3 {
        let own = 1_000 * round;
        // In one turn with the reset of the previous connection.
        flooded.send(9, TcpControl::Syn, (own, None));
        flooded.turns(3);
        let said = flooded.received();
        let [(9, "SYN", number)] = said[..] else { panic!("{round}: {said:?}") };
        flooded.send(9, TcpControl::None, (own + 1, Some(number + 1)));
        flooded.turns(2);
        held.push(listener.accept().expect("it has come").0);
        flooded.send(9, TcpControl::Rst, (own + 1, Some(number + 1)));
    }
    flooded.turns(2);
    for mut one in held {
        let reset = one.read(&mut [0; 9]).expect_err("its peer is gone");
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(flooded.host.stats().connections, 0);
}

#[test]
fn time_wait_lasts_its_full_time_after_a_late_end() {
    let mut rig =
        Rig::with(MemoryConfig::new(), config(1), config(2).linger(Duration::from_secs(3)));
    let (server, client) = rig.pair();
    drop(client);
    rig.pass(Duration::from_secs(2));
    assert_eq!((rig.client.stats().lingering, rig.client.stats().time_wait), (1, 0));
    drop(server);
    rig.pass(Duration::from_secs(9));
    assert_eq!((rig.client.stats().lingering, rig.client.stats().time_wait), (0, 1));
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.client.stats().connections, 0);
}

#[test]
fn connections_in_time_wait_are_limited() {
    let few = config(1).time_wait_max(3);
    let mut rig = Rig::with(MemoryConfig::new(), few, config(2));
    let mut listener = rig.server.listen_on((SERVER, 80).into(), 8);
    for round in 1..=5 {
        let (server, client) = rig.pair_by(&mut listener, (SERVER, 80).into());
        drop(server);
        rig.pass(Duration::from_millis(100));
        drop(client);
        rig.pass(Duration::from_millis(100));
        assert_eq!(rig.server.stats().time_wait, round.min(3));
    }
    assert_eq!(rig.server.stats().time_wait_overflowed, 2);
}

#[test]
fn lingering_connections_are_limited() {
    for (most, count) in [(3, 3), (3, 4), (3, 10), (1, 5), (0, 5)] {
        let mut flooded = FloodedHost::new(config(1).lingering_max(most));
        let mut listener = flooded.host.listen_on((SERVER, 80).into(), 16);
        for port in 1..=count {
            flooded.send(port, TcpControl::Syn, (7, None));
        }
        flooded.turns(3);
        for (port, _, number) in flooded.received() {
            flooded.send(port, TcpControl::None, (8, Some(number + 1)));
        }
        flooded.turns(2);
        let mut sockets = Vec::new();
        for _ in 0..count {
            let (mut socket, peer) = listener.accept().expect("it has come");
            std::io::Write::write_all(&mut socket, b"taken").expect("there is room");
            sockets.push((socket, peer));
        }
        flooded.turns(2);
        flooded.received();
        // Their peers never answer, so the connections do not end by themselves.
        drop(sockets);
        flooded.turns(2);
        let (most, count) = (most.max(1), usize::from(count));
        let stats = flooded.host.stats();
        assert_eq!(stats.lingering, count.min(most), "{count} of {most}");
        assert_eq!(stats.connections, stats.lingering);
        assert_eq!(stats.lingering_overflowed, count.saturating_sub(most) as u64);
        // The connections that were dropped first are reset, in order.
        let said = flooded.received();
        let reset = said.iter().filter(|(_, flags, _)| *flags == "RST").map(|(port, ..)| *port);
        let expected: Vec<u16> = (1..=count.saturating_sub(most) as u16).collect();
        assert_eq!(reset.collect::<Vec<_>>(), expected, "{count} of {most}: {said:?}");
        // The remaining ones end later.
        let end = flooded.clock.now() + Duration::from_secs(31);
        while flooded.clock.now() < end && flooded.clock.step_until(end) {
            flooded.host.turn();
        }
        let stats = flooded.host.stats();
        assert_eq!((stats.lingering, stats.connections), (0, 0));
    }
}

#[test]
fn connections_in_time_wait_do_not_fill_the_stack() {
    let few = |last| config(last).connections_max(2);
    let mut rig = Rig::with(MemoryConfig::new(), few(1), few(2));
    let mut listener = rig.server.listen_on((SERVER, 80).into(), 8);
    for round in 0..4 {
        // The two sides take turns in ending first, and so in entering TIME-WAIT.
        let (server, client) = rig.pair_by(&mut listener, (SERVER, 80).into());
        let (first, second) = if round % 2 == 0 { (server, client) } else { (client, server) };
        drop(first);
        rig.pass(Duration::from_millis(100));
        drop(second);
        rig.pass(Duration::from_millis(100));
    }
    assert!(rig.clock.now() < Time::ZERO + Duration::from_secs(5), "{rig:?}");
    // Connections in use make no room.
    let _held: Vec<_> = (0..2).map(|_| rig.pair_by(&mut listener, (SERVER, 80).into())).collect();
    let full = rig.client.with(|scope| SmoltcpTcpStream::connect(&(SERVER, 80).into(), scope));
    assert_eq!(full.expect_err("it has two").kind(), ErrorKind::OutOfMemory);
}
