//! Neighbours: the hosts on the same network to which packets go, and their hardware addresses.

use std::net::{IpAddr, SocketAddr};

use smoltcp::wire::IpCidr;

use super::opening::{new_interface, set_routes};
use super::{IPV4_BROADCAST, Stack, to_instant};
use crate::config::StackConfig;
use crate::device::Medium;

/// A port. Nothing is ever sent there.
const ANY_PORT: u16 = 9;

impl Stack {
    /// Whether packets for a target can leave. A device of IP packets has only one other end.
    /// smoltcp would drop them, and an attempt to connect would wait for its timeout.
    pub(super) fn has_route(&self, target: IpAddr) -> bool {
        let is_for_many = target.is_multicast() || target == IPV4_BROADCAST;
        self.wire.medium == Medium::Ip || is_for_many || self.neighbour_for(target).is_some()
    }

    /// Returns the host on the same network to which packets for a target go: the target itself, or
    /// the router of the most specific route.
    fn neighbour_for(&self, target: IpAddr) -> Option<IpAddr> {
        let contains = |network: IpAddr, prefix| {
            IpCidr::new(network.into(), prefix).contains_addr(&target.into())
        };
        let StackConfig { addresses, routes, .. } = &self.config;
        if addresses.iter().any(|(own, prefix)| contains(*own, *prefix)) {
            return Some(target);
        }
        let routes = routes.iter().filter(|(network, prefix, _)| contains(*network, *prefix));
        routes.max_by_key(|(_, prefix, _)| *prefix).map(|(_, _, router)| *router)
    }

    /// Asks for the hardware address that is needed to reach a target, because smoltcp may not.
    pub(super) fn request_address(&mut self, target: IpAddr, is_doubtful: bool) {
        let now = self.now();
        let Some(neighbour) = self.neighbour_for(target) else { return };
        if !self.address_requests.allow(neighbour, is_doubtful, now) {
            return;
        }
        let Ok(source) = self.source_for(target) else { return };
        // A new interface knows no hardware address, so all that it sends is the request.
        let mut iface = new_interface(&self.config, &mut self.wire, 0, now);
        set_routes(&mut iface, &self.config);
        let with_port = |ip| SocketAddr::new(ip, ANY_PORT);
        if self.sender.load(with_port(source), with_port(target), b"") {
            iface.poll_egress(to_instant(now), &mut self.wire.port(), &mut self.sender.set);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::SocketKind;
    use super::super::tests::{arp_request, stack_with_cable};
    use super::*;
    use crate::clock::ManualClock;
    use crate::device::{Device, MemoryDevice};

    fn host(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// Takes turns for some time, and returns the last bytes of the addresses that were asked for, in
    /// this order.
    fn asked_for(
        stack: &mut Stack,
        clock: &ManualClock,
        cable: &mut MemoryDevice,
        time: Duration,
    ) -> Vec<u8> {
        let (end, mut asked, mut frame) = (clock.now() + time, Vec::new(), [0; 2_000]);
        while clock.now() < end {
            stack.begin_wait(None).expect("the cable is in");
            stack.end_wait(None, false, &mut Vec::new()).expect("the cable is in");
            while let Ok(len) = cable.receive(&mut frame) {
                let is_solicitation = frame[12..14] == [0x86, 0xdd] && frame[54] == 135;
                if is_solicitation {
                    asked.push(frame[77]);
                } else if frame[12..14] == [0x08, 0x06] {
                    asked.push(frame[len - 1]);
                }
            }
            clock.advance(Duration::from_millis(50));
        }
        asked
    }

    fn count(asked: &[u8], last: u8) -> usize {
        asked.iter().filter(|other| **other == last).count()
    }

    #[test]
    fn each_missing_neighbour_is_asked_for_each_second() {
        let router = host(254);
        let config = StackConfig::new().route([0, 0, 0, 0].into(), 0, router);
        let (mut stack, clock, mut cable) = stack_with_cable(Medium::Ethernet, config);
        let step = Duration::from_millis(250);
        let mut asked = Vec::new();
        // Some are silent, one has an answer, and two targets are beyond the router.
        let six = |last| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]);
        let beyond = |last| IpAddr::from([8, 8, 8, last]);
        for target in [host(77), host(78), six(177), six(178), host(1), beyond(1), beyond(2)] {
            stack.connect((target, 80).into()).expect("there is room");
            asked.extend(asked_for(&mut stack, &clock, &mut cable, step));
        }
        asked.extend(asked_for(&mut stack, &clock, &mut cable, Duration::from_secs(4)));
        for last in [77, 78, 177, 178, 1, 254] {
            assert!((4..=7).contains(&count(&asked, last)), "{last} in {asked:?}");
        }
        let before = stack.stats().sent;
        stack.handle_packet(&arp_request());
        asked_for(&mut stack, &clock, &mut cable, step);
        assert!(stack.stats().sent > before, "the connection begins");
    }

    #[test]
    fn datagrams_to_all_missing_neighbours_cause_requests() {
        let (mut stack, clock, mut cable) = stack_with_cable(Medium::Ethernet, StackConfig::new());
        let local = ([10, 0, 0, 2], 53).into();
        let id = stack.bind_datagrams(local).expect("it is free");
        for last in 10..20 {
            stack.send_to(id, b"?", Some((host(last), 53).into())).expect("there is room");
        }
        let asked = asked_for(&mut stack, &clock, &mut cable, Duration::from_millis(2_500));
        for last in 10..20 {
            assert_eq!(count(&asked, last), 3, "{last} in {asked:?}");
        }
        stack.drop_socket(SocketKind::Datagram, id);
    }

    #[test]
    fn answers_to_forged_addresses_leave_room_for_requests_for_the_router() {
        let config = StackConfig::new().route([0, 0, 0, 0].into(), 0, host(254));
        let (mut stack, clock, mut cable) = stack_with_cable(Medium::Ethernet, config);
        let local = (IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 2]), 53).into();
        let id = stack.bind_datagrams(local).expect("it is free");
        let mut asked = Vec::new();
        for number in 0..3_000_u16 {
            let forged = IpAddr::from([0xfd00, 0, 0, 0, 0, 1, number, 1]);
            let _is_full = stack.send_to(id, b"answer", Some((forged, 53).into()));
            if number == 1_000 {
                stack.connect(([8, 8, 8, 8], 80).into()).expect("there is room");
            }
            if number % 50 == 0 {
                let step = Duration::from_millis(50);
                asked.extend(asked_for(&mut stack, &clock, &mut cable, step));
            }
        }
        assert_eq!(count(&asked, 254), 2, "two seconds have passed");
    }
}
