//! A stack on a device with segmentation and checksum offload, connected to one on a plain device.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rotor_core::net::ReadBuf;
use rotor_core::{EventSet, Time, Token};

use super::super::super::layers::Layers;
use super::super::header::{ChecksumPlace, Header, SegmentKind, Segments};
use super::{cut, datagram};
use crate::clock::{LoopClock, ManualClock};
use crate::config::StackConfig;
use crate::device::{Device, Medium, MemoryConfig, MemoryDevice};
use crate::slots::Id;
use crate::stack::Stack;

/// One end of a cable, as a device with segmentation and checksum offload. Arriving packets have a
/// header in front; those that the test has put into `uncut` arrive unsplit.
struct OffloadingDevice {
    cable: MemoryDevice,
    uncut: VecDeque<Vec<u8>>,
}

impl Device for OffloadingDevice {
    fn name(&self) -> &str {
        "cutting"
    }

    fn medium(&self) -> Medium {
        self.cable.medium()
    }

    fn mtu(&self) -> usize {
        self.cable.mtu()
    }

    fn has_virtio_header(&self) -> bool {
        true
    }

    fn receive(&mut self, packet: &mut [u8]) -> io::Result<usize> {
        if let Some(bytes) = self.uncut.pop_front() {
            packet[..bytes.len()].copy_from_slice(&bytes);
            return Ok(bytes.len());
        }
        let header = Header::default().bytes();
        packet[..header.len()].copy_from_slice(&header);
        Ok(header.len() + self.cable.receive(&mut packet[header.len()..])?)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        for one in cut(self.medium(), packet) {
            self.cable.send(&one)?;
        }
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.cable.descriptor()
    }

    fn next_arrival(&self) -> Option<Time> {
        self.cable.next_arrival()
    }
}

const OURS: [u8; 4] = [10, 0, 0, 2];
const THEIRS: [u8; 4] = [10, 0, 0, 1];

/// Two stacks. Ours uses the offloading device.
struct StackPair {
    clock: ManualClock,
    ours: Stack,
    theirs: Stack,
}

impl StackPair {
    fn new(cable: MemoryConfig, uncut: Vec<Vec<u8>>) -> StackPair {
        let clock = ManualClock::new();
        let cable = cable.clock(&clock);
        let (left, right) = MemoryDevice::pair(&cable).expect("descriptors are left");
        let open = |device: Box<dyn Device>, [a, b, c, d]: [u8; 4]| {
            let six = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, d.into()]);
            let config = StackConfig::new()
                .address(IpAddr::from([a, b, c, d]), 24)
                .address(six, 64)
                .hardware_address([2, 0, 0, 0, 0, d])
                .seed(d.into());
            Stack::open(device, &config, LoopClock::Manual(clock.clone())).expect("it is in order")
        };
        let ours = open(Box::new(OffloadingDevice { cable: left, uncut: uncut.into() }), OURS);
        let theirs = open(Box::new(right), THEIRS);
        StackPair { clock, ours, theirs }
    }

    fn turn(&mut self) {
        let mut ready = Vec::<(Token, EventSet)>::new();
        for stack in [&mut self.ours, &mut self.theirs] {
            stack.begin_wait(None).expect("the cable is in");
            stack.end_wait(None, false, &mut ready).expect("the cable is in");
        }
        self.clock.step();
    }

    /// A connection to our stack: our end, and the other one.
    fn connect(&mut self, target: IpAddr) -> (Id, Id) {
        let listener = self.ours.listen((target, 80).into(), 8).expect("it is free");
        let theirs = self.theirs.connect((target, 80).into()).expect("there is room");
        for _ in 0..10_000 {
            if let Ok((ours, _)) = self.ours.accept(listener) {
                return (ours, theirs);
            }
            self.turn();
        }
        panic!("nobody came: {:?}", self.ours.stats());
    }
}

