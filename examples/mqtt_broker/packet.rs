//! The packets that clients send, parsed as references into the received bytes.

use rotor::stream::FrameLength;

use super::reader::{Malformed, Reader};
use super::topic::{check_filter, check_name};

/// How reliably a message is delivered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Qos {
    /// At most once: it is not answered, and may be lost.
    Zero = 0,
    /// At least once: it is sent again until it is answered.
    One = 1,
    /// Exactly once: a second answer follows, after which its number may be used for another
    /// message.
    Two = 2,
}

/// A packet from a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Packet<'a> {
    Connect(Connect<'a>),
    Publish(Publish<'a>),
    PubAck(u16),
    PubRec(u16),
    PubRel(u16),
    PubComp(u16),
    Subscribe { id: u16, filters: Vec<(&'a str, Qos)> },
    Unsubscribe { id: u16, filters: Vec<&'a str> },
    PingReq,
    Disconnect,
}

/// The first packet of a client (§3.1). A name and a password are parsed but not checked: everybody
/// who can reach this broker may use it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Connect<'a> {
    /// 4 means MQTT 3.1.1. For other versions the rest was not parsed.
    pub(crate) level: u8,
    pub(crate) is_clean: bool,
    /// In seconds; 0 means none.
    pub(crate) keep_alive: u16,
    pub(crate) client: &'a str,
    pub(crate) will: Option<Publish<'a>>,
}

/// A message (§3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Publish<'a> {
    pub(crate) topic: &'a str,
    /// 0 if its QoS needs none.
    pub(crate) id: u16,
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
    pub(crate) payload: &'a [u8],
}

/// The supported version.
pub(crate) const LEVEL: u8 = 4;

/// Returns the length of a packet: one byte for its kind, then up to four bytes for the length of
/// the rest, with seven bits each, least significant first (§2.2.3).
pub(crate) fn length(input: &[u8]) -> FrameLength {
    let mut rest = 0;
    for at in 0..4 {
        let Some(byte) = input.get(1 + at) else { return FrameLength::Unknown };
        rest |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return FrameLength::Bytes(2 + at + rest);
        }
    }
    FrameLength::Malformed
}

/// Returns the length of the first packet, which must be a CONNECT, so that a client of another
/// protocol is refused at once.
pub(crate) fn first_length(input: &[u8]) -> FrameLength {
    if input.first() == Some(&0x10) { length(input) } else { FrameLength::Malformed }
}

impl Qos {
    fn of(bits: u8) -> Result<Qos, Malformed> {
        match bits {
            0 => Ok(Qos::Zero),
            1 => Ok(Qos::One),
            2 => Ok(Qos::Two),
            _ => Err(Malformed("a QoS of 3")),
        }
    }
}

impl<'a> Packet<'a> {
    /// Parses a whole packet, whose length is that of [`length`].
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let [first, rest @ ..] = bytes else { return Err(Malformed("it is empty")) };
        let head = rest.iter().position(|byte| byte & 0x80 == 0).map_or(rest.len(), |at| at + 1);
        let mut reader = Reader(&rest[head..]);
        let (kind, flags) = (first >> 4, first & 0x0f);
        if kind == 3 {
            return Ok(Packet::Publish(publish(flags, reader)?));
        }
        // §2.2.2: the other kinds have no flags; these bits are reserved.
        if flags != if matches!(kind, 6 | 8 | 10) { 2 } else { 0 } {
            return Err(Malformed("reserved flags"));
        }
        let packet = match kind {
            1 => Packet::Connect(connect(&mut reader)?),
            4 => Packet::PubAck(reader.packet_id()?),
            5 => Packet::PubRec(reader.packet_id()?),
            6 => Packet::PubRel(reader.packet_id()?),
            7 => Packet::PubComp(reader.packet_id()?),
            8 => Packet::Subscribe {
                id: reader.packet_id()?,
                filters: list(&mut reader, |reader| {
                    Ok((check_filter(reader.string()?)?, Qos::of(reader.byte()?)?))
                })?,
            },
            10 => Packet::Unsubscribe {
                id: reader.packet_id()?,
                filters: list(&mut reader, |reader| check_filter(reader.string()?))?,
            },
            12 => Packet::PingReq,
            14 => Packet::Disconnect,
            _ => return Err(Malformed("a packet that no client sends")),
        };
        if reader.is_empty() { Ok(packet) } else { Err(Malformed("there is more than belongs")) }
    }
}

fn connect<'a>(reader: &mut Reader<'a>) -> Result<Connect<'a>, Malformed> {
    // MQTT 3.1 has another protocol name.
    let name = reader.string()?;
    if name != "MQTT" && name != "MQIsdp" {
        return Err(Malformed("another protocol"));
    }
    let level = reader.byte()?;
    if level != LEVEL || name != "MQTT" {
        reader.0 = &[];
        let level = if level == LEVEL { 0 } else { level };
        return Ok(Connect { level, is_clean: true, keep_alive: 0, client: "", will: None });
    }
    let flags = reader.byte()?;
    let has = |bit: u8| flags & bit != 0;
    let qos = Qos::of(flags >> 3 & 3)?;
    if has(0x01) || has(0x40) && !has(0x80) || !has(0x04) && flags & 0x38 != 0 {
        return Err(Malformed("flags that say nothing together"));
    }
    let keep_alive = reader.number()?;
    let client = reader.string()?;
    let will = if has(0x04) {
        let topic = check_name(reader.string()?)?;
        Some(Publish { topic, id: 0, qos, retain: has(0x20), payload: reader.bytes()? })
    } else {
        None
    };
    if has(0x80) {
        reader.string()?;
    }
    if has(0x40) {
        reader.bytes()?;
    }
    Ok(Connect { level, is_clean: has(0x02), keep_alive, client, will })
}

fn publish(flags: u8, mut reader: Reader<'_>) -> Result<Publish<'_>, Malformed> {
    let qos = Qos::of(flags >> 1 & 3)?;
    if qos == Qos::Zero && flags & 0x08 != 0 {
        return Err(Malformed("again, what is sent once"));
    }
    let topic = check_name(reader.string()?)?;
    let id = if qos == Qos::Zero { 0 } else { reader.packet_id()? };
    Ok(Publish { topic, id, qos, retain: flags & 1 != 0, payload: reader.rest() })
}

/// Parses a list of at least one element (§3.8.3, §3.10.3).
fn list<'a, T>(
    reader: &mut Reader<'a>,
    mut one: impl FnMut(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut all = vec![one(reader)?];
    while !reader.is_empty() {
        all.push(one(reader)?);
    }
    Ok(all)
}
