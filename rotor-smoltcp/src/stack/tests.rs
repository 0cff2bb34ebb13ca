//! State of a stack that no socket shows.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rotor_core::{Backend, EventSet, Token};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, Icmpv4Message, Icmpv4Packet, IpVersion,
    Ipv4Address, Ipv4Packet, TcpPacket,
};

use super::packets::{ACK, SYN, VERSIONS, datagram, ends, segment, with_unknown_option};
use super::random::Random;
use super::wire::Wire;
use super::{SocketKind, Stack, Wait};
use crate::backend::Smoltcp;
use crate::clock::{LoopClock, ManualClock};
use crate::config::StackConfig;
use crate::device::{Device, ETHERNET_HEADER, Medium, MemoryConfig, MemoryDevice};
use crate::slots::Id;

/// Takes turns until the condition holds.
fn until(stack: &mut Stack, clock: &ManualClock, mut is_so: impl FnMut(&mut Stack) -> bool) {
    let mut ready = Vec::<(Token, EventSet)>::new();
    for _ in 0..10_000 {
        if is_so(stack) {
            return;
        }
        stack.begin_wait(None).expect("the cable is in");
        stack.end_wait(None, false, &mut ready).expect("the cable is in");
        clock.step();
    }
    panic!("it does not come to that: {:?}", stack.stats());
}

#[test]
fn ended_connections_leave_no_state() {
    let clock = ManualClock::new();
    let cable = MemoryConfig::new().clock(&clock);
    let device = Box::new(MemoryDevice::loopback(&cable).expect("descriptors are left"));
    let own = IpAddr::from([10, 0, 0, 1]);
    let config = StackConfig::new().address(own, 24).seed(1);
    let mut stack = Stack::open(device, &config, LoopClock::Manual(clock.clone())).expect("good");
    let listener = stack.listen((own, 80).into(), 8).expect("it is free");
    for _ in 0..200 {
        let client = stack.connect((own, 80).into()).expect("there is room");
        let mut server: Option<Id> = None;
        until(&mut stack, &clock, |stack| {
            server = server.or_else(|| stack.accept(listener).ok().map(|(id, _)| id));
            server.is_some() && stack.is_connected(client)
        });
        stack.drop_socket(SocketKind::Stream, client);
        until(&mut stack, &clock, |stack| stack.stats().received % 2 == 0);
        stack.drop_socket(SocketKind::Stream, server.expect("as asked"));
        until(&mut stack, &clock, |stack| stack.stats().connections == 0);
        // Its socket is free for others; its TIME-WAIT entry stays for a while.
        assert_eq!(stack.stats().time_wait, 1);
        until(&mut stack, &clock, |stack| stack.stats().time_wait == 0);
    }
    assert_eq!(stack.stats().lingering, 0);
    assert!(stack.lingering.len() < 50, "{} of them", stack.lingering.len());
    let attempts =
        stack.listeners.get(listener).map_or(0, |listener_socket| listener_socket.attempts.len());
    assert!(attempts < 50, "{attempts} of them");
    assert!(stack.due.is_empty() && stack.flows.is_empty());
}

/// A device that reports an unlimited packet length. It delivers `empty_ones` packets without
/// bytes.
struct EndlessDevice {
    empty_ones: usize,
}

impl Device for EndlessDevice {
    fn name(&self) -> &str {
        "endless"
    }

    fn medium(&self) -> Medium {
        Medium::Ethernet
    }

    fn mtu(&self) -> usize {
        usize::MAX
    }

    fn receive(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.empty_ones = self.empty_ones.checked_sub(1).ok_or(io::ErrorKind::WouldBlock)?;
        Ok(0)
    }

