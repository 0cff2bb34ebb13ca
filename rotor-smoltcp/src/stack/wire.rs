//! `Wire`: a device as smoltcp sees it, one packet at a time.

use std::io::{self, ErrorKind};
use std::num::{NonZeroU16, NonZeroUsize};

use rotor_core::Time;
use smoltcp::phy::{self, Checksum, DeviceCapabilities, PacketMeta, TxToken};
use smoltcp::time::Instant;

use super::offload::Batch;
use super::rejections::{Rejections, is_rejection};
use super::sequence::Sequence;
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
    pub(super) verifies: bool,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// For a device that computes checksums and splits packets: what it gets next.
    batch: Option<Batch>,
    pub(super) counts: Counts,
    /// How often the device has reported that its network is down.
    pub(super) downs: u64,
}

/// What has become of the packets that were to be sent.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) unsent: u64,
    /// Segments that were sent as part of a larger packet.
    pub(super) merged: u64,
}

/// The device for one call of the stack, with the received packet if there is one.
pub(super) struct Port<'a> {
    wire: &'a mut Wire,
    packet: Option<&'a [u8]>,
    /// Of the connection that the call is for.
    sequence: Option<&'a mut Sequence>,
    /// The limit for rejections among the answers, and the time.
    bound: Option<(&'a mut Rejections, Time)>,
    /// More packets of the same connection may follow: a packet may be kept back until the wire is
    /// flushed.
    is_burst: bool,
}

/// A received packet.
pub(super) struct Came<'a>(&'a [u8]);

/// Room for a packet to be sent.
pub(super) struct Goes<'a> {
    wire: &'a mut Wire,
    sequence: Option<&'a mut Sequence>,
    bound: Option<(&'a mut Rejections, Time)>,
    is_burst: bool,
    /// If the device splits the packet: the payload of each segment.
    segment: Option<NonZeroU16>,
}

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
            capabilities.segmentation.tcpv4 = NonZeroUsize::new(IP_BYTES_MAX + around);
        }
        Wire {
            device,
            medium,
            verifies: capabilities.checksum.tcp.rx(),
            capabilities,
            incoming: vec![0; PACKET_BYTES_MAX],
            outgoing: Vec::new(),
            batch,
            counts: Counts::default(),
            downs: 0,
        }
    }

    /// Returns the device without a received packet.
    pub(super) fn port(&mut self) -> Port<'_> {
        Port { wire: self, packet: None, sequence: None, bound: None, is_burst: false }
    }

    /// Returns the device for many packets of one connection, to be ended by
    /// [`flush`](Wire::flush).
    pub(super) fn burst(&mut self) -> Port<'_> {
        Port { is_burst: true, ..self.port() }
    }

    /// Sends a complete packet.
    pub(super) fn send(&mut self, packet: &[u8]) {
        let mut port = self.port();
        TxToken::consume(port.goes(), packet.len(), |room| room.copy_from_slice(packet));
    }

    /// Sends the packet that was kept back.
    pub(super) fn flush(&mut self) {
        let Wire { device, batch, counts, .. } = self;
        if let Some(batch) = batch {
            batch.flush(|packet, segments| counts.send(&mut **device, packet, segments));
        }
    }

    /// Whether each packet begins with a virtio header.
    pub(super) fn has_header(&self) -> bool {
        self.batch.is_some()
    }

    /// Returns the device with a received packet.
    pub(super) fn with<'a>(&'a mut self, packet: &'a [u8]) -> Port<'a> {
        Port { packet: Some(packet), ..self.port() }
    }

    /// Takes the memory for received packets, which must be given back.
    pub(super) fn lend(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.incoming)
    }

    pub(super) fn give_back(&mut self, memory: Vec<u8>) {
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
                    self.downs += 1;
                    log::warn!("the network of {} is down: {error}", self.device.name());
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
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
    pub(super) fn of(mut self, sequence: &'a mut Sequence) -> Port<'a> {
        self.sequence = Some(sequence);
        self
    }

    /// The same port, with a limit for rejections.
    pub(super) fn within(mut self, bound: &'a mut Rejections, now: Time) -> Port<'a> {
        self.bound = Some((bound, now));
        self
    }

    fn goes(&mut self) -> Goes<'_> {
        let sequence = self.sequence.as_deref_mut();
        let bound = self.bound.as_mut().map(|(bound, now)| (&mut **bound, *now));
        Goes { wire: self.wire, sequence, bound, is_burst: self.is_burst, segment: None }
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
        Some((Came(packet), self.goes()))
    }

    fn transmit(&mut self, _: Instant) -> Option<Goes<'_>> {
        Some(self.goes())
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
        let Goes { wire, sequence, bound, is_burst, segment } = self;
        let Wire { device, medium, outgoing, batch, counts, .. } = wire;
        let mut send = |packet: &[u8], segments| counts.send(&mut **device, packet, segments);
        if let Some(batch) = batch {
            let packet = batch.room(len);
            let result = write(packet);
            if may_leave(*medium, packet, sequence, bound) {
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
        if may_leave(*medium, packet, sequence, bound) {
            send(packet, 1);
        }
        result
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.segment = meta.segmentation_offload_size;
    }
}

/// Decides whether a packet may be sent, and corrects what smoltcp gets wrong in it.
fn may_leave(
    medium: Medium,
    packet: &mut [u8],
    sequence: Option<&mut Sequence>,
    bound: Option<(&mut Rejections, Time)>,
) -> bool {
    if let Some((bound, now)) = bound
        && is_rejection(medium, packet)
        && !bound.allow(now)
    {
        return false;
    }
    if let Some(sequence) = sequence {
        sequence.mend(medium, packet);
    }
    true
}

impl Counts {
    /// Sends a packet that contains that many segments.
    fn send(&mut self, device: &mut dyn Device, packet: &[u8], segments: usize) {
        if let Err(error) = device.send(packet) {
            log::trace!("{} has lost a packet of {} bytes: {error}", device.name(), packet.len());
            self.unsent += 1;
            return;
        }
        self.sent += 1;
        if segments > 1 {
            self.merged += segments as u64;
        }
    }
}
