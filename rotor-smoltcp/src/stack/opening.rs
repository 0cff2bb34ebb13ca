//! Opens a stack: checks the configuration and applies it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::IpAddr;

use rotor_core::Time;
use smoltcp::iface::{Interface, Route, SocketSet};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr};

use super::address_requests::AddressRequests;
use super::datagram_socket::Sender;
use super::listener_socket::BoundAddresses;
use super::random::Random;
use super::rejections::Rejections;
use super::socket_pool::SocketPool;
use super::time_wait::TimeWait;
use super::wire::Wire;
use super::{Stack, to_instant};
use crate::clock::LoopClock;
use crate::config::{ADDRESSES_MAX, ROUTES_MAX, StackConfig};
use crate::device::{Device, Medium};
use crate::slots::Slots;
use crate::stats::StackStats;

/// The smallest MTU of each version, in bytes (RFC 791, RFC 8200).
const MTU_MIN_V4: usize = 576;
const MTU_MIN_V6: usize = 1_280;

impl Stack {
    /// Opens a stack on a device.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the configuration is wrong; the message says what. Otherwise, the system
    /// has no random bytes.
    pub(crate) fn open(
        device: Box<dyn Device>,
        config: &StackConfig,
        clock: LoopClock,
    ) -> io::Result<Stack> {
        check_config(config, device.mtu())?;
        let mut random = Random::new(config.seed);
        let mut wire = Wire::new(device, config.verify_checksums, clock.clone());
        let sender = Sender::new(wire.medium);
        let mut iface = new_interface(config, &mut wire, random.next_number()?, clock.now());
        set_routes(&mut iface, config);
        let rejections =
            Rejections::new(config.rejections_per_second, random.next_number()?, clock.now());
        Ok(Stack {
            config: config.clone(),
            iface,
            rejections,
            wire,
            no_sockets: SocketSet::new(Vec::new()),
            alarm: clock.alarm(),
            clock,
            random,
            connections: Slots::new(),
            socket_pool: SocketPool::new(config),
            flows: BTreeMap::new(),
            listeners: Slots::new(),
            bound_listeners: BoundAddresses::default(),
            datagrams: Slots::new(),
            bound_datagrams: BoundAddresses::default(),
            sender,
            due: BTreeSet::new(),
            dirty: Vec::new(),
            dirty_datagrams: Vec::new(),
            changed: Vec::new(),
            changed_datagrams: Vec::new(),
            changed_listeners: Vec::new(),
            unresolved: Vec::new(),
            unresolved_datagrams: Vec::new(),
            retry_resolution_at: None,
            address_requests: AddressRequests::default(),
            may_resolve: false,
            lingering: VecDeque::new(),
            time_wait: TimeWait::default(),
            stats: StackStats::default(),
            has_more: false,
        })
    }
}

/// Makes smoltcp's interface for a device, with its addresses, but without routes.
pub(super) fn new_interface(
    config: &StackConfig,
    wire: &mut Wire,
    random_seed: u64,
    now: Time,
) -> Interface {
    let hardware = match wire.medium {
        Medium::Ip => HardwareAddress::Ip,
        Medium::Ethernet => HardwareAddress::Ethernet(EthernetAddress(config.hardware_address)),
    };
    let mut of_interface = smoltcp::iface::Config::new(hardware);
    of_interface.random_seed = random_seed;
    let mut iface = Interface::new(of_interface, &mut wire.port(), to_instant(now));
    iface.update_ip_addrs(|addresses| {
        for (address, prefix) in &config.addresses {
            // There is room, because `check_config` has counted the addresses.
            let _ = addresses.push(IpCidr::new((*address).into(), *prefix));
        }
    });
    iface
}

pub(super) fn set_routes(iface: &mut Interface, config: &StackConfig) {
    iface.routes_mut().update(|routes| {
        for (network, prefix, router) in &config.routes {
            let cidr = IpCidr::new((*network).into(), *prefix);
            let via_router = IpAddress::from(*router);
            let route = Route { cidr, via_router, preferred_until: None, expires_at: None };
            // There is room, because `check_config` has counted the routes.
            let _ = routes.push(route);
        }
    });
}