    fn send(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[test]
fn the_mtu_is_limited_to_the_ip_maximum() {
    // The MTU of `lo` is 65,536.
    let clock = LoopClock::Manual(ManualClock::new());
    let device = Box::new(EndlessDevice { empty_ones: 0 });
    assert_eq!(Wire::new(device, true, clock).mtu(), 65_535);
}

/// A stack on Ethernet without any other host.
fn isolated_stack() -> (Stack, ManualClock) {
    stack_on(EndlessDevice { empty_ones: 0 })
}

fn stack_on(device: EndlessDevice) -> (Stack, ManualClock) {
    let clock = ManualClock::new();
    let config = StackConfig::new().address(IpAddr::from([10, 0, 0, 1]), 24).seed(1);
    let stack = Stack::open(Box::new(device), &config, LoopClock::Manual(clock.clone()));
    (stack.expect("good"), clock)
}

#[test]
fn a_flood_of_empty_packets_does_not_starve_the_loop() {
    let (mut stack, _) = stack_on(EndlessDevice { empty_ones: 1_000_000 });
    let wait = stack.begin_wait(None).expect("the device is there");
    let stats = stack.stats();
    assert_eq!((stats.received, stats.refused, wait), (256, 256, Wait::Poll));
    assert!(stack.may_have_more());
}

/// Takes a turn, then lets `time` pass.
fn turn(stack: &mut Stack, clock: &ManualClock, time: Duration) {
    stack.begin_wait(None).expect("the device is there");
    stack.end_wait(None, false, &mut Vec::new()).expect("the device is there");
    clock.advance(time);
}

#[test]
fn a_socket_with_unresolved_targets_is_listed_once() {
    let (mut stack, clock) = isolated_stack();
    let id = stack.bind_datagrams(([10, 0, 0, 1], 53).into()).expect("it is free");
    for number in 0..2_000_u32 {
        // A new target each second, since a waiting datagram is given up after three seconds.
        let nowhere = ([10, 0, 0, (number / 100 + 2) as u8], 53).into();
        let sent = stack.send_to(id, b"?", Some(nowhere)).map_err(|error| error.kind());
        assert!(matches!(sent, Ok(1) | Err(io::ErrorKind::WouldBlock)), "{sent:?}");
        turn(&mut stack, &clock, Duration::from_millis(10));
        assert!(stack.unresolved_datagrams.len() <= 1, "{}", stack.unresolved_datagrams.len());
    }
    let (before, waits) =
        (stack.stats().unsent, stack.datagrams.get(id).map(|one| one.queue.len()));
    stack.drop_socket(SocketKind::Datagram, id);
    let lost = (stack.stats().unsent - before) as usize;
    assert!(lost > 0 && Some(lost) == waits, "{lost} of {waits:?} are counted");
}

#[test]
fn a_lost_address_request_is_repeated_while_the_loop_sleeps() {
    let (mut stack, clock) = isolated_stack();
    let id = stack.bind_datagrams(([10, 0, 0, 1], 53).into()).expect("it is free");
    stack.send_to(id, b"?", Some(([10, 0, 0, 2], 53).into())).expect("there is room");
    // Asked for three times, then lost.
    for asked_for in 1..=3 {
        let wait = stack.begin_wait(None).expect("the device is there");
        assert_eq!(wait, Wait::AtMost(Duration::from_secs(1)));
        assert_eq!(stack.stats().sent, asked_for);
        clock.advance(Duration::from_secs(1));
        stack.end_wait(None, false, &mut Vec::new()).expect("the device is there");
    }
}

#[test]
fn abandoned_connections_to_unknown_hosts_leave_no_state() {
    let (mut stack, clock) = isolated_stack();
    for number in 0..500_u32 {
        let nowhere = ([10, 0, 0, (number % 200 + 2) as u8], 80).into();
        let id = stack.connect(nowhere).expect("there is room");
        turn(&mut stack, &clock, Duration::from_secs(1));
        stack.drop_socket(SocketKind::Stream, id);
        turn(&mut stack, &clock, Duration::from_secs(1));
        assert!(stack.unresolved.len() < 100, "{} of them", stack.unresolved.len());
    }
}

/// A stack at the address to which test packets go. Nobody answers its packets.
pub(super) fn stack_with_cable(
    medium: Medium,
    config: StackConfig,
) -> (Stack, ManualClock, MemoryDevice) {
    let clock = ManualClock::new();
    let cable = MemoryConfig::new().clock(&clock).medium(medium).packets_max(100_000);
    let (device, other_end) = MemoryDevice::pair(&cable).expect("descriptors are left");
    let config = config
        .address(IpAddr::from([10, 0, 0, 2]), 24)
        .address(IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 2]), 64)
        .seed(1);
    let clock_of_loop = LoopClock::Manual(clock.clone());
    let stack = Stack::open(Box::new(device), &config, clock_of_loop).expect("good");
    (stack, clock, other_end)
}

