//! `Outlet`: what has become of the packets that were to be sent, and those that wait because the
//! device has no room.
//!
//! A turn may have more packets than a network card takes at once. If the others were lost,
//! connections would take that for congestion, and send them again a second later.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::Duration;

use rotor_core::Time;

use crate::clock::LoopClock;
use crate::device::Device;

/// How many bytes of packets may wait. Further packets are lost, as in a router.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How soon the device is offered waiting packets again.
pub(super) const RETRY: Duration = Duration::from_millis(1);

/// How long the device may refuse a packet. A kernel refuses those that a filter drops in the same
/// way, and will never take them: the others must not wait for them. An interface of 1 Gbit/s sends
/// all that may wait in this time.
const PATIENCE: Duration = Duration::from_millis(50);

/// Counts of packets, and those that wait.
pub(super) struct Outlet {
    clock: LoopClock,
    pub(super) sent: u64,
    pub(super) unsent: u64,
    /// Segments that were sent as part of a larger packet.
    pub(super) merged: u64,
    /// The oldest first.
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
}

/// A packet that waits.
struct Waiting {
    packet: Box<[u8]>,
    segments: usize,
    /// If the device refuses it then or later, it is lost.
    lost_at: Time,
}

impl Outlet {
    pub(super) fn new(clock: LoopClock) -> Outlet {
        Outlet { clock, sent: 0, unsent: 0, merged: 0, waiting: VecDeque::new(), waiting_bytes: 0 }
    }

    /// Sends a packet that contains that many segments. It is kept if the device has no room.
    pub(super) fn send(&mut self, device: &mut dyn Device, packet: &[u8], segments: usize) {
        if self.waiting.is_empty() && self.is_taken(device, packet, segments) {
            return;
        }
        if self.waiting_bytes + packet.len() > WAITING_BYTES_MAX {
            self.unsent += 1;
            return;
        }
        self.waiting_bytes += packet.len();
        let lost_at = self.clock.now() + PATIENCE;
        self.waiting.push_back(Waiting { packet: packet.into(), segments, lost_at });
    }

