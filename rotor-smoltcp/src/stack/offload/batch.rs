//! `Batch`: segments of one connection that are sent as one packet, which the device splits.

use std::num::NonZeroU16;
use std::ops::Range;

use smoltcp::wire::{IpProtocol, IpVersion, Ipv4Packet, Ipv6Packet, TcpPacket, TcpSeqNumber};

use super::super::layers::Layers;
use super::header::{ChecksumPlace, Header, SegmentKind, Segments};
use crate::device::{Medium, VIRTIO_HEADER};

/// The longest packet that IP can describe, in bytes.
const IP_BYTES_MAX: usize = 65_535;

/// Offsets in the TCP header, in bytes.
const PORTS: Range<usize> = 0..4;
const ACKNOWLEDGED_AND_LENGTH: Range<usize> = 8..13;
const FLAGS: usize = 13;
const WINDOW: Range<usize> = 14..16;
const URGENT: usize = 18;

const FIN: u8 = 0x01;
const PUSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// A packet to be sent, which grows by the segments that continue it.
///
/// ```text
///  memory   virtio header │ IP │ TCP │ payload of segments so far │ the next: IP │ TCP │ payload
///                         ◀────────────────── len ────────────────▶
/// ```
///
/// The next segment is written behind the others. If it continues them, its payload is moved over
/// its headers. Otherwise the packet is sent, and the segment becomes the first of another one.
#[derive(Default)]
pub(in crate::stack) struct Batch {
    /// It grows to the largest size that was needed, at most two packets, and keeps it.
    memory: Vec<u8>,
    /// The length of the packet; 0 if there is none.
    len: usize,
    /// How many segments are in it.
    segments: usize,
    /// The layers of the first segment; `None` if it is not an IP packet.
    layers: Option<Layers>,
    /// Present if the first one is a segment with a payload.
    shape: Option<SegmentShape>,
}

/// The properties that continuing segments must have.
#[derive(Clone, Copy, Debug)]
struct SegmentShape {
    /// The length of all headers, in bytes.
    headers: usize,
    /// The length of the payload of each segment except the last one.
    payload: usize,
    /// The number of the next segment.
    next: TcpSeqNumber,
    /// No segment so far must be the last one.
    is_open: bool,
}

impl Batch {
    /// Returns room into which the next packet is written.
    pub(in crate::stack) fn next_slot(&mut self, len: usize) -> &mut [u8] {
        let room = self.next_range(len);
        if self.memory.len() < room.end {
            self.memory.resize(room.end, 0);
        }
        &mut self.memory[room]
    }

    fn next_range(&self, len: usize) -> Range<usize> {
        let start = VIRTIO_HEADER + self.len;
        start..start + len
    }

    /// Adds the packet of this length that was written to the room. If it does not continue the
    /// others, they are sent first. `segment`: the packet has to be split anyway, into pieces of
    /// this payload.
    pub(in crate::stack) fn push(
        &mut self,
        medium: Medium,
        len: usize,
        segment: Option<NonZeroU16>,
        send: impl FnOnce(&[u8], usize),
    ) {
        let next = self.next_range(len);
        let layers = Layers::parse(medium, &self.memory[next.clone()]);
        if let (Some(first), Some(layers), Some(shape)) = (self.layers, layers, self.shape)
            && segment.is_none()
            && let Some(continued) = self.try_continue(&first, &shape, &layers, next.clone())
        {
            self.memory.copy_within(next.start + shape.headers..next.end, next.start);
            self.len += len - shape.headers;
            self.segments += 1;
            self.shape = Some(continued);
            return;
        }
        if self.len > 0 {
            self.flush(send);
            self.memory.copy_within(next, VIRTIO_HEADER);
        }
        (self.len, self.segments) = (len, 1);
        self.layers = layers;
        self.shape =
            layers.and_then(|layers| SegmentShape::of(&layers, &self.memory[self.packet()]));
        if let (Some(shape), Some(segment)) = (&mut self.shape, segment) {
            let segment = usize::from(segment.get());
            self.segments = shape.payload.div_ceil(segment);
            (shape.payload, shape.is_open) = (segment, false);
        }
    }

    /// The range of the packet, without the virtio header.
    fn packet(&self) -> Range<usize> {
        VIRTIO_HEADER..VIRTIO_HEADER + self.len
    }

