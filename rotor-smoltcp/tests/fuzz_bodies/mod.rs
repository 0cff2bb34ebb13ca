//! The body of the fuzz target on devices, as an ordinary function: `fuzz/fuzz_targets/` runs it
//! under libFuzzer, `tests/corpus.rs` calls it on every saved input.

#[path = "../rig/mod.rs"]
mod rig;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown};
use std::time::Duration;

use rig::{CLIENT, Host, SERVER, config, six};
use rotor_core::Interest;
use rotor_core::net::{DatagramSocket, Listener, StreamSocket};
use rotor_smoltcp::{
    Device, ManualClock, Medium, MemoryConfig, MemoryDevice, SmoltcpTcpListener, SmoltcpTcpStream,
    SmoltcpUdpSocket,
};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpAddress, IpProtocol, IpRepr, IpVersion, Ipv4Packet, Ipv6Packet, TcpControl, TcpPacket,
    TcpRepr, TcpSeqNumber,
};

/// A fuzz target: the name of its corpus, and its body.
pub(super) type Target = (&'static str, fn(&[u8]));

pub(super) const TARGETS: [Target; 1] = [("smoltcp_device", smoltcp_device)];

/// Limits of the host: half-open connections, and connections in total.
const BACKLOG: u32 = 4;
const CONNECTIONS_MAX: usize = 6;

/// Arbitrary packets, with actions of machines and pauses between them. Nothing panics, the number
/// of connections stays within its limit, and in the end there are none.
fn smoltcp_device(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let mut data = Input(data);
    let mut stage = Stage::new(mode);
    while let Some(operation) = data.byte() {
        match operation % 4 {
            0 => {
                let len = usize::from(data.byte().unwrap_or(0));
                let packet = data.bytes(len);
                stage.cable.send(packet).expect("a cable takes all");
            }
            1 => stage.segment(&mut data, (CLIENT, SERVER)),
            2 => stage.segment(&mut data, (six(2), six(1))),
            _ => stage.act(data.byte().unwrap_or(0)),
        }
        stage.turn();
    }
    stage.end();
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}

struct Stage {
    clock: ManualClock,
    host: Host,
    cable: MemoryDevice,
    medium: Medium,
    listener: Option<SmoltcpTcpListener>,
    datagrams: SmoltcpUdpSocket,
    streams: Vec<SmoltcpTcpStream>,
    /// From each port of the host to each of ours: the host's next sequence number, and ours.
    numbers: BTreeMap<(u16, u16), (i32, i32)>,
}

impl Stage {
    fn new(mode: u8) -> Stage {
        let clock = ManualClock::new();
        let medium = if mode & 1 == 0 { Medium::Ip } else { Medium::Ethernet };
        let cable = MemoryConfig::new().clock(&clock).medium(medium);
        let (left, cable) = MemoryDevice::pair(&cable).expect("descriptors are left");
        let small = config(1).receive_buffer_bytes(4_096).send_buffer_bytes(4_096);
        let small = small.connections_max(CONNECTIONS_MAX).time_wait_max(2).datagrams_max(4);
        let small = small.verify_checksums(mode & 2 == 0);
        let mut host = Host::open(left, &small, &clock);
        let listener = Some(host.listen_on((SERVER, 80).into(), BACKLOG));
        let datagrams = host.with(|scope| {
            let address = (SERVER, 53).into();
            let mut socket = SmoltcpUdpSocket::bind(&address, scope).expect("it is free");
            scope.register(&mut socket, Interest::Both).expect("of this backend");
            socket
        });
        let (streams, numbers) = (Vec::new(), BTreeMap::new());
        Stage { clock, host, cable, medium, listener, datagrams, streams, numbers }
    }

    /// Sends a segment that is valid except for what the input changes, with numbers near the
    /// expected ones.
    fn segment(&mut self, data: &mut Input<'_>, (from, to): (IpAddr, IpAddr)) {
        let mut byte = || data.byte().unwrap_or(0);
        let (flags, ports, forth, back, window, len) =
            (byte(), byte(), byte() as i8, byte() as i8, byte(), byte());
        let src_port = 1_000 + u16::from(ports & 7);
        let dst_port = [80, 81, 49_152, 53][usize::from(ports >> 6)];
        let (own, theirs) = self.numbers.get(&(dst_port, src_port)).copied().unwrap_or((0, 100));
        let payload = vec![ports; usize::from(len) * 8];
        let segment = TcpRepr {
            src_port,
            dst_port,
            control: match flags & 7 {
                0 => TcpControl::Syn,
                1 => TcpControl::Fin,
                2 => TcpControl::Rst,
                3 => TcpControl::Psh,
                _ => TcpControl::None,
            },
            seq_number: TcpSeqNumber(theirs.wrapping_add(forth.into())),
            ack_number: (flags & 8 == 0).then_some(TcpSeqNumber(own.wrapping_add(back.into()))),
            window_len: u16::from(window) << 6,
            window_scale: (flags & 16 != 0).then_some(window % 15),
            max_seg_size: (flags & 32 != 0).then_some(u16::from(window) * 8),
            sack_permitted: flags & 64 != 0,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &payload,
        };
        let (from, to) = (IpAddress::from(from), IpAddress::from(to));
        let header = IpRepr::new(from, to, IpProtocol::Tcp, segment.buffer_len(), 64);
        let sums = ChecksumCapabilities::default();
        let around = if self.medium == Medium::Ethernet { 14 } else { 0 };
        let mut packet = vec![0; around + header.buffer_len()];
        if around > 0 {
            packet[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
            packet[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
            let is_four = matches!(from, IpAddress::Ipv4(_));
            packet[12..14].copy_from_slice(if is_four { &[0x08, 0] } else { &[0x86, 0xdd] });
        }
        header.emit(&mut packet[around..], &sums);
        let inside = &mut packet[around + header.header_len()..];
        segment.emit(&mut TcpPacket::new_unchecked(inside), &from, &to, &sums);
        self.cable.send(&packet).expect("a cable takes all");
    }

    /// An action of a machine, or a pause.
    fn act(&mut self, what: u8) {
        let mut chunk = [0; 700];
        match what % 8 {
            0 => {
                let accepted = self.listener.as_mut().and_then(|one| one.accept().ok());
                let Some((mut socket, _)) = accepted else { return };
                self.host.register(&mut socket);
                self.streams.push(socket);
            }
            1 => self.streams.iter_mut().for_each(|socket| drop(socket.read(&mut chunk))),
            2 => self.streams.iter_mut().for_each(|socket| drop(socket.write(&chunk))),
            3 => drop(self.streams.pop()),
            4 => self.streams.iter_mut().for_each(|socket| drop(socket.shutdown(Shutdown::Write))),
            5 => {
                let (datagrams, target) = (&mut self.datagrams, (CLIENT, 9).into());
                let _ = datagrams.receive_from(&mut chunk);
                let _ = datagrams.send_to(&chunk[..usize::from(what)], &target);
            }
            6 => {
                let connect = |scope: &mut rotor_core::Scope<'_, rig::Told>| {
                    let mut socket = SmoltcpTcpStream::connect(&(CLIENT, 1_001).into(), scope)?;
                    scope.register(&mut socket, Interest::Both)?;
                    Ok::<_, std::io::Error>(socket)
                };
                self.streams.extend(self.host.with(connect));
            }
            _ => self.pass(Duration::from_millis(u64::from(what) * 50)),
        }
    }

    fn turn(&mut self) {
        self.host.turn();
        self.clock.step_until(self.clock.now());
        self.host.turn();
        self.record_numbers();
        let stats = self.host.stats();
        assert!(stats.connections <= CONNECTIONS_MAX, "{stats:?}");
        assert!(stats.half_open <= BACKLOG as usize && stats.time_wait <= 2, "{stats:?}");
    }

    fn pass(&mut self, time: Duration) {
        let end = self.clock.now() + time;
        while self.clock.now() < end {
            self.host.turn();
            self.record_numbers();
            if !self.clock.step_until(end) {
                self.clock.advance(end - self.clock.now());
            }
        }
    }

    /// Receives the host's packets and records their numbers.
    fn record_numbers(&mut self) {
        let mut buffer = [0; 2_000];
        while let Ok(len) = self.cable.receive(&mut buffer) {
            let around = if self.medium == Medium::Ethernet { 14 } else { 0 };
            let packet = &buffer[around..len];
            // An ARP request.
            if around > 0 && buffer[12..14] == [0x08, 0x06] {
                continue;
            }
            let segment = match IpVersion::of_packet(packet).expect("it sends whole packets") {
                IpVersion::Ipv4 => {
                    let packet = Ipv4Packet::new_checked(packet).expect("as above");
                    (packet.next_header() == IpProtocol::Tcp).then(|| packet.payload().to_vec())
                }
                IpVersion::Ipv6 => {
                    let packet = Ipv6Packet::new_checked(packet).expect("as above");
                    (packet.next_header() == IpProtocol::Tcp).then(|| packet.payload().to_vec())
                }
            };
            let Some(segment) = segment else { continue };
            let segment = TcpPacket::new_checked(&segment[..]).expect("as above");
            let next = segment.seq_number() + segment.segment_len();
            let ports = (segment.src_port(), segment.dst_port());
            self.numbers.insert(ports, (next.0, segment.ack_number().0));
        }
    }

    /// Drops the listener and all streams. Asserts that no connection is left after a while.
    fn end(mut self) {
        self.listener = None;
        self.streams.clear();
        self.pass(Duration::from_secs(120));
        let stats = self.host.stats();
        assert_eq!((stats.connections, stats.half_open, stats.time_wait), (0, 0, 0), "{stats:?}");
    }
}
