//! How packets are parsed, and what happens to invalid ones.

use rotor::stream::FrameLength;

use super::answer::{Message, suback};
use super::packet::{Connect, Packet, Publish, Qos, length};
use super::reader::Malformed;
use super::talk::packet;

#[test]
fn a_length_is_known_once_its_last_byte_has_arrived() {
    for (input, length_of) in [
        (&[0x30][..], FrameLength::Unknown),
        (&[0x30, 0], FrameLength::Bytes(2)),
        (&[0x30, 0x7f, 1, 2], FrameLength::Bytes(129)),
        (&[0x30, 0x80], FrameLength::Unknown),
        (&[0x30, 0x80, 1], FrameLength::Bytes(131)),
        (&[0x30, 0xff, 0x7f], FrameLength::Bytes(3 + 16_383)),
        (&[0x30, 0x80, 0x80, 1], FrameLength::Bytes(4 + 16_384)),
        (&[0x30, 0xff, 0xff, 0xff], FrameLength::Unknown),
        (&[0x30, 0xff, 0xff, 0xff, 0x7f], FrameLength::Bytes(5 + 268_435_455)),
        (&[0x30, 0xff, 0xff, 0xff, 0x80], FrameLength::Malformed),
    ] {
        assert_eq!(length(input), length_of, "{input:x?}");
    }
    for len in [0, 1, 127, 128, 16_383, 16_384, 70_000] {
        let whole = packet(0x30, &[&vec![0; len]]);
        assert_eq!(length(&whole), FrameLength::Bytes(whole.len()), "{len}");
    }
}

#[test]
fn each_kind_of_client_packet_is_parsed() {
    let nobody = Connect { level: 4, is_clean: true, keep_alive: 0, client: "", will: None };
    let will = Publish { topic: "w", id: 0, qos: Qos::Two, retain: true, payload: b"gone" };
    let publish = Publish { topic: "a/b", id: 0, qos: Qos::Zero, retain: false, payload: b"x" };
    for (first, rest, read) in [
        (0x10, &b"\0\x04MQTT\x04\x02\0\0\0\0"[..], Packet::Connect(nobody.clone())),
        (
            0x10,
            b"\0\x04MQTT\x04\xf4\x01\x02\0\x02me\0\x01w\0\x04gone\0\x04name\0\x06secret",
            Packet::Connect(Connect {
                is_clean: false,
                keep_alive: 258,
                client: "me",
                will: Some(will),
                ..nobody.clone()
            }),
        ),
        // For other protocol versions, parsing stops here.
        (
            0x10,
            b"\0\x04MQTT\x05\x02\0\0\0",
            Packet::Connect(Connect { level: 5, ..nobody.clone() }),
        ),
        (0x10, b"\0\x06MQIsdp\x03\x02", Packet::Connect(Connect { level: 3, ..nobody.clone() })),
        (0x10, b"\0\x06MQIsdp\x04\x02", Packet::Connect(Connect { level: 0, ..nobody.clone() })),
        (0x30, b"\0\x03a/bx", Packet::Publish(publish)),
        (
            0x3d,
            b"\0\x03a/b\0\x09",
            Packet::Publish(Publish {
                id: 9,
                qos: Qos::Two,
                retain: true,
                payload: b"",
                ..publish
            }),
        ),
        (0x32, b"\0\x03a/b\x01\0x", Packet::Publish(Publish { id: 256, qos: Qos::One, ..publish })),
        (0x40, b"\0\x07", Packet::PubAck(7)),
        (0x50, b"\0\x07", Packet::PubRec(7)),
        (0x62, b"\0\x07", Packet::PubRel(7)),
        (0x70, b"\xff\xff", Packet::PubComp(65_535)),
        (
            0x82,
            b"\0\x01\0\x01a\0\0\x03+/#\x02",
            Packet::Subscribe { id: 1, filters: vec![("a", Qos::Zero), ("+/#", Qos::Two)] },
        ),
        (0xa2, b"\0\x01\0\x01a\0\x01#", Packet::Unsubscribe { id: 1, filters: vec!["a", "#"] }),
        (0xc0, b"", Packet::PingReq),
        (0xe0, b"", Packet::Disconnect),
    ] {
        assert_eq!(Packet::read(&packet(first, &[rest])), Ok(read), "{first:x} {rest:?}");
    }
}

