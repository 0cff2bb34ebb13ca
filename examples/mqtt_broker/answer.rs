//! The packets that a broker sends.

use rotor::stream::Block;

use super::packet::{Publish, Qos};

/// The result of a CONNECT (§3.2.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accepted {
    New = 0,
    WrongVersion = 1,
    NoSuchClient = 2,
    Unavailable = 3,
}

/// The return code for a filter that is refused (§3.9.3).
pub(crate) const REFUSED: u8 = 0x80;

pub(crate) const PINGRESP: [u8; 2] = [0xd0, 0];

pub(crate) fn connack(accepted: Accepted, session_present: bool) -> [u8; 4] {
    [0x20, 2, u8::from(session_present), accepted as u8]
}

pub(crate) fn puback(id: u16) -> [u8; 4] {
    of_id(0x40, id)
}

pub(crate) fn pubrec(id: u16) -> [u8; 4] {
    of_id(0x50, id)
}

pub(crate) fn pubrel(id: u16) -> [u8; 4] {
    of_id(0x62, id)
}

pub(crate) fn pubcomp(id: u16) -> [u8; 4] {
    of_id(0x70, id)
}

pub(crate) fn unsuback(id: u16) -> [u8; 4] {
    of_id(0xb0, id)
}

/// Makes a SUBACK with the granted QoS, or [`REFUSED`], for each filter.
pub(crate) fn suback(id: u16, granted: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x90];
    push_length(&mut packet, 2 + granted.len());
    packet.extend(id.to_be_bytes());
    packet.extend(granted);
    packet
}

fn of_id(kind: u8, id: u16) -> [u8; 4] {
    let [high, low] = id.to_be_bytes();
    [kind, 2, high, low]
}

/// A stored message: the packet that delivers it at QoS 0, which many clients can share, and the
/// positions of its parts.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    packet: Block,
    /// Where the topic with its length begins.
    head: usize,
    /// Where the payload begins.
    payload: usize,
    pub(crate) qos: Qos,
}

impl Message {
    pub(crate) fn of(publish: &Publish<'_>) -> Message {
        let topic = publish.topic.as_bytes();
        let mut packet = Vec::with_capacity(7 + topic.len() + publish.payload.len());
        packet.push(0x30);
        push_length(&mut packet, 2 + topic.len() + publish.payload.len());
        let head = packet.len();
        push_string(&mut packet, topic);
        let payload = packet.len();
        packet.extend(publish.payload);
        Message { packet: packet.into(), head, payload, qos: publish.qos }
    }

    /// Returns its approximate size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.packet.len()
    }

    /// Returns the packet for QoS 0, which needs no answer.
    pub(crate) fn once(&self, retain: bool) -> Block {
        if retain { self.packet(Qos::Zero, 0, false, true) } else { self.packet.clone() }
    }

    /// Returns the packet for one client, whose answer contains this number.
    pub(crate) fn packet(&self, qos: Qos, id: u16, again: bool, retain: bool) -> Block {
        let id_len = if qos == Qos::Zero { 0 } else { 2 };
        let mut packet = Vec::with_capacity(self.packet.len() + 3);
        packet.push(0x30 | u8::from(again) << 3 | (qos as u8) << 1 | u8::from(retain));
        push_length(&mut packet, self.packet.len() - self.head + id_len);
        packet.extend(&self.packet[self.head..self.payload]);
        packet.extend(&id.to_be_bytes()[..id_len]);
        packet.extend(&self.packet[self.payload..]);
        packet.into()
    }
}

fn push_string(packet: &mut Vec<u8>, text: &[u8]) {
    // Every text was read with a length of two bytes, so its length fits.
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    packet.extend(len.to_be_bytes());
    packet.extend(text);
}

/// Writes seven bits in each byte, least significant first (§2.2.3).
fn push_length(packet: &mut Vec<u8>, mut len: usize) {
    while len > 0x7f {
        packet.push(len as u8 | 0x80);
        len >>= 7;
    }
    packet.push(len as u8);
}
