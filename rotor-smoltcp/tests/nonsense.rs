//! Malformed packets of every kind, one at a time, to a host that continues to serve.
#![forbid(unsafe_code)]

mod rig;

use rig::{Rig, SERVER};
use rotor_core::net::StreamSocket;
use rotor_smoltcp::{Device, ManualClock, Medium, MemoryConfig, MemoryDevice};
use std::io::Write;
use std::time::Duration;

/// An IPv4 packet from 10.0.0.2 to 10.0.0.1, with a valid header except for `change`.
fn packet(protocol: u8, payload: &[u8], change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
    packet.extend(payload);
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    change(&mut packet);
    let header = (usize::from(packet[0] & 15) * 4).min(packet.len());
    let sum = checksum(&packet[..header]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn checksum(bytes: &[u8]) -> u16 {
    let pairs =
        bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)));
    let mut sum: u32 = pairs.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A segment to port 80, with its checksum.
fn segment(flags: u8, offset: u8, options: &[u8]) -> Vec<u8> {
    let mut segment =
        vec![0x10, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, offset << 4, flags, 16, 0, 0, 0, 0, 0];
    segment.extend(options);
    let mut all = vec![10, 0, 0, 2, 10, 0, 0, 1, 0, 6, 0, segment.len() as u8];
    all.extend(&segment);
    let sum = checksum(&all);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    segment
}

fn table() -> Vec<(&'static str, Vec<u8>)> {
    let as_is = |_: &mut Vec<u8>| {};
    let syn = || segment(2, 5, &[]);
    let with = |change: fn(&mut Vec<u8>)| packet(6, &syn(), change);
    vec![
        ("nothing but a byte", vec![0x45]),
        ("a version that there is not", vec![0x75; 40]),
        ("a header shorter than a header", with(|packet| packet[0] = 0x44)),
        ("a header longer than the packet", with(|packet| packet[0] = 0x4f)),
        ("a length beyond the packet", with(|packet| packet[2] = 0xff)),
        ("a length within the header", with(|packet| packet[3] = 19)),
        ("a time to live of none", with(|packet| packet[8] = 0)),
        ("from nowhere", with(|packet| packet[12..16].fill(0))),
        ("from everybody", with(|packet| packet[12..16].fill(255))),
        ("from a group", with(|packet| packet[12] = 224)),
        ("from the host itself", with(|packet| packet[15] = 1)),
        ("to everybody", with(|packet| packet[16..20].fill(255))),
        ("to the network", with(|packet| packet[19] = 255)),
        ("to a group", with(|packet| packet[16] = 224)),
        ("to somebody else", with(|packet| packet[19] = 77)),
        ("a first fragment", with(|packet| packet[6] = 0x20)),
        ("a last fragment", with(|packet| packet[7] = 9)),
        ("a protocol that there is not", packet(255, &[1; 60], as_is)),
        ("a protocol that is reserved", packet(0, &[1; 60], as_is)),
        ("a segment cut short", packet(6, &syn()[..13], as_is)),
        ("an empty segment", packet(6, &[], as_is)),
        ("an offset within the header", packet(6, &segment(2, 4, &[]), as_is)),
        ("an offset beyond the segment", packet(6, &segment(2, 15, &[]), as_is)),
        ("no flag", packet(6, &segment(0, 5, &[]), as_is)),
        ("all flags", packet(6, &segment(0xff, 5, &[]), as_is)),
        ("SYN and FIN", packet(6, &segment(3, 5, &[]), as_is)),
        ("SYN and RST", packet(6, &segment(6, 5, &[]), as_is)),
        ("an acknowledgement of nothing", packet(6, &segment(16, 5, &[]), as_is)),
        ("a reset of nothing", packet(6, &segment(4, 5, &[]), as_is)),
        ("an option of no length", packet(6, &segment(2, 6, &[5, 0, 0, 0]), as_is)),
        ("an option beyond the header", packet(6, &segment(2, 6, &[2, 40, 5, 180]), as_is)),
        ("segments of no byte", packet(6, &segment(2, 6, &[2, 4, 0, 0]), as_is)),
        ("segments of one byte", packet(6, &segment(2, 6, &[2, 4, 0, 1]), as_is)),
        ("a scale beyond all", packet(6, &segment(2, 6, &[3, 3, 255, 0]), as_is)),
        (
            "ranges that end before they begin",
            packet(6, &segment(2, 8, &[5, 10, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0]), as_is),
        ),
        ("a datagram cut short", packet(17, &[0, 1, 0, 53, 0, 99, 0, 0], as_is)),
        ("a datagram shorter than its header", packet(17, &[0, 1, 0, 53, 0, 1, 0, 0], as_is)),
        ("a datagram to port 0", packet(17, &[0, 0, 0, 0, 0, 8, 0, 0], as_is)),
        ("a ping cut short", packet(1, &[8, 0, 0], as_is)),
        ("an answer to no ping", packet(1, &[0, 0, 255, 255, 0, 0, 0, 0], as_is)),
        (
            "unreachable, says somebody, with nothing",
            packet(1, &[3, 1, 252, 254, 0, 0, 0, 0], as_is),
        ),
        ("IPv6 of no length", [&[0x60, 0, 0, 0, 0, 0, 6, 64][..], &[0xfd; 32]].concat()),
        (
            "IPv6, options without end",
            [&[0x60, 0, 0, 0, 0, 8, 0, 64][..], &[0xfd; 32], &[0, 255, 0, 0, 0, 0, 0, 0]].concat(),
        ),
        (
            "IPv6, a header behind each",
            [
                &[0x60, 0, 0, 0, 0, 16, 0, 64][..],
                &[0xfd; 32],
                &[0, 0, 1, 4, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0],
            ]
            .concat(),
        ),
        (
            "IPv6, a neighbour without an address",
            [&[0x60, 0, 0, 0, 0, 24, 58, 255][..], &[0xfd; 32], &[135; 24]].concat(),
        ),
    ]
}

