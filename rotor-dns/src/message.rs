//! Messages: encodes queries, matches answers to them, and decodes answers. The only file that
//! names `domain`.

use std::str::FromStr;
use std::time::Duration;

use domain::base::iana::{Class, Rcode};
use domain::base::message::RecordSection;
use domain::base::name::Label;
use domain::base::{
    Message, MessageBuilder, Name as WireName, ParsedName, Rtype, wire::ParseError,
};
use domain::rdata::{A, Aaaa, Cname, Mx, Ptr, Soa, Srv, Txt};

use crate::chain::{self, Excess, min_ttl};
use crate::error::ServerFault;
use crate::record::{Data, Kind, Question, Record};

/// The largest answer in a datagram, as announced by EDNS: less than the limit of any path
/// (dnsflagday.net/2020).
const EDNS_PAYLOAD: u16 = 1232;
/// Where the question begins, after the header (RFC 1035 §4.1.1).
const HEADER_BYTES: usize = 12;
/// The fields after the name of a question: type and class.
const TYPE_AND_CLASS_BYTES: usize = 4;

/// A query as it is sent.
#[derive(Debug)]
pub(crate) struct QueryMessage {
    bytes: Vec<u8>,
    /// Where the question ends.
    question_end: usize,
    has_edns: bool,
}

/// How a message relates to a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Match {
    /// It is an answer to the query, with the same case of each letter.
    Exact,
    /// It has the id and the question, but in another case.
    OtherCase,
    /// It has the id but no question, like the answer of a server that could not read the query.
    NoQuestion,
    /// It is something else.
    No,
}

/// The content of an answer.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum DecodedAnswer {
    /// The server truncated the answer (the TC bit): ask over TCP.
    Truncated,
    /// The records of the requested kind.
    Found { end: crate::name::Name, data: Vec<Data>, ttl: Duration },
    /// The name does not exist (`is_nxdomain`), or has no such records; `ttl` is how long that is
    /// valid.
    None { is_nxdomain: bool, ttl: Option<Duration> },
    /// The chain leads to a name about which the answer says nothing more: ask for that name.
    PartialChain { end: crate::name::Name, hops: usize, ttl: Duration },
}

