//! Answers built byte by byte, so that their faults are obvious.

/// A name in wire format.
pub(crate) fn name(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in text.split('.').filter(|label| !label.is_empty()) {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

pub(crate) const A: u16 = 1;
pub(crate) const CNAME: u16 = 5;
pub(crate) const SOA: u16 = 6;
pub(crate) const PTR: u16 = 12;
pub(crate) const MX: u16 = 15;
pub(crate) const TXT: u16 = 16;
pub(crate) const AAAA: u16 = 28;
pub(crate) const SRV: u16 = 33;

/// A record: its owner in wire format, its type, its time to live in seconds, its data.
pub(crate) fn record(owner: &[u8], kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = owner.to_vec();
    bytes.extend(kind.to_be_bytes());
    bytes.extend(1u16.to_be_bytes());
    bytes.extend(ttl.to_be_bytes());
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend(data);
    bytes
}

pub(crate) fn alias(owner: &str, target: &str) -> Vec<u8> {
    record(&name(owner), CNAME, 60, &name(target))
}

pub(crate) fn address(owner: &str, last: u8) -> Vec<u8> {
    record(&name(owner), A, 60, &[192, 0, 2, last])
}

/// A SOA record that allows a negative answer to be cached for this many seconds.
pub(crate) fn authority(seconds: u32) -> Vec<u8> {
    let mut data = [name("ns.example"), name("admin.example")].concat();
    for number in [1, 3600, 600, 86_400, seconds] {
        data.extend(u32::to_be_bytes(number));
    }
    record(&name("example"), SOA, 3600, &data)
}

/// The end of a query's question.
pub(crate) fn question_end(query: &[u8]) -> usize {
    let mut at = 12;
    while query[at] != 0 {
        at += 1 + usize::from(query[at]);
    }
    at + 5
}

/// The name in the question, in lower case, and the type.
pub(crate) fn asked(query: &[u8]) -> (String, u16) {
    let (mut at, mut labels) = (12, Vec::new());
    while query[at] != 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..end]).to_lowercase());
        at = end;
    }
    (labels.join("."), u16::from_be_bytes([query[at + 1], query[at + 2]]))
}

/// An answer with this response code, these answer records and authority records.
pub(crate) fn reply(
    query: &[u8],
    code: u8,
    answers: &[Vec<u8>],
    authorities: &[Vec<u8>],
) -> Vec<u8> {
    let mut bytes = query[..question_end(query)].to_vec();
    (bytes[2], bytes[3]) = (0x81, 0x80 | code);
    bytes[6..8].copy_from_slice(&(answers.len() as u16).to_be_bytes());
    bytes[8..10].copy_from_slice(&(authorities.len() as u16).to_be_bytes());
    bytes[10..12].fill(0);
    bytes.extend(answers.concat());
    bytes.extend(authorities.concat());
    bytes
}

pub(crate) fn found(query: &[u8], answers: &[Vec<u8>]) -> Vec<u8> {
    reply(query, 0, answers, &[])
}

/// A truncated answer, which makes the client ask over TCP.
pub(crate) fn truncated(query: &[u8]) -> Vec<u8> {
    let mut bytes = found(query, &[]);
    bytes[2] |= 0x02;
    bytes
}
