//! A broker with clients, in memory. Clients send bytes; what they receive is shown as words.

use rotor::stream::testing::{Peer, ScriptedSocket, TestLoop, pair};
use rotor::stream::{FrameLength, Stream, WithOutbox};

use super::broker::{Broker, HasBroker};
use super::limits::{Counts, Limits};
use super::machine::{Client, stream_config};
use super::packet::length;

pub(crate) struct Shared(pub(crate) Broker);

impl HasBroker for Shared {
    fn broker(&mut self) -> &mut Broker {
        &mut self.0
    }
}

pub(crate) type Machine = Stream<WithOutbox<Client<Shared>>, ScriptedSocket>;

pub(crate) struct Talk {
    pub(crate) test: TestLoop<Machine>,
}

impl Talk {
    pub(crate) fn new(limits: Limits) -> Talk {
        Talk { test: TestLoop::new(Shared(Broker::new(limits))) }
    }

    /// A connection that has sent nothing.
    pub(crate) fn stranger(&mut self) -> Peer {
        let (socket, peer) = pair(self.test.world());
        self.test.add(|scope| Stream::connected(socket, stream_config(), scope));
        peer
    }

    /// A connected client, and the answer to its CONNECT.
    pub(crate) fn connect(&mut self, connect: &[u8]) -> (Peer, Vec<String>) {
        let peer = self.stranger();
        let answer = self.say(&peer, connect);
        (peer, answer)
    }

    /// A new client without a session.
    pub(crate) fn client(&mut self, name: &str) -> Peer {
        let (peer, answer) = self.connect(&connect(name, CLEAN, 0));
        assert_eq!(answer, ["CONNACK 0"]);
        peer
    }

    /// A client with a session that may have existed before.
    pub(crate) fn lasting(&mut self, name: &str) -> (Peer, Vec<String>) {
        self.connect(&connect(name, 0, 0))
    }

    /// Sends bytes, and returns the answers.
    pub(crate) fn say(&mut self, peer: &Peer, bytes: &[u8]) -> Vec<String> {
        peer.send(bytes);
        self.test.settle();
        hear(peer)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.test.context().0.counts
    }
}

/// What a client has received, as words.
pub(crate) fn hear(peer: &Peer) -> Vec<String> {
    words(&peer.take_received())
}

pub(crate) fn words(mut bytes: &[u8]) -> Vec<String> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        let FrameLength::Bytes(len) = length(bytes) else { panic!("torn: {bytes:x?}") };
        assert!(len <= bytes.len(), "torn: {bytes:x?}");
        packets.push(word(&bytes[..len]));
        bytes = &bytes[len..];
    }
    packets
}

fn word(packet: &[u8]) -> String {
    let head = 1 + packet[1..].iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
    let rest = &packet[head..];
    let id = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
    match packet[0] {
        0x20 => format!("CONNACK {}{}", rest[1], ["", " known"][usize::from(rest[0])]),
        first @ 0x30..=0x3f => {
            let topic_end = 2 + usize::from(id(0));
            let topic = String::from_utf8_lossy(&rest[2..topic_end]);
            let qos = first >> 1 & 3;
            let payload = if qos == 0 { topic_end } else { topic_end + 2 };
            let mut word =
                format!("{topic}={} qos{qos}", String::from_utf8_lossy(&rest[payload..]));
            if qos > 0 {
                word += &format!(" #{}", id(topic_end));
            }
            for (bit, flag) in [(8, " again"), (1, " retained")] {
                word += if first & bit != 0 { flag } else { "" };
            }
            word
        }
        0x40 => format!("PUBACK #{}", id(0)),
        0x50 => format!("PUBREC #{}", id(0)),
        0x62 => format!("PUBREL #{}", id(0)),
        0x70 => format!("PUBCOMP #{}", id(0)),
        0x90 => format!("SUBACK #{} {:x?}", id(0), &rest[2..]),
        0xb0 => format!("UNSUBACK #{}", id(0)),
        0xd0 => "PINGRESP".to_owned(),
        first => panic!("a packet {first:x}"),
    }
}

/// The flag for a session that ends with its connection.
pub(crate) const CLEAN: u8 = 0x02;

pub(crate) fn packet(first: u8, parts: &[&[u8]]) -> Vec<u8> {
    let rest = parts.concat();
    let mut packet = vec![first];
    let mut len = rest.len();
    while len > 0x7f {
        packet.push(len as u8 | 0x80);
        len >>= 7;
    }
    packet.push(len as u8);
    packet.extend(rest);
    packet
}

pub(crate) fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}

pub(crate) fn connect(client: &str, flags: u8, keep_alive: u16) -> Vec<u8> {
    let head = [b"\0\x04MQTT\x04", &[flags][..], &keep_alive.to_be_bytes()].concat();
    packet(0x10, &[&head, &string(client)])
}

/// CONNECT with a will. The flags have its QoS and retain flag.
pub(crate) fn connect_with(client: &str, flags: u8, will: (&str, &str)) -> Vec<u8> {
    let head = [b"\0\x04MQTT\x04", &[flags | 0x04][..], &[0, 0]].concat();
    packet(0x10, &[&head, &string(client), &string(will.0), &string(will.1)])
}

/// The flags: QoS in bits 1 and 2, 1 for retain, 8 for a duplicate.
pub(crate) fn publish(topic: &str, payload: &str, flags: u8, id: u16) -> Vec<u8> {
    let id = if flags & 6 == 0 { Vec::new() } else { id.to_be_bytes().to_vec() };
    packet(0x30 | flags, &[&string(topic), &id, payload.as_bytes()])
}

pub(crate) fn subscribe(id: u16, filters: &[(&str, u8)]) -> Vec<u8> {
    let filters: Vec<u8> =
        filters.iter().flat_map(|(filter, qos)| [string(filter), vec![*qos]].concat()).collect();
    packet(0x82, &[&id.to_be_bytes(), &filters])
}

pub(crate) fn unsubscribe(id: u16, filters: &[&str]) -> Vec<u8> {
    let filters: Vec<u8> = filters.iter().flat_map(|filter| string(filter)).collect();
    packet(0xa2, &[&id.to_be_bytes(), &filters])
}

/// PUBACK (4), PUBREC (5), PUBREL (6), PUBCOMP (7).
pub(crate) fn answer(kind: u8, id: u16) -> Vec<u8> {
    packet(kind << 4 | if kind == 6 { 2 } else { 0 }, &[&id.to_be_bytes()])
}

pub(crate) const PING: [u8; 2] = [0xc0, 0];
pub(crate) const DISCONNECT: [u8; 2] = [0xe0, 0];
