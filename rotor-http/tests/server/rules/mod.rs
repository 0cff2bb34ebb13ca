//! The rules of HTTP/1.1 that independent suites check, numbered 1 to 53: each is asked of the
//! parser alone, where that decides, and of a whole server on a scripted socket and on a kernel's,
//! with the bytes coming whole, one by one, and (not on the kernel's) cut at every point. Where two
//! answers are allowed, the row says which is ours.

mod bodies;
mod connections;
mod heads;
mod more;

use rotor_http::h1::{BodyDecoder, FieldStorage, HeadReader, Limits, Method, RequestSemantics};
use rotor_http::server::ServerConfig;

use crate::probe::{probe, request};
use crate::tcp::TcpServer;
use crate::wire::transcript;

struct Rule {
    number: u32,
    name: &'static str,
    input: Vec<u8>,
    expected: String,
    /// Whether the parser alone decides.
    is_pure: bool,
}

fn rule(
    number: u32,
    name: &'static str,
    input: impl AsRef<[u8]>,
    expected: impl Into<String>,
) -> Rule {
    Rule { number, name, input: input.as_ref().to_vec(), expected: expected.into(), is_pure: true }
}

/// A rule for whole servers: it depends on a handler.
fn served(
    number: u32,
    name: &'static str,
    input: impl AsRef<[u8]>,
    expected: impl Into<String>,
) -> Rule {
    Rule { is_pure: false, ..rule(number, name, input, expected) }
}

/// A request line with a `Host`.
fn start(line: &str) -> Vec<u8> {
    format!("{line}\r\nHost: a\r\n\r\n").into_bytes()
}

/// A GET with these field lines after `Host`.
fn fields(lines: &str) -> Vec<u8> {
    request("GET /", &format!("{lines}\r\n"), "")
}

fn posted(lines: &str, body: &str) -> Vec<u8> {
    request("POST /", &format!("{lines}\r\n"), body)
}

const BAD: &str = "400 close";

fn all() -> Vec<Rule> {
    [
        heads::start_lines(),
        heads::targets(),
        heads::versions(),
        heads::field_lines(),
        heads::hosts(),
        bodies::lengths(),
        bodies::codings(),
        bodies::chunks(),
        connections::connections(),
        connections::responses(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The parser's view of a connection.
struct Parsed {
    done: Vec<String>,
    /// The request whose body comes, and whether another may follow it.
    current: Option<(String, BodyDecoder, bool)>,
}

impl Parsed {
    fn refuse(mut self, status: u16) -> String {
        self.done.push(format!("{status} close"));
        self.done.join(" | ")
    }
}

/// What the parser alone makes of the pieces, in the words of a transcript.
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
fn every_rule_is_there() {
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
        let check = |pieces: &[&[u8]], how: &str| {
            let mut driver = probe(ServerConfig::new());
            pieces.iter().for_each(|piece| driver.send(piece));
            driver.end();
            assert_eq!(transcript(&driver.take_received()), expected, "{number} {name}, {how}");
            assert!(driver.is_ended(), "{number} {name}, {how}: it ends");
            assert_eq!(driver.failures(), [""; 0], "{number} {name}, {how}");
        };
        check(&[&input], "whole");
        check(&input.chunks(1).collect::<Vec<_>>(), "byte by byte");
        for cut in (1..input.len()).step_by(input.len() / 150 + 1) {
            check(&[&input[..cut], &input[cut..]], &format!("cut at {cut}"));
        }
    }
}

#[test]
fn a_server_keeps_every_rule_on_a_kernel_socket() {
    let mut server = TcpServer::new(ServerConfig::new());
    for Rule { number, name, input, expected, .. } in all() {
        for piece in [usize::MAX, 1] {
            let bytes = server.ask(&input, piece);
            assert_eq!(transcript(&bytes), expected, "{number} {name}, {piece} octets at once");
        }
    }
    while server.instance.machines().len() > 1 {
        server.turn(std::time::Duration::from_millis(10));
    }
}
