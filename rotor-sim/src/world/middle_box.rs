//! The resets of a middlebox: one to each end of a connection, in the name of the other, with the
//! sequence number that this end expects. With any other number it would be ignored (RFC 5961
//! §3.2).

const TCP: u8 = 6;
const RST: u8 = 0x04;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// The length of a TCP header without options, in bytes.
const HEADER: usize = 20;

/// Returns the resets with which a segment is answered: one to its destination, and one back.
/// `None` if the packet is not a segment of an established connection.
pub(super) fn resets_for(packet: &[u8]) -> Option<[Box<[u8]>; 2]> {
    let (header_len, protocol) = match packet.first()? >> 4 {
        4 => (usize::from(packet[0] & 15) * 4, *packet.get(9)?),
        6 => (40, *packet.get(6)?),
        _ => return None,
    };
    let segment = packet.get(header_len..).filter(|_| protocol == TCP)?;
    let fixed: &[u8; HEADER] = segment.first_chunk()?;
    let flags = fixed[13];
    if flags & (RST | SYN) != 0 || flags & ACK == 0 {
        return None;
    }
    let ip = &packet[..header_len];
    let [forth, back] = [read_u32(fixed, 4), read_u32(fixed, 8)];
    let ports = [&fixed[..2], &fixed[2..4]];
    let to_target = reset_segment(ip.to_vec(), ports, forth);
    let to_source = reset_segment(reversed(ip)?, [ports[1], ports[0]], back);
    Some([to_target, to_source])
}

fn read_u32(segment: &[u8; HEADER], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&segment[at..at + 4]);
    u32::from_be_bytes(bytes)
}

/// Returns where the addresses of an IP header begin, and the length of each.
fn addresses(ip: &[u8]) -> (usize, usize) {
    if ip[0] >> 4 == 4 { (12, 4) } else { (8, 16) }
}

/// Returns the IP header of a packet in the opposite direction.
fn reversed(ip: &[u8]) -> Option<Vec<u8>> {
    let (begin, len) = addresses(ip);
    let (source, target) = ip.get(begin..begin + 2 * len)?.split_at(len);
    let mut reversed = ip.to_vec();
    reversed[begin..begin + len].copy_from_slice(target);
    reversed[begin + len..begin + 2 * len].copy_from_slice(source);
    Some(reversed)
}

fn reset_segment(ip: Vec<u8>, ports: [&[u8]; 2], number: u32) -> Box<[u8]> {
    let header_len = ip.len();
    let (begin, len) = addresses(&ip);
    let mut packet = ip;
    packet.extend([ports[0], ports[1], &number.to_be_bytes(), &[0; 4]].concat());
    packet.extend([((HEADER / 4) << 4) as u8, RST, 0, 0, 0, 0, 0, 0]);
    let pseudo = [&packet[begin..begin + 2 * len], &[0, TCP, 0, HEADER as u8]].concat();
    let sum = checksum(&[&pseudo, &packet[header_len..]]);
    packet[header_len + 16..header_len + 18].copy_from_slice(&sum);
    if packet[0] >> 4 == 4 {
        let total = ((header_len + HEADER) as u16).to_be_bytes();
        packet[2..4].copy_from_slice(&total);
        packet[10..12].fill(0);
        let sum = checksum(&[&packet[..header_len]]);
        packet[10..12].copy_from_slice(&sum);
    } else {
        packet[4..6].copy_from_slice(&(HEADER as u16).to_be_bytes());
    }
    packet.into()
}

/// The internet checksum (RFC 1071) over parts of even length.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment from 10.0.0.1:1000 to 10.0.0.2:80, with sequence number 7, acknowledgement number
    /// 9 and four bytes of data.
    fn segment(flags: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, TCP, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 3, 232, 0, 80]);
        packet.extend([0, 0, 0, 7, 0, 0, 0, 9, 0x50, flags, 1, 0, 0, 0, 0, 0]);
        packet.extend(b"text");
        packet
    }

    /// The checksum over a header that contains its own checksum is zero.
    fn has_valid_checksums(packet: &[u8]) -> bool {
        let (begin, len) = addresses(packet);
        let header_len = if len == 4 { 20 } else { 40 };
        let pseudo = [&packet[begin..begin + 2 * len], &[0, TCP, 0, HEADER as u8]].concat();
        let of_ip = len == 16 || checksum(&[&packet[..header_len]]) == [0, 0];
        of_ip && checksum(&[&pseudo, &packet[header_len..]]) == [0, 0]
    }

    #[test]
    fn each_end_gets_a_reset_from_the_other_with_the_expected_number() {
        let [forth, back] = resets_for(&segment(ACK)).expect("it is a segment");
        assert_eq!(&forth[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(
            &forth[20..],
            [&[3, 232, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0, 0x50, RST][..], &forth[34..]].concat()
        );
        assert_eq!(&back[12..20], [10, 0, 0, 2, 10, 0, 0, 1]);
        assert_eq!(&back[20..34], [0, 80, 3, 232, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, RST]);
        for packet in [forth, back] {
            assert_eq!((packet.len(), &packet[2..4]), (40, &[0, 40][..]));
            assert!(has_valid_checksums(&packet));
        }
    }

    #[test]
    fn ipv6_segments_are_answered_with_resets_too() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 24, TCP, 64];
        packet.extend([[1; 16], [2; 16]].concat());
        packet.extend(&segment(ACK)[20..]);
        let [forth, back] = resets_for(&packet).expect("it is a segment");
        assert!(has_valid_checksums(&forth) && has_valid_checksums(&back));
        assert_eq!((&back[8..24], &back[24..40]), (&[2; 16][..], &[1; 16][..]));
    }

    #[test]
    fn packets_of_no_established_connection_cause_no_reset() {
        for flags in [SYN, SYN | ACK, RST | ACK, RST, 0] {
            assert!(resets_for(&segment(flags)).is_none(), "{flags:x}");
        }
        let mut datagram = segment(ACK);
        datagram[9] = 17;
        assert!(resets_for(&datagram).is_none());
        let whole = segment(ACK);
        for len in 0..40 {
            assert!(resets_for(&whole[..len]).is_none(), "{len}");
        }
    }
}
