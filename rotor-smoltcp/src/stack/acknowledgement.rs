//! Acknowledgements that smoltcp does not make.

use std::net::SocketAddr;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpAddress, IpProtocol, IpRepr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};

/// Returns a segment without payload, after `frame`: the Ethernet header, if there is one.
pub(super) fn acknowledgement(
    frame: &[u8],
    (from, to): (SocketAddr, SocketAddr),
    number: TcpSeqNumber,
    acknowledges: TcpSeqNumber,
) -> Vec<u8> {
    let segment = TcpRepr {
        src_port: from.port(),
        dst_port: to.port(),
        control: TcpControl::None,
        seq_number: number,
        ack_number: Some(acknowledges),
        window_len: 0,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    };
    let (from, to): (IpAddress, IpAddress) = (from.ip().into(), to.ip().into());
    let header = IpRepr::new(from, to, IpProtocol::Tcp, segment.buffer_len(), 64);
    let sums = ChecksumCapabilities::default();
    let mut packet = frame.to_vec();
    packet.resize(frame.len() + header.buffer_len(), 0);
    let inner = &mut packet[frame.len()..];
    header.emit(&mut *inner, &sums);
    let inner = &mut inner[header.header_len()..];
    segment.emit(&mut TcpPacket::new_unchecked(inner), &from, &to, &sums);
    packet
}
