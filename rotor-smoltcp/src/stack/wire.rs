//! `Wire`: a device as smoltcp sees it, a packet at a time.

use std::io::{self, ErrorKind};

use rotor_core::Time;
use smoltcp::phy::{self, Checksum, DeviceCapabilities};
use smoltcp::time::Instant;

use super::sequence::Sequence;
use crate::device::{Device, ETHERNET_HEADER, Medium};

/// The longest packet that IP can say the length of, in bytes. Some devices have more (`lo` has 65,536),
/// and smoltcp would make it.
const IP_BYTES_MAX: usize = 65_535;

/// Room for the longest packet that there is, and what is around it, in bytes.
const PACKET_BYTES_MAX: usize = IP_BYTES_MAX + ETHERNET_HEADER;

/// A device, and memory for a packet of each direction.
pub(super) struct Wire {
    device: Box<dyn Device>,
    pub(super) medium: Medium,
    capabilities: DeviceCapabilities,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    pub(super) sent: u64,
    pub(super) unsent: u64,
    /// How often the device has said that its network is down.
    pub(super) downs: u64,
}

/// The device for one call of the stack: with the packet that came, if one did.
pub(super) struct Port<'a> {
    wire: &'a mut Wire,
    packet: Option<&'a [u8]>,
    /// Of the connection that the call is for.
    sequence: Option<&'a mut Sequence>,
}

/// A packet that came.
pub(super) struct Came<'a>(&'a [u8]);

/// Room for a packet that is to be sent.
pub(super) struct Goes<'a>(&'a mut Wire, Option<&'a mut Sequence>);

impl Wire {
    pub(super) fn new(device: Box<dyn Device>, verify_checksums: bool) -> Wire {
        let medium = device.medium();
        let mut capabilities = DeviceCapabilities::default();
        let around = match medium {
            Medium::Ip => {
                capabilities.medium = phy::Medium::Ip;
                0
            }
            Medium::Ethernet => {
                capabilities.medium = phy::Medium::Ethernet;
                ETHERNET_HEADER
            }
        };
        capabilities.max_transmission_unit = device.mtu().min(IP_BYTES_MAX) + around;
        if !verify_checksums {
            // Made of what is sent, not looked at in what comes.
            let sums = &mut capabilities.checksum;
            (sums.ipv4, sums.tcp, sums.udp) = (Checksum::Tx, Checksum::Tx, Checksum::Tx);
            (sums.icmpv4, sums.icmpv6) = (Checksum::Tx, Checksum::Tx);
        }
        Wire {
            device,
            medium,
            capabilities,
            incoming: vec![0; PACKET_BYTES_MAX],
            outgoing: Vec::new(),
            sent: 0,
            unsent: 0,
            downs: 0,
        }
    }

    /// The device, where nothing has come.
    pub(super) fn port(&mut self) -> Port<'_> {
        Port { wire: self, packet: None, sequence: None }
    }

    /// The device, with a packet that came.
    pub(super) fn with<'a>(&'a mut self, packet: &'a [u8]) -> Port<'a> {
        Port { wire: self, packet: Some(packet), sequence: None }
    }

    /// Takes the memory in which packets come, to be given back.
    pub(super) fn lend(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.incoming)
    }

    pub(super) fn give_back(&mut self, memory: Vec<u8>) {
        self.incoming = memory;
    }

    /// Takes the next packet, and returns its length; 0 where there is none.
    pub(super) fn receive(&mut self, packet: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.device.receive(packet) {
                // A datagram without bytes, which says nothing.
                Ok(0) => {}
                Ok(len) => return Ok(len),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::NetworkDown => {
                    self.downs += 1;
                    log::warn!("the network of {} is down: {error}", self.device.name());
                    return Ok(0);
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn next_arrival(&self) -> Option<Time> {
        self.device.next_arrival()
    }

    /// How long an IP packet may be that is sent.
    pub(super) fn mtu(&self) -> usize {
        self.capabilities.ip_mtu()
    }

    pub(super) fn name(&self) -> &str {
        self.device.name()
    }
}

impl<'a> Port<'a> {
    /// The same, for a connection.
    pub(super) fn of(mut self, sequence: &'a mut Sequence) -> Port<'a> {
        self.sequence = Some(sequence);
        self
    }
}

impl phy::Device for Port<'_> {
    type RxToken<'b>
        = Came<'b>
    where
        Self: 'b;
    type TxToken<'b>
        = Goes<'b>
    where
        Self: 'b;

    fn receive(&mut self, _: Instant) -> Option<(Came<'_>, Goes<'_>)> {
        let packet = self.packet.take()?;
        Some((Came(packet), Goes(self.wire, self.sequence.as_deref_mut())))
    }

    fn transmit(&mut self, _: Instant) -> Option<Goes<'_>> {
        Some(Goes(self.wire, self.sequence.as_deref_mut()))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        self.wire.capabilities.clone()
    }
}

impl phy::RxToken for Came<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

impl phy::TxToken for Goes<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let Goes(wire, sequence) = self;
        let Wire { device, medium, outgoing, sent, unsent, .. } = wire;
        // It grows to the longest packet that was sent, and stays.
        if outgoing.len() < len {
            outgoing.resize(len, 0);
        }
        let packet = &mut outgoing[..len];
        let result = write(packet);
        if let Some(sequence) = sequence {
            sequence.mend(*medium, packet);
        }
        match device.send(packet) {
            Ok(()) => *sent += 1,
            Err(error) => {
                log::trace!("{} has lost a packet of {len} bytes: {error}", device.name());
                *unsent += 1;
            }
        }
        result
    }
}