#[test]
fn a_malformed_packet_is_refused_with_its_reason() {
    for (first, rest, why) in [
        (0x10, &b"\0\x04MQTX\x04\x02\0\0\0\0"[..], "another protocol"),
        (0x10, b"\0\x04MQTT\x04\x03\0\0\0\0", "flags that say nothing together"),
        (0x10, b"\0\x04MQTT\x04\x42\0\0\0\0\0\0", "flags that say nothing together"),
        (0x10, b"\0\x04MQTT\x04\x0a\0\0\0\0", "flags that say nothing together"),
        (0x10, b"\0\x04MQTT\x04\x22\0\0\0\0", "flags that say nothing together"),
        (0x10, b"\0\x04MQTT\x04\x1e\0\0\0\0\0\x01w\0\0", "a QoS of 3"),
        (0x10, b"\0\x04MQTT\x04\x06\0\0\0\0\0\x01#\0\0", "a wildcard in a topic's name"),
        (0x10, b"\0\x04MQTT\x04\x02\0\0\0", "it is cut short"),
        (0x10, b"\0\x04MQTT\x04\x82\0\0\0\0\0\x02x", "it is cut short"),
        (0x10, b"\0\x04MQTT\x04\x02\0\0\0\0x", "there is more than belongs"),
        (0x10, b"\0\x04MQTT\x04\x02\0\0\0\x01\xff", "not UTF-8"),
        (0x11, b"\0\x04MQTT\x04\x02\0\0\0\0", "reserved flags"),
        (0x36, b"\0\x01a\0\x01", "a QoS of 3"),
        (0x38, b"\0\x01a", "again, what is sent once"),
        (0x32, b"\0\x01a\0\0", "a packet identifier of 0"),
        (0x32, b"\0\x01a\0", "it is cut short"),
        (0x30, b"\0\0x", "a topic without a name"),
        (0x30, b"\0\x01+", "a wildcard in a topic's name"),
        (0x30, b"\0\x03a\0b", "a null character"),
        (0x30, b"\0\x03a\xc3(", "not UTF-8"),
        (0x30, b"\0\x03\xed\xa0\x80", "not UTF-8"),
        (0x30, b"\0\x09a", "it is cut short"),
        (0x40, b"\0\0", "a packet identifier of 0"),
        (0x40, b"\0", "it is cut short"),
        (0x40, b"\0\x01\0", "there is more than belongs"),
        (0x60, b"\0\x01", "reserved flags"),
        (0x80, b"\0\x01\0\x01a\0", "reserved flags"),
        (0x82, b"\0\x01", "it is cut short"),
        (0x82, b"\0\x01\0\x01a", "it is cut short"),
        (0x82, b"\0\x01\0\x01a\x03", "a QoS of 3"),
        (0x82, b"\0\x01\0\0\0", "an empty filter"),
        (0x82, b"\0\x01\0\x02a+\0", "a wildcard within a level, or not at the end"),
        (0xa2, b"\0\x01", "it is cut short"),
        (0xa2, b"\0\0\0\x01a", "a packet identifier of 0"),
        (0xc0, b"\0", "there is more than belongs"),
        (0xe1, b"", "reserved flags"),
        (0x00, b"", "a packet that no client sends"),
        (0x20, b"\0\0", "a packet that no client sends"),
        (0x90, b"\0\x01\0", "a packet that no client sends"),
        (0xb0, b"\0\x01", "a packet that no client sends"),
        (0xd0, b"", "a packet that no client sends"),
        (0xf0, b"", "a packet that no client sends"),
    ] {
        assert_eq!(
            Packet::read(&packet(first, &[rest])),
            Err(Malformed(why)),
            "{first:x} {rest:?}"
        );
    }
    assert_eq!(Packet::read(b""), Err(Malformed("it is empty")));
}

/// Truncates a packet at every length and changes each of its bytes. Each variant is either parsed
/// or rejected.
#[test]
fn arbitrary_bytes_never_cause_a_panic() {
    let whole = packet(
        0x10,
        &[b"\0\x04MQTT\x04\xf4\x01\x02\0\x02me\0\x01w\0\x04gone\0\x04name\0\x06secret"],
    );
    let subscribe = packet(0x82, &[b"\0\x01\0\x01a\0\0\x03+/#\x02"]);
    for bytes in [whole, subscribe, packet(0x34, &[b"\0\x03a/b\0\x09payload"])] {
        for at in 0..bytes.len() {
            let _ = Packet::read(&bytes[..at]);
            for value in 0..=255 {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = Packet::read(&changed);
            }
        }
    }
}

#[test]
fn a_message_round_trips_through_its_packet_at_each_qos() {
    for len in [0, 1, 118, 119, 120, 121, 122, 123, 124, 16_376, 16_380, 16_384] {
        let payload = vec![b'x'; len];
        for qos in [Qos::Zero, Qos::One, Qos::Two] {
            for (again, retain) in [(false, false), (true, false), (false, true)] {
                let id = if qos == Qos::Zero { 0 } else { 300 };
                let again = again && id > 0;
                let sent = Publish { topic: "a/b", id, qos, retain, payload: &payload };
                let bytes = Message::of(&sent).packet(qos, id, again, retain);
                assert_eq!(length(&bytes), FrameLength::Bytes(bytes.len()), "{len}");
                assert_eq!(bytes[0] & 0x08 != 0, again);
                assert_eq!(Packet::read(&bytes), Ok(Packet::Publish(sent)));
                if id == 0 {
                    assert_eq!(Message::of(&sent).once(retain)[..], bytes[..]);
                }
            }
        }
    }
    assert_eq!(suback(258, &[0, 0x80])[..], [0x90, 4, 1, 2, 0, 0x80]);
    assert_eq!(suback(1, &[0; 200])[..3], [0x90, 202 | 0x80, 1]);
}