impl QueryMessage {
    /// Encodes a question. `case` decides for each letter whether it is a capital, which an answer
    /// must repeat (0x20, draft-vixie-dnsext-dns0x20). Returns `None` if the name does not fit on
    /// the wire, which the limits of its text exclude.
    pub(crate) fn new(
        question: &Question,
        id: u16,
        mut case: impl FnMut() -> bool,
        edns: bool,
    ) -> Option<QueryMessage> {
        let mixed =
            |c: char| if c.is_ascii_alphabetic() && case() { c.to_ascii_uppercase() } else { c };
        let text: String = question.name.as_str().chars().map(mixed).collect();
        let name = WireName::<Vec<u8>>::from_str(&text).ok()?;
        let mut builder = MessageBuilder::new_vec();
        builder.header_mut().set_id(id);
        // Recursion is desired: a stub does not walk the tree from the root itself.
        builder.header_mut().set_rd(true);
        let mut builder = builder.question();
        let question_end = HEADER_BYTES + name.len() + TYPE_AND_CLASS_BYTES;
        builder.push((name, rtype(question.kind), Class::IN)).ok()?;
        let mut builder = builder.additional();
        // Not by default: servers that do not support it have to be asked twice (RFC 6891 §7), and
        // few answers are so large.
        if edns {
            builder
                .opt(|opt| {
                    opt.set_udp_payload_size(EDNS_PAYLOAD);
                    Ok(())
                })
                .ok()?;
        }
        Some(QueryMessage { bytes: builder.finish(), question_end, has_edns: edns })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether `message` is an answer to this query. The question is compared byte by byte:
    /// it is the first name of a message, so it cannot be compressed.
    pub(crate) fn matches(&self, message: &[u8]) -> Match {
        let Some(head) = message.get(..HEADER_BYTES) else { return Match::No };
        // QR is set, and the opcode is that of a query (RFC 1035 §4.1.1).
        let is_response_to_query = head[2] & 0b1111_1000 == 0b1000_0000;
        if head[..2] != self.bytes[..2] || !is_response_to_query {
            return Match::No;
        }
        match head[4..6] {
            [0, 0] => return Match::NoQuestion,
            [0, 1] => {}
            _ => return Match::No,
        }
        let Some(question) = message.get(HEADER_BYTES..self.question_end) else { return Match::No };
        let ours = &self.bytes[HEADER_BYTES..self.question_end];
        match question {
            question if question == ours => Match::Exact,
            // The only difference is the case of letters: lengths of labels are below 64, and the
            // bytes of types and classes that are asked for are no letters.
            question if question.eq_ignore_ascii_case(ours) => Match::OtherCase,
            _ => Match::No,
        }
    }

    /// Returns whether an answer to this query, with a question or without one, says that the
    /// server does not support EDNS: a format error (RFC 6891 §7), or "not implemented".
    pub(crate) fn is_edns_refusal(&self, message: &[u8]) -> bool {
        let code = message.get(3).map(|byte| byte & 0b0000_1111);
        let codes = [Rcode::FORMERR, Rcode::NOTIMP].map(|code| Some(code.to_int()));
        self.has_edns && codes.contains(&code)
    }
}

fn rtype(kind: Kind) -> Rtype {
    match kind {
        Kind::A => Rtype::A,
        Kind::Aaaa => Rtype::AAAA,
        Kind::Cname => Rtype::CNAME,
        Kind::Srv => Rtype::SRV,
        Kind::Txt => Rtype::TXT,
        Kind::Mx => Rtype::MX,
        Kind::Ptr => Rtype::PTR,
    }
}

/// Decodes an answer that matches the query for `question`, and follows up to `hops_max` aliases.
pub(crate) fn decode(
    question: &Question,
    bytes: &[u8],
    hops_max: usize,
) -> Result<DecodedAnswer, ServerFault> {
    let message = Message::from_slice(bytes).map_err(|_| ServerFault::Malformed)?;
    // The records may be incomplete, so they are not used (RFC 2181 §9).
    let header = message.header();
    if header.tc() {
        return Ok(DecodedAnswer::Truncated);
    }
    let is_nxdomain = match header.rcode() {
        Rcode::NOERROR => false,
        Rcode::NXDOMAIN => true,
        other => return Err(ServerFault::Code(other.to_int())),
    };
    let answers = message.answer().map_err(|_| ServerFault::Malformed)?;
    let (records, authority) = records(question.kind, answers)
        .map_err(|_| ServerFault::Malformed)?
        .ok_or(ServerFault::TooLarge)?;
    let chain = chain::follow(question, &records, hops_max).map_err(|excess| match excess {
        Excess::Aliases => ServerFault::ChainTooLong,
        Excess::Bytes => ServerFault::TooLarge,
    })?;
    if let (false, Some(ttl)) = (chain.data.is_empty(), chain.ttl) {
        return Ok(DecodedAnswer::Found { end: chain.end, data: chain.data, ttl });
    }
    let negative = negative_ttl(authority).map_err(|_| ServerFault::Malformed)?;
    match chain.ttl {
        // The answer has neither "no such name" nor an authority for "no such records": the server
        // stopped in the middle of the chain.
        Some(ttl) if !is_nxdomain && negative.is_none() => {
            Ok(DecodedAnswer::PartialChain { end: chain.end, hops: chain.hops, ttl })
        }
        // The answer is empty, and says nothing about the name.
        None if !is_nxdomain && negative.is_none() && !header.ra() && !header.aa() => {
            Err(ServerFault::NoRecursion)
        }
        ttl => {
            let ttl = negative.and_then(|negative| min_ttl(ttl, negative));
            Ok(DecodedAnswer::None { is_nxdomain, ttl })
        }
    }
}

type Section<'a> = RecordSection<'a, [u8]>;

/// How many bytes of memory the records of a message may take while it is decoded, with those that
/// do not belong to the answer: three times what a message of 64 KiB full of addresses takes. Two
/// bytes of a message can stand for a name of a kilobyte.
const DECODED_BYTES_MAX: usize = 1 << 20;

/// The records of the answer section that can matter, and the section after it.
type Records<'a> = (Vec<Record>, Option<Section<'a>>);

