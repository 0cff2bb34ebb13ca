//! `Wire`: a device as smoltcp sees it, one packet at a time.

use std::io::{self, ErrorKind};
use std::num::{NonZeroU16, NonZeroUsize};

use rotor_core::Time;
use smoltcp::phy::{self, Checksum, DeviceCapabilities, PacketMeta, TxToken};
use smoltcp::time::Instant;

use super::offload::Batch;
use super::outlet::Outlet;
use super::rejections::{Rejections, is_rejection};
use super::sequence::Sequence;
use crate::clock::LoopClock;
use crate::device::{Device, ETHERNET_HEADER, Medium, VIRTIO_HEADER};

/// The longest packet that IP can describe, in bytes. Some devices allow more (`lo` has an MTU of
/// 65,536), and smoltcp would use it.
const IP_BYTES_MAX: usize = 65_535;

/// Room for the longest packet and its link-layer and virtio headers, in bytes.
const PACKET_BYTES_MAX: usize = VIRTIO_HEADER + ETHERNET_HEADER + IP_BYTES_MAX;

/// A device, and memory for a packet in each direction.
pub(super) struct Wire {
    device: Box<dyn Device>,
    pub(super) medium: Medium,
    capabilities: DeviceCapabilities,
    /// Whether the checksums of received segments are verified.
    pub(super) verifies_checksums: bool,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// smoltcp had something to send, and sent nothing: it needs a hardware address, and may not ask
    /// for one.
    is_held_up: bool,
    /// For a device that computes checksums and splits packets: what it gets next.
    batch: Option<Batch>,
    pub(super) outlet: Outlet,
    /// How often the device has reported that its network is down.
    pub(super) times_down: u64,
}

/// The device for one call of the stack, with the received packet if there is one.
pub(super) struct Port<'a> {
    wire: &'a mut Wire,
    packet: Option<&'a [u8]>,
    /// Of the connection that the call is for.
    sequence: Option<&'a mut Sequence>,
    /// The limit for rejections among the answers, and the time.
    limit: Option<(&'a mut Rejections, Time)>,
    /// More packets of the same connection may follow: a packet may be kept back until the wire is
    /// flushed.
    is_burst: bool,
}

/// A received packet.
pub(super) struct ReceivedPacket<'a>(&'a [u8]);

/// Room for a packet to be sent.
pub(super) struct TransmitSlot<'a> {
    wire: &'a mut Wire,
    sequence: Option<&'a mut Sequence>,
    limit: Option<(&'a mut Rejections, Time)>,
    is_burst: bool,
    /// If the device splits the packet: the payload of each segment.
    segment: Option<NonZeroU16>,
}

impl Wire {
    pub(super) fn new(device: Box<dyn Device>, verify_checksums: bool, clock: LoopClock) -> Wire {
        let medium = device.medium();
        let mut capabilities = DeviceCapabilities::default();
        let link_header = match medium {
            Medium::Ip => {
                capabilities.medium = phy::Medium::Ip;
                0
            }
            Medium::Ethernet => {
                capabilities.medium = phy::Medium::Ethernet;
                ETHERNET_HEADER
            }
        };
        capabilities.max_transmission_unit = device.mtu().min(IP_BYTES_MAX) + link_header;
        if !verify_checksums {
            // Checksums are computed for packets that are sent, but not verified in received ones.
            let sums = &mut capabilities.checksum;
            (sums.ipv4, sums.tcp, sums.udp) = (Checksum::Tx, Checksum::Tx, Checksum::Tx);
            (sums.icmpv4, sums.icmpv6) = (Checksum::Tx, Checksum::Tx);
        }
        let batch = device.has_virtio_header().then(Batch::default);
        if batch.is_some() {
            // The device computes them, and received packets are verified before smoltcp gets them.
            let sums = &mut capabilities.checksum;
            (sums.tcp, sums.udp) = (Checksum::None, Checksum::None);
            // smoltcp drops large packets of IPv6, so their segments are made one by one and then
            // merged.
            capabilities.segmentation.tcpv4 = NonZeroUsize::new(IP_BYTES_MAX + link_header);
        }
        Wire {
            device,
            medium,
            verifies_checksums: capabilities.checksum.tcp.rx(),
            capabilities,
            incoming: vec![0; PACKET_BYTES_MAX],
            outgoing: Vec::new(),
            is_held_up: false,
            batch,
            outlet: Outlet::new(clock),
            times_down: 0,
        }
    }