#[test]
fn rejections_of_unwanted_packets_are_rate_limited() {
    for version in VERSIONS {
        let first = segment(Medium::Ip, version, 1, SYN, b"");
        let strange = segment(Medium::Ip, version, 1, ACK, b"x");
        for packet in [first, strange, datagram(Medium::Ip, version, b"x")] {
            let (mut stack, clock, _other_end) =
                stack_with_cable(Medium::Ip, StackConfig::new().rejections_per_second(100));
            let answered = |stack: &mut Stack, count: u64| {
                let before = stack.stats();
                (0..count).for_each(|_| stack.handle_packet(&packet));
                let (sent, withheld) = (
                    stack.stats().sent - before.sent,
                    stack.stats().rejections_withheld - before.rejections_withheld,
                );
                assert_eq!(sent + withheld, count);
                sent
            };
            assert!((60..150).contains(&answered(&mut stack, 5_000)));
            assert!(answered(&mut stack, 5_000) <= 1);
            clock.advance(Duration::from_secs(1));
            assert!((60..150).contains(&answered(&mut stack, 5_000)));
            clock.advance(Duration::from_secs(3_600));
            assert!((60..150).contains(&answered(&mut stack, 5_000)));
        }
    }
}

#[test]
fn errors_about_unknown_options_are_rate_limited() {
    for is_tied in [false, true] {
        let config = StackConfig::new().rejections_per_second(100);
        let (mut stack, _clock, _other_end) = stack_with_cable(Medium::Ip, config);
        let (from, to) = ends(IpVersion::Ipv6);
        let id = stack.bind_datagrams((IpAddr::from(to), 4_096).into()).expect("it is free");
        if is_tied {
            let peer = (IpAddr::from(from), 53).into();
            stack.connect_datagrams(id, peer).expect("there is a way");
        }
        // The error goes to the apparent sender, although the port exists.
        let packet = with_unknown_option(&datagram(Medium::Ip, IpVersion::Ipv6, b"x"));
        (0..5_000).for_each(|_| stack.handle_packet(&packet));
        let (sent, withheld) = (stack.stats().sent, stack.stats().rejections_withheld);
        assert!((60..150).contains(&sent), "{sent}");
        assert_eq!(sent + withheld, 5_000);
        assert!(stack.receive_from(id, &mut [0; 9]).is_err(), "it was thrown away");
    }
}

#[test]
fn rejections_of_a_half_open_connection_are_rate_limited() {
    let config = StackConfig::new().rejections_per_second(100);
    let (mut stack, _clock, _other_end) = stack_with_cable(Medium::Ip, config);
    stack.listen(([10, 0, 0, 2], 4_096).into(), 8).expect("it is free");
    let version = IpVersion::Ipv4;
    let mut first = segment(Medium::Ip, version, 1, SYN, b"");
    // Without an acknowledgement number, which a SYN does not have.
    first[28..32].fill(0);
    TcpPacket::new_unchecked(&mut first[20..]).fill_checksum(&ends(version).0, &ends(version).1);
    stack.handle_packet(&first);
    stack.send_all();
    let before = stack.stats();
    assert_eq!((before.half_open, before.sent), (1, 1));
    // It acknowledges bytes that were not sent.
    let wrong = segment(Medium::Ip, version, 2, ACK, b"");
    (0..5_000).for_each(|_| stack.handle_packet(&wrong));
    let sent = stack.stats().sent - before.sent;
    assert!((60..150).contains(&sent), "{sent}");
    assert_eq!(stack.stats().rejections_withheld, 5_000 - sent);
}