/// Refuses what would make smoltcp panic.
fn check_config(config: &StackConfig, mtu: usize) -> io::Result<()> {
    let wrong = |message: String| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    if config.addresses.is_empty() {
        return wrong("a stack needs an address: StackConfig::address".into());
    }
    if config.addresses.len() > ADDRESSES_MAX {
        return wrong(format!("a stack has at most {ADDRESSES_MAX} addresses"));
    }
    if config.routes.len() > ROUTES_MAX {
        return wrong(format!("a stack has at most {ROUTES_MAX} routes"));
    }
    for (address, prefix) in &config.addresses {
        if !is_host_address(*address) || *prefix > address_bits(*address) {
            return wrong(format!("{address}/{prefix} is not the address of a host"));
        }
        let least = if address.is_ipv4() { MTU_MIN_V4 } else { MTU_MIN_V6 };
        if mtu < least {
            return wrong(format!(
                "{address} needs packets of {least} bytes, the device has {mtu}"
            ));
        }
    }
    for (network, prefix, router) in &config.routes {
        let is_one = network.is_ipv4() == router.is_ipv4();
        if !is_one || *prefix > address_bits(*network) || !is_host_address(*router) {
            return wrong(format!("{network}/{prefix} by {router} is not a route"));
        }
    }
    if !EthernetAddress(config.hardware_address).is_unicast() {
        return wrong(format!("{:x?} is not the address of a card", config.hardware_address));
    }
    Ok(())
}

fn is_host_address(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !is_broadcast
}

fn address_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_configurations_are_rejected_with_a_message() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let good = || StackConfig::new().address(ip("10.0.0.1"), 24);
        let many = |count: u8| {
            (1..=count).fold(StackConfig::new(), |config, last| {
                config.address(IpAddr::from([10, 0, 0, last]), 24)
            })
        };
        let routes = |count| {
            (0..count).fold(good(), |config, _| config.route(ip("10.1.0.0"), 16, ip("10.0.0.2")))
        };
        let table = [
            (good(), 576, ""),
            (good(), 575, "needs packets of 576 bytes, the device has 575"),
            (good().address(ip("fd00::1"), 64), 1_280, ""),
            (good().address(ip("fd00::1"), 64), 1_279, "needs packets of 1280 bytes"),
            (StackConfig::new(), 1_500, "a stack needs an address"),
            (many(8), 1_500, ""),
            (many(9), 1_500, "at most 8 addresses"),
            (routes(16), 1_500, ""),
            (routes(17), 1_500, "at most 16 routes"),
            (good().address(ip("224.0.0.1"), 24), 1_500, "224.0.0.1/24 is not the address"),
            (good().address(ip("0.0.0.0"), 0), 1_500, "0.0.0.0/0 is not the address"),
            (good().address(ip("255.255.255.255"), 0), 1_500, "255.255.255.255/0 is not"),
            (good().address(ip("10.0.0.2"), 33), 1_500, "10.0.0.2/33 is not the address"),
            (good().address(ip("ff02::1"), 64), 1_500, "ff02::1/64 is not the address"),
            (good().address(ip("fd00::1"), 129), 1_500, "fd00::1/129 is not the address"),
            (good().route(ip("0.0.0.0"), 0, ip("10.0.0.2")), 1_500, ""),
            (good().route(ip("0.0.0.0"), 33, ip("10.0.0.2")), 1_500, "0.0.0.0/33 by 10.0.0.2"),
            (good().route(ip("::"), 0, ip("10.0.0.2")), 1_500, "::/0 by 10.0.0.2 is not a route"),
            (good().route(ip("::"), 0, ip("::")), 1_500, "::/0 by :: is not a route"),
            (good().hardware_address([1, 0, 0, 0, 0, 1]), 1_500, "is not the address of a card"),
        ];
        for (config, mtu, message) in table {
            match check_config(&config, mtu) {
                Ok(()) => assert_eq!(message, "", "{config:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
                    let text = error.to_string();
                    assert!(!message.is_empty() && text.contains(message), "{text}");
                }
            }
        }
    }
}