#[test]
fn a_host_survives_malformed_packets() {
    for medium in [Medium::Ip, Medium::Ethernet] {
        for (name, packet) in table() {
            eprintln!("{name}");
            let mut rig = Rig::on(MemoryConfig::new().medium(medium));
            let clock: ManualClock = rig.clock.clone();
            let mut listener = rig.server.listen_on((SERVER, 80).into(), 4);
            let before = rig.pair_by(&mut listener, (SERVER, 80).into());
            // The test sends the packet itself, on the cable of a separate host.
            let cable = MemoryConfig::new().medium(medium).clock(&clock);
            let (left, mut cable) = MemoryDevice::pair(&cable).expect("descriptors are left");
            let mut host = rig::Host::open(left, &rig::config(1), &clock);
            let listener_socket = host.listen_on((SERVER, 80).into(), 4);
            let mut frame = Vec::new();
            if medium == Medium::Ethernet {
                frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
                frame.extend(if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [0x08, 0] });
            }
            frame.extend(&packet);
            for len in [frame.len(), frame.len() - 1, frame.len() / 2] {
                cable.send(&frame[..len]).expect("a cable takes all");
                (0..3).for_each(|_| host.turn());
            }
            assert!(host.stats().half_open <= 1 && host.stats().accepted == 0, "{name}");
            drop(listener_socket);
            let end = clock.now() + Duration::from_secs(60);
            while clock.now() < end && clock.step_until(end) {
                host.turn();
            }
            assert_eq!(host.stats().connections, 0, "{name}");
            drop(before);
        }
    }
}

#[test]
fn a_host_can_connect_to_itself() {
    let (clock, cable) = (ManualClock::new(), MemoryConfig::new());
    let alone = MemoryDevice::loopback(&cable.clock(&clock)).expect("descriptors are left");
    let mut host = rig::Host::open(alone, &rig::config(1), &clock);
    let mut listener = host.listen_on((SERVER, 80).into(), 4);
    let mut client = host.connect((SERVER, 80).into());
    let mut server = None;
    while server.is_none() || !client.has_connected().expect("it is taken") {
        host.turn();
        server = server.or_else(|| rig::not_yet(rotor_core::net::Listener::accept(&mut listener)));
        assert!(clock.step());
    }
    client.write_all(b"to myself").expect("there is room");
    let mut server = server.expect("as asked").0;
    let mut got = [0; 9];
    while rig::not_yet(std::io::Read::read(&mut server, &mut got)).is_none() {
        host.turn();
        assert!(clock.step());
    }
    assert_eq!(&got, b"to myself");
    assert_eq!(host.stats().refused, 0);
}
