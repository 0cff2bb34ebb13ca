//! The parser, and a server on a scripted socket, follow the rules.

mod more;

use rotor_http::h1::{BodyDecoder, FieldStorage, HeadReader, Limits, Method, RequestSemantics};
use rotor_http::server::ServerConfig;

use crate::probe::probe;
use crate::rules::{Rule, all};
use crate::wire::transcript;

/// The parser's view of a connection.
struct Parsed {
    done: Vec<String>,
    /// The request whose body is being read, and whether another may follow it.
    current: Option<(String, BodyDecoder, bool)>,
}

impl Parsed {
    fn refuse(mut self, status: u16) -> String {
        self.done.push(format!("{status} close"));
        self.done.join(" | ")
    }
}

/// The parser's own result for the pieces, in the format of a transcript.
fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let limits = Limits::new();
    let (mut input, mut reader) = (Vec::new(), HeadReader::new());
    let mut parsed = Parsed { done: Vec::new(), current: None };
    let mut pieces = pieces.into_iter();
    loop {
        if let Some((text, decoder, keep_alive)) = &mut parsed.current {
            let Ok(decoded) = decoder.decode(&input) else { return parsed.refuse(400) };
            text.push_str(&String::from_utf8_lossy(&input[decoded.skip..decoded.consumed()]));
            input.drain(..decoded.consumed());
            if decoded.is_end {
                let close = if *keep_alive { "" } else { " close" };
                parsed.done.push(format!("{}{close}", text.trim_end()));
                parsed.current = None;
                if !close.is_empty() {
                    return parsed.done.join(" | ");
                }
            }
            if decoded.is_end || !decoded.needs_input() {
                continue;
            }
        } else {
            let mut storage = FieldStorage::new();
            match reader.read_request(&input, &mut storage, &limits) {
                Err(error) => return parsed.refuse(error.status().code()),
                Ok(Some(head)) => {
                    let terms = match RequestSemantics::from_head(&head) {
                        Ok(_) if matches!(head.method(), Method::Extension(_)) => {
                            return parsed.refuse(501);
                        }
                        Ok(terms) => terms,
                        Err(error) => return parsed.refuse(error.status().code()),
                    };
                    let text = format!("200 {} {} ", head.method(), head.path());
                    let decoder =
                        BodyDecoder::new(terms.body, u64::MAX, &limits).expect("no limit");
                    parsed.current = Some((text, decoder, terms.keep_alive));
                    let len = head.input_len();
                    input.drain(..len);
                    continue;
                }
                Ok(None) => {}
            }
        }
        match pieces.next() {
            Some(piece) => input.extend_from_slice(piece),
            None if parsed.current.is_some() => return parsed.refuse(400),
            None => return parsed.done.join(" | "),
        }
    }
}

#[test]
fn every_rule_has_a_case() {
    let mut numbers: Vec<u32> = all().iter().map(|rule| rule.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, (1..=53).collect::<Vec<_>>());
}

#[test]
fn the_parser_keeps_the_rules_that_it_decides() {
    for Rule { number, name, input, expected, .. } in all().iter().filter(|rule| rule.is_pure) {
        assert_eq!(&parse([&input[..]]), expected, "{number} {name}, whole");
        assert_eq!(&parse(input.chunks(1)), expected, "{number} {name}, byte by byte");
        for cut in (1..input.len()).step_by(input.len() / 300 + 1) {
            assert_eq!(
                &parse([&input[..cut], &input[cut..]]),
                expected,
                "{number} {name}, cut at {cut}"
            );
        }
    }
}

#[test]
fn a_server_keeps_every_rule_on_a_scripted_socket() {
    for Rule { number, name, input, expected, .. } in all() {
        let check = |pieces: &[&[u8]], read_max: usize, how: &str| {
            let mut driver = probe(ServerConfig::new());
            driver.limit_reads(read_max);
            pieces.iter().for_each(|piece| driver.send(piece));
            driver.end();
            assert_eq!(transcript(&driver.take_received()), expected, "{number} {name}, {how}");
            assert!(driver.is_ended(), "{number} {name}, {how}: it ends");
            assert_eq!(driver.failures(), [""; 0], "{number} {name}, {how}");
        };
        check(&[&input], usize::MAX, "whole");
        check(&[&input], input.len() / 300 + 1, "in small reads");
        check(&input.chunks(1).collect::<Vec<_>>(), usize::MAX, "byte by byte");
        for cut in (1..input.len()).step_by(input.len() / 150 + 1) {
            check(&[&input[..cut], &input[cut..]], usize::MAX, &format!("cut at {cut}"));
        }
    }
}
