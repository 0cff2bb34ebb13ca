//! What a stack holds where no socket shows it.

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rotor_core::{EventSet, Token};

use super::wire::Wire;
use super::{Kind, Stack, Wait};
use crate::clock::{LoopClock, ManualClock};
use crate::config::StackConfig;
use crate::device::{Device, Medium, MemoryConfig, MemoryDevice};
use crate::slots::Id;

/// Takes turns until it is so.
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
fn connections_that_have_ended_leave_nothing_behind() {
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
        stack.drop_socket(Kind::Stream, client);
        until(&mut stack, &clock, |stack| stack.stats().received % 2 == 0);
        stack.drop_socket(Kind::Stream, server.expect("as asked"));
        until(&mut stack, &clock, |stack| stack.stats().connections == 0);
    }
    assert_eq!(stack.stats().time_wait, 0);
    assert!(stack.kept.len() < 50, "{} of them", stack.kept.len());
    assert!(stack.due.is_empty() && stack.flows.is_empty());
}

/// A device that says that its packets may be as long as one likes. So many come, which have no bytes.
struct Endless {
    empty_ones: usize,
}

impl Device for Endless {
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
fn no_packet_is_longer_than_ip_can_say() {
    // `lo` has 65,536.
    assert_eq!(Wire::new(Box::new(Endless { empty_ones: 0 }), true).mtu(), 65_535);
}

/// A stack on Ethernet where nobody else is.
fn alone() -> (Stack, ManualClock) {
    on(Endless { empty_ones: 0 })
}

fn on(device: Endless) -> (Stack, ManualClock) {
    let clock = ManualClock::new();
    let config = StackConfig::new().address(IpAddr::from([10, 0, 0, 1]), 24).seed(1);
    let stack = Stack::open(Box::new(device), &config, LoopClock::Manual(clock.clone()));
    (stack.expect("good"), clock)
}

#[test]
fn a_flood_of_packets_without_bytes_leaves_the_loop_its_turns() {
    let (mut stack, _) = on(Endless { empty_ones: 1_000_000 });
    let wait = stack.begin_wait(None).expect("the device is there");
    let stats = stack.stats();
    assert_eq!((stats.received, stats.refused, wait), (256, 256, Wait::Not));
    assert!(stack.may_have_more());
}

/// A turn, and so much time.
fn turn(stack: &mut Stack, clock: &ManualClock, time: Duration) {
    stack.begin_wait(None).expect("the device is there");
    stack.end_wait(None, false, &mut Vec::new()).expect("the device is there");
    clock.advance(time);
}

#[test]
fn who_waits_for_targets_that_are_nowhere_is_noted_once() {
    let (mut stack, clock) = alone();
    let id = stack.bind_datagrams(([10, 0, 0, 1], 53).into()).expect("it is free");
    for number in 0..2_000_u32 {
        // A new one each second, since what waits is given up after three.
        let nowhere = ([10, 0, 0, (number / 100 + 2) as u8], 53).into();
        let sent = stack.send_to(id, b"?", Some(nowhere)).map_err(|error| error.kind());
        assert!(matches!(sent, Ok(1) | Err(io::ErrorKind::WouldBlock)), "{sent:?}");
        turn(&mut stack, &clock, Duration::from_millis(10));
        assert!(stack.unresolved_datagrams.len() <= 1, "{}", stack.unresolved_datagrams.len());
    }
    let (before, waits) =
        (stack.stats().unsent, stack.datagrams.get(id).map(|one| one.outgoing.len()));
    stack.drop_socket(Kind::Datagram, id);
    let lost = (stack.stats().unsent - before) as usize;
    assert!(lost > 0 && Some(lost) == waits, "{lost} of {waits:?} are counted");
}

#[test]
fn connections_to_nowhere_that_were_given_up_leave_nothing_behind() {
    let (mut stack, clock) = alone();
    for number in 0..500_u32 {
        let nowhere = ([10, 0, 0, (number % 200 + 2) as u8], 80).into();
        let id = stack.connect(nowhere).expect("there is room");
        turn(&mut stack, &clock, Duration::from_secs(1));
        stack.drop_socket(Kind::Stream, id);
        turn(&mut stack, &clock, Duration::from_secs(1));
        assert!(stack.unresolved.len() < 100, "{} of them", stack.unresolved.len());
    }
}