    /// Sends packets that have waited, as far as the device has room. Those that it has refused for
    /// too long are lost.
    pub(super) fn send_waiting(&mut self, device: &mut dyn Device) {
        while let Some(first) = self.waiting.pop_front() {
            if !self.is_taken(device, &first.packet, first.segments) {
                if self.clock.now() < first.lost_at {
                    return self.waiting.push_front(first);
                }
                self.unsent += 1;
            }
            self.waiting_bytes -= first.packet.len();
        }
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Gives a packet to the device. Returns false if the device has no room for it now.
    fn is_taken(&mut self, device: &mut dyn Device, packet: &[u8], segments: usize) -> bool {
        match device.send(packet) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => {
                let (name, len) = (device.name(), packet.len());
                log::trace!("{name} has lost a packet of {len} bytes: {error}");
                self.unsent += 1;
            }
            Ok(()) => {
                self.sent += 1;
                self.merged += if segments > 1 { segments as u64 } else { 0 };
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;
    use std::os::fd::BorrowedFd;
    use std::sync::{Arc, Mutex};

    use super::super::{Stack, Wait};
    use super::*;
    use crate::clock::ManualClock;
    use crate::config::StackConfig;
    use crate::device::Medium;
    use crate::slots::Id;

    /// A card that has room for so many packets, and what it was given. It never has room for a
    /// packet whose last byte is `FILTERED`, like an interface with a filter.
    #[derive(Clone, Default)]
    struct Card(Arc<Mutex<(usize, Vec<Vec<u8>>)>>);

    const FILTERED: u8 = 99;

    impl Card {
        fn set_room(&self, packets: usize) {
            self.0.lock().expect("no panic").0 = packets;
        }

        /// Returns the last byte of each packet.
        fn taken(&self) -> Vec<u8> {
            self.0
                .lock()
                .expect("no panic")
                .1
                .iter()
                .map(|packet| packet[packet.len() - 1])
                .collect()
        }
    }

    impl Device for Card {
        fn name(&self) -> &str {
            "a card"
        }

        fn medium(&self) -> Medium {
            Medium::Ip
        }

        fn mtu(&self) -> usize {
            1_500
        }

        fn receive(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(ErrorKind::WouldBlock.into())
        }

        fn send(&mut self, packet: &[u8]) -> io::Result<()> {
            if packet.ends_with(&[FILTERED]) {
                return Err(ErrorKind::WouldBlock.into());
            }
            let (room, taken) = &mut *self.0.lock().expect("no panic");
            *room = room.checked_sub(1).ok_or(ErrorKind::WouldBlock)?;
            taken.push(packet.into());
            Ok(())
        }

        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    #[test]
    fn packets_wait_for_room_in_order_and_within_a_limit() {
        let clock = LoopClock::Manual(ManualClock::new());
        let (mut card, mut outlet) = (Card::default(), Outlet::new(clock));
        card.set_room(2);
        (0..5).for_each(|number| outlet.send(&mut card, &[0, number], 1));
        assert_eq!((card.taken(), outlet.has_waiting()), (vec![0, 1], true));
        card.set_room(1);
        // It must not overtake the others.
        outlet.send(&mut card, &[0, 5], 3);
        outlet.send_waiting(&mut card);
        assert_eq!((card.taken(), outlet.sent), (vec![0, 1, 2], 3));
        card.set_room(9);
        outlet.send_waiting(&mut card);
        assert_eq!((card.taken(), outlet.has_waiting()), (vec![0, 1, 2, 3, 4, 5], false));
        assert_eq!((outlet.sent, outlet.merged, outlet.unsent), (6, 3, 0));
        card.set_room(0);
        let long = vec![0; 64 * 1024];
        (0..66).for_each(|_| outlet.send(&mut card, &long, 1));
        assert_eq!((outlet.waiting.len(), outlet.unsent), (64, 2));
        card.set_room(100);
        outlet.send_waiting(&mut card);
        assert_eq!((outlet.sent, outlet.waiting_bytes), (70, 0));
    }

    /// A stack on a card, and a datagram socket.
    fn stack_on(card: &Card, clock: &ManualClock) -> (Stack, Id) {
        let own = IpAddr::from([10, 0, 0, 2]);
        let config = StackConfig::new().address(own, 24).seed(1);
        let of_loop = LoopClock::Manual(clock.clone());
        let mut stack = Stack::open(Box::new(card.clone()), &config, of_loop).expect("good");
        let id = stack.bind_datagrams((own, 53).into()).expect("it is free");
        (stack, id)
    }

    fn send(stack: &mut Stack, id: Id, last: u8) {
        let target = Some(([10, 0, 0, 1], 53).into());
        stack.send_to(id, &[last], target).expect("there is room");
    }

    /// Takes a turn, and returns how long the loop may sleep in it, at most `RETRY`.
    fn turn(stack: &mut Stack, clock: &ManualClock) -> Wait {
        let wait = stack.begin_wait(None).expect("the card is there");
        clock.advance(RETRY);
        stack.end_wait(None, true, &mut Vec::new()).expect("the card is there");
        wait
    }

    #[test]
    fn a_full_device_is_offered_the_packets_again_a_moment_later() {
        let (card, clock) = (Card::default(), ManualClock::new());
        let (mut stack, id) = stack_on(&card, &clock);
        card.set_room(4);
        (0..10).for_each(|number| send(&mut stack, id, number));
        for taken in [4, 7, 10] {
            let wait = turn(&mut stack, &clock);
            let expected = if taken < 10 { Wait::AtMost(RETRY) } else { Wait::Forever };
            assert_eq!((card.taken(), wait), ((0..taken).collect(), expected));
            card.set_room(3);
        }
        assert_eq!((stack.stats().sent, stack.stats().unsent), (10, 0));
    }

    #[test]
    fn packets_that_the_device_never_takes_do_not_stop_others_for_long() {
        let (card, clock) = (Card::default(), ManualClock::new());
        let (mut stack, id) = stack_on(&card, &clock);
        card.set_room(1_000);
        // More of them than there is time for if each stopped the others.
        for number in 0..30 {
            send(&mut stack, id, FILTERED);
            send(&mut stack, id, number);
            assert_eq!(turn(&mut stack, &clock), Wait::AtMost(RETRY));
        }
        // The last one has its time, too.
        let turns = (0..1_000).take_while(|_| turn(&mut stack, &clock) != Wait::Forever).count();
        assert_eq!(turns, 49);
        assert_eq!(card.taken(), (0..30).collect::<Vec<_>>());
        assert_eq!((stack.stats().sent, stack.stats().unsent), (30, 30));
    }

    #[test]
    fn a_device_that_takes_nothing_is_not_asked_for_ever() {
        let (card, clock) = (Card::default(), ManualClock::new());
        let (mut stack, id) = stack_on(&card, &clock);
        (0..10).for_each(|number| send(&mut stack, id, number));
        let turns = (0..1_000).take_while(|_| turn(&mut stack, &clock) != Wait::Forever).count();
        assert_eq!(turns, 50);
        assert_eq!((stack.stats().sent, stack.stats().unsent), (0, 10));
        card.set_room(9);
        send(&mut stack, id, 10);
        assert_eq!(turn(&mut stack, &clock), Wait::Forever);
        assert_eq!(card.taken(), [10]);
    }
}
