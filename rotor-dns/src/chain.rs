//! Follows aliases through the records of one reply.

use std::time::Duration;

use crate::name::Name;
use crate::record::{Data, Kind, Question, Record};

/// How many aliases are followed, starting at the name of the question. Real chains have two or
/// three; longer ones cost each caller time, and a circle must end.
pub const CHAIN_MAX: usize = 8;

/// How many bytes of memory the records of an answer may take. A larger answer is the server's
/// fault ([`TooLarge`](crate::ServerFault::TooLarge)). 256 KiB: a message of 64 KiB full of
/// addresses takes half of that, and one full of text hardly more than itself. Only a message made
/// for the purpose takes more: one with many empty strings, or with long names that are written
/// once and referred to often.
pub const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Where the aliases lead, and the records there.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Chain {
    pub(crate) end: Name,
    /// The number of aliases.
    pub(crate) hops: usize,
    /// The records of the requested kind; empty if the reply has none.
    pub(crate) data: Vec<Data>,
    /// The shortest lifetime of all records that were used; `None` if none was.
    pub(crate) ttl: Option<Duration>,
}

/// Why the records of a reply cannot be used.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Excess {
    /// The chain has more aliases than may still be followed.
    Aliases,
    /// The records take more memory than [`ANSWER_BYTES_MAX`].
    Bytes,
}

/// Starts at the question, follows up to `hops_max` aliases, and takes the records at the end.
/// Records of other names are ignored, wherever they are in the message.
pub(crate) fn follow(
    question: &Question,
    records: &[Record],
    hops_max: usize,
) -> Result<Chain, Excess> {
    let mut chain = Chain { end: question.name.clone(), hops: 0, data: Vec::new(), ttl: None };
    let mut held = 0;
    loop {
        for record in
            records.iter().filter(|r| r.owner == chain.end && r.data.kind() == question.kind)
        {
            // Counted before it is copied: a message of 64 KiB can refer to megabytes of names.
            held += size_of::<Data>() + record.data.held_bytes();
            if held > ANSWER_BYTES_MAX {
                return Err(Excess::Bytes);
            }
            chain.ttl = min_ttl(chain.ttl, record.ttl);
            chain.data.push(record.data.clone());
        }
        // An alias that was asked for is the answer, not a step to it (RFC 1034 §3.6.2).
        if !chain.data.is_empty() || question.kind == Kind::Cname {
            // The cache may keep the records for a day.
            chain.data.shrink_to_fit();
            return Ok(chain);
        }
        let alias = records.iter().find_map(|record| match &record.data {
            Data::Cname(target) if record.owner == chain.end => Some((target, record.ttl)),
            _ => None,
        });
        // There are neither records nor a further alias. What that means depends on the rest of the
        // message.
        let Some((target, ttl)) = alias else { return Ok(chain) };
        // Circles of aliases end here as well.
        if chain.hops == hops_max {
            return Err(Excess::Aliases);
        }
        chain.hops += 1;
        chain.ttl = min_ttl(chain.ttl, ttl);
        chain.end = target.clone();
    }
}

pub(crate) fn min_ttl(known: Option<Duration>, other: Duration) -> Option<Duration> {
    Some(known.map_or(other, |ttl| ttl.min(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    fn record(owner: &str, seconds: u64, data: Data) -> Record {
        Record { owner: name(owner), ttl: Duration::from_secs(seconds), data }
    }

    fn address(owner: &str, seconds: u64, last: u8) -> Record {
        record(owner, seconds, Data::A([192, 0, 2, last].into()))
    }

    fn alias(owner: &str, seconds: u64, target: &str) -> Record {
        record(owner, seconds, Data::Cname(name(target)))
    }

    fn question(text: &str) -> Question {
        Question { name: name(text), kind: Kind::A }
    }

    #[test]
    fn records_outside_the_alias_chain_are_ignored() {
        let records = [
            address("evil.example", 9, 66),
            alias("b.example", 30, "c.example"),
            address("c.example", 60, 1),
            alias("a.example", 90, "b.example"),
            address("c.example", 50, 2),
            alias("d.example", 1, "evil.example"),
        ];
        let chain = follow(&question("a.example"), &records, 8).expect("a short chain");
        assert_eq!((chain.end.as_str(), chain.hops), ("c.example", 2));
        assert_eq!(chain.data, [Data::A([192, 0, 2, 1].into()), Data::A([192, 0, 2, 2].into())]);
        assert_eq!(chain.ttl, Some(Duration::from_secs(30)));
    }

    #[test]
    fn eight_aliases_are_followed_and_a_ninth_is_not() {
        let long = |count: usize| {
            let mut records: Vec<Record> =
                (0..count).map(|i| alias(&format!("n{i}"), 5, &format!("n{}", i + 1))).collect();
            records.push(address(&format!("n{count}"), 5, 1));
            records
        };
        for count in [0, 1, 7, 8] {
            let chain = follow(&question("n0"), &long(count), CHAIN_MAX).expect("not too long");
            assert_eq!((chain.hops, chain.data.len()), (count, 1));
        }
        assert_eq!(follow(&question("n0"), &long(9), CHAIN_MAX), Err(Excess::Aliases));
    }

    #[test]
    fn an_answer_over_the_byte_limit_is_refused() {
        let addresses = ANSWER_BYTES_MAX / size_of::<Data>();
        for (count, is_fine) in [(addresses - 1, true), (addresses, true), (addresses + 1, false)] {
            let records = vec![address("a", 5, 1); count];
            let followed = follow(&question("a"), &records, CHAIN_MAX);
            assert_eq!(
                followed.map(|chain| chain.data.len()),
                is_fine.then_some(count).ok_or(Excess::Bytes)
            );
        }
        // Records that do not belong to the question do not count.
        let mut records = vec![address("b", 5, 1); addresses + 1];
        records.push(address("a", 5, 1));
        assert!(follow(&question("a"), &records, CHAIN_MAX).is_ok());
        // 64 KiB of empty strings are a megabyte.
        let question = Question { kind: Kind::Txt, ..question("a") };
        let strings = record("a", 5, Data::Txt(vec![[][..].into(); 65_000]));
        assert_eq!(follow(&question, &[strings], CHAIN_MAX), Err(Excess::Bytes));
    }

    #[test]
    fn an_alias_cycle_exceeds_the_chain_limit() {
        let records = [alias("a", 5, "b"), alias("b", 5, "a")];
        assert_eq!(follow(&question("a"), &records, CHAIN_MAX), Err(Excess::Aliases));
        assert_eq!(follow(&question("a"), &[alias("a", 5, "a")], CHAIN_MAX), Err(Excess::Aliases));
    }

    #[test]
    fn a_requested_alias_record_is_not_followed() {
        let question = Question { name: name("a"), kind: Kind::Cname };
        let chain =
            follow(&question, &[alias("a", 5, "b"), alias("b", 5, "c")], 8).expect("none followed");
        assert_eq!((chain.hops, chain.data), (0, vec![Data::Cname(name("b"))]));
    }

    #[test]
    fn a_chain_may_end_without_records() {
        let chain =
            follow(&question("a"), &[alias("a", 5, "b"), address("c", 5, 1)], 8).expect("short");
        assert_eq!((chain.end.as_str(), chain.hops, chain.data.len()), ("b", 1, 0));
        assert_eq!(follow(&question("a"), &[], 8).expect("short").ttl, None);
    }
}
