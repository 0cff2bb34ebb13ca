//! `Outlet`: what has become of the packets that were to be sent, and those that wait because the
//! device has no room.
//!
//! A turn may have more packets than a network card takes at once. If the others were lost,
//! connections would take that for congestion, and send them again a second later.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::Duration;

use crate::device::Device;

/// How many bytes of packets may wait. Further packets are lost, as in a router.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How soon the device is offered waiting packets again.
pub(super) const RETRY: Duration = Duration::from_millis(1);

/// Counts of packets, and those that wait.
#[derive(Default)]
pub(super) struct Outlet {
    pub(super) sent: u64,
    pub(super) unsent: u64,
    /// Segments that were sent as part of a larger packet.
    pub(super) merged: u64,
    /// The oldest first, each with its number of segments.
    waiting: VecDeque<(Box<[u8]>, usize)>,
    waiting_bytes: usize,
}

impl Outlet {
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
        self.waiting.push_back((packet.into(), segments));
    }

    /// Sends packets that have waited, as far as the device has room.
    pub(super) fn send_waiting(&mut self, device: &mut dyn Device) {
        while let Some((packet, segments)) = self.waiting.pop_front() {
            if !self.is_taken(device, &packet, segments) {
                return self.waiting.push_front((packet, segments));
            }
            self.waiting_bytes -= packet.len();
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
    use crate::clock::{LoopClock, ManualClock};
    use crate::config::StackConfig;
    use crate::device::Medium;

    /// A card that has room for so many packets, and what it was given.
    #[derive(Clone, Default)]
    struct Card(Arc<Mutex<(usize, Vec<Vec<u8>>)>>);

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
        let (mut card, mut outlet) = (Card::default(), Outlet::default());
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

    #[test]
    fn a_full_device_is_offered_the_packets_again_a_moment_later() {
        let (card, clock) = (Card::default(), ManualClock::new());
        let own = IpAddr::from([10, 0, 0, 2]);
        let config = StackConfig::new().address(own, 24).seed(1);
        let of_loop = LoopClock::Manual(clock.clone());
        let mut stack = Stack::open(Box::new(card.clone()), &config, of_loop).expect("good");
        let id = stack.bind_datagrams((own, 53).into()).expect("it is free");
        card.set_room(4);
        for number in 0..10 {
            let target = Some(([10, 0, 0, 1], 53).into());
            stack.send_to(id, &[number], target).expect("there is room");
        }
        for taken in [4, 7, 10] {
            let wait = stack.begin_wait(None).expect("the card is there");
            let expected = if taken < 10 { Wait::AtMost(RETRY) } else { Wait::Forever };
            assert_eq!((card.taken(), wait), ((0..taken).collect(), expected));
            clock.advance(RETRY);
            stack.end_wait(None, true, &mut Vec::new()).expect("the card is there");
            card.set_room(3);
        }
        assert_eq!((stack.stats().sent, stack.stats().unsent), (10, 0));
    }
}