    /// Returns whether a segment continues the packet: it has the same headers, begins where the
    /// last one ended, and is not longer than the others. If so, adds its flags, and returns the
    /// shape for the next one.
    fn try_continue(
        &mut self,
        first: &Layers,
        shape: &SegmentShape,
        layers: &Layers,
        next: Range<usize>,
    ) -> Option<SegmentShape> {
        let (packet, rest) = self.memory.split_at_mut(next.start);
        let packet = &mut packet[VIRTIO_HEADER..];
        let next = &rest[..next.len()];
        let of_next = SegmentShape::of(layers, next)?;
        let len = packet.len() - first.ip + of_next.payload;
        let flags = next[layers.transport + FLAGS];
        if !shape.is_open
            || (layers.version, layers.transport) != (first.version, first.transport)
            || of_next.headers != shape.headers
            || of_next.payload > shape.payload
            || len > IP_BYTES_MAX
            || flags & !(FIN | PUSH) != ACK
            // A segment ends at the expected number if it begins where the last one ended.
            || of_next.next != shape.next + of_next.payload
            || !has_same_headers(first, shape.headers, packet, next)
        {
            return None;
        }
        // The device sets these flags in the last segment only.
        packet[first.transport + FLAGS] |= flags;
        let is_open = flags == ACK && of_next.payload == shape.payload;
        Some(SegmentShape { next: shape.next + of_next.payload, is_open, ..*shape })
    }

    /// Whether a further segment may become part of the packet.
    pub(in crate::stack) fn is_open(&self) -> bool {
        self.shape.is_some_and(|shape| shape.is_open)
    }

    /// Sends the packet, if there is one, with its header in front and its number of segments.
    pub(in crate::stack) fn flush(&mut self, send: impl FnOnce(&[u8], usize)) {
        if self.len == 0 {
            return;
        }
        let packet = self.packet();
        let (layers, shape) = (self.layers.take(), self.shape.take());
        let header = match (layers, shape) {
            (None, _) => Header::default(),
            (Some(layers), Some(shape)) if self.segments > 1 => {
                leave_segmentation(&layers, &shape, &mut self.memory[packet.clone()])
            }
            (Some(layers), _) => leave_checksum(&layers, &mut self.memory[packet.clone()]),
        };
        self.memory[..VIRTIO_HEADER].copy_from_slice(&header.bytes());
        self.len = 0;
        send(&self.memory[..packet.end], self.segments);
    }
}

impl SegmentShape {
    /// `None` if the packet is not a segment with a payload.
    fn of(layers: &Layers, packet: &[u8]) -> Option<SegmentShape> {
        if layers.protocol != IpProtocol::Tcp || layers.end != packet.len() {
            return None;
        }
        let segment = TcpPacket::new_checked(packet.get(layers.transport_range())?).ok()?;
        let (headers, payload) =
            (layers.transport + usize::from(segment.header_len()), segment.payload().len());
        let is_open = packet[layers.transport + FLAGS] == ACK;
        let next = segment.seq_number() + payload;
        (payload > 0).then_some(SegmentShape { headers, payload, next, is_open })
    }
}

/// Whether the headers of two segments are equal except for lengths, numbers, flags and checksums.
fn has_same_headers(layers: &Layers, headers: usize, first: &[u8], next: &[u8]) -> bool {
    let Layers { version, ip, transport: tcp, .. } = *layers;
    let is_same = |range: Range<usize>| first[range.clone()] == next[range];
    let of_tcp = |range: Range<usize>| is_same(tcp + range.start..tcp + range.end);
    let of_ip = match version {
        IpVersion::Ipv4 => is_same(0..ip + 2) && is_same(ip + 6..ip + 10) && is_same(ip + 12..tcp),
        IpVersion::Ipv6 => is_same(0..ip + 4) && is_same(ip + 6..tcp),
    };
    of_ip
        && of_tcp(PORTS)
        && of_tcp(ACKNOWLEDGED_AND_LENGTH)
        && of_tcp(WINDOW)
        && is_same(tcp + URGENT..headers)
}

/// Leaves the checksum of a packet to the device: writes that of the pseudo-header in its place.
fn leave_checksum(layers: &Layers, packet: &mut [u8]) -> Header {
    let transport = layers.transport;
    let place = layers.checksum_offset().map(|offset| (offset, transport + usize::from(offset)));
    let Some((offset, at)) = place.filter(|(_, at)| at + 2 <= packet.len()) else {
        return Header::default();
    };
    let sum = layers.pseudo_sum(packet.len() - transport);
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    // Headers have at most a hundred bytes.
    let needs_checksum = Some(ChecksumPlace { start: transport as u16, offset });
    Header { needs_checksum, ..Header::default() }
}

/// Leaves the segmentation of a packet and the checksums to the device.
fn leave_segmentation(layers: &Layers, shape: &SegmentShape, packet: &mut [u8]) -> Header {
    let inner = &mut packet[layers.ip..];
    // It fits into 16 bits, as `try_continue` has checked.
    let len = inner.len() as u16;
    let kind = match layers.version {
        IpVersion::Ipv4 => {
            let mut inner = Ipv4Packet::new_unchecked(inner);
            inner.set_total_len(len);
            inner.fill_checksum();
            SegmentKind::TcpV4
        }
        IpVersion::Ipv6 => {
            let mut inner = Ipv6Packet::new_unchecked(inner);
            inner.set_payload_len(len - inner.header_len() as u16);
            SegmentKind::TcpV6
        }
    };
    let (headers, payload) = (shape.headers as u16, shape.payload as u16);
    Header { segments: Some(Segments { kind, headers, payload }), ..leave_checksum(layers, packet) }
}