/// Writes and reads as much as possible.
fn transfer(from: (&mut Stack, Id), to: (&mut Stack, Id), bytes: &[u8], at: &mut [usize; 2]) {
    let [sent, got] = at;
    match from.0.write(from.1, &[IoSlice::new(&bytes[*sent..])]) {
        Ok(count) => *sent += count,
        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
    }
    let mut chunk = [0; 9_000];
    let mut count = 0;
    let mut buf = ReadBuf::new(&mut chunk, &mut count);
    match to.0.read(to.1, &mut buf) {
        Ok(()) => {
            assert!(chunk[..count] == bytes[*got..*got + count], "at byte {got}");
            *got += count;
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
    }
}

#[test]
fn all_bytes_arrive_in_both_directions_despite_faults() {
    let bytes: Vec<u8> = (0..1_000_000).map(|byte: u32| (byte % 251) as u8).collect();
    let worse = MemoryConfig::new().lost(20).doubled(20).delayed(20, Duration::from_millis(2));
    for (cable, is_bad) in [
        (MemoryConfig::new(), false),
        (MemoryConfig::new().medium(Medium::Ethernet), false),
        (worse.clone(), true),
        (worse.corrupted(20).mtu(1_280), true),
    ] {
        for target in [IpAddr::from(OURS), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 2])] {
            let mut two = StackPair::new(cable.clone(), Vec::new());
            let (ours, theirs) = two.connect(target);
            let (mut there, mut here) = ([0; 2], [0; 2]);
            for _ in 0..1_000_000 {
                let StackPair { ours: left, theirs: right, .. } = &mut two;
                transfer((left, ours), (right, theirs), &bytes, &mut there);
                transfer((right, theirs), (left, ours), &bytes, &mut here);
                if (there[1], here[1]) == (bytes.len(), bytes.len()) {
                    break;
                }
                two.turn();
            }
            assert_eq!((there[1], here[1]), (bytes.len(), bytes.len()));
            let stats = two.ours.stats();
            assert!(stats.merged > 100, "{stats:?}");
            assert!(is_bad || stats.refused + stats.headers_refused == 0, "{stats:?}");
        }
    }
}

#[test]
fn packets_of_an_offloading_device_are_counted() {
    let payload: Vec<u8> = (0..3_000).map(|byte| byte as u8).collect();
    let version = smoltcp::wire::IpVersion::Ipv4;
    let datagrams = datagram(Medium::Ip, version, &payload);
    let layers = Layers::parse(Medium::Ip, &datagrams).expect("it is a packet");
    let needs_checksum = Some(ChecksumPlace { start: layers.transport as u16, offset: 6 });
    let header = |payload| {
        let segments = Some(Segments { kind: SegmentKind::Udp, headers: 28, payload });
        Header { needs_checksum, segments, is_verified: false }.bytes()
    };
    let mut wrong = datagram(Medium::Ip, version, b"bytes");
    wrong[30] ^= 1;
    let uncut = vec![
        [&header(1_000)[..], &datagrams].concat(),
        [&header(1)[..], &datagrams].concat(),
        [&Header::default().bytes()[..], &wrong].concat(),
        vec![7; 9],
        vec![0xff; 60],
    ];
    let mut two = StackPair::new(MemoryConfig::new(), uncut);
    let socket = two.ours.bind_datagrams((IpAddr::from(OURS), 4_096).into()).expect("it is free");
    two.turn();
    let stats = two.ours.stats();
    assert_eq!((stats.received, stats.received_large), (5, 1));
    assert_eq!((stats.headers_refused, stats.refused), (3, 1));
    let mut got = Vec::new();
    let mut chunk = [0; 2_000];
    while let Ok((len, from)) = two.ours.receive_from(socket, &mut chunk) {
        assert_eq!((len, from), (1_000, (IpAddr::from(THEIRS), 53).into()));
        got.extend_from_slice(&chunk[..len]);
    }
    assert!(got == payload);
}
