//! `Header`: the virtio header in front of a packet whose checksums and segmentation are left to
//! the device.

use crate::device::VIRTIO_HEADER;

/// Flags: a checksum has to be computed; the checksum was verified.
const NEEDS_CHECKSUM: u8 = 1;
const IS_VERIFIED: u8 = 2;

/// Kinds of segments, and a flag for explicit congestion notification, which is ignored.
const NONE: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;
const ECN: u8 = 0x80;

/// The first ten bytes of `struct virtio_net_hdr`, in native byte order (VIRTIO 1.2 §5.1.6; Linux,
/// `IFF_VNET_HDR`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::stack) struct Header {
    pub(super) needs_checksum: Option<ChecksumPlace>,
    /// The checksum was verified and is right.
    pub(super) is_verified: bool,
    pub(super) segments: Option<Segments>,
}

/// Where a checksum has to be computed. Its place holds that of the pseudo-header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChecksumPlace {
    /// Where the checksummed bytes begin, in bytes from the beginning of the packet.
    pub(super) start: u16,
    /// Where the checksum is stored, in bytes from `start`.
    pub(super) offset: u16,
}

/// How a packet is to be split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segments {
    pub(super) kind: SegmentKind,
    /// The length of all headers, in bytes.
    pub(super) headers: u16,
    /// The length of the payload of each packet except the last one.
    pub(super) payload: u16,
}

/// The kind of the packets that splitting makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SegmentKind {
    TcpV4,
    TcpV6,
    Udp,
}

impl Header {
    /// Reads the header in front of a packet, and returns the packet as well. `None` if the header
    /// is invalid: too short, with a checksum beyond the packet, or with segments of an unknown
    /// kind, of length 0, or without a checksum.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Header, &[u8])> {
        let (header, packet) = bytes.split_first_chunk::<VIRTIO_HEADER>()?;
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let [flags, kind, ..] = *header;
        let needs_checksum = match flags & NEEDS_CHECKSUM {
            0 => None,
            _ => Some(ChecksumPlace { start: word(6), offset: word(8) }),
        };
        if let Some(ChecksumPlace { start, offset }) = needs_checksum
            && usize::from(start) + usize::from(offset) + 2 > packet.len()
        {
            return None;
        }
        let kind = match kind & !ECN {
            NONE => None,
            TCP_V4 => Some(SegmentKind::TcpV4),
            TCP_V6 => Some(SegmentKind::TcpV6),
            UDP => Some(SegmentKind::Udp),
            _ => return None,
        };
        let segments = kind.map(|kind| Segments { kind, headers: word(2), payload: word(4) });
        if segments.is_some_and(|segments| segments.payload == 0 || needs_checksum.is_none()) {
            return None;
        }
        Some((Header { needs_checksum, is_verified: flags & IS_VERIFIED != 0, segments }, packet))
    }

    /// Returns the header as bytes, to be put in front of a packet.
    pub(super) fn bytes(&self) -> [u8; VIRTIO_HEADER] {
        let mut bytes = [0; VIRTIO_HEADER];
        bytes[0] = if self.is_verified { IS_VERIFIED } else { 0 };
        if let Some(ChecksumPlace { start, offset }) = self.needs_checksum {
            bytes[0] |= NEEDS_CHECKSUM;
            bytes[6..8].copy_from_slice(&start.to_ne_bytes());
            bytes[8..10].copy_from_slice(&offset.to_ne_bytes());
        }
        if let Some(Segments { kind, headers, payload }) = self.segments {
            bytes[1] = match kind {
                SegmentKind::TcpV4 => TCP_V4,
                SegmentKind::TcpV6 => TCP_V6,
                SegmentKind::Udp => UDP,
            };
            bytes[2..4].copy_from_slice(&headers.to_ne_bytes());
            bytes[4..6].copy_from_slice(&payload.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: Option<ChecksumPlace> = Some(ChecksumPlace { start: 20, offset: 16 });

    fn of(kind: SegmentKind) -> Option<Segments> {
        Some(Segments { kind, headers: 40, payload: 1_460 })
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for header in [
            Header::default(),
            Header { is_verified: true, ..Header::default() },
            Header { needs_checksum: SUM, ..Header::default() },
            Header { needs_checksum: SUM, segments: of(SegmentKind::TcpV4), ..Header::default() },
            Header { needs_checksum: SUM, segments: of(SegmentKind::TcpV6), ..Header::default() },
            Header { needs_checksum: SUM, segments: of(SegmentKind::Udp), is_verified: true },
        ] {
            let bytes = [&header.bytes()[..], &[7; 40]].concat();
            assert_eq!(Header::parse(&bytes), Some((header, &[7; 40][..])));
        }
    }

    /// The bytes of a header: flags, kind, and the four numbers.
    fn raw(flags: u8, kind: u8, numbers: [u16; 4]) -> Vec<u8> {
        let mut bytes = vec![flags, kind];
        bytes.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
        bytes
    }

    #[test]
    fn the_bytes_match_those_of_linux() {
        let header =
            Header { needs_checksum: SUM, is_verified: false, segments: of(SegmentKind::TcpV6) };
        assert_eq!(header.bytes()[..], raw(1, 4, [40, 1_460, 20, 16]));
    }

    #[test]
    fn invalid_headers_are_rejected() {
        for (what, bytes, len, is_one) in [
            ("all that there is", raw(1, 1, [40, 1_460, 20, 16]), 40, true),
            ("congestion that is told of", raw(1, 0x81, [40, 1_460, 20, 16]), 40, true),
            ("a sum at the end", raw(1, 0, [0, 0, 20, 18]), 40, true),
            ("a sum across the end", raw(1, 0, [0, 0, 20, 19]), 40, false),
            ("a sum beyond all numbers", raw(1, 0, [0, 0, u16::MAX, u16::MAX]), 40, false),
            ("no sum, and places for it", raw(0, 0, [0, 0, u16::MAX, u16::MAX]), 0, true),
            ("segments without a sum", raw(0, 1, [40, 1_460, 20, 16]), 40, false),
            ("segments without a length", raw(1, 1, [40, 0, 20, 16]), 40, false),
            ("fragments of datagrams", raw(1, 3, [40, 1_460, 20, 16]), 40, false),
            ("a kind that there is not", raw(1, 2, [40, 1_460, 20, 16]), 40, false),
            ("another", raw(1, 0x7f, [40, 1_460, 20, 16]), 40, false),
            ("no packet", raw(0, 0, [0; 4]), 0, true),
            ("half a header", raw(0, 0, [0; 4])[..9].to_vec(), 0, false),
            ("nothing", Vec::new(), 0, false),
        ] {
            let bytes = [bytes, vec![0; len]].concat();
            assert_eq!(Header::parse(&bytes).is_some(), is_one, "{what}");
        }
    }
}
