//! What a stack holds where no socket shows it.

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use rotor_core::{EventSet, Token};

use super::wire::Wire;
use super::{Kind, Stack};
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

/// A device that says that its packets may be as long as one likes.
struct Endless;

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
        Err(io::ErrorKind::WouldBlock.into())
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
    assert_eq!(Wire::new(Box::new(Endless), true).mtu(), 65_535);
}