/// Returns the records that can matter to a question of this kind; `None` if they take too much
/// memory.
fn records(kind: Kind, mut answers: Section<'_>) -> Result<Option<Records<'_>>, ParseError> {
    let mut records = Vec::<Record>::new();
    let (mut held, mut last_owner) = (0, None);
    for parsed in answers.by_ref() {
        let parsed = parsed?;
        // No other class or kind was asked for, and only aliases lead on.
        let can_matter = [rtype(kind), Rtype::CNAME].contains(&parsed.rtype());
        if parsed.class() != Class::IN || !can_matter {
            continue;
        }
        let data = match parsed.rtype() {
            Rtype::A => parsed.to_record::<A>()?.map(|r| Data::A(r.data().addr())),
            Rtype::AAAA => parsed.to_record::<Aaaa>()?.map(|r| Data::Aaaa(r.data().addr())),
            Rtype::CNAME => parsed
                .to_record::<Cname<ParsedName<&[u8]>>>()?
                .map(|r| Data::Cname(to_name(r.data().cname()))),
            Rtype::SRV => parsed.to_record::<Srv<ParsedName<&[u8]>>>()?.map(|r| {
                let srv = r.data();
                let target = to_name(srv.target());
                Data::Srv {
                    priority: srv.priority(),
                    weight: srv.weight(),
                    port: srv.port(),
                    target,
                }
            }),
            Rtype::TXT => parsed
                .to_record::<Txt<&[u8]>>()?
                .map(|r| Data::Txt(r.data().iter().map(Box::from).collect())),
            Rtype::MX => parsed.to_record::<Mx<ParsedName<&[u8]>>>()?.map(|r| {
                let mx = r.data();
                Data::Mx { preference: mx.preference(), exchange: to_name(mx.exchange()) }
            }),
            Rtype::PTR => parsed
                .to_record::<Ptr<ParsedName<&[u8]>>>()?
                .map(|r| Data::Ptr(to_name(r.data().ptrdname()))),
            _ => None,
        };
        if let Some(data) = data {
            let wire_owner = parsed.owner();
            // Most records have the same owner as the one before, and share its name.
            let owner = match records.last().filter(|_| last_owner == Some(wire_owner)) {
                Some(last) => last.owner.clone(),
                None => {
                    let owner = to_name(&wire_owner);
                    held += owner.held_bytes();
                    owner
                }
            };
            last_owner = Some(wire_owner);
            held += size_of::<Record>() + data.held_bytes();
            if held > DECODED_BYTES_MAX {
                return Ok(None);
            }
            records.push(Record { owner, ttl: parsed.ttl().into_duration(), data });
        }
    }
    Ok(Some((records, answers.next_section()?)))
}

fn to_name(name: &ParsedName<&[u8]>) -> crate::name::Name {
    crate::name::Name::from_wire(name.iter().map(Label::as_slice))
}

/// Returns how long a negative answer is valid: the minimum in the start of authority, limited by
/// its own lifetime (RFC 2308 §5). Without a start of authority the answer must not be cached.
fn negative_ttl(authority: Option<Section<'_>>) -> Result<Option<Duration>, ParseError> {
    // Only a start of authority says so; the section may have other records, such as name servers.
    for parsed in authority.into_iter().flatten() {
        let parsed = parsed?;
        if let Some(soa) = parsed.to_record::<Soa<ParsedName<&[u8]>>>()? {
            let ttl = soa.ttl().into_duration().min(soa.data().minimum().into_duration());
            return Ok(Some(ttl));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(edns: bool) -> QueryMessage {
        let question = Question { name: "a.example".parse().expect("a name"), kind: Kind::A };
        QueryMessage::new(&question, 0x1234, || true, edns).expect("it fits")
    }

    /// The query turned into a response. Each change is a position and the new byte.
    fn answer(query: &QueryMessage, changes: &[(usize, u8)]) -> Vec<u8> {
        let mut message = query.bytes()[..query.question_end].to_vec();
        (message[2], message[11]) = (0b1000_0001, 0);
        changes.iter().for_each(|(at, byte)| message[*at] = *byte);
        message
    }

    #[test]
    fn an_answer_matches_by_id_flags_and_question() {
        let query = query(false);
        let cases: [(&[(usize, u8)], Match); 9] = [
            (&[], Match::Exact),
            (&[(13, b'a')], Match::OtherCase),
            (&[(13, b'B')], Match::No),
            (&[(0, 0x13)], Match::No),
            (&[(1, 0x35)], Match::No),
            (&[(2, 0b0000_0001)], Match::No),
            (&[(2, 0b1000_1001)], Match::No),
            (&[(5, 2)], Match::No),
            (&[(5, 0)], Match::NoQuestion),
        ];
        for (changes, expected) in cases {
            assert_eq!(query.matches(&answer(&query, changes)), expected, "{changes:?}");
        }
        let whole = answer(&query, &[]);
        for length in 0..whole.len() {
            assert_eq!(query.matches(&whole[..length]), Match::No, "{length} bytes");
        }
        let head = &answer(&query, &[(5, 0)])[..HEADER_BYTES];
        assert_eq!(query.matches(head), Match::NoQuestion, "nothing behind the head");
        assert_eq!(query.matches(&head[..HEADER_BYTES - 1]), Match::No);
    }

    #[test]
    fn format_error_and_not_implemented_refuse_edns_only_if_it_was_used() {
        for code in 0..16 {
            let is_refusal = |edns| {
                let query = query(edns);
                [&[(3, 0x80 | code)][..], &[(3, 0x80 | code), (5, 0)]]
                    .map(|changes| query.is_edns_refusal(&answer(&query, changes)))
            };
            assert_eq!(is_refusal(true), [[1, 4].contains(&code); 2], "code {code}");
            assert_eq!(is_refusal(false), [false; 2], "code {code}");
        }
    }

    /// An answer to the query for `a.example`, with one record of this kind.
    fn answer_of(kind: Rtype, data: &[u8]) -> Vec<u8> {
        let mut message = answer(&query(false), &[(3, 0x80), (7, 1)]);
        let rest = [&[0xc0, 12][..], &kind.to_int().to_be_bytes(), &[0, 1, 0, 0, 0, 9]].concat();
        message.extend([&rest[..], &(data.len() as u16).to_be_bytes(), data].concat());
        message
    }

    #[test]
    fn a_record_of_another_class_is_ignored() {
        let question = Question { name: "a.example".parse().expect("a name"), kind: Kind::A };
        let mut message = answer_of(Rtype::A, &[192, 0, 2, 1]);
        let decoded = decode(&question, &message, 8);
        assert!(matches!(decoded, Ok(DecodedAnswer::Found { .. })), "{decoded:?}");
        // The class of the record, behind the question, the pointer to its name, and the type.
        let class = query(false).question_end + 5;
        assert_eq!(std::mem::replace(&mut message[class], 3), 1);
        let decoded = decode(&question, &message, 8);
        assert_eq!(decoded, Ok(DecodedAnswer::None { is_nxdomain: false, ttl: None }));
    }

    #[test]
    fn the_root_name_is_a_single_dot() {
        let question = |kind| Question { name: "a.example".parse().expect("a name"), kind };
        // RFC 2782: a single dot means that the service is not available.
        let none = answer_of(Rtype::SRV, &[0; 7]);
        let Ok(DecodedAnswer::Found { data, .. }) = decode(&question(Kind::Srv), &none, 8) else {
            panic!("it has a record")
        };
        let [Data::Srv { target, .. }] = &data[..] else { panic!("{data:?}") };
        assert_eq!(target.as_str(), ".");
        // It can be asked for like any other name.
        let alias = answer_of(Rtype::CNAME, &[0]);
        let Ok(DecodedAnswer::PartialChain { end, .. }) = decode(&question(Kind::A), &alias, 8)
        else {
            panic!("it leads on")
        };
        let next = QueryMessage::new(&Question { name: end, kind: Kind::A }, 1, || true, false);
        assert_eq!(&next.expect("it fits").bytes()[HEADER_BYTES..], [0, 0, 1, 0, 1]);
    }

    #[test]
    fn each_byte_of_a_name_survives_the_round_trip_through_text() {
        for byte in 0..=255u8 {
            let target = [1, byte, 7, b'e', b'x', b'a', b'm', b'p', b'l', b'e', 0];
            let alias = answer_of(Rtype::CNAME, &target);
            let question =
                Question { name: "a.example".parse().expect("a name"), kind: Kind::Cname };
            let Ok(DecodedAnswer::Found { data, .. }) = decode(&question, &alias, 8) else {
                panic!("it has a record")
            };
            let [Data::Cname(name)] = &data[..] else { panic!("{data:?}") };
            let question = Question { name: name.clone(), kind: Kind::A };
            let query = QueryMessage::new(&question, 1, || false, false).expect("it fits");
            let asked = &query.bytes()[HEADER_BYTES..HEADER_BYTES + target.len()];
            assert_eq!(asked, target.to_ascii_lowercase(), "{byte}: {name}");
            // A name that can be typed equals the one parsed from text.
            let typed = format!("{}.example", char::from(byte)).parse::<crate::name::Name>();
            assert!(byte == b'.' || typed.is_err() || typed.as_ref() == Ok(name), "{byte}: {name}");
        }
    }
}