/// The sender of test packets asks for the stack's hardware address, which also announces its own.
pub(super) fn arp_request() -> Vec<u8> {
    let arp_request = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_hardware_addr: EthernetAddress([2; 6]),
        source_protocol_addr: Ipv4Address::new(10, 0, 0, 1),
        target_hardware_addr: EthernetAddress([0; 6]),
        target_protocol_addr: Ipv4Address::new(10, 0, 0, 2),
    };
    let mut frame = [&[0xff; 6][..], &[2; 6], &[0x08, 0x06]].concat();
    frame.resize(ETHERNET_HEADER + arp_request.buffer_len(), 0);
    arp_request.emit(&mut ArpPacket::new_unchecked(&mut frame[ETHERNET_HEADER..]));
    frame
}

#[test]
fn ping_and_arp_are_answered_when_no_rejections_are_allowed() {
    let config = StackConfig::new().rejections_per_second(0);
    let (mut stack, _clock, _other_end) = stack_with_cable(Medium::Ethernet, config);
    let arp_request = arp_request();
    (0..100).for_each(|_| stack.handle_packet(&arp_request));
    assert_eq!((stack.stats().sent, stack.stats().rejections_withheld), (100, 0));
    let mut ping = datagram(Medium::Ethernet, IpVersion::Ipv4, b"as long");
    ping[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    let ip = ETHERNET_HEADER;
    ping[ip + 9] = 1;
    Ipv4Packet::new_unchecked(&mut ping[ip..]).fill_checksum();
    let mut echo = Icmpv4Packet::new_unchecked(&mut ping[ip + 20..]);
    echo.set_msg_type(Icmpv4Message::EchoRequest);
    echo.set_msg_code(0);
    echo.fill_checksum();
    (0..100).for_each(|_| stack.handle_packet(&ping));
    assert_eq!((stack.stats().sent, stack.stats().rejections_withheld), (200, 0));
    let mut unwanted = datagram(Medium::Ethernet, IpVersion::Ipv4, b"x");
    unwanted[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    (0..100).for_each(|_| stack.handle_packet(&unwanted));
    assert_eq!((stack.stats().sent, stack.stats().rejections_withheld), (200, 100));
}

#[test]
fn the_port_of_a_connected_socket_looks_closed_to_strangers() {
    for (peer, answers) in
        [(([10, 0, 0, 9], 53), 1), (([10, 0, 0, 1], 54), 1), (([10, 0, 0, 1], 53), 0)]
    {
        let (mut stack, _clock, _other_end) = stack_with_cable(Medium::Ip, StackConfig::new());
        let id = stack.bind_datagrams(([10, 0, 0, 2], 4_096).into()).expect("it is free");
        stack.connect_datagrams(id, peer.into()).expect("there is a way");
        stack.handle_packet(&datagram(Medium::Ip, IpVersion::Ipv4, b"x"));
        assert_eq!(stack.stats().sent, answers, "tied to {peer:?}");
        let received = stack.receive_from(id, &mut [0; 9]).is_ok();
        assert_eq!(received, answers == 0);
    }
}

#[test]
fn broadcast_and_multicast_segments_get_no_answer() {
    for (version, to) in [
        (IpVersion::Ipv4, IpAddr::from([255, 255, 255, 255])),
        (IpVersion::Ipv4, IpAddr::from([10, 0, 0, 255])),
        (IpVersion::Ipv4, IpAddr::from([224, 0, 0, 1])),
        (IpVersion::Ipv6, IpAddr::from([0xff02, 0, 0, 0, 0, 0, 0, 1])),
    ] {
        for flags in [SYN, ACK, SYN | ACK] {
            let (mut stack, _clock, _other_end) = stack_with_cable(Medium::Ip, StackConfig::new());
            stack.listen(([0, 0, 0, 0], 4_096).into(), 8).expect("it is free");
            let packet = segment_to(version, to, flags);
            stack.handle_packet(&packet);
            stack.send_all();
            assert_eq!((stack.stats().sent, stack.stats().connections), (0, 0), "{to}, {flags}");
        }
    }
}

/// A segment to another address than the stack's, with valid checksums.
fn segment_to(version: IpVersion, to: IpAddr, flags: u8) -> Vec<u8> {
    let mut packet = segment(Medium::Ip, version, 1, flags, b"");
    let header = match (version, to) {
        (IpVersion::Ipv4, IpAddr::V4(to)) => {
            packet[16..20].copy_from_slice(&to.octets());
            Ipv4Packet::new_unchecked(&mut packet[..]).fill_checksum();
            20
        }
        (_, IpAddr::V6(to)) => {
            packet[24..40].copy_from_slice(&to.octets());
            40
        }
        _ => panic!("of the same version"),
    };
    TcpPacket::new_unchecked(&mut packet[header..]).fill_checksum(&ends(version).0, &to.into());
    packet
}

/// The numbers that smoltcp draws from a seed (`smoltcp::rand`, sPCG32).
fn generator_numbers(seed: u64) -> impl Iterator<Item = i32> {
    let next =
        |state: &u64| Some(state.wrapping_mul(0xbb2e_fcec_3c39_611d).wrapping_add(0x7590_ef39));
    let states = std::iter::successors(Some(seed), next).skip(1);
    states.map(|state| (state >> (29 - (state >> 61))) as i32)
}

#[test]
fn initial_sequence_numbers_are_unrelated() {
    let (mut stack, _clock, mut other_end) = stack_with_cable(Medium::Ip, StackConfig::new());
    stack.listen(([10, 0, 0, 2], 4_096).into(), 100).expect("it is free");
    // The numbers that a single generator would give: that of the interface.
    let seed = Random::new(Some(1)).next_number().expect("it is seeded");
    let known: BTreeSet<i32> = generator_numbers(seed).take(1_000).collect();
    let (version, mut numbers) = (IpVersion::Ipv4, BTreeSet::new());
    for port in 1..=50 {
        stack.connect(([10, 0, 0, 1], 80).into()).expect("there is room");
        let mut first = segment(Medium::Ip, version, 1, SYN, b"");
        first[20..22].copy_from_slice(&u16::to_be_bytes(port));
        first[28..32].fill(0);
        let (from, to) = ends(version);
        TcpPacket::new_unchecked(&mut first[20..]).fill_checksum(&from, &to);
        stack.handle_packet(&first);
        stack.send_all();
        let mut packet = [0; 2_000];
        while let Ok(len) = other_end.receive(&mut packet) {
            let begins = TcpPacket::new_checked(&packet[20..len]).expect("it sends segments");
            numbers.insert(begins.seq_number().0);
        }
    }
    assert_eq!(numbers.len(), 100);
    assert_eq!(numbers.intersection(&known).count(), 0);
}

/// A device that panics whenever something is sent.
struct BrokenDevice;

impl Device for BrokenDevice {
    fn name(&self) -> &str {
        "broken"
    }

    fn medium(&self) -> Medium {
        Medium::Ip
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn receive(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn send(&mut self, _: &[u8]) -> io::Result<()> {
        panic!("it is broken")
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A dropped loop or stack sends what was written last. A panic of the device drops them, too.
#[test]
fn a_panic_of_a_device_does_not_abort_the_process() {
    let target = ([10, 0, 0, 2], 80).into();
    let own = IpAddr::from([10, 0, 0, 1]);
    let config = StackConfig::new().address(own, 24).seed(1);
    let write = |stack: &mut Stack| {
        stack.connect(target).expect("there is room");
        let socket = stack.bind_datagrams((own, 0).into()).expect("there are ports");
        stack.send_to(socket, b"x", Some(target)).expect("there is room");
    };
    let clock = ManualClock::new();
    let of_stack = || {
        let clock = LoopClock::Manual(clock.clone());
        let mut stack = Stack::open(Box::new(BrokenDevice), &config, clock).expect("good");
        write(&mut stack);
        stack.begin_wait(None).map(drop)
    };
    let of_loop = || {
        let mut backend = Smoltcp::in_virtual_time(BrokenDevice, &config, &clock).expect("good");
        write(&mut backend.handle().expect("there is one").shared().stack());
        backend.wait(None, &mut Vec::new())
    };
    let each: [&dyn Fn() -> io::Result<()>; 2] = [&of_stack, &of_loop];
    for run in each {
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it is broken");
        assert_eq!(panic.downcast_ref(), Some(&"it is broken"));
    }
}