    /// Returns the device without a received packet.
    pub(super) fn port(&mut self) -> Port<'_> {
        Port { wire: self, packet: None, sequence: None, limit: None, is_burst: false }
    }

    /// Returns the device for many packets of one connection, to be ended by
    /// [`flush`](Wire::flush).
    pub(super) fn burst(&mut self) -> Port<'_> {
        Port { is_burst: true, ..self.port() }
    }

    /// Sends a complete packet.
    pub(super) fn send(&mut self, packet: &[u8]) {
        let mut port = self.port();
        TxToken::consume(port.transmit_slot(), packet.len(), |room| room.copy_from_slice(packet));
    }

    /// Sends the packet that was kept back.
    pub(super) fn flush(&mut self) {
        let Wire { device, batch, outlet, .. } = self;
        if let Some(batch) = batch {
            batch.flush(|packet, segments| outlet.send(&mut **device, packet, segments));
        }
    }

    /// Sends packets for which the device had no room.
    pub(super) fn send_waiting(&mut self) {
        self.outlet.send_waiting(&mut *self.device);
    }

    /// Whether each packet begins with a virtio header.
    pub(super) fn has_header(&self) -> bool {
        self.batch.is_some()
    }

    /// Returns the device with a received packet.
    pub(super) fn with_packet<'a>(&'a mut self, packet: &'a [u8]) -> Port<'a> {
        Port { packet: Some(packet), ..self.port() }
    }

    /// Takes the memory for received packets, which must be given back.
    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.incoming)
    }

    pub(super) fn return_buffer(&mut self, memory: Vec<u8>) {
        self.incoming = memory;
    }

    /// Takes the next packet, and returns its length. It may be 0: a tunnel's peer that sends
    /// nothing but headers must use up its packets of a turn, too. `None` if there is no packet.
    pub(super) fn receive(&mut self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.device.receive(packet) {
                Ok(len) => return Ok(Some(len)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::NetworkDown => {
                    self.times_down += 1;
                    log::warn!("the network of {} is down: {error}", self.device.name());
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether smoltcp would have sent something just now if it knew a hardware address, and
    /// has not asked for that.
    pub(super) fn take_held_up(&mut self) -> bool {
        std::mem::take(&mut self.is_held_up)
    }

    pub(super) fn next_arrival(&self) -> Option<Time> {
        self.device.next_arrival()
    }

    /// Returns the length of the longest IP packet that may be sent.
    pub(super) fn mtu(&self) -> usize {
        self.capabilities.ip_mtu()
    }

    pub(super) fn name(&self) -> &str {
        self.device.name()
    }
}

impl<'a> Port<'a> {
    /// The same port, for a connection.
    pub(super) fn with_sequence(mut self, sequence: &'a mut Sequence) -> Port<'a> {
        self.sequence = Some(sequence);
        self
    }

    /// The same port, with a limit for rejections.
    pub(super) fn with_limit(mut self, limit: &'a mut Rejections, now: Time) -> Port<'a> {
        self.limit = Some((limit, now));
        self
    }

    fn transmit_slot(&mut self) -> TransmitSlot<'_> {
        let sequence = self.sequence.as_deref_mut();
        let limit = self.limit.as_mut().map(|(limit, now)| (&mut **limit, *now));
        TransmitSlot { wire: self.wire, sequence, limit, is_burst: self.is_burst, segment: None }
    }
}

impl phy::Device for Port<'_> {
    type RxToken<'b>
        = ReceivedPacket<'b>
    where
        Self: 'b;
    type TxToken<'b>
        = TransmitSlot<'b>
    where
        Self: 'b;

    fn receive(&mut self, _: Instant) -> Option<(ReceivedPacket<'_>, TransmitSlot<'_>)> {
        let packet = self.packet.take()?;
        Some((ReceivedPacket(packet), self.transmit_slot()))
    }

    fn transmit(&mut self, _: Instant) -> Option<TransmitSlot<'_>> {
        self.wire.is_held_up = true;
        Some(self.transmit_slot())
    }

    fn capabilities(&self) -> DeviceCapabilities {
        self.wire.capabilities.clone()
    }
}

impl phy::RxToken for ReceivedPacket<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

impl phy::TxToken for TransmitSlot<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let TransmitSlot { wire, sequence, limit, is_burst, segment } = self;
        wire.is_held_up = false;
        let Wire { device, medium, outgoing, batch, outlet, .. } = wire;
        let mut send = |packet: &[u8], segments| outlet.send(&mut **device, packet, segments);
        if let Some(batch) = batch {
            let packet = batch.next_slot(len);
            let result = write(packet);
            if prepare_packet(*medium, packet, sequence, limit) {
                batch.push(*medium, len, segment, &mut send);
                if !is_burst || !batch.is_open() {
                    batch.flush(&mut send);
                }
            }
            return result;
        }
        // It grows to the longest packet that was sent, and keeps that size.
        if outgoing.len() < len {
            outgoing.resize(len, 0);
        }
        let packet = &mut outgoing[..len];
        let result = write(packet);
        if prepare_packet(*medium, packet, sequence, limit) {
            send(packet, 1);
        }
        result
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.segment = meta.segmentation_offload_size;
    }
}

/// Decides whether a packet may be sent, and corrects what smoltcp gets wrong in it.
fn prepare_packet(
    medium: Medium,
    packet: &mut [u8],
    sequence: Option<&mut Sequence>,
    limit: Option<(&mut Rejections, Time)>,
) -> bool {
    if let Some((limit, now)) = limit
        && is_rejection(medium, packet)
        && !limit.allow(now)
    {
        return false;
    }
    if let Some(sequence) = sequence {
        sequence.correct_number(medium, packet);
    }
    true
}
